/* Candidates of the tuner. Suggestions divide a node along what it shares and leave SMT alone; what
 * they cannot know is how a program scales, and a step to either side finds that out. */
#include "benchmarks/bench/candidates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/map.h"
#include "mapper/worth/worth.h"
#include "profile/scope.h"
#include "profile/tiers.h"

/* The suggestions of both priorities and the user's own, each with its four neighbours. */
#define MOST_DIVISIONS (((size_t)2 * MAP_SUGGESTIONS + 1) * 5)

struct divisions {
    struct pin_tuned list[MOST_DIVISIONS];
    size_t count;
    uint32_t pus;
    const struct bench_habit *habit;
};

static void add(struct divisions *d, uint32_t ranks, uint32_t threads)
{
    ranks = d->habit->ranks ? ranks : 0;
    threads = d->habit->fixed ? d->habit->fixed : threads;
    if (threads == 0 || (uint64_t)(ranks ? ranks : 1) * threads > d->pus) {
        return;
    }
    for (size_t i = 0; i < d->count; i++) {
        if (d->list[i].ranks == ranks && d->list[i].threads == threads) {
            return;
        }
    }
    d->list[d->count++] = (struct pin_tuned){.ranks = ranks, .threads = threads};
}

/* Of one process all threads that the division has together. */
static void add_suggestions(struct divisions *d, const struct map_suggestions *of, bool chosen)
{
    for (size_t i = 0; i < of->count; i++) {
        const struct map_suggestion *row = &of->list[i];
        if (row->chosen == chosen) {
            add(d, row->ranks, row->threads * (d->habit->ranks ? 1 : row->ranks));
        }
    }
}

/* Twice and half as many, of ranks at the cost of threads, and of threads alone. */
static void add_neighbours(struct divisions *d)
{
    static const struct {
        uint32_t ranks, of_ranks, threads, of_threads;
    } steps[] = {{2, 1, 1, 2}, {1, 2, 2, 1}, {1, 1, 1, 2}, {1, 1, 2, 1}};
    for (size_t i = 0, all = d->count * 4; i < all; i++) {
        const struct pin_tuned one = d->list[i / 4];
        uint32_t ranks = one.ranks * steps[i % 4].ranks,
                 threads = one.threads * steps[i % 4].threads;
        if (ranks % steps[i % 4].of_ranks == 0 && threads % steps[i % 4].of_threads == 0) {
            add(d, ranks / steps[i % 4].of_ranks, threads / steps[i % 4].of_threads);
        }
    }
}

static struct pin_tuned run_before(const struct bench_habit *habit, uint32_t pus)
{
    struct pin_tuned out = {.threads = habit->fixed ? habit->fixed : habit->before,
                            .placement = PIN_TUNED_DEFAULT};
    if (!out.threads) {
        out.threads = habit->ranks ? 1 : pus;
    }
    if (habit->ranks) {
        out.ranks = out.threads < pus ? pus / out.threads : 1;
    }
    return out;
}

static int map_both(const struct servet_profile *node, const struct profile_set *allowed,
                    const struct pin_tuned *of, uint32_t *pus, struct servet_error *error)
{
    struct map_request request = {
        .workers = of->ranks ? of->ranks : 1, .threads_each = of->threads, .allowed = allowed};
    for (size_t i = 0; i < 2; i++) {
        request.priority = i ? MAP_COMMUNICATION : MAP_MEMORY;
        TRY(map_domains(node, &request, pus + i * request.workers * of->threads, error));
    }
    return 0;
}

/* With each policy of memory where nodes differ; without the shim there is none. */
static void add_memories(struct pin_tuned one, bool tiers, struct bench_candidates *out)
{
    const bool several = tiers && one.placement != PIN_TUNED_DEFAULT;
    for (unsigned memory = 0; memory < (several ? PIN_TUNED_MEMORIES : 1); memory++) {
        one.memory = memory;
        out->list[out->count++] = one;
    }
}

static int has_tiers(const struct servet_profile *node, bool *out)
{
    FREED_BY(profile_tiers_free) struct profile_tiers tiers = {0};
    TRY(profile_tiers_make(profile_node_class(node, 0), &tiers));
    *out = tiers.count > 1;
    return 0;
}

static bool is_same(const struct pin_tuned *a, const struct pin_tuned *b)
{
    return a->ranks == b->ranks && a->threads == b->threads && a->placement == b->placement;
}

/* Both priorities and none of them, for each way to divide. */
static int add_placements(const struct servet_profile *node, const struct profile_set *allowed,
                          const struct divisions *d, struct bench_candidates *out,
                          struct servet_error *error)
{
    bool tiers;
    FREED uint32_t *pus = calloc(allowed->count, 2 * sizeof *pus);
    TRY(pus ? has_tiers(node, &tiers) : -ENOMEM);
    for (size_t i = 0; i < d->count; i++) {
        struct pin_tuned one = d->list[i];
        size_t workers = (size_t)(one.ranks ? one.ranks : 1) * one.threads;
        TRY(map_both(node, allowed, &one, pus, error));
        bool same = memcmp(pus, pus + workers, workers * sizeof *pus) == 0;
        for (unsigned p = 0; p < PIN_TUNED_PLACEMENTS; p++) {
            one.placement = p;
            if (!(p == PIN_TUNED_COMMUNICATION && same) && !is_same(&one, &out->list[0])) {
                add_memories(one, tiers, out);
            }
        }
    }
    return 0;
}

/* By one priority. */
static int suggest_most(const struct servet_profile *node, const struct profile_set *allowed,
                        size_t most, struct map_suggestions *out, struct servet_error *error)
{
    const enum map_priority priority = out->priority;
    FREED_BY(profile_set_free) struct profile_set kept = {0};
    const struct map_suggest_request request = {.priority = priority, .nodes = 1, .allowed = &kept};
    TRY(profile_set_copy(allowed, &kept));
    TRY(map_worth_keep(node, priority, most, &kept, error));
    map_suggest(node, &request, out);
    return 0;
}

int bench_candidates(const struct servet_profile *node, const struct profile_set *allowed,
                     const struct bench_habit *habit, struct bench_candidates *out,
                     struct servet_error *error)
{
    const uint32_t all_pus = (uint32_t)allowed->count;
    const struct pin_tuned before = run_before(habit, all_pus);
    struct divisions d = {.habit = habit,
                          .pus = habit->most && habit->most < all_pus ? habit->most : all_pus};
    struct map_suggestions found[2] = {{.priority = MAP_MEMORY}, {.priority = MAP_COMMUNICATION}};
    struct bench_candidates all = {0};
    for (int i = 0; i < 2; i++) {
        TRY(suggest_most(node, allowed, d.pus, &found[i], error));
    }
    for (int i = 0; i < 4; i++) {
        add_suggestions(&d, &found[i % 2], i < 2);
    }
    add(&d, before.ranks, before.threads);
    add_neighbours(&d);
    all.list = calloc(d.count + 1, PIN_TUNED_PLACEMENTS * PIN_TUNED_MEMORIES * sizeof *all.list);
    if (all.list) {
        all.list[all.count++] = before;
    }
    int rc = all.list ? add_placements(node, allowed, &d, &all, error) : -ENOMEM;
    if (rc < 0) {
        free(all.list);
        return rc == -ENOMEM ? profile_error(error, rc, "out of memory") : rc;
    }
    *out = all;
    return 0;
}

bool bench_candidate_simpler(const struct pin_tuned *a, const struct pin_tuned *b)
{
    const bool is_placed = a->placement != PIN_TUNED_DEFAULT,
               other_is = b->placement != PIN_TUNED_DEFAULT;
    const uint32_t left[] = {is_placed, a->ranks, a->threads, a->memory, a->placement},
                   right[] = {other_is, b->ranks, b->threads, b->memory, b->placement};
    size_t at = 0;
    while (at + 1 < sizeof left / sizeof *left && left[at] == right[at]) {
        at++;
    }
    return left[at] < right[at];
}
