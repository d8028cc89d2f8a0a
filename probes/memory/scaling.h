/* A scaling curve is the bandwidth of a group by the number of its workers (2010 paper, Section
 * III-C, Figure 9b). */
#ifndef SERVET_PROBES_MEMORY_SCALING_H
#define SERVET_PROBES_MEMORY_SCALING_H

#include "probes/pairs/partition.h"
#include "probes/probe.h"
#include "profile/model.h"

/* Orders positions in the machine's set so that each next one has the fewest before it in its unit
 * of the outermost of `inner` (partitions of the positions), then of the next, the
 * core last: one worker in each inner domain before a second one in any. */
void probe_scaling_order(size_t *positions, size_t count, const struct partitions *inner);

/* Measures the curve of `level` on one of its groups, in that order; slower cores come last, or the curve would fall with the first of them. One worker gets the
 * reference of `memory`. The curve ends where the workers never ran at the same time; -EAGAIN:
 * before there were two. 0, -ENOMEM or the machine's -errno. */
int probe_scaling_measure(struct probe *probe, size_t bytes, const struct profile_set *group,
                          const struct partitions *inner, const struct profile_memory *memory,
                          struct profile_memory_level *level);

#endif
