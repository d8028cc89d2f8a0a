/* What is asked once the sizes of the levels are known: line size, ways, and the TLB of ordinary
 * pages. Each only needs a few working sets around a level, and each may be left out when the time
 * is short. */
#include "probes/cache/probe.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* -- the first level -- */

/* Line size and ways of the first level, by chases that are a few lines long: they take
 * milliseconds, and no physical address is needed since first levels are indexed virtually. */

enum {
    TRIALS = 5,     /* a busy sibling took ways away in up to four of six trials */
    ROUNDS = 3,     /* of so many trials, while ways and size do not agree */
    HIT_LINES = 16, /* that any first level keeps */
    STRIDES =
        8, /* 1 KiB to 128 KiB: ways of 64 KiB (two of them make 128 KiB) were the largest built */
    FIRST_STRIDE = 1024,
    DISTANCES = 8, /* 8 bytes to 1 KiB: four times the longest line built */
    WAYS_MAX = 40, /* a little more than the 32 ways that were ever built in a first level */
};
/* One line too many makes one miss in each turn where lines are evicted at random, and more where
 * they are not: less than half of one is none. */
static const double half_a_miss = 0.5;
/* Of the way from a hit's latency to a miss's, less than this is no evidence: latencies are off by
 * as much. Where many sets are visited, one line too many is more of LRU, and of random replacement
 * it does not show. */
static const double least_missing = 0.03;
static const double plateau =
    0.92; /* half a line apart, a third of the accesses still hit, of a random policy a tenth */
/* What disturbs passes for a line twice or half as large. Where the declared one reaches so much of
 * the plateau it is that: half a line of a usual policy reaches 0.5 to 0.7. */
static const double near_plateau = 0.8;

static int chase(struct probe *probe, uint32_t pu, size_t bytes, size_t stride, double *seconds)
{
    const struct machine_traversal what = {
        .bytes = bytes,
        .stride_bytes = stride,
        .order = MACHINE_CHASE,
        .pages = machine_pages(probe->machine),
        .warm_passes = MACHINE_WARM_PASSES,
        .seed = ++probe->seed,
    };
    return probe_machine_traverse(probe->machine, &what, &pu, 1, seconds);
}

/* its ways */

/* What so many lines take at most, of which none misses, where a hit takes `hit_s` now. */
static double kept_up_to(const struct probe_line_level *level, double hit_s, uint32_t lines)
{
    const double missing = fmax(half_a_miss / lines, least_missing);
    return hit_s * (1 + missing * (level->miss_seconds / level->seconds - 1));
}

/* The largest number of lines `stride` apart that stay in the cache, by bisection. */
static int largest_kept(struct probe *probe, uint32_t pu, const struct probe_line_level *level,
                        double hit_s, size_t stride, uint32_t *kept)
{
    uint64_t most = 2 * level->bytes / stride;
    uint32_t low = 1, high = (uint32_t)(most < WAYS_MAX ? WAYS_MAX : most);
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        double seconds;
        int rc = chase(probe, pu, middle * stride, stride, &seconds);
        if (rc < 0) {
            return rc;
        }
        *(seconds <= kept_up_to(level, hit_s, middle) ? &low : &high) = middle;
    }
    *kept = low;
    return 0;
}

void probe_line_ways(const uint64_t *strides, const uint32_t *largest, size_t count, uint32_t *ways,
                     uint64_t *way_bytes)
{
    *ways = 0;
    *way_bytes = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        if (4 * largest[i + 1] > 3 * largest[i]) { /* nearer to the same than to half */
            *ways = largest[i] > largest[i + 1] ? largest[i] : largest[i + 1];
            *way_bytes = strides[i];
            return;
        }
    }
}

/* What a hit takes now. The latency curve was measured a second ago; on a core that has become
 * slower since, all loads would pass for misses, and the cache for one of a single way. */
static int hit_now(struct probe *probe, uint32_t pu, double *seconds)
{
    *seconds = INFINITY;
    for (int look = 0; look < ROUNDS; look++) {
        double once;
        int rc =
            chase(probe, pu, HIT_LINES * (size_t)MACHINE_LINE_BYTES, MACHINE_LINE_BYTES, &once);
        if (rc < 0) {
            return rc;
        }
        *seconds = fmin(*seconds, once);
    }
    return 0;
}

/* One trial: `largest` by stride, if it is more than before. */
static int try_ways(struct probe *probe, uint32_t pu, const struct probe_line_level *level,
                    const uint64_t *strides, uint32_t *largest)
{
    double hit;
    int rc = hit_now(probe, pu, &hit);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < STRIDES; i++) {
        uint32_t kept;
        rc = largest_kept(probe, pu, level, hit, strides[i], &kept);
        if (rc < 0) {
            return rc;
        }
        largest[i] = kept > largest[i] ? kept : largest[i];
    }
    return 0;
}

/* Ways that do not make up the size otherwise are no finding but a disturbance. */
static int measure_ways(struct probe *probe, uint32_t pu, const struct probe_line_level *level,
                        struct probe_line *out)
{
    uint64_t strides[STRIDES], way_bytes = 0;
    uint32_t largest[STRIDES] = {0}, ways = 0;
    for (size_t i = 0; i < STRIDES; i++) {
        strides[i] = (uint64_t)FIRST_STRIDE << i;
    }
    for (int trial = 0; trial < ROUNDS * TRIALS; trial++) {
        if (trial % TRIALS == 0 && ways > 0 && ways * way_bytes == level->bytes) {
            break;
        }
        if (trial > 0 && probe_late(probe)) {
            break;
        }
        int rc = try_ways(probe, pu, level, strides, largest);
        if (rc < 0) {
            return rc;
        }
        probe_line_ways(strides, largest, STRIDES, &ways, &way_bytes);
    }
    const bool agree = ways * way_bytes == level->bytes;
    out->ways = agree ? ways : 0;
    out->way_bytes = agree ? way_bytes : 0;
    return 0;
}

/* its lines */

uint32_t probe_line_infer(const struct probe_line_curve *curve, double hit_s, uint32_t declared)
{
    const uint32_t *distances = curve->distances;
    const double *seconds = curve->seconds;
    if (curve->count < 3) {
        return 0;
    }
    double level = (seconds[curve->count - 1] + seconds[curve->count - 2]) / 2;
    if (level < probe_cache_least_rise * hit_s) {
        return 0;
    }
    size_t i = 0;
    while (i + 2 < curve->count && seconds[i] - hit_s < plateau * (level - hit_s)) {
        i++;
    }
    if (i == 0 || i + 2 >= curve->count) {
        return 0; /* flat from the first distance on, or no plateau: nothing was seen */
    }
    for (size_t j = i - 1; j <= i + 1; j++) {
        if (distances[j] == declared && seconds[j] - hit_s >= near_plateau * (level - hit_s)) {
            return declared;
        }
    }
    return distances[i];
}

static int measure_line(struct probe *probe, uint32_t pu, const struct probe_line_level *level,
                        struct probe_line *out)
{
    uint32_t distances[DISTANCES];
    double seconds[DISTANCES];
    for (size_t i = 0; i < DISTANCES; i++) {
        distances[i] = 8u << i;
        seconds[i] = INFINITY;
        size_t bytes = level->bytes * 4 / 3 / 1024 * 1024;
        for (int trial = 0; trial < TRIALS; trial++) {
            double once;
            int rc = chase(probe, pu, bytes, distances[i], &once);
            if (rc < 0) {
                return rc;
            }
            seconds[i] = fmin(seconds[i], once);
        }
    }
    const struct probe_line_curve curve = {distances, seconds, DISTANCES};
    out->line_bytes = probe_line_infer(&curve, level->seconds, level->declared_line_bytes);
    return 0;
}

uint32_t probe_line_first(const struct machine *machine, uint32_t pu)
{
    const struct profile_class *declared = probe_cache_declared(machine);
    const struct profile_cache *first = NULL;
    for (size_t i = 0; declared && i < declared->cache_count; i++) {
        const struct profile_cache *cache = &declared->caches[i];
        const bool there = cache->pus.count == 0 || profile_set_has(&cache->pus, pu);
        if (there && cache->line_bytes > 0 && (!first || cache->level < first->level)) {
            first = cache;
        }
    }
    return first ? first->line_bytes : 0;
}

int probe_line(struct probe *probe, uint32_t pu, const struct probe_line_level *level,
               struct probe_line *out, struct servet_error *error)
{
    struct probe_line result = {0};
    int rc = 0;
    probe_tell(probe, 1, "geometry of the first cache on PU %u", pu);
    if (level->miss_seconds >= probe_cache_least_rise * level->seconds) {
        rc = measure_ways(probe, pu, level, &result);
        rc = rc < 0 ? rc : measure_line(probe, pu, level, &result);
    }
    if (rc < 0) {
        return probe_error(error, rc, "measuring line size and ways");
    }
    *out = result;
    return 0;
}

/* -- what is asked of a PU, in which order -- */

/* A smaller step than a level's is a disturbance, and what misses take is to be seen behind the
 * next one. */
static double first_miss_seconds(const struct probe_cache *caches)
{
    for (size_t i = 1; i < caches->count; i++) {
        if (caches->levels[i].seconds >= probe_cache_least_rise * caches->levels[0].seconds) {
            return caches->levels[i].seconds;
        }
    }
    return caches->memory_seconds;
}

static uint32_t declared_line(const struct machine *machine, uint32_t pu, uint64_t bytes)
{
    const struct profile_cache *cache = probe_cache_declared_near(machine, pu, bytes);
    return cache ? cache->line_bytes : 0;
}

int probe_cache_geometry(struct probe *probe, uint32_t pu, struct probe_cache *out,
                         struct servet_error *error)
{
    struct probe_line found;
    if (out->count == 0 || probe_late(probe)) {
        out->shortened |= out->count > 0;
        return 0;
    }
    struct probe_cache_level *first = &out->levels[0];
    const struct probe_line_level level = {
        .bytes = first->size_bytes,
        .seconds = first->seconds,
        .miss_seconds = first_miss_seconds(out),
        .declared_line_bytes = declared_line(probe->machine, pu, first->size_bytes)};
    int rc = probe_line(probe, pu, &level, &found, error);
    if (rc == 0) {
        first->ways = found.ways;
        first->way_bytes = found.way_bytes;
        first->line_bytes = found.line_bytes;
    }
    return rc;
}

int probe_cache_ordinary_tlb(struct probe *probe, uint32_t pu, int passes, struct probe_cache *out,
                             struct servet_error *error)
{
    const uint32_t measured = out->count > 0 ? out->levels[0].line_bytes : 0;
    struct probe_tlb_times times = {.line_bytes =
                                        measured ? measured : probe_line_first(probe->machine, pu)};
    for (int pass = 0; pass < passes && out->page_bytes != probe->machine->page_bytes; pass++) {
        if (probe_late(probe)) {
            out->shortened = true;
            break;
        }
        int rc = probe_tlb_pass(probe, pu, MACHINE_PAGES_ORDINARY, &times, error);
        if (rc < 0) {
            return rc;
        }
    }
    if (times.count > 0) {
        probe_tlb_conclude(probe, &times, &out->ordinary_tlb);
    }
    return 0;
}
