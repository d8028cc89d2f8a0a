#include "probe_cache_geometry.h"

#include "probe_line.h"
#include "probe_ways.h"

static const char out_of_time[] = "the budget was used up";

/* Of levels beyond the second the ways cannot be told: those that are built spread lines over slices by a hash or hold
 * victims, and their sets are seen through those of the second level. */
static const char beyond_second[] = "beyond the second level lines are hidden by the one before it and by hashes";

static int measure_second_ways(struct probe *probe, uint32_t pu, struct probe_cache *out, struct servet_error *error)
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
        second->ways = found.ways;
        second->way_bytes = found.way_bytes;
        second->ways_unknown = found.reason;
    }
    return rc;
}

int probe_cache_geometry(struct probe *probe, uint32_t pu, struct probe_cache *out, struct servet_error *error)
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
                                           out->count > 1 ? out->levels[1].seconds : out->memory_seconds};
    int rc = probe_line(probe, pu, &level, &found, error);
    if (rc == 0) {
        first->ways = found.ways;
        first->way_bytes = found.way_bytes;
        first->line_bytes = found.line_bytes;
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
