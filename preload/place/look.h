/* A look at the PUs that other programs keep busy, which costs no wait.
 *
 * The kernel counts the idle time of each PU in ticks of 10 ms, so a look is two readings that lie
 * further apart than a tick. Between them the threads of pools are left to the kernel: it moves
 * them off PUs that are busy. The second reading is made when the program waits for a thread
 * anyway, or makes the next one. */
#ifndef SERVET_PRELOAD_PLACE_LOOK_H
#define SERVET_PRELOAD_PLACE_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/base/mask.h"

/* How many more threads than `ours` are runnable on this system; if there are any, a look at `pus`
 * has begun. */
size_t pin_look_begin(const struct profile_mask *pus, size_t ours);
/* Time until the look can end; 0: now, or there is none. */
uint64_t pin_look_left_ns(void);
bool pin_look_is_pending(void);
/* Ends it: the PUs that had no idle moment. False: it cannot end yet, or another thread ends it.
 * The next one can begin when it is forgotten. */
bool pin_look_end(struct profile_mask *busy);
void pin_look_forget(void);

#endif
