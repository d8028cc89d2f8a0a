/* Output of the shim and the tracer: lines on stderr, and small files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Messages of the shim: on stderr, one line in one write, beginning with "servet: ". A line that
 * would have to wait for a reader is dropped, and none raises a signal. */

/* Remembers what stderr is, at its first call. A program that closes it and opens a file of its own
 * next, or puts something else in its place, gets no line of ours there. Without this call
 * everything is said. */
void pin_log_start(void);

/* A failure. No more than PIN_FAILURE_CAP of them in one process: the program that runs is the
 * user's, not ours. */
#define PIN_FAILURE_CAP 4
void pin_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What SERVET_VERBOSE asks for, if `verbose`; the line begins with the process's number. */
void pin_log(bool verbose, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The signals that a write can raise, as the kernel takes sets of them: signal n is bit n - 1. */
struct pin_signals {
    uint64_t mask, pending;
};
/* Holds them back in the calling thread. */
void pin_signals_hold(struct pin_signals *before);
/* Drops those that have been raised since, and restores the mask. */
void pin_signals_release(const struct pin_signals *before);

/* -- small files -- */

/* One write to the end of the report, or to stderr for "stderr", so that processes can share it. A
 * failure is said once. */
void pin_file_append(const char *where, const char *text, size_t length);

/* Does the name of a report ask for JSON lines? */
bool pin_file_is_json(const char *where);

/* A record about this process (profile/text/record.h): in the report `where`, NULL: none, and with
 * `verbose` on stderr. */
struct profile_fact;
void pin_record(const char *where, bool verbose, const char *sentence,
                const struct profile_fact *facts);

/* Reads at most `size` - 1 bytes of a regular file of the calling user that no other user can write
 * to, not through a link in its last part. 0; -EPERM: another user's; -EFBIG; -errno. */
int pin_file_get_own(const char *path, char *text, size_t size);
