/* The caches and TLBs of a machine description, and which of them stand in front of each PU. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/simulated/simulated.h"

static void number_instances(struct sim_reader *reader, struct sim_cache *cache,
                             const struct profile_set *pus)
{
    cache->instance_of = calloc(pus->count, sizeof *cache->instance_of);
    if (!cache->instance_of) {
        probe_sim_refuse(reader, "%s", strerror(ENOMEM));
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

/* PUs that have what is described: all of the machine where `pus` is missing. */
static struct profile_set holders(struct sim_reader *reader, const json_t *object,
                                  const char *where, const struct profile_set *pus)
{
    const json_t *list = json_object_get(object, "pus");
    struct profile_set all = {0};
    if (list) {
        return probe_sim_pu_list(reader, list, where, pus);
    }
    if (profile_set_copy(pus, &all) < 0) {
        probe_sim_refuse(reader, "%s: %s", where, strerror(ENOMEM));
    }
    return all;
}

/* The cache that was read last is behind those before it, for the PUs that have it. */
static void extend_paths(struct sim_reader *reader, struct sim *sim, const struct profile_set *pus)
{
    const size_t last = sim->cache_count - 1;
    for (size_t i = 0; i < pus->count && !reader->failed; i++) {
        struct sim_path *path = &sim->paths[i];
        if (sim->caches[last].instance_of[i] == SIM_NO_INSTANCE) {
            continue;
        }
        if (path->depth == SIM_DEPTH_MAX) {
            probe_sim_refuse(reader, "caches: expected at most %d for one PU", SIM_DEPTH_MAX);
            return;
        }
        path->caches[path->depth++] = (uint8_t)last;
    }
}

/* Nothing is in front of any of them yet. */
static bool is_first(const struct sim *sim, const struct sim_cache *cache,
                     const struct profile_set *pus)
{
    for (size_t i = 0; i < pus->count; i++) {
        if (profile_set_has(&cache->pus, pus->ids[i]) && sim->paths[i].depth > 0) {
            return false;
        }
    }
    return true;
}

static void read_cache(struct sim_reader *reader, const json_t *object,
                       const struct profile_set *pus, struct sim *sim)
{
    static const char *const keys[] = {"level",  "size_bytes", "declared_size_bytes",
                                       "ways",   "line_bytes", "seconds",
                                       "policy", "inclusion",  "indexing",
                                       "slices", "groups",     "pus",
                                       NULL};
    static const char *const policies[] = {"lru", "plru", "random", "aged", "adaptive", NULL};
    static const char *const inclusions[] = {"filled", "inclusive", "victim", NULL};
    static const char *const indexings[] = {"physical", "virtual", NULL};
    char where[32];
    struct sim_cache *cache = &sim->caches[sim->cache_count];
    snprintf(where, sizeof where, "caches[%zu]", sim->cache_count++);
    probe_sim_known_keys(reader, object, where, keys);
    cache->pus = holders(reader, object, where, pus);
    cache->level = (uint32_t)probe_sim_whole(reader, object, where, "level", NAN, 1, 5);
    cache->size_bytes = probe_sim_whole(reader, object, where, "size_bytes", NAN, 1024, 0x1p34);
    cache->declared_size_bytes = probe_sim_whole(reader, object, where, "declared_size_bytes",
                                                 (double)cache->size_bytes, 0, 0x1p34);
    cache->ways = (uint32_t)probe_sim_whole(reader, object, where, "ways", NAN, 1, 64);
    cache->line_bytes =
        (uint32_t)probe_sim_whole(reader, object, where, "line_bytes", 64, 16, 1024);
    cache->slices = (uint32_t)probe_sim_whole(reader, object, where, "slices", 1, 1, 256);
    cache->seconds = probe_sim_number(reader, object, where, "seconds", NAN, 1e-11, 1e-5);
    cache->policy =
        (enum sim_policy)probe_sim_choice(reader, object, where, "policy", policies, SIM_LRU);
    cache->inclusion = (enum sim_inclusion)probe_sim_choice(reader, object, where, "inclusion",
                                                            inclusions, SIM_FILLED);
    cache->virtual_index = probe_sim_choice(reader, object, where, "indexing", indexings,
                                            is_first(sim, cache, pus)) == 1;
    cache->groups =
        probe_sim_groups(reader, object, where, "groups", &cache->pus, &cache->group_count);
    uint64_t row = (uint64_t)cache->ways * cache->line_bytes * cache->slices;
    if (cache->size_bytes % row != 0) {
        probe_sim_refuse(reader, "%s.size_bytes: expected a multiple of ways * line_bytes * slices",
                         where);
        return;
    }
    cache->sets = cache->size_bytes / row;
    number_instances(reader, cache, pus);
    if (!reader->failed) {
        extend_paths(reader, sim, pus);
    }
}

static void read_caches(struct sim_reader *reader, const json_t *caches,
                        const struct profile_set *pus, struct sim *sim)
{
    if (json_array_size(caches) == 0 || json_array_size(caches) > SIM_CACHES_MAX) {
        probe_sim_refuse(reader, "caches: expected an array of 1 to %d", SIM_CACHES_MAX);
        return;
    }
    sim->paths = calloc(pus->count, sizeof *sim->paths);
    if (!sim->paths) {
        probe_sim_refuse(reader, "caches: %s", strerror(ENOMEM));
    }
    for (size_t i = 0; i < json_array_size(caches) && !reader->failed; i++) {
        read_cache(reader, json_array_get(caches, i), pus, sim);
    }
    for (size_t i = 0; i < pus->count && !reader->failed; i++) {
        if (sim->paths[i].depth == 0) {
            probe_sim_refuse(reader, "caches: expected one for PU %u", pus->ids[i]);
        }
    }
}

static void read_tlbs(struct sim_reader *reader, const json_t *tlbs, const struct profile_set *pus,
                      struct sim *sim)
{
    static const char *const tlb_keys[] = {"entries", "seconds", "pus", NULL};
    if (json_array_size(tlbs) > SIM_TLBS_MAX) {
        probe_sim_refuse(reader, "tlbs: expected at most %d", SIM_TLBS_MAX);
    }
    for (size_t i = 0; i < json_array_size(tlbs) && !reader->failed; i++) {
        const json_t *tlb = json_array_get(tlbs, i);
        probe_sim_known_keys(reader, tlb, "tlbs[]", tlb_keys);
        sim->tlbs[i].pus = holders(reader, tlb, "tlbs[]", pus);
        sim->tlbs[i].entries = probe_sim_whole(reader, tlb, "tlbs[]", "entries", NAN, 1, 1e7);
        sim->tlbs[i].seconds = probe_sim_number(reader, tlb, "tlbs[]", "seconds", NAN, 0, 1e-5);
        sim->tlb_count++;
    }
}

void probe_sim_load_caches(struct sim_reader *reader, const json_t *root,
                           const struct profile_set *pus, struct sim *sim)
{
    read_caches(reader, json_object_get(root, "caches"), pus, sim);
    read_tlbs(reader, json_object_get(root, "tlbs"), pus, sim);
}
