/* The watch (SERVET_WATCH): a thread of ours that looks twice a second whether pinned threads wait
 * for their PU, and moves them. */
#ifndef SERVET_PRELOAD_PLACE_WATCH_H
#define SERVET_PRELOAD_PLACE_WATCH_H

#include "preload/place/process.h"

/* The name of that thread. */
#define PIN_WATCH_NAME "servet-watch"

/* Starts it for a process with a plan. 0; -errno: it is not running. */
int pin_watch_start(struct pin_process *process);
/* Ends it before a sandbox of all threads is made. */
void pin_watch_stop(void);
/* In the child of a fork, where it is not. */
void pin_watch_forget(void);
/* Its line of SERVET_REPORT, if it is running. */
void pin_watch_report(const char *where);

#endif
