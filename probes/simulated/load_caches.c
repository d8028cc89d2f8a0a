/* The caches and TLBs of a machine description, and which of them stand in front of each PU. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/simulated/simulated.h"

static void number_instances(struct sim_reader *reader, struct sim_cache *cache,
                             const struct profile_set *pus)
{
    cache->instance_of = calloc(pus->count, sizeof *cache->instance_of);
    if (!cache->instance_of) {
        probe_sim_no_memory(reader, "$.caches");
        return;
    }
    for (size_t i = 0; i < pus->count; i++) {
        uint32_t instance = SIM_NO_INSTANCE;
        for (size_t g = 0; g < cache->group_count; g++) {
            if (profile_set_has(&cache->groups[g], pus->ids[i])) {
                instance = (uint32_t)g;
            }
        }
        if (instance == SIM_NO_INSTANCE &&
            profile_set_has(&cache->pus, pus->ids[i])) { /* a cache of its own */
            instance = (uint32_t)cache->group_count + cache->instances++;
        }
        cache->instance_of[i] = instance;
    }
    cache->instances += (uint32_t)cache->group_count;
}

/* Who has what is described: all of the machine where nobody is named. */
static void complete_holders(struct sim_reader *reader, const struct sim *sim,
                             struct profile_set *pus, const char *where)
{
    if (pus->count) {
        probe_sim_check_set(reader, pus, &sim->pus, where);
    } else if (profile_set_copy(&sim->pus, pus) < 0) {
        probe_sim_no_memory(reader, where);
    }
}

/* The cache is behind those before it, for the PUs that have it. */
static void extend_paths(struct sim_reader *reader, struct sim *sim, size_t cache)
{
    for (size_t i = 0; i < sim->pu_count && !reader->failed; i++) {
        struct sim_path *path = &sim->paths[i];
        if (sim->caches[cache].instance_of[i] == SIM_NO_INSTANCE) {
            continue;
        }
        if (path->depth == SIM_DEPTH_MAX) {
            probe_sim_refuse(reader, "$.caches: expected at most %d for one PU", SIM_DEPTH_MAX);
            return;
        }
        path->caches[path->depth++] = (uint8_t)cache;
    }
}

/* Nothing is in front of any of them yet. */
static bool is_first(const struct sim *sim, const struct sim_cache *cache)
{
    for (size_t i = 0; i < sim->pu_count; i++) {
        if (profile_set_has(&cache->pus, sim->pus.ids[i]) && sim->paths[i].depth > 0) {
            return false;
        }
    }
    return true;
}

static void place_cache(struct sim_reader *reader, struct sim *sim, size_t index)
{
    struct sim_cache *cache = &sim->caches[index];
    char where[48];
    snprintf(where, sizeof where, "$.caches[%zu].pus", index);
    complete_holders(reader, sim, &cache->pus, where);
    snprintf(where, sizeof where, "$.caches[%zu].groups", index);
    probe_sim_check_groups(reader, cache->groups, cache->group_count, &cache->pus, where);
    uint64_t row = (uint64_t)cache->ways * cache->line_bytes * cache->slices;
    if (cache->size_bytes % row != 0) {
        probe_sim_refuse(
            reader, "$.caches[%zu].size_bytes: expected a multiple of ways * line_bytes * slices",
            index);
    }
    if (reader->failed) {
        return;
    }
    cache->sets = cache->size_bytes / row;
    if (cache->declared_size_bytes == UINT64_MAX) {
        cache->declared_size_bytes = cache->size_bytes;
    }
    if (cache->indexing == SIM_BY_PLACE) {
        cache->indexing = is_first(sim, cache) ? SIM_VIRTUAL : SIM_PHYSICAL;
    }
    number_instances(reader, cache, &sim->pus);
    if (!reader->failed) {
        extend_paths(reader, sim, index);
    }
}

void probe_sim_place_caches(struct sim_reader *reader, struct sim *sim)
{
    if (sim->cache_count > SIM_CACHES_MAX) {
        probe_sim_refuse(reader, "$.caches: expected an array of 1 to %d", SIM_CACHES_MAX);
        return;
    }
    sim->paths = calloc(sim->pu_count, sizeof *sim->paths);
    if (!sim->paths) {
        probe_sim_no_memory(reader, "$.caches");
    }
    for (size_t i = 0; i < sim->cache_count && !reader->failed; i++) {
        place_cache(reader, sim, i);
    }
    for (size_t i = 0; i < sim->pu_count && !reader->failed; i++) {
        if (sim->paths[i].depth == 0) {
            probe_sim_refuse(reader, "$.caches: expected one for PU %u", sim->pus.ids[i]);
        }
    }
    for (size_t i = 0; i < sim->tlb_count && !reader->failed; i++) {
        char where[48];
        snprintf(where, sizeof where, "$.tlbs[%zu].pus", i);
        complete_holders(reader, sim, &sim->tlbs[i].pus, where);
    }
}
