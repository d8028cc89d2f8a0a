/* A relation of the profile (groups, and pairs where it is not transitive) as arrays over
 * positions: which group an item is in and who else is, without a search. */
#include <errno.h>
#include <string.h>

#include "mapper/weights/weights.h"

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
