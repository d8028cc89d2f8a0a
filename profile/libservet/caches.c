/* What libservet answers of caches and TLBs, and how sure that is. */
#include <errno.h>

#include "profile/libservet/answers.h"

uint32_t servet_cache_levels(const servet_profile *profile)
{
    uint32_t levels = 0;
    for (size_t i = 0; i < profile->class_count; i++) {
        const struct profile_class *node_class = &profile->classes[i];
        uint32_t last =
            node_class->cache_count ? node_class->caches[node_class->cache_count - 1].level : 0;
        levels = last > levels ? last : levels;
    }
    return levels;
}

static const struct profile_cache *find_cache(const servet_profile *profile, uint32_t level,
                                              uint32_t pu, struct profile_place *place)
{
    return profile_locate(profile, pu, place)
               ? profile_cache_of(place->node_class, level, place->os_index)
               : NULL;
}

uint64_t servet_cache_bytes(const servet_profile *profile, uint32_t level, uint32_t pu)
{
    struct profile_place place;
    const struct profile_cache *cache = find_cache(profile, level, pu, &place);
    return cache ? cache->size_bytes : 0;
}

uint32_t servet_cache_line_bytes(const servet_profile *profile, uint32_t level, uint32_t pu)
{
    struct profile_place place;
    const struct profile_cache *cache = find_cache(profile, level, pu, &place);
    return cache ? cache->line_bytes : 0;
}

uint64_t servet_cache_declared_bytes(const servet_profile *profile, uint32_t level, uint32_t pu)
{
    struct profile_place place;
    const struct profile_cache *cache = find_cache(profile, level, pu, &place);
    return cache ? cache->declared_size_bytes : 0;
}

int servet_cache_interval(const servet_profile *profile, uint32_t level, uint32_t pu,
                          uint64_t *low_bytes, uint64_t *high_bytes)
{
    struct profile_place place;
    const struct profile_cache *cache = find_cache(profile, level, pu, &place);
    if (!cache || cache->size_high_bytes == 0) {
        return -ENOENT;
    }
    *low_bytes = cache->size_low_bytes;
    *high_bytes = cache->size_high_bytes;
    return 0;
}

uint32_t servet_cache_ways(const servet_profile *profile, uint32_t level, uint32_t pu)
{
    struct profile_place place;
    const struct profile_cache *cache = find_cache(profile, level, pu, &place);
    return cache ? cache->associativity : 0;
}

uint64_t servet_tlb_bytes(const servet_profile *profile, uint32_t level, uint64_t page_bytes,
                          uint32_t pu)
{
    struct profile_place place;
    if (!level || !profile_locate(profile, pu, &place)) {
        return 0;
    }
    for (size_t i = 0; i < place.node_class->tlb_count; i++) {
        const struct profile_tlb *tlb = &place.node_class->tlb[i];
        level -= tlb->page_bytes == page_bytes; /* they are in the order of their reach */
        if (!level) {
            return tlb->reach_bytes;
        }
    }
    return 0;
}

int servet_cache_shared(const servet_profile *profile, uint32_t level, uint32_t pu_a, uint32_t pu_b)
{
    struct profile_place a, b;
    const struct profile_cache *cache = find_cache(profile, level, pu_a, &a);
    if (!cache || find_cache(profile, level, pu_b, &b) != cache || a.node != b.node) {
        return 0;
    }
    return pu_a == pu_b || profile_related(&cache->sharing, a.os_index, b.os_index);
}

uint32_t servet_cache_sharers(const servet_profile *profile, uint32_t level, uint32_t pu)
{
    struct profile_place place;
    const struct profile_cache *cache = find_cache(profile, level, pu, &place);
    uint32_t count = cache != NULL;
    for (size_t i = 0; cache && i < place.node_class->pus.count; i++) {
        count += profile_related(&cache->sharing, place.os_index, place.node_class->pus.ids[i]);
    }
    return count;
}

int servet_cache_quality(const servet_profile *profile, uint32_t level, uint32_t pu,
                         struct servet_quality *out)
{
    struct profile_place place;
    const struct profile_cache *cache = find_cache(profile, level, pu, &place);
    return cache ? profile_answer(&cache->quality, true, out) : -ENOENT;
}

int servet_sharing_quality(const servet_profile *profile, uint32_t level, uint32_t pu,
                           struct servet_quality *out)
{
    struct profile_place place;
    const struct profile_cache *cache = find_cache(profile, level, pu, &place);
    return cache ? profile_answer_evidence(&cache->sharing_quality, true, out) : -ENOENT;
}
