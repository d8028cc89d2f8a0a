/* How many of some chosen lines miss the second level (misses.h). The first must hold none of them,
 * or what misses it now and then would pass for misses of the second: so lines that miss nothing
 * are visited with them, and what the first level keeps all the same, because it evicts at random,
 * is told by what fewer of these take. To see it: tests/probes/test_ways.c. */
#include "probes/cache/misses.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "profile/base/statistics.h"

enum {
    WARM_PASSES = 16,
    LOOKS = 2,       /* that agree, */
    LOOKS_MAX = 4,   /* of so many at most */
    COUNT_LOOKS = 9, /* where lines are counted: of a look in twelve that is disturbed */
    COUNT_KEPT = 7,  /* hardly ever more than two are among so many; the fastest count */
    CROWD = 3,       /* times the ways of the first level: of random replacement 6 % hit then */
    USUAL_WAYS = 12, /* of a first level whose ways are not known */
    SURE_LOOKS = 3,  /* times as many: what is off here is off in all that is compared */
};
static const double most_quiet = 1.5;   /* lines that miss of those that are to miss none */
static const double least_crowd = 1.25; /* times the ways of the first level: LRU keeps none then */
static const double alike = 1.1;        /* times slower: a look is not disturbed */

static int measure(struct cache_lines *of, const uint32_t *lines, size_t count,
                   enum machine_order order, double *seconds)
{
    const struct machine_traversal what = {
        .bytes = 2 * (size_t)of->pool * of->stride,
        .stride_bytes = of->stride,
        .nodes = lines,
        .node_count = count,
        .order = order,
        .pages = MACHINE_PAGES_ORDINARY,
        .warm_passes = WARM_PASSES,
        .seed = of->seed,
    };
    return probe_machine_traverse(of->probe->machine, &what, &of->pu, 1, seconds);
}

/* The least of several looks: what disturbs only ever slows down. As long as no other is as fast as
 * the fastest, one more is taken: two are both disturbed often enough beside a load to spoil a try,
 * which asks hundreds of times. */
static int fastest(struct cache_lines *of, const uint32_t *lines, size_t count,
                   enum machine_order order, double *seconds)
{
    double least = INFINITY;
    for (int look = 0, agreeing = 0; agreeing < LOOKS && look < LOOKS_MAX; look++) {
        double once;
        int rc = measure(of, lines, count, order, &once);
        if (rc < 0) {
            return rc;
        }
        agreeing = once * alike < least ? 1 : agreeing + (once < least * alike);
        least = fmin(least, once);
    }
    *seconds = least;
    return 0;
}

/* What the lines take longer than as many of the same pages that lie in different sets: misses of
 * the TLB are in both. */
static int measure_extra(struct cache_lines *of, const uint32_t *lines, size_t count,
                         double *seconds)
{
    double together, apart;
    int rc = fastest(of, lines, count, MACHINE_CHASE, &together);
    rc = rc < 0 ? rc : fastest(of, lines, count, MACHINE_SPREAD, &apart);
    if (rc == 0) {
        *seconds = together - apart;
    }
    return rc;
}

/* The same by many looks: a policy that draws, or that stays in the round in which it was begun,
 * makes now more lines miss and now fewer. What is slowest may be disturbed. */
static int mean_extra(struct cache_lines *of, const uint32_t *lines, size_t count, double *seconds)
{
    double together[COUNT_LOOKS], apart[COUNT_LOOKS], sum = 0;
    for (int look = 0; look < COUNT_LOOKS; look++) {
        int rc = measure(of, lines, count, MACHINE_CHASE, &together[look]);
        rc = rc < 0 ? rc : measure(of, lines, count, MACHINE_SPREAD, &apart[look]);
        if (rc < 0) {
            return rc;
        }
    }
    profile_sort(together, COUNT_LOOKS);
    profile_sort(apart, COUNT_LOOKS);
    for (int look = 0; look < COUNT_KEPT; look++) {
        sum += together[look] - apart[look];
    }
    *seconds = sum / COUNT_KEPT;
    return 0;
}

typedef int extra_function(struct cache_lines *of, const uint32_t *lines, size_t count,
                           double *seconds);

/* What a line takes, of so many visited, that misses nothing behind the first level, which hits now
 * and then by random replacement: of few lines more often than of many. */
static double hit_s(const struct cache_lines *of, size_t lines)
{
    return of->kept > 0 ? of->base_s * probe_cache_set_miss(CACHE_RANDOM, of->kept, (double)lines)
                        : of->base_s;
}

static int missing_of(struct cache_lines *of, const uint32_t *lines, size_t count,
                      extra_function *extra_of, double *missing)
{
    const size_t all = count + of->quiet_count;
    double extra = 0;
    if (probe_late(of->probe)) {
        return -ETIME;
    }
    memcpy(of->visited, lines, count * sizeof *lines);
    memcpy(of->visited + count, of->quiet, of->quiet_count * sizeof *lines);
    int rc = extra_of(of, of->visited, all, &extra);
    *missing =
        (double)all * (extra - hit_s(of, all)) / (of->level->miss_seconds - of->level->seconds);
    return rc;
}

int probe_misses(struct cache_lines *of, const uint32_t *lines, size_t count, double *missing)
{
    return missing_of(of, lines, count, mean_extra, missing);
}

int probe_misses_soon(struct cache_lines *of, const uint32_t *lines, size_t count, double *missing)
{
    return missing_of(of, lines, count, measure_extra, missing);
}

int probe_misses_surely(struct cache_lines *of, const uint32_t *lines, size_t count,
                        double *missing)
{
    double sum = 0;
    int rc = 0;
    for (int round = 0; rc == 0 && round < SURE_LOOKS; round++) {
        double once = 0;
        rc = missing_of(of, lines, count, mean_extra, &once);
        sum += once;
    }
    *missing = sum / SURE_LOOKS;
    return rc;
}

static double crowded_by(const struct cache_lines *of)
{
    return of->level->first_ways > 0 ? of->level->first_ways : USUAL_WAYS;
}

double probe_misses_crowd(const struct cache_lines *of)
{
    return least_crowd * crowded_by(of);
}

/* By what fewer lines take: of a first level of random replacement less each, as more of them hit
 * there. `base_s` becomes that of a line that misses it. */
static int find_kept(struct cache_lines *of)
{
    const size_t all = of->quiet_count, some = all / 2 + 1;
    double extra = 0, best = INFINITY, share = 1;
    memcpy(of->visited, of->quiet, some * sizeof *of->quiet);
    int rc = mean_extra(of, of->visited, some, &extra);
    for (uint32_t kept = 0; kept < all && of->base_s > 0; kept++) {
        const double of_all = probe_cache_set_miss(CACHE_RANDOM, kept, (double)all);
        const double of_some = probe_cache_set_miss(CACHE_RANDOM, kept, (double)some);
        const double off = fabs(extra / of->base_s - (kept > 0 ? of_some / of_all : 1));
        if (off < best) {
            best = off;
            of->kept = kept;
            share = kept > 0 ? of_all : 1;
        }
    }
    of->base_s /= share;
    return rc;
}

/* Lines of the pool that miss the first level and not the second. Where there are not as many as
 * crowd the first level, because they conflict, there are none: too few would hit, and what misses
 * the first level would pass for a miss of the second. */
int probe_misses_choose_quiet(struct cache_lines *of, const uint32_t *pool)
{
    const double expected = of->level->seconds - of->level->first_seconds;
    const double miss = of->level->miss_seconds - of->level->seconds;
    const double least = probe_misses_crowd(of);
    size_t count = (size_t)(CROWD * crowded_by(of));
    count = count < of->pool / 2 ? count : of->pool / 2;
    double missing = INFINITY;
    of->quiet_count = 0;
    of->kept = 0;
    while ((double)count > least) {
        of->base_s = expected; /* the lines that are looked at are all of these */
        int rc = probe_misses_surely(of, pool + of->pool - count, count, &missing);
        if (rc < 0) {
            return rc;
        }
        if (missing < most_quiet) {
            break;
        }
        count /= 2;
    }
    of->quiet_count = (double)count > least ? count : 0;
    of->base_s = expected;
    memcpy(of->quiet, pool + of->pool - of->quiet_count, of->quiet_count * sizeof *of->quiet);
    if (of->quiet_count > 0) {
        of->base_s = fmax(expected + missing * miss / (double)count, 0);
        return find_kept(of);
    }
    return 0;
}
