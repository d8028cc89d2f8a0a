/* Groups that contradict each other, as a noisy measurement leaves them: neither inside the other nor apart. */
#ifndef SERVET_MAPPER_CONTRADICT_H
#define SERVET_MAPPER_CONTRADICT_H

#include "model.h"

/* Names the first two groups of the profile that cross, "L3 cache 0-1 and memory level 1 0,2,4,6". The mapping is made
 * all the same: each rule counts its own groups, pair by pair, and only the short cut through nested groups is lost. 0:
 * none cross (`text` is empty); 1: some do; -ENOMEM, -EINVAL as map_workers(). */
int map_contradiction(const struct servet_profile *profile, char *text, size_t size, struct servet_error *error);

#endif
