/* Caches of several kinds of cores in one class: each kind has its own sizes, and a level may
 * stand in the profile once for each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/run/result.h"
#include "probes/run/run.h"
#include "profile/query.h"

static bool has(const struct profile_cache *cache, uint32_t pu)
{
    return cache->pus.count == 0 || profile_set_has(&cache->pus, pu);
}

/* PUs of several kinds share one: an L3 of all. Caches that are alike but not shared are each
 * kind's own: who shares one of them differs, and so may what is left of it. */
static bool is_common(const struct profile_cache *cache, const struct kinds *kinds)
{
    for (size_t i = 0; i < cache->sharing.group_count; i++) {
        const struct profile_set *group = &cache->sharing.groups[i];
        for (size_t member = 1; member < group->count; member++) {
            if (probe_kinds_find(kinds, group->ids[member]) !=
                probe_kinds_find(kinds, group->ids[0])) {
                return true;
            }
        }
    }
    return false;
}

/* Caches of two kinds of which nothing is declared may be one where both are the last, and may be
 * as large. */
static bool may_be_one(const struct probe_cache *one, const struct probe_cache *other)
{
    if (one->count == 0 || other->count == 0) {
        return false;
    }
    const struct probe_cache_level *a = &one->levels[one->count - 1],
                                   *b = &other->levels[other->count - 1];
    return a->low_bytes <= b->high_bytes && b->low_bytes <= a->high_bytes;
}

static size_t first_holder(const struct profile_cache *declared, const struct kinds *kinds)
{
    size_t kind = 0;
    while (kind + 1 < kinds->count && !has(declared, kinds->pus[kind].ids[0])) {
        kind++;
    }
    return kind;
}

static int copy_cache(const struct profile_cache *from, struct profile_cache *out)
{
    struct profile_cache copy = *from;
    copy.pus = (struct profile_set){0};
    copy.sharing = (struct profile_relation){0};
    copy.pair_ratios = NULL;
    copy.pair_ratio_count = 0;
    copy.quality.note = from->quality.note ? strdup(from->quality.note) : NULL;
    int rc = from->quality.note && !copy.quality.note ? -ENOMEM : 0;
    rc = rc < 0 ? rc : probe_result_copy_relation(&from->sharing, &copy.sharing);
    if (rc < 0) {
        free(copy.quality.note);
        return rc;
    }
    *out = copy;
    return 0;
}

/* The class as a PU of the kind sees it: its caches, which all PUs seem to have. */
static int view_of(const struct profile_class *node_class, uint32_t pu, struct profile_class *out)
{
    struct profile_class view = {.caches =
                                     calloc(node_class->cache_count + 1, sizeof *view.caches)};
    int rc = view.caches ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < node_class->cache_count; i++) {
        if (has(&node_class->caches[i], pu)) {
            rc = copy_cache(&node_class->caches[i], &view.caches[view.cache_count]);
            view.cache_count += rc == 0;
        }
    }
    if (rc < 0) {
        probe_result_free_caches(&view);
        return rc;
    }
    *out = view;
    return 0;
}

void probe_result_holders(const struct profile_class *node_class, const struct kinds *kinds,
                          const struct kind_results *results, const struct profile_set **holders)
{
    const struct probe_cache *caches = &results[0].caches;
    struct probe_cache_pairing pairs;
    probe_cache_pair(caches, node_class, &kinds->pus[0].ids[0], &pairs);
    for (size_t i = 0; i < caches->count; i++) {
        const struct profile_cache *declared = pairs.declared[i];
        bool common = declared && is_common(declared, kinds);
        for (size_t kind = 1; !declared && i + 1 == caches->count && kind < kinds->count; kind++) {
            common |= may_be_one(caches, &results[kind].caches);
        }
        holders[i] = common ? NULL : &kinds->pus[0];
    }
}

static int by_place(const void *a, const void *b)
{
    const struct profile_cache *x = a, *y = b;
    if (x->level != y->level) {
        return x->level < y->level ? -1 : 1;
    }
    uint32_t first = x->pus.count ? x->pus.ids[0] : 0, second = y->pus.count ? y->pus.ids[0] : 0;
    return (first > second) - (first < second);
}

/* Only pairs of its own PUs: others were asked whether it is theirs, too. */
static void narrow_ratios(struct profile_cache *cache)
{
    size_t count = 0;
    for (size_t i = 0; i < cache->pair_ratio_count; i++) {
        const struct profile_pair_figure *pair = &cache->pair_ratios[i];
        if (has(cache, pair->a) && has(cache, pair->b)) {
            cache->pair_ratios[count++] = *pair;
        }
    }
    cache->pair_ratio_count = count;
}

/* The PUs of the kinds of which some PU shares the cache; none are named where that is all. */
static int set_holders(struct profile_cache *cache, const struct kinds *kinds)
{
    bool holds[KINDS_MAX] = {false};
    size_t count = 0, kinds_of = 0;
    for (size_t i = 0; i < cache->sharing.group_count; i++) {
        const struct profile_set *group = &cache->sharing.groups[i];
        for (size_t member = 0; member < group->count; member++) {
            holds[probe_kinds_find(kinds, group->ids[member])] = true;
        }
    }
    for (size_t kind = 0; kind < kinds->count; kind++) {
        kinds_of += holds[kind];
        count += holds[kind] ? kinds->pus[kind].count : 0;
    }
    if (kinds_of == kinds->count) {
        return 0;
    }
    uint32_t *ids = malloc((count + 1) * sizeof *ids);
    if (!ids) {
        return -ENOMEM;
    }
    count = 0;
    for (size_t kind = 0; kind < kinds->count; kind++) {
        for (size_t i = 0; holds[kind] && i < kinds->pus[kind].count; i++) {
            ids[count++] = kinds->pus[kind].ids[i];
        }
    }
    int rc = profile_set_from_array(ids, count, &cache->pus);
    free(ids);
    return rc;
}

/* Nothing is declared of the last cache of this kind, and the first kind's was found to be of its
 * PUs, too. */
static bool is_of_the_first(const struct profile_class *merged, const struct profile_class *view,
                            size_t index, const struct kinds *kinds, size_t kind)
{
    bool known = false;
    for (size_t i = 0; kind > 0 && index + 1 == view->cache_count && i < merged->cache_count; i++) {
        const struct profile_cache *cache = &merged->caches[i];
        known |= is_common(cache, kinds) && cache->declared_size_bytes == 0 &&
                 has(cache, kinds->pus[kind].ids[0]);
    }
    return known;
}

/* Where a kind's caches go: `merged` takes those that it does not have from an earlier kind. */
static int take(const struct profile_class *node_class, const struct kinds *kinds, size_t kind,
                struct profile_class *view, struct profile_class *merged)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < view->cache_count; i++) {
        struct profile_cache *cache = &view->caches[i];
        const struct profile_cache *declared =
            profile_cache_of(node_class, cache->level, kinds->pus[kind].ids[0]);
        const bool common = is_common(declared ? declared : cache, kinds);
        if (declared ? common && first_holder(declared, kinds) != kind
                     : is_of_the_first(merged, view, i, kinds, kind)) {
            continue;
        }
        if (common) {
            rc = declared ? profile_set_copy(&declared->pus, &cache->pus)
                          : set_holders(cache, kinds);
        } else {
            /* Sharing that was not measured is as declared, for all kinds together. */
            rc = profile_set_copy(&kinds->pus[kind], &cache->pus);
            rc = rc < 0 ? rc : probe_relation_narrow(&cache->sharing, &cache->pus);
        }
        if (rc == 0) {
            narrow_ratios(cache);
            merged->caches[merged->cache_count++] = *cache;
            *cache = (struct profile_cache){0};
        }
    }
    return rc;
}

int probe_result_set_caches_of_kinds(struct profile_class *node_class, const struct kinds *kinds,
                                     struct kind_results *results, const struct measured_on *where)
{
    size_t room = kinds->count * (node_class->cache_count + CACHE_LEVELS_MAX);
    struct profile_class merged = {.caches = calloc(room + 1, sizeof *merged.caches)};
    int rc = merged.caches ? 0 : -ENOMEM;
    for (size_t kind = 0; rc == 0 && kind < kinds->count; kind++) {
        struct probe_sharing *sharing = &results[kind].sharing;
        struct measured_on here = *where;
        struct profile_class view;
        here.pu = kinds->pus[kind].ids[0];
        rc = view_of(node_class, here.pu, &view);
        if (rc < 0) {
            break;
        }
        for (size_t i = 0; rc == 0 && i < view.cache_count; i++) { /* its own PUs were asked */
            const struct profile_cache *declared =
                profile_cache_of(node_class, view.caches[i].level, here.pu);
            rc = is_common(declared, kinds)
                     ? 0
                     : probe_relation_narrow(&view.caches[i].sharing, &kinds->pus[kind]);
        }
        rc = rc < 0 ? rc
                    : probe_result_set_caches(&view, &results[kind].caches,
                                              sharing->count > 0 ? sharing : NULL, &here);
        rc = rc < 0 ? rc : take(node_class, kinds, kind, &view, &merged);
        probe_result_free_caches(&view);
    }
    if (rc < 0) {
        probe_result_free_caches(&merged);
        return rc;
    }
    qsort(merged.caches, merged.cache_count, sizeof *merged.caches, by_place);
    probe_result_free_caches(node_class);
    node_class->caches = merged.caches;
    node_class->cache_count = merged.cache_count;
    return 0;
}
