/* The weights as one array. A choice walks the groups of the chosen PU, so any relation will do:
 * groups that cross each other and single pairs as a noisy measurement leaves them. A leaf that two
 * groups or a group and a pair of one relation reach is raised once, which is what the stamps are
 * for. */
#include "mapper/weights/weights.h"

#include <errno.h>
#include <string.h>

int map_exact_make(struct map_view *view, bool sums, struct map_exact *out)
{
    struct map_arena *arena = &view->arena;
    struct map_exact exact = {.view = view};
    exact.stamp = map_arena_get(arena, view->leaf_count, sizeof *exact.stamp);
    exact.weight = map_arena_get(arena, view->leaf_count, sizeof *exact.weight);
    if (!exact.stamp || !exact.weight) {
        return -ENOMEM;
    }
    for (int r = 0; sums && r < MAP_RULE_COUNT; r++) {
        exact.sum[r] = map_arena_get(arena, view->leaf_count, sizeof *exact.sum[r]);
        if (!exact.sum[r]) {
            return -ENOMEM;
        }
    }
    for (uint32_t leaf = 0; leaf < view->leaf_count; leaf++) {
        exact.weight[leaf] = map_view_first_weight(view, leaf);
    }
    *out = exact;
    return 0;
}

/* A new pass: no leaf has been reached but the chosen one, which nothing is added to. */
static void begin_pass(struct map_exact *exact, uint32_t chosen)
{
    if (++exact->pass == 0) {
        memset(exact->stamp, 0, exact->view->leaf_count * sizeof *exact->stamp);
        exact->pass = 1;
    }
    exact->stamp[chosen] = exact->pass;
}

static void raise_once(struct map_exact *exact, const struct map_family *family, uint32_t leaf)
{
    if (exact->stamp[leaf] != exact->pass) {
        exact->stamp[leaf] = exact->pass;
        exact->weight[leaf] = map_weight_plus(exact->weight[leaf], family->weight);
        if (family->rule < MAP_RULE_COUNT && exact->sum[family->rule]) {
            exact->sum[family->rule][leaf] += family->value;
        }
    }
}

static void raise_in_node(struct map_exact *exact, const struct map_family *family,
                          uint32_t first_leaf, uint32_t item)
{
    const struct map_groups *groups = &family->groups;
    uint32_t group = groups->group_of[item];
    if (group != MAP_NONE) {
        for (uint32_t i = groups->start[group]; i < groups->start[group + 1]; i++) {
            raise_once(exact, family, first_leaf + groups->members[i]);
        }
    }
    if (groups->pair_start) {
        for (uint32_t i = groups->pair_start[item]; i < groups->pair_start[item + 1]; i++) {
            raise_once(exact, family, first_leaf + groups->pair_with[i]);
        }
    }
}

static void raise_node(struct map_exact *exact, const struct map_family *family, uint32_t node)
{
    const struct map_view *view = exact->view;
    uint32_t first = view->nodes[node].first_leaf;
    uint32_t end =
        node + 1 < view->node_count ? view->nodes[node + 1].first_leaf : view->leaf_count;
    for (uint32_t leaf = first; leaf < end; leaf++) {
        raise_once(exact, family, leaf);
    }
}

static void raise_over_network(struct map_exact *exact, const struct map_family *family,
                               uint32_t node)
{
    const struct map_groups *groups = &family->groups;
    uint32_t group = groups->group_of[node];
    if (group != MAP_NONE) {
        for (uint32_t i = groups->start[group]; i < groups->start[group + 1]; i++) {
            raise_node(exact, family, groups->members[i]);
        }
    }
    if (groups->pair_start) {
        for (uint32_t i = groups->pair_start[node]; i < groups->pair_start[node + 1]; i++) {
            raise_node(exact, family, groups->pair_with[i]);
        }
    }
}

void map_exact_raise(struct map_exact *exact, uint32_t chosen)
{
    const struct map_view *view = exact->view;
    uint32_t node = map_view_node(view, chosen);
    const struct map_class *class = &view->classes[view->nodes[node].class_index];
    uint32_t first_leaf = view->nodes[node].first_leaf;
    /* The latency of a pair is that of the first layer which has it, so all layers share one
     * pass. */
    bool in_layers = false;
    for (size_t f = 0; f < class->family_count; f++) {
        const struct map_family *family = &class->families[f];
        if (!in_layers) {
            begin_pass(exact, chosen);
            in_layers = family->rule == MAP_RULE_LATENCY;
        }
        raise_in_node(exact, family, first_leaf, chosen - first_leaf);
    }
    if (!in_layers) {
        begin_pass(exact, chosen);
    }
    for (size_t f = 0; f < view->network_count; f++) {
        raise_over_network(exact, &view->network[f], node);
    }
}
