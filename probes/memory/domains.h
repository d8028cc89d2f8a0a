/* A domain is a set of PUs that share a limit of memory bandwidth, a link or a controller, which no
 * pair of them fills.
 *
 * On a machine of today one core moves 20 GB/s, the link of a few cores 40 to 60, a socket 100 to
 * 400: no two workers collide (2010 paper, Section III-C), and yet eight on one link get a quarter
 * of what they could. So sets are measured:
 *
 *   candidates   groups that are declared (caches, NUMA nodes, packages), found by shared caches or
 *                by messages. All cores of one group against as many spread over its siblings, in
 *                both with as many workers in each smaller domain: less than 0.9 is an overhead
 *                level. One group and a random second are measured, one of each other size or
 *                kind of cores, and some members of the first against the others; what the other
 *                groups get in all says whether they are alike. Where any is not, all are
 *                measured: one is a domain if its parts lose something together, too, and groups
 *                that are none go, unless a level lies inside of them.
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
#ifndef SERVET_PROBES_MEMORY_DOMAINS_H
#define SERVET_PROBES_MEMORY_DOMAINS_H

#include "probes/memory/pairs.h"
#include "probes/probe.h"

/* Copies for each core that is searched for domains that nobody declares: 11 to 15 on most
 * simulated machines of 128 to 512 PUs, 4 where groups are large and alike, 60 with four threads a
 * core. */
#define PROBE_MEMORY_SEARCHED_COPIES 12.0

/* Adds the levels that sets show to those of pairs, with their groups and curves (model.h: worst
 * first, each within the next). `candidates`: partitions of the PUs that may be domains; what they
 * say is tried, never taken over. Stops early, with what it has, when the probe is late, and where
 * copies that are to meet never do: those that did not say that nothing is lost.
 * 0, or -errno of the machine with one line in `error`; `found` is as it was then. */
int probe_memory_sets(struct probe *probe, const struct profile_relation *const *candidates,
                      size_t count, struct probe_memory *found, struct servet_error *error);

#endif
