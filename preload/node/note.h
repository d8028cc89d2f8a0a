/* Writing without the signals that a write can raise.
 *
 * A line to a pipe that nobody reads raises SIGPIPE, a file beyond `ulimit -f` SIGXFSZ, a terminal
 * in the background SIGTTOU: each would end or stop the program for something that it has not
 * written.
 */
#ifndef SERVET_PRELOAD_NODE_NOTE_H
#define SERVET_PRELOAD_NODE_NOTE_H

#include <stdbool.h>
#include <stdint.h>

/* Sets of signals as the kernel takes them: signal n is bit n - 1. */
struct pin_signals {
    uint64_t mask, pending;
};

/* Holds those signals back in the calling thread. */
void pin_signals_hold(struct pin_signals *before);
/* Drops those that have been raised since, and restores the mask. */
void pin_signals_release(const struct pin_signals *before);

/* What the shim says, always on stderr and never on stdout, each in one write of one line that
 * begins with "servet: ". A line that would have to wait for a reader is dropped, and none raises a
 * signal.
 */

/* Remembers what stderr is. A program that closes it and opens a file of its own next, or puts
 * something else in its place, gets no line of ours there. Without this call everything is said. */
void pin_note_start(void);
bool pin_note_stderr_is_ours(void);

/* A failure. No more than PIN_FAILURE_CAP of them in one process: the program that runs is the
 * user's, not ours. */
#define PIN_FAILURE_CAP 4
void pin_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What SERVET_VERBOSE asks for; the caller has looked whether it is on. */
void pin_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
