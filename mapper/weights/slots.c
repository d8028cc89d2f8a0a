#include "mapper/weights/slots.h"

#include <errno.h>
#include <string.h>

struct map_core map_core_of(const struct map_view *view, uint32_t leaf)
{
    const struct map_node *node = &view->nodes[map_view_node(view, leaf)];
    const struct map_groups *cores = &view->classes[node->class_index].cores;
    uint32_t group = cores->group_of[leaf - node->first_leaf];
    if (group == MAP_NONE) {
        return (struct map_core){node->first_leaf, NULL, 0};
    }
    uint32_t start = cores->start[group];
    return (struct map_core){node->first_leaf, cores->members + start,
                             cores->start[group + 1] - start};
}

void map_slots_choose(struct map_slots *slots, uint32_t leaf)
{
    struct map_core core = map_core_of(slots->view, leaf);
    if (slots->key[leaf] != MAP_KEY_NEVER) {
        slots->key[leaf] += MAP_KEY_WORKER + (core.count ? 0 : MAP_KEY_CORE_WORKER);
    }
    for (uint32_t i = 0; i < core.count; i++) {
        map_key *key = &slots->key[core.first_leaf + core.members[i]];
        *key += *key != MAP_KEY_NEVER ? MAP_KEY_CORE_WORKER : 0;
    }
}

uint32_t map_slots_lowest(const struct map_slots *slots, const int64_t *weight)
{
    uint32_t best = 0;
    for (uint32_t leaf = 1; leaf < slots->view->leaf_count; leaf++) {
        if (slots->key[leaf] < slots->key[best] ||
            (slots->key[leaf] == slots->key[best] && weight[leaf] < weight[best])) {
            best = leaf;
        }
    }
    return best;
}

static uint16_t kind_of(const struct map_view *view, uint32_t leaf)
{
    const struct map_node *node = &view->nodes[map_view_node(view, leaf)];
    return view->classes[node->class_index].kind[leaf - node->first_leaf];
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
        key[leaf] = in ? kind_of(view, leaf) : MAP_KEY_NEVER;
        count += in;
    }
    return count;
}

static int take(struct map_view *view, const struct profile_set *taken, struct map_slots *slots)
{
    if (!taken || !taken->count) {
        return 0;
    }
    slots->taken = map_arena_get(&view->arena, taken->count, sizeof *slots->taken);
    if (!slots->taken) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < taken->count; i++) {
        uint32_t leaf = map_view_leaf(view, taken->ids[i]);
        if (leaf != MAP_NONE) {
            slots->taken[slots->taken_count++] = leaf;
            map_slots_choose(slots, leaf);
        }
    }
    return 0;
}

/* Free cores of every kind: a core counts once, by its lowest PU that may be used. */
static void count_cores(const struct map_slots *slots, size_t *cores)
{
    const struct map_view *view = slots->view;
    for (uint32_t leaf = 0; leaf < view->leaf_count; leaf++) {
        map_key key = slots->key[leaf];
        if (key == MAP_KEY_NEVER || map_key_workers(key) || map_key_core_workers(key)) {
            continue;
        }
        struct map_core core = map_core_of(view, leaf);
        bool first = true;
        for (uint32_t i = 0; first && i < core.count && core.first_leaf + core.members[i] < leaf;
             i++) {
            first = slots->key[core.first_leaf + core.members[i]] == MAP_KEY_NEVER;
        }
        cores[kind_of(view, leaf)] += first;
    }
}

static void keep_kind(const struct map_slots *slots, uint16_t kind)
{
    for (uint32_t leaf = 0; leaf < slots->view->leaf_count; leaf++) {
        if (kind_of(slots->view, leaf) != kind) {
            slots->key[leaf] = MAP_KEY_NEVER;
        }
    }
}

static int prefer_one_kind(struct map_view *view, struct map_slots *slots, size_t workers)
{
    uint32_t kinds = 1;
    for (size_t c = 0; c < view->class_count; c++) {
        kinds = view->classes[c].kind_count > kinds ? view->classes[c].kind_count : kinds;
    }
    if (kinds == 1) {
        return 0;
    }
    size_t *cores = map_arena_get(&view->arena, kinds, sizeof *cores);
    if (!cores) {
        return -ENOMEM;
    }
    count_cores(slots, cores);
    for (uint16_t kind = 0; kind < kinds; kind++) {
        if (cores[kind] >= workers) {
            keep_kind(slots, kind);
            return 0;
        }
    }
    return 0;
}

int map_slots_make(struct map_view *view, const struct profile_set *allowed,
                   const struct profile_set *taken, size_t workers, struct map_slots *out,
                   struct servet_error *error)
{
    struct map_slots slots = {.view = view};
    slots.key = map_arena_get(&view->arena, view->leaf_count, sizeof *slots.key);
    if (!slots.key) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    if (!allow(view, allowed, slots.key)) {
        return profile_error(error, -EINVAL,
                             "allowed PUs: expected at least one PU of the profile");
    }
    if (take(view, taken, &slots) < 0 || prefer_one_kind(view, &slots, workers) < 0) {
        return profile_error(error, -ENOMEM, "out of memory");
    }
    *out = slots;
    return 0;
}
