/* Which ranks, threads and placements are worth a run: what servet-map --suggest proposes from the
 * profile, and its neighbours. */
#ifndef SERVET_BENCHMARKS_BENCH_CANDIDATES_H
#define SERVET_BENCHMARKS_BENCH_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>

#include "preload/command/tuned.h"
#include "profile/model.h"

struct bench_candidates {
    struct pin_tuned *list; /* what is proposed first comes first; free() it */
    size_t count;
};

/* Of a node of which the PUs `allowed` may be used. With `ranks` ways to divide it, else numbers of
 * threads of one process. Where both priorities give the same PUs in the same order, memory stands
 * for both. Where the node has tiers of memory each placement is there with each policy, too. 0;
 * -EINVAL (no PU is allowed); -ENOMEM. */
int bench_candidates(const struct servet_profile *node, const struct profile_set *allowed,
                     bool ranks, struct bench_candidates *out, struct servet_error *error);

#endif
