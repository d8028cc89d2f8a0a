/* servet-pin in a quota of CPU time: how many threads pay. */
#ifndef SERVET_PRELOAD_COMMAND_QUOTA_H
#define SERVET_PRELOAD_COMMAND_QUOTA_H

#include <stdbool.h>

#include "preload/place/launcher.h"

/* Sets OMP_NUM_THREADS to this process's share of the quota, where that is less than its mask and
 * no variable of a runtime says how many threads there are to be. The ranks of one control group
 * share its quota. With `says` one line tells what was set and why, what hides the quota, or that
 * there are more ranks than it lets run. */
void pin_quota_apply(const struct pin_launcher *launcher, bool says);

#endif
