#include "plain.h"

#include <errno.h>
#include <string.h>

int map_plain_make(struct map_arena *arena, const struct map_view *view, bool apart, struct map_plain *out)
{
    struct map_plain plain = {.view = view};
    plain.stamp = map_arena_get(arena, view->leaf_count, sizeof *plain.stamp);
    if (!plain.stamp) {
        return -ENOMEM;
    }
    for (int r = 0; r < MAP_RULE_COUNT; r++) {
        bool own = apart || r == 0;
        plain.rule[r] = own ? map_arena_get(arena, view->leaf_count, sizeof *plain.rule[r]) : plain.rule[0];
        if (!plain.rule[r]) {
            return -ENOMEM;
        }
    }
    *out = plain;
    return 0;
}

/* A new pass: no leaf has been reached but the chosen one, which nothing is added to. */
static void begin_pass(struct map_plain *plain, uint32_t chosen)
{
    if (++plain->pass == 0) {
        memset(plain->stamp, 0, plain->view->leaf_count * sizeof *plain->stamp);
        plain->pass = 1;
    }
    plain->stamp[chosen] = plain->pass;
}

static void raise_once(struct map_plain *plain, const struct map_family *family, uint32_t leaf)
{
    if (plain->stamp[leaf] != plain->pass) {
        plain->stamp[leaf] = plain->pass;
        plain->rule[family->rule][leaf] += family->value;
    }
}

static void raise_in_node(struct map_plain *plain, const struct map_family *family, uint32_t first_leaf, uint32_t item)
{
    const struct map_groups *groups = &family->groups;
    uint32_t group = groups->group_of[item];
    if (group != MAP_NONE) {
        for (uint32_t i = groups->start[group]; i < groups->start[group + 1]; i++) {
            raise_once(plain, family, first_leaf + groups->members[i]);
        }
    }
    if (groups->pair_start) {
        for (uint32_t i = groups->pair_start[item]; i < groups->pair_start[item + 1]; i++) {
            raise_once(plain, family, first_leaf + groups->pair_with[i]);
        }
    }
}

static void raise_node(struct map_plain *plain, const struct map_family *family, uint32_t node)
{
    const struct map_view *view = plain->view;
    uint32_t first = view->nodes[node].first_leaf;
    uint32_t end = node + 1 < view->node_count ? view->nodes[node + 1].first_leaf : view->leaf_count;
    for (uint32_t leaf = first; leaf < end; leaf++) {
        raise_once(plain, family, leaf);
    }
}

static void raise_over_network(struct map_plain *plain, const struct map_family *family, uint32_t node)
{
    const struct map_groups *groups = &family->groups;
    uint32_t group = groups->group_of[node];
    if (group != MAP_NONE) {
        for (uint32_t i = groups->start[group]; i < groups->start[group + 1]; i++) {
            raise_node(plain, family, groups->members[i]);
        }
    }
    if (groups->pair_start) {
        for (uint32_t i = groups->pair_start[node]; i < groups->pair_start[node + 1]; i++) {
            raise_node(plain, family, groups->pair_with[i]);
        }
    }
}

void map_plain_choose(struct map_plain *plain, uint32_t chosen)
{
    const struct map_view *view = plain->view;
    uint32_t node = map_view_node(view, chosen);
    const struct map_class *class = &view->classes[view->nodes[node].class_index];
    uint32_t first_leaf = view->nodes[node].first_leaf;
    /* The latency of a pair is that of the first layer which has it, so all layers share one pass. */
    bool in_layers = false;
    for (size_t f = 0; f < class->family_count; f++) {
        const struct map_family *family = &class->families[f];
        if (!in_layers) {
            begin_pass(plain, chosen);
            in_layers = family->rule == MAP_RULE_LATENCY;
        }
        raise_in_node(plain, family, first_leaf, chosen - first_leaf);
    }
    if (!in_layers) {
        begin_pass(plain, chosen);
    }
    for (size_t f = 0; f < view->network_count; f++) {
        raise_over_network(plain, &view->network[f], node);
    }
}
