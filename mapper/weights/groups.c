/* A relation of the profile (groups, and pairs where it is not transitive) as arrays over
 * positions: which group an item is in and who else is, without a search; and which relation is
 * that of the cores. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/weights/weights.h"
#include "profile/query.h"

static uint32_t position(const uint32_t *position_of, uint32_t span, uint32_t id)
{
    return id < span ? position_of[id] : MAP_NONE;
}

static size_t member_count(const struct profile_relation *relation)
{
    size_t count = 0;
    for (size_t g = 0; g < relation->group_count; g++) {
        count += relation->groups[g].count;
    }
    return count;
}

static void fill_groups(const struct profile_relation *relation, const uint32_t *position_of,
                        uint32_t span, struct map_groups *out)
{
    uint32_t used = 0;
    for (size_t g = 0; g < relation->group_count; g++) {
        const struct profile_set *set = &relation->groups[g];
        uint32_t first = used;
        for (size_t i = 0; i < set->count; i++) {
            uint32_t item = position(position_of, span, set->ids[i]);
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
                      const uint32_t *position_of, uint32_t span, struct map_groups *out)
{
    uint32_t *start = map_arena_get(arena, (size_t)out->item_count + 2, sizeof *start);
    uint32_t *with = map_arena_get(arena, 2 * relation->pair_count, sizeof *with);
    if (!start || !with) {
        return -ENOMEM;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (size_t p = 0; p < relation->pair_count; p++) {
            uint32_t a = position(position_of, span, relation->pairs[p].a);
            uint32_t b = position(position_of, span, relation->pairs[p].b);
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
                    const uint32_t *position_of, uint32_t span, uint32_t item_count,
                    struct map_groups *out)
{
    struct map_groups groups = {.item_count = item_count};
    groups.group_of = map_arena_get(arena, item_count, sizeof *groups.group_of);
    groups.start = map_arena_get(arena, relation->group_count + 1, sizeof *groups.start);
    groups.members = map_arena_get(arena, member_count(relation), sizeof *groups.members);
    if (!groups.group_of || !groups.start || !groups.members) {
        return -ENOMEM;
    }
    memset(groups.group_of, 0xff, (size_t)item_count * sizeof *groups.group_of);
    fill_groups(relation, position_of, span, &groups);
    if (relation->pair_count) {
        int rc = fill_pairs(arena, relation, position_of, span, &groups);
        if (rc < 0) {
            return rc;
        }
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
        return which == MAP_PACKAGES ? &class->packages : &class->cores;
    }
    return which >= 0 && (size_t)which < class->family_count ? &class->families[which].groups
                                                             : NULL;
}

uint32_t map_lowest_leaf(const struct map_view *view, uint32_t leaf, int which)
{
    const struct map_groups *groups = map_class_groups(map_view_class(view, leaf), which);
    const uint32_t first = view->nodes[map_view_node(view, leaf)].first_leaf;
    return first + (groups ? map_groups_lowest(groups, leaf - first) : 0);
}

const struct map_family *map_layer_of(const struct map_class *class, uint32_t a, uint32_t b)
{
    for (size_t f = 0; f < class->family_count && a != b; f++) {
        const struct map_family *family = &class->families[f];
        if (family->rule == MAP_RULE_LATENCY && map_groups_related(&family->groups, a, b)) {
            return family;
        }
    }
    return NULL;
}

/* -- Builds the tree of groups, widest first: a group belongs below the smallest group that has all
 * of its members. Where its members have different owners, two groups cross and there is no tree;
 * the caller then works with each relation by itself. -- */

/* A group of a family on its way into the hierarchy. */
struct entry {
    const uint32_t *members;
    uint32_t count, group;
    size_t family;
};

static int widest_first(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->count != y->count) {
        return x->count > y->count ? -1 : 1;
    }
    if (x->members[0] != y->members[0]) {
        return x->members[0] < y->members[0] ? -1 : 1;
    }
    return x->family < y->family ? -1 : x->family > y->family;
}

static size_t list_groups(const struct map_family *families, size_t family_count,
                          struct entry *entries)
{
    size_t used = 0;
    for (size_t f = 0; f < family_count; f++) {
        const struct map_groups *groups = &families[f].groups;
        for (uint32_t g = 0; g < groups->group_count; g++) {
            uint32_t count = groups->start[g + 1] - groups->start[g];
            if (count < 2) {
                continue; /* no other worker to share with */
            }
            if (entries) {
                entries[used] = (struct entry){groups->members + groups->start[g], count, g, f};
            }
            used++;
        }
    }
    return used;
}

static bool one_owner(const struct map_hierarchy *hierarchy, const struct entry *entry)
{
    for (uint32_t i = 1; i < entry->count; i++) {
        if (hierarchy->owner[entry->members[i]] != hierarchy->owner[entry->members[0]]) {
            return false;
        }
    }
    return true;
}

static void put(struct map_hierarchy *hierarchy, const struct entry *entry,
                const struct map_family *family)
{
    uint32_t index = hierarchy->owner[entry->members[0]];
    if (hierarchy->groups[index].count != entry->count) {
        uint32_t parent = index;
        index = hierarchy->group_count++;
        hierarchy->groups[index] = (struct map_hierarchy_group){
            .members = entry->members, .count = entry->count, .parent = parent, .layer = MAP_NONE};
        for (uint32_t i = 0; i < entry->count; i++) {
            hierarchy->owner[entry->members[i]] = index;
        }
    }
    struct map_hierarchy_group *group = &hierarchy->groups[index];
    if (family->rule != MAP_RULE_LATENCY) {
        group->collide = map_weight_plus(group->collide, family->weight);
    } else if (entry->family < group->layer) {
        group->layer = (uint32_t)entry->family;
    }
}

int map_hierarchy_make(struct map_arena *arena, const struct map_family *families,
                       size_t family_count, uint32_t item_count, struct map_hierarchy *out)
{
    for (size_t f = 0; f < family_count; f++) {
        if (families[f].groups.pair_start) {
            return -ENOTSUP;
        }
    }
    size_t count = list_groups(families, family_count, NULL);
    struct entry *entries = map_arena_get(arena, count, sizeof *entries);
    struct map_hierarchy hierarchy = {.item_count = item_count, .group_count = 1};
    hierarchy.groups = map_arena_get(arena, count + 1, sizeof *hierarchy.groups);
    hierarchy.owner = map_arena_get(arena, item_count, sizeof *hierarchy.owner);
    if (!entries || !hierarchy.groups || !hierarchy.owner) {
        return -ENOMEM;
    }
    hierarchy.groups[0] =
        (struct map_hierarchy_group){.count = item_count, .parent = MAP_NONE, .layer = MAP_NONE};
    list_groups(families, family_count, entries);
    qsort(entries, count, sizeof *entries, widest_first);
    for (size_t e = 0; e < count; e++) {
        if (!one_owner(&hierarchy, &entries[e])) {
            return -ENOTSUP;
        }
        put(&hierarchy, &entries[e], &families[entries[e].family]);
    }
    *out = hierarchy;
    return 0;
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
    return out->groups ? 0 : -ENOMEM;
}

int map_groups_of_cores(struct map_arena *arena, const struct profile_class *of,
                        const uint32_t *position_of, uint32_t span, struct map_groups *out)
{
    struct profile_relation cores;
    int rc = find_cores(arena, of, &cores);
    return rc < 0 ? rc
                  : map_groups_make(arena, &cores, position_of, span, (uint32_t)of->pus.count, out);
}
