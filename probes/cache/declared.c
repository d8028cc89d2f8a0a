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

/* The declared cache (of that PU; NULL: of any), of a level between these two, that is the nearest
 * in size to the measured one, or NULL. */
static const struct profile_cache *nearest_one(const struct profile_class *declared,
                                               const uint32_t *pu,
                                               const struct probe_cache_level *level,
                                               uint32_t above, uint32_t below)
{
    const struct profile_cache *best = NULL;
    double least = PROBE_FURTHEST;
    for (size_t i = 0; declared && i < declared->cache_count; i++) {
        const struct profile_cache *cache = &declared->caches[i];
        const double off = times_off(level, cache);
        const bool there = !pu || cache->pus.count == 0 || profile_set_has(&cache->pus, *pu);
        if (there && cache->level > above && cache->level < below && off < least) {
            least = off;
            best = cache;
        }
    }
    return best;
}

void probe_cache_pair(const struct probe_cache *caches, const struct profile_class *declared,
                      const uint32_t *pu, struct probe_cache_pairing *out)
{
    struct probe_cache_pairing pairs = {0};
    uint32_t above = 0, last = 0;
    for (size_t i = 0; i < caches->count; i++) {
        const struct probe_cache_level *level = &caches->levels[i];
        const struct profile_cache *found = nearest_one(declared, pu, level, above, UINT32_MAX);
        pairs.equal[i] = found && holds(level, found) && !is_behind(caches, i, found);
        pairs.declared[i] = pairs.equal[i] ? found : NULL;
        above = pairs.equal[i] ? found->level : above;
    }
    above = 0;
    for (size_t i = 0; i < caches->count; i++) {
        uint32_t below = UINT32_MAX; /* the next that another equals */
        for (size_t j = caches->count; j > i + 1; j--) {
            below = pairs.equal[j - 1] ? pairs.declared[j - 1]->level : below;
        }
        if (!pairs.equal[i]) {
            pairs.declared[i] = nearest_one(declared, pu, &caches->levels[i], above, below);
        }
        const struct profile_cache *found = pairs.declared[i];
        above = found ? found->level : above;
        pairs.numbers[i] = found && found->level > last ? found->level : last + 1;
        last = pairs.numbers[i];
    }
    *out = pairs;
}
