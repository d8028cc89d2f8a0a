/* A domain is a set of PUs that share a limit of memory bandwidth, a link or a controller, which no
 * pair of them fills.
 *
 * On a machine of today one core moves 20 GB/s, the link of a few cores 40 to 60, a socket 100 to
 * 400: no two workers collide (2010 paper, Section III-C), and yet eight on one link get a quarter
 * of what they could. So sets of units (cores, groups of cores) are measured, and everything is
 * decided by one figure: what a unit gains beside a set that is at work, of what it gets alone. A
 * unit is in a domain if it gains little beside a set that saturates it.
 *
 *   candidates   groups that are declared (caches, NUMA nodes, packages), or found by shared caches
 *                or by messages. A group is a domain if its parts get less than 0.9 together of
 *                what they get separately, and if they all gain little beside some of them. If any
 *                group is one, those that get less than 0.95 are a level.
 *   hidden ones  any unit beside others, until these saturate its domain; then every other unit
 *                beside these (domains_search.c).
 *   pruning      a level goes that loses nothing beyond what domains inside lose, found later.
 *
 * The measured EPYC 7402 is the pattern: two L3 caches behind one link of 37 GB/s, which no
 * topology mentions (tests/fixtures/machines/epyc-7402.json). */
#ifndef SERVET_PROBES_MEMORY_DOMAINS_H
#define SERVET_PROBES_MEMORY_DOMAINS_H

#include "probes/memory/pairs.h"
#include "probes/probe.h"

/* Adds the levels that sets show to those of pairs, with their groups and curves (model.h: worst
 * first, each within the next). `candidates`: partitions of the PUs that may be domains; what they
 * say is tried, never taken over. Stops early, with what it has, when the probe is late, and where
 * copies that are to meet never do: those that did not say that nothing is lost.
 * 0, or -errno of the machine with one line in `error`; `found` is as it was then. */
int probe_memory_sets(struct probe *probe, const struct profile_relation *const *candidates,
                      size_t count, struct probe_memory *found, struct servet_error *error);

#endif
