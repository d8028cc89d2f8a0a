/* The watch: a thread of ours that looks whether placed threads wait for their PU, and moves
 * them. */
#pragma once

#include <stdbool.h>

/* The name of that thread. */
#define PIN_WATCH_NAME "servet-watch"

/* Is it to be started before the next thread gets a place? */
bool pin_watch_is_due(void);
/* Starts it, for a process with a plan. Where it cannot run, PUs that do not idle are avoided from
 * now on. The lock is not held. */
void pin_watch_start(void);
/* Ends it, and waits for that: when the last thread has ended, and before a sandbox of all threads.
 * False: there was none. The lock is not held. */
bool pin_watch_stop(void);
/* In the child of a fork, where it is not. */
void pin_watch_forget(void);
