/* Which declared cache a measured level is taken for. Declared sizes are no measurement, and wrong
 * in guests; but one that a level's interval holds is evidence of its own. */
#include "probes/cache/probe.h"

const struct profile_class *probe_cache_declared(const struct machine *machine)
{
    return machine->declared ? &machine->declared->classes[0] : NULL;
}

size_t probe_cache_declared_largest(const struct profile_class *declared)
{
    size_t largest = 0;
    for (size_t i = 0; declared && i < declared->cache_count; i++) {
        const size_t bytes = declared->caches[i].declared_size_bytes;
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

static bool holds(const struct probe_cache_level *level, const struct profile_cache *cache)
{
    return cache->declared_size_bytes == level->size_bytes ||
           (cache->declared_size_bytes >= level->low_bytes &&
            cache->declared_size_bytes <= level->high_bytes);
}

static double times_off(const struct probe_cache_level *level, const struct profile_cache *cache)
{
    const double ratio = (double)level->size_bytes / (double)cache->declared_size_bytes;
    return ratio < 1 ? 1 / ratio : ratio;
}

/* Whether a level behind the one at `i` equals the cache better. */
static bool is_behind(const struct probe_cache *caches, size_t i, const struct profile_cache *cache)
{
    bool behind = false;
    for (size_t j = i + 1; j < caches->count; j++) {
        behind |= holds(&caches->levels[j], cache) &&
                  times_off(&caches->levels[j], cache) < times_off(&caches->levels[i], cache);
    }
    return behind;
}

/* The declared cache that the level at `i` equals, of those behind `above`; NULL: none. */
static const struct profile_cache *equal_one(const struct probe_cache *caches, size_t i,
                                             const struct profile_class *declared,
                                             const uint32_t *pu, uint32_t above)
{
    const struct probe_levels_between behind = {above, UINT32_MAX};
    const struct profile_cache *cache =
        probe_topology_find_cache(declared, pu, caches->levels[i].size_bytes, behind);
    return cache && holds(&caches->levels[i], cache) && !is_behind(caches, i, cache) ? cache : NULL;
}

void probe_cache_pair(const struct probe_cache *caches, const struct profile_class *declared,
                      const uint32_t *pu, struct probe_cache_pairing *out)
{
    struct probe_cache_pairing pairs = {0};
    struct probe_levels_between free = {0, UINT32_MAX};
    uint32_t last = 0;
    for (size_t i = 0; declared && i < caches->count; i++) {
        const struct profile_cache *equal = equal_one(caches, i, declared, pu, last);
        pairs.declared[i] = equal;
        pairs.equal[i] = equal != NULL;
        last = equal ? equal->level : last;
    }
    last = 0;
    for (size_t i = 0; i < caches->count; i++) {
        free.below = UINT32_MAX; /* the next that another equals */
        for (size_t j = caches->count; j > i + 1; j--) {
            free.below = pairs.equal[j - 1] ? pairs.declared[j - 1]->level : free.below;
        }
        if (declared && !pairs.equal[i]) {
            pairs.declared[i] =
                probe_topology_find_cache(declared, pu, caches->levels[i].size_bytes, free);
        }
        const struct profile_cache *found = pairs.declared[i];
        free.above = found ? found->level : free.above;
        pairs.numbers[i] = found && found->level > last ? found->level : last + 1;
        last = pairs.numbers[i];
    }
    *out = pairs;
}
