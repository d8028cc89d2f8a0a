/* One set of a cache: which share of the visits misses when `lines` lines are visited over and over
 * in the same order.
 *
 * Where no formula is known, a set is played through, once for each number of lines and ways, and
 * remembered.
 */
#ifndef SERVET_PROBES_CACHE_SET_H
#define SERVET_PROBES_CACHE_SET_H

#include "probes/cache/model.h"

/* Misses per visit, in [0, 1]; `lines` is a whole number. */
double probe_cache_set_miss(enum cache_policy policy, uint32_t ways, double lines);

/* The same of a cache that holds what the level before it evicted; that one holds a share `held` of
 * the working set, the lines visited last. CACHE_PLRU and CACHE_RANDOM. */
double probe_cache_set_victims_miss(enum cache_policy policy, uint32_t ways, double lines,
                                    double held);

#endif
