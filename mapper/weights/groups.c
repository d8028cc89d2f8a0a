/* A relation of the profile (groups, and pairs where it is not transitive) as arrays over
 * positions: which group an item is in and who else is, without a search; and which relation is
 * that of the cores. */
#include <string.h>

#include "mapper/weights/weights.h"
#include "profile/query.h"
#include "profile/scope.h"

static uint32_t position(const struct profile_set *ids, uint32_t id)
{
    size_t at = profile_set_position(ids, id);
    return at < ids->count ? (uint32_t)at : MAP_NONE;
}

/* An item is a member of the first group that lists it. */
static void fill_groups(const struct profile_relation *relation, const struct profile_set *ids,
                        struct map_groups *out)
{
    uint32_t used = 0;
    for (size_t g = 0; g < relation->group_count; g++) {
        const struct profile_set *set = &relation->groups[g];
        uint32_t first = used;
        for (size_t i = 0; i < set->count; i++) {
            uint32_t item = position(ids, set->ids[i]);
            if (item != MAP_NONE && out->group_of[item] == MAP_NONE) {
                out->group_of[item] = out->group_count;
                out->members[used++] = item;
            }
        }
        if (used > first) {
            out->start[out->group_count++] = first;
        }
    }
    out->start[out->group_count] = used;
}

/* Partners of every item, from the list of pairs: counted, then placed behind each other. */
static int fill_pairs(struct map_arena *arena, const struct profile_relation *relation,
                      const struct profile_set *ids, struct map_groups *out)
{
    uint32_t *start = map_arena_get(arena, (size_t)out->item_count + 2, sizeof *start);
    uint32_t *with = map_arena_get(arena, 2 * relation->pair_count, sizeof *with);
    TRY(map_arena_check(arena));
    for (int pass = 0; pass < 2; pass++) {
        for (size_t p = 0; p < relation->pair_count; p++) {
            uint32_t a = position(ids, relation->pairs[p].a);
            uint32_t b = position(ids, relation->pairs[p].b);
            if (a == MAP_NONE || b == MAP_NONE || a == b) {
                continue;
            }
            if (pass == 0) {
                start[a + 2]++;
                start[b + 2]++;
            } else {
                with[start[a + 1]++] = b;
                with[start[b + 1]++] = a;
            }
        }
        for (uint32_t i = 2; pass == 0 && i < out->item_count + 2; i++) {
            start[i] += start[i - 1];
        }
    }
    out->pair_start = start;
    out->pair_with = with;
    return 0;
}

int map_groups_make(struct map_arena *arena, const struct profile_relation *relation,
                    const struct profile_set *ids, struct map_groups *out)
{
    uint32_t item_count = (uint32_t)ids->count;
    struct map_groups groups = {.item_count = item_count};
    groups.group_of = map_arena_get(arena, item_count, sizeof *groups.group_of);
    groups.start = map_arena_get(arena, relation->group_count + 1, sizeof *groups.start);
    groups.members = map_arena_get(arena, item_count, sizeof *groups.members);
    TRY(map_arena_check(arena));
    memset(groups.group_of, 0xff, (size_t)item_count * sizeof *groups.group_of);
    fill_groups(relation, ids, &groups);
    if (relation->pair_count) {
        TRY(fill_pairs(arena, relation, ids, &groups));
    }
    *out = groups;
    return 0;
}

bool map_groups_related(const struct map_groups *groups, uint32_t a, uint32_t b)
{
    if (groups->group_of[a] != MAP_NONE && groups->group_of[a] == groups->group_of[b]) {
        return true;
    }
    for (uint32_t i = groups->pair_start ? groups->pair_start[a] : 0;
         groups->pair_start && i < groups->pair_start[a + 1]; i++) {
        if (groups->pair_with[i] == b) {
            return true;
        }
    }
    return false;
}

const struct map_groups *map_class_groups(const struct map_class *class, int which)
{
    if (which == MAP_PACKAGES || which == MAP_CORES) {
        return which == MAP_PACKAGES ? class->packages : &class->cores;
    }
    return which >= 0 && (size_t)which < class->family_count ? &class->families[which].groups
                                                             : NULL;
}

uint32_t map_lowest_leaf(const struct map_view *view, uint32_t leaf, int which)
{
    const struct map_groups *groups = map_class_groups(map_view_class(view, leaf), which);
    const uint32_t first = view->nodes[view->node_of[leaf]].first_leaf;
    if (!groups) {
        return first;
    }
    uint32_t group = groups->group_of[leaf - first];
    return group == MAP_NONE ? leaf : first + groups->members[groups->start[group]];
}

const struct map_family *map_latency_between(const struct map_view *view, uint32_t a, uint32_t b)
{
    const uint32_t node = view->node_of[a], other = view->node_of[b];
    const uint32_t first = view->nodes[node].first_leaf;
    const struct map_class *class = map_view_class(view, a);
    for (size_t f = 0; node == other && a != b && f < class->family_count; f++) {
        const struct map_family *family = &class->families[f];
        if (family->rule == MAP_RULE_LATENCY &&
            map_groups_related(&family->groups, a - first, b - first)) {
            return family;
        }
    }
    for (size_t f = 0; a != b && f < view->network_count; f++) {
        const struct map_groups *groups = &view->network[f].groups;
        if (node == other ? groups->group_of[node] != MAP_NONE
                          : map_groups_related(groups, node, other)) {
            return &view->network[f];
        }
    }
    return NULL;
}

/* -- cores -- */

/* Sharing was measured, and the groups state it. */
static bool tells_sharers(const struct profile_cache *cache)
{
    return cache->sharing_quality.origin == PROFILE_MEASURED && cache->sharing.pair_count == 0;
}

static bool tells_cores(const struct profile_cache *cache)
{
    return cache->level == 1 && tells_sharers(cache);
}

/* Two PUs, one of which has the cache and the other one a cache of another kind of core: neither
 * shares it with the other. */
static bool one_has(const struct profile_cache *cache, const struct profile_set *core)
{
    return cache->pus.count == 0 || profile_set_has(&cache->pus, core->ids[0]) ||
           profile_set_has(&cache->pus, core->ids[1]);
}

/* Some pairs of a cache that is not private everywhere may not be known: a pair that has a
 * figure is. */
static bool tells_pair(const struct profile_cache *cache, uint32_t a, uint32_t b)
{
    return tells_sharers(cache) ||
           profile_pair_figure(cache->pair_ratios, cache->pair_ratio_count, a, b) > 0;
}

/* Threads of a core share every cache that either of them has. Disturbance makes a cache look
 * shared, not private, so one measured private says that no core is behind it. A PU that does not
 * share an outer cache is not asked about the inner ones. */
static bool is_no_core(const struct profile_class *of, const struct profile_set *core)
{
    bool none = false;
    for (size_t i = 0; i < of->cache_count && core->count > 1; i++) {
        const struct profile_cache *cache = &of->caches[i];
        const uint32_t a = core->ids[0], b = core->ids[1];
        none |= tells_pair(cache, a, b) && one_has(cache, core) &&
                !profile_related(&cache->sharing, a, b);
    }
    return none;
}

/* The declared cores; where none is declared, as in many virtual machines, or one of them is none,
 * the PUs that were found to share a first cache. The sets stay the profile's. */
static int find_cores(struct map_arena *arena, const struct profile_class *of,
                      struct profile_relation *out)
{
    bool wrong = of->cores.group_count == 0 && of->cores.pair_count == 0;
    size_t count = 0;
    for (size_t i = 0; i < of->cores.group_count; i++) {
        wrong |= is_no_core(of, &of->cores.groups[i]);
    }
    *out = of->cores;
    if (!wrong) {
        return 0;
    }
    for (size_t i = 0; i < of->cache_count; i++) {
        count += tells_cores(&of->caches[i]) ? of->caches[i].sharing.group_count : 0;
    }
    *out =
        (struct profile_relation){.groups = map_arena_get(arena, count + 1, sizeof *out->groups)};
    for (size_t i = 0; out->groups && i < of->cache_count; i++) {
        const struct profile_relation *sharing = &of->caches[i].sharing;
        for (size_t g = 0; tells_cores(&of->caches[i]) && g < sharing->group_count; g++) {
            out->groups[out->group_count++] = sharing->groups[g];
        }
    }
    return map_arena_check(arena);
}

int map_groups_of_cores(struct map_arena *arena, const struct profile_class *of,
                        struct map_groups *out)
{
    struct profile_relation cores;
    TRY(find_cores(arena, of, &cores));
    return map_groups_make(arena, &cores, &of->pus, out);
}
