/* What the shim says, always on stderr and never on stdout, each in one write of one line that begins with "servet: ".
 * A line that would have to wait for a reader is dropped, and none raises a signal.
 */
#ifndef SERVET_PRELOAD_NOTE_H
#define SERVET_PRELOAD_NOTE_H

/* Remembers what stderr is. A program that closes it and opens a file of its own next gets no failure of ours in that
 * file. Without this call everything is said. */
void pin_note_start(void);

/* A failure. No more than PIN_FAILURE_CAP of them in one process: the program that runs is the user's, not ours. */
#define PIN_FAILURE_CAP 4
void pin_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What SERVET_VERBOSE asks for; the caller has looked whether it is on. */
void pin_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
