#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "memory_rounds.h"
#include "query.h"
#include "repeat.h"

enum { SCALING_ALL_UP_TO = 8 };
static const double not_less = 0.85; /* of what fewer workers got together */

static uint32_t next_workers(uint32_t workers)
{
    return workers < SCALING_ALL_UP_TO ? workers + 1 : workers + workers / 4;
}

/* What so many workers of the group get together: the median of as many rounds as it takes. */
static int measure_workers(struct probe *probe, size_t bytes, const struct profile_set *group, uint32_t workers,
                           double *rates, struct profile_scaling_point *point)
{
    size_t room = probe->machine->memory_limit_bytes / (3 * (size_t)workers), done = 0;
    double totals[REPEAT_MEDIAN_MOST];
    while (!repeat_median_settled(totals, done) && !(done > 0 && probe_late(probe))) {
        int rc = memory_copy(probe, bytes < room ? bytes : room, group->ids, workers, rates);
        if (rc < 0) {
            return rc;
        }
        totals[done] = 0;
        for (uint32_t i = 0; i < workers; i++) {
            totals[done] += rates[i];
        }
        done++;
    }
    *point = (struct profile_scaling_point){.workers = workers,
                                            .bytes_per_s = probe_median(totals, done),
                                            .repetitions = (uint32_t)done,
                                            .spread = probe_spread(totals, done)};
    return 0;
}

/* What two workers get together is known from the rounds of the pairs; another measurement, at another time, might
 * contradict them. 0 when no pair of the level was measured. */
static double total_of_two(const struct memory_rounds *rounds, const struct profile_memory_level *level)
{
    const struct profile_set *pus = &rounds->probe->machine->pus;
    double best = 0, total = 0;
    for (size_t i = 0; i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count; j++) {
            double candidate = rounds->totals[pair_index(pus->count, i, j)];
            double nearness =
                candidate > 0 ? fmin(candidate / 2 / level->bytes_per_s, 2 * level->bytes_per_s / candidate) : 0;
            if (nearness > best && profile_related(&level->collisions, pus->ids[i], pus->ids[j])) {
                best = nearness;
                total = candidate;
            }
        }
    }
    return total;
}

/* More workers than before that get clearly less were disturbed: asked again once, and the better figure counts. */
static int measure_point(struct memory_rounds *rounds, const struct profile_set *group, uint32_t workers, double before,
                         double *rates, struct profile_scaling_point *point)
{
    struct profile_scaling_point again;
    int rc = measure_workers(rounds->probe, rounds->bytes, group, workers, rates, point);
    if (rc < 0 || point->bytes_per_s > not_less * before) {
        return rc;
    }
    rc = measure_workers(rounds->probe, rounds->bytes, group, workers, rates, &again);
    *point = rc == 0 && again.bytes_per_s > point->bytes_per_s ? again : *point;
    return rc;
}

/* bytes_per_s 0: not known yet. */
static struct profile_scaling_point known_point(const struct memory_rounds *rounds, const struct profile_memory *alone,
                                                const struct profile_memory_level *level, uint32_t workers)
{
    const struct profile_quality *quality = workers == 1 ? &alone->quality : &level->quality;
    return (struct profile_scaling_point){.workers = workers,
                                          .bytes_per_s = workers == 1   ? alone->reference_bytes_per_s
                                                         : workers == 2 ? total_of_two(rounds, level)
                                                                        : 0,
                                          .repetitions = quality->repetitions,
                                          .spread = quality->spread};
}

int memory_scaling(struct memory_rounds *rounds, const struct profile_set *group, const struct profile_memory *alone,
                   struct profile_memory_level *level)
{
    level->scaling = calloc(group->count, sizeof *level->scaling);
    double *rates = malloc(group->count * sizeof *rates);
    int rc = level->scaling && rates ? 0 : -ENOMEM;
    for (uint32_t workers = 1; rc == 0 && workers <= group->count;) {
        struct profile_scaling_point point = known_point(rounds, alone, level, workers);
        double before = level->scaling_count ? level->scaling[level->scaling_count - 1].bytes_per_s : 0;
        probe_tell(rounds->probe, 0.95, "memory with %u workers", workers);
        rc = point.bytes_per_s > 0 ? 0 : measure_point(rounds, group, workers, before, rates, &point);
        if (rc == 0) {
            level->scaling[level->scaling_count++] = point;
        }
        uint32_t next = next_workers(workers);
        workers = next > group->count && workers < group->count ? (uint32_t)group->count : next;
    }
    free(rates);
    return rc;
}
