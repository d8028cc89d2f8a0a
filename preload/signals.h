/* Writing without the signals that a write can raise.
 *
 * A line to a pipe that nobody reads raises SIGPIPE, a file beyond `ulimit -f` SIGXFSZ, a terminal in the background
 * SIGTTOU: each would end or stop the program for something that it has not written.
 */
#ifndef SERVET_PRELOAD_SIGNALS_H
#define SERVET_PRELOAD_SIGNALS_H

#include <stdint.h>

/* Sets of signals as the kernel takes them: signal n is bit n - 1. */
struct pin_signals {
    uint64_t mask, pending;
};

/* Holds those signals back in the calling thread. */
void pin_signals_hold(struct pin_signals *before);
/* Drops those that have been raised since, and restores the mask. */
void pin_signals_release(const struct pin_signals *before);

#endif
