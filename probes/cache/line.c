/* The line size of the first level, without looking at a declared figure: in a working set 4/3 as
 * large as the cache lines miss. Nodes closer together than a line share one, so the latency rises
 * with their distance until that is the line size. The chases take milliseconds; no physical
 * address is needed since first levels are indexed virtually. Left out when the time is short. */
#include "probes/cache/probe.h"

#include <math.h>

enum {
    TRIALS = 5,    /* a busy sibling took of the cache in up to four of six trials */
    DISTANCES = 8, /* 8 bytes to 1 KiB: four times the longest line built */
};
/* Half a line apart, a third of the accesses still hit, of a random policy a tenth. */
static const double plateau = 0.92;
/* A disturbance passes for a line twice or half as large. Where the declared one reaches so much of
 * the plateau it is that: half a line of a usual policy reaches 0.5 to 0.7. */
static const double near_plateau = 0.8;

/* Out of latencies by distance, which doubles; 0 where they reach no plateau before the last two.
 * The declared line (0: not known) where it is next to that and the latencies hardly tell the two
 * apart. */
static uint32_t infer_line(const uint32_t *distances, const double *seconds, double hit_s,
                           uint32_t declared)
{
    const double level = (seconds[DISTANCES - 1] + seconds[DISTANCES - 2]) / 2;
    size_t i = 0;
    if (level < probe_cache_least_rise * hit_s) {
        return 0;
    }
    while (i + 2 < DISTANCES && seconds[i] - hit_s < plateau * (level - hit_s)) {
        i++;
    }
    if (i == 0 || i + 2 >= DISTANCES) {
        return 0; /* flat from the first distance on, or no plateau: nothing was seen */
    }
    for (size_t j = i - 1; j <= i + 1; j++) {
        if (distances[j] == declared && seconds[j] - hit_s >= near_plateau * (level - hit_s)) {
            return declared;
        }
    }
    return distances[i];
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

static int measure_line(struct probe *probe, uint32_t pu, struct probe_cache_level *first)
{
    uint32_t distances[DISTANCES];
    double seconds[DISTANCES];
    for (size_t i = 0; i < DISTANCES; i++) {
        distances[i] = 8u << i;
        seconds[i] = INFINITY;
        const struct machine_traversal what = {.bytes = first->size_bytes * 4 / 3 / 1024 * 1024,
                                               .stride_bytes = distances[i],
                                               .pages = machine_pages(probe->machine)};
        for (int trial = 0; trial < TRIALS; trial++) {
            double once;
            TRY(probe_cache_load(probe, pu, what, &once));
            seconds[i] = fmin(seconds[i], once);
        }
    }
    first->line_bytes =
        infer_line(distances, seconds, first->seconds, probe_line_first(probe->machine, pu));
    return 0;
}

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

int probe_cache_line(struct probe *probe, uint32_t pu, struct probe_cache *out,
                     struct servet_error *error)
{
    if (out->count == 0 || probe_late(probe)) {
        out->shortened |= out->count > 0;
        return 0;
    }
    struct probe_cache_level *first = &out->levels[0];
    probe_tell(probe, 1, "line size of the first cache on PU %u", pu);
    if (first_miss_seconds(out) < probe_cache_least_rise * first->seconds) {
        return 0; /* undecided, which is no error */
    }
    return probe_error(error, measure_line(probe, pu, first), "measuring the line size");
}
