/* Keys: who is where. A key changes only for the chosen PU and those of its core, so that keys are
 * kept and never worked out again. */
#include <errno.h>

#include "mapper/map.h"
#include "mapper/weights/weights.h"
#include "profile/scope.h"

/* The PUs of a leaf's core. */
struct core {
    uint32_t first_leaf;
    const uint32_t *members; /* positions in the node; NULL: the PU has the core for itself */
    uint32_t count;
};

static struct core core_of(const struct map_view *view, uint32_t leaf)
{
    const struct map_node *node = &view->nodes[view->node_of[leaf]];
    const struct map_groups *cores = &view->classes[node->class_index].cores;
    uint32_t group = cores->group_of[leaf - node->first_leaf];
    if (group == MAP_NONE) {
        return (struct core){node->first_leaf, NULL, 0};
    }
    uint32_t start = cores->start[group];
    return (struct core){node->first_leaf, cores->members + start, cores->start[group + 1] - start};
}

uint32_t map_core_mates_before(const struct map_view *view, uint32_t leaf, const bool *in)
{
    const struct core core = core_of(view, leaf);
    uint32_t mates = 0;
    for (uint32_t i = 0; i < core.count && core.first_leaf + core.members[i] < leaf; i++) {
        mates += !in || in[core.first_leaf + core.members[i]];
    }
    return mates;
}

map_key map_slots_node_key(const struct map_slots *slots, uint32_t node)
{
    if (!slots->in_node) {
        return 0;
    }
    const struct map_view *view = slots->view;
    uint32_t room = view->classes[view->nodes[node].class_index].memory_room;
    return slots->in_node[node] && slots->in_node[node] < room ? 0 : MAP_KEY_OTHER_NODE;
}

void map_slots_choose(struct map_slots *slots, uint32_t leaf)
{
    if (slots->in_node) {
        slots->in_node[slots->view->node_of[leaf]]++;
    }
    struct core core = core_of(slots->view, leaf);
    if (slots->key[leaf] != MAP_KEY_NEVER) {
        slots->key[leaf] += MAP_KEY_WORKER + (core.count ? 0 : MAP_KEY_CORE_WORKER);
    }
    for (uint32_t i = 0; i < core.count; i++) {
        map_key *key = &slots->key[core.first_leaf + core.members[i]];
        *key += *key != MAP_KEY_NEVER ? MAP_KEY_CORE_WORKER : 0;
    }
}

static map_key first_key(const struct map_view *view, uint32_t leaf)
{
    const struct map_node *node = &view->nodes[view->node_of[leaf]];
    const struct map_class *class = &view->classes[node->class_index];
    uint32_t item = leaf - node->first_leaf;
    return (class->far[item] ? MAP_KEY_FAR : 0) + class->kind[item];
}

/* Both lists ascend, so one walk finds the common PUs. */
static uint32_t allow(const struct map_view *view, const struct profile_set *allowed, map_key *key)
{
    uint32_t count = 0;
    size_t i = 0;
    for (uint32_t leaf = 0; leaf < view->leaf_count; leaf++) {
        while (allowed && i < allowed->count && allowed->ids[i] < view->pu[leaf]) {
            i++;
        }
        bool in = !allowed || (i < allowed->count && allowed->ids[i] == view->pu[leaf]);
        key[leaf] = in ? first_key(view, leaf) : MAP_KEY_NEVER;
        count += in;
    }
    return count;
}

/* PUs that the view does not have are passed over. */
static void take_listed(const struct map_view *view, const struct profile_set *taken,
                        struct map_slots *slots)
{
    for (size_t i = 0; taken && i < taken->count; i++) {
        uint32_t leaf = map_view_leaf(view, taken->ids[i]);
        if (leaf != MAP_NONE) {
            slots->taken[slots->taken_count++] = leaf;
            map_slots_choose(slots, leaf);
        }
    }
}

int map_slots_make(struct map_view *view, const struct profile_set *allowed,
                   const struct profile_set *taken, struct map_slots *out,
                   struct servet_error *error)
{
    struct map_slots slots = {.view = view};
    bool by_node = view->node_count > 1 && view->priority == MAP_MEMORY && !view->sums;
    slots.key = map_arena_get(&view->arena, view->leaf_count, sizeof *slots.key);
    slots.taken = map_arena_get(&view->arena, taken ? taken->count : 0, sizeof *slots.taken);
    uint32_t *in_node = map_arena_get(&view->arena, view->node_count, sizeof *in_node);
    TRY(map_arena_check(&view->arena));
    if (!allow(view, allowed, slots.key)) {
        return profile_error(error, -EINVAL,
                             "allowed PUs: expected at least one PU of the profile");
    }
    take_listed(view, taken, &slots);
    slots.in_node = by_node ? in_node : NULL;
    *out = slots;
    return 0;
}
