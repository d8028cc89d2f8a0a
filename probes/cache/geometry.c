/* What is asked once the sizes of the levels are known: line size, ways, and the TLB of ordinary
 * pages. Each only needs a few working sets around a level, and each may be left out when the time
 * is short. */
#include "probes/cache/cache.h"

#include <string.h>

const struct profile_class *probe_cache_declared(const struct machine *machine)
{
    return machine->declared ? &machine->declared->classes[0] : NULL;
}

static const char out_of_time[] = "the budget was used up";

/* Of levels beyond the second the ways cannot be told: those that are built spread lines over
 * slices by a hash or hold victims, and their sets are seen through those of the second level. */
static const char beyond_second[] =
    "beyond the second level lines are hidden by the one before it and by hashes";

/* The declared cache of the PU that a size comes next to; NULL: none. */
static const struct profile_cache *declared_cache(const struct machine *machine, uint32_t pu,
                                                  uint64_t bytes)
{
    const struct profile_class *declared = probe_cache_declared(machine);
    return declared ? probe_topology_find_cache(declared, &pu, bytes, PROBE_ANY_LEVEL) : NULL;
}

void probe_cache_settle_second(struct probe_cache *caches, const struct probe_ways *found,
                               bool declared)
{
    struct probe_cache_level *second = &caches->levels[1];
    const uint32_t ways = found->conflicting > 1 ? found->conflicting - 1 : 0;
    uint64_t bytes = ways;
    if (ways == 0 || ways == found->ways || (found->ways > 0 && declared) ||
        caches->levels[0].policy == CACHE_RANDOM || caches->levels[0].policy == CACHE_LEAKY ||
        second->policy == CACHE_RANDOM) {
        return;
    }
    while (bytes < second->low_bytes) {
        bytes *= 2;
    }
    if (bytes <= second->high_bytes) {
        second->size_bytes = bytes;
        second->ways = ways;
        second->way_bytes = bytes / ways;
        second->ways_unknown = NULL;
    }
}

static int measure_second_ways(struct probe *probe, uint32_t pu, struct probe_cache *out,
                               struct servet_error *error)
{
    struct probe_ways found;
    if (out->count < 2) {
        return 0;
    }
    for (size_t i = 2; i < out->count; i++) {
        out->levels[i].ways_unknown = beyond_second;
    }
    if (probe_late(probe)) {
        out->levels[1].ways_unknown = out_of_time;
        out->shortened = true;
        return 0;
    }
    const struct probe_cache_level *first = &out->levels[0];
    struct probe_cache_level *second = &out->levels[1];
    const struct probe_ways_level level = {
        second->size_bytes, first->seconds,
        second->seconds,    out->count > 2 ? out->levels[2].seconds : out->memory_seconds,
        first->ways,        first->way_bytes};
    int rc = probe_ways(probe, pu, &level, &found, error);
    if (rc == 0) {
        const struct profile_cache *declared =
            declared_cache(probe->machine, pu, second->size_bytes);
        second->ways = found.ways;
        second->way_bytes = found.way_bytes;
        second->ways_unknown = found.reason;
        probe_cache_settle_second(out, &found,
                                  declared && declared->declared_size_bytes == second->size_bytes);
    }
    return rc;
}

/* A first level is at least so many times faster than what is behind it; a smaller step is a
 * disturbance, and what misses take is to be seen behind the next one. */
static const double least_first_step = 1.5;

static double first_miss_seconds(const struct probe_cache *caches)
{
    for (size_t i = 1; i < caches->count; i++) {
        if (caches->levels[i].seconds >= least_first_step * caches->levels[0].seconds) {
            return caches->levels[i].seconds;
        }
    }
    return caches->memory_seconds;
}

/* The ways make up more than the curve found: a busy sibling used lines of the first level as long
 * as its knee was measured, and the curve bends early, or twice. What was found in front of that
 * size is not there. */
static void enlarge_first(struct probe_cache *caches, uint64_t bytes)
{
    size_t behind = 1;
    while (behind < caches->count && caches->levels[behind].size_bytes <= bytes) {
        behind++;
    }
    caches->levels[0].size_bytes = bytes;
    caches->levels[0].high_bytes =
        bytes > caches->levels[0].high_bytes ? bytes : caches->levels[0].high_bytes;
    memmove(&caches->levels[1], &caches->levels[behind],
            (caches->count - behind) * sizeof *caches->levels);
    caches->count -= behind - 1;
}

static uint32_t declared_line(const struct machine *machine, uint32_t pu, uint64_t bytes)
{
    const struct profile_cache *cache = declared_cache(machine, pu, bytes);
    return cache ? cache->line_bytes : 0;
}

int probe_cache_geometry(struct probe *probe, uint32_t pu, struct probe_cache *out,
                         struct servet_error *error)
{
    struct probe_line found;
    if (out->count == 0) {
        return 0;
    }
    struct probe_cache_level *first = &out->levels[0];
    if (probe_late(probe)) {
        first->ways_unknown = out_of_time;
        return measure_second_ways(probe, pu, out, error);
    }
    const struct probe_line_level level = {first->size_bytes, first->seconds,
                                           first_miss_seconds(out),
                                           declared_line(probe->machine, pu, first->size_bytes)};
    int rc = probe_line(probe, pu, &level, &found, error);
    if (rc == 0) {
        first->ways = found.ways;
        first->way_bytes = found.way_bytes;
        first->line_bytes = found.line_bytes;
        if (found.ways * found.way_bytes > first->size_bytes) {
            enlarge_first(out, found.ways * found.way_bytes);
        }
    }
    return rc < 0 ? rc : measure_second_ways(probe, pu, out, error);
}

int probe_cache_ordinary_tlb(struct probe *probe, uint32_t pu, int passes, struct probe_cache *out,
                             struct servet_error *error)
{
    struct probe_tlb_times times = {.count = 0};
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
