#include "sharing_declared.h"

#include "query.h"
#include "result.h"

void sharing_declared_levels(const struct profile_class *declared, uint32_t pu, const struct probe_cache *caches,
                             uint32_t numbers[CACHE_LEVELS_MAX])
{
    uint32_t last = 0;
    for (size_t i = 0; i < caches->count; i++) {
        const struct profile_cache *found =
            declared ? result_find_declared(declared, &pu, caches->levels[i].size_bytes, last) : NULL;
        /* One of a wholly different size takes the next number, and so the place of the declared one there. */
        last = found ? found->level : last + 1;
        numbers[i] = declared && profile_cache_of(declared, last, pu) ? last : 0;
    }
}

enum sharing_declaration sharing_declared(const struct profile_class *declared, uint32_t number, uint32_t a, uint32_t b)
{
    const struct profile_cache *cache = number ? profile_cache_of(declared, number, a) : NULL;
    if (!cache) {
        return NOTHING_DECLARED;
    }
    return profile_related(&cache->sharing, a, b) ? DECLARED_SHARED : DECLARED_PRIVATE;
}
