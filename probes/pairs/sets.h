/* Memory overhead that no pair of PUs can show: domains that only sets of workers fill.
 *
 * On a machine of today one core moves 20 GB/s, the link of a few cores 40 to 60, a socket 100 to
 * 400: no two workers collide (2010 paper, Section III-C), and yet eight on one link get a quarter
 * of what they could. So sets are measured:
 *
 *   candidates   groups that are declared (caches, NUMA nodes, packages), found by shared caches or
 *                by messages. All cores of one group against as many spread over its siblings, in
 *                both with as many workers in each smaller domain: less than 0.9 is an overhead
 *                level. One group and a random second are measured, and some members of the first
 *                against the others; the other groups are taken over where both agree.
 *   hidden ones  what a unit (a group of cores, a core) adds to others that are at work already,
 *                beside what it gets alone. Units that add less than 0.8 to one another are behind
 *                one link, whatever the topology says; where no two do, a smallest set that leaves
 *                nothing for a further unit is looked for, and every unit is tried beside it.
 *   pruning      a level whose groups lose nothing against others of the same larger domain is only
 *                the larger one's shadow, and goes.
 *
 * The measured EPYC 7402 is the pattern: two L3 caches behind one link of 37 GB/s, which no
 * topology mentions (tests/fixtures/machines/epyc-7402.json).
 */
#ifndef SERVET_PROBES_PAIRS_SETS_H
#define SERVET_PROBES_PAIRS_SETS_H

#include "probes/pairs/memory.h"

/* Adds the levels that sets show to those of pairs, with their groups and curves (model.h: worst
 * first, each within the next). `candidates`: partitions of the PUs that may be domains; what they
 * say is tried, never taken over. Stops early, with what it has, when the probe is late.
 * 0, or -errno of the machine with one line in `error`; `found` is as it was then. */
int probe_memory_sets(struct probe *probe, const struct profile_relation *const *candidates,
                      size_t count, struct probe_memory *found, struct servet_error *error);

#endif
