/* Which ranks, threads and placements are worth a run: what servet-map --suggest proposes from the
 * profile, and its neighbours. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "preload/command/tuned.h"
#include "profile/model.h"

struct bench_candidates {
    struct pin_tuned *list; /* what is proposed first comes first; free() it */
    size_t count;
};

/* The user's way to run the program. */
struct bench_habit {
    bool ranks;      /* behind a launcher */
    uint32_t fixed;  /* threads of a process, where no candidate may have others; 0: it may */
    uint32_t before; /* threads of a process until now; 0: the system's number */
    uint32_t most;   /* workers that a quota lets run at a time; 0: one on each PU */
};

/* Of a node of which the PUs `allowed` may be used. The first is what the user runs until now, as
 * the system places it: on all PUs, a rank with one thread where nothing else is said. The others
 * are ways to divide the node, or numbers of threads of one process. Where both priorities give
 * the same PUs in the same order, memory stands for both. Where the node has tiers of memory each
 * placement is there with each policy, too. 0; -EINVAL (no PU is allowed); -ENOMEM. */
int bench_candidates(const struct servet_profile *node, const struct profile_set *allowed,
                     const struct bench_habit *habit, struct bench_candidates *out,
                     struct servet_error *error);

/* Asks less of the user: the system's own placement first, then fewer ranks, then fewer threads. */
bool bench_candidate_simpler(const struct pin_tuned *a, const struct pin_tuned *b);
