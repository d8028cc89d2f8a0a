/* Why threads have no PU of their own: once for each pool, with figures (SERVET_VERBOSE,
 * SERVET_REPORT). */
#ifndef SERVET_PRELOAD_PLACE_WHY_H
#define SERVET_PRELOAD_PLACE_WHY_H

#include <stdbool.h>

#include "preload/node/neighbours.h"

/* Says it of pools that have been left since the last call. The lock is not held: files are
 * read. */
void pin_why_say(void);
/* For the report at the end: as it is now, while the lock is held; then the same of that. True:
 * some pool was left. */
void pin_why_take_over(void);
bool pin_why_report(void);
/* In the child of a fork. */
void pin_why_reset(void);

/* Why no thread has been placed; NULL: a line has said it. */
const char *pin_why_nothing(void);
/* Why other programs are not seen. */
const char *pin_why_alone(void);

/* "PU 1 held by process 5 (NAME)": those of the processes `there` that may run nowhere else and are
 * of no rank of this job. */
#define PIN_WHY_HOLDERS 192
void pin_why_holders(const struct profile_mask *pus, const struct pin_neighbours *there,
                     char out[PIN_WHY_HOLDERS]);

#endif
