/* Where this process's threads go: the mapper's answer for the profile of this machine, as a list
 * of slots.
 *
 * A process by itself has one slot for every PU that it may use, in the order of `servet-map -n N`.
 * The ranks of one node deal these slots out among themselves: with OMP_NUM_THREADS = T > 1 each
 * rank has its domain of T PUs (map_domains); otherwise rank r of L has slots r, r + L, r + 2L …,
 * so that the first L are the ranks' main threads as `servet-map -n L` orders them and threads that
 * a rank makes without having said so find PUs that no other rank has.
 */
#ifndef SERVET_PRELOAD_PLACE_PLAN_H
#define SERVET_PRELOAD_PLACE_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "preload/node/registry.h"
#include "preload/place/launcher.h"
#include "preload/place/memory.h"
#include "preload/place/options.h"
#include "profile/base/mask.h"

struct pin_plan {
    uint32_t *pus; /* PU of each slot, by OS index; slot 0 is the main thread's */
    size_t count;  /* at least 1 */
    struct profile_mask
        held; /* what the process, and all ranks of its job on this node, are sure to use */
    struct pin_nodes nodes;  /* NUMA nodes of the PUs of `own` */
    struct profile_mask own; /* those PUs: what OpenMP runtimes are told that they have */
    char source[256];        /* what it was made from, in words */
};

/* First number of OMP_NUM_THREADS ("4,2" has one for each level of nesting), 0 without one. */
uint32_t pin_plan_threads(void);

/* Makes the plan for a process that may use `allowed`, around what other programs hold, and enters
 * what it is sure to use into the registry (`claims`). `threads` is what OMP_NUM_THREADS says, 0 if
 * it says nothing. A profile that cannot be used is one line on stderr, said by the first of a
 * node's ranks, and the plan is made from the declared topology. 0 or -errno (said on stderr). */
int pin_plan_make(const struct pin_options *options, const struct pin_launcher *launcher,
                  uint32_t threads, const struct profile_mask *allowed, struct pin_claims *claims,
                  struct pin_plan *out);

void pin_plan_free(struct pin_plan *plan);

#endif
