#include "mapper/weights/plain.h"

#include <errno.h>
#include <string.h>

int map_plain_make(struct map_arena *arena, const struct map_view *view, bool apart,
                   struct map_plain *out)
{
    struct map_plain plain = {.view = view};
    plain.stamp = map_arena_get(arena, view->leaf_count, sizeof *plain.stamp);
    if (!plain.stamp) {
        return -ENOMEM;
    }
    for (int r = 0; r < MAP_RULE_COUNT; r++) {
        bool own = apart || r == 0;
        plain.rule[r] =
            own ? map_arena_get(arena, view->leaf_count, sizeof *plain.rule[r]) : plain.rule[0];
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

static void raise_in_node(struct map_plain *plain, const struct map_family *family,
                          uint32_t first_leaf, uint32_t item)
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
    uint32_t end =
        node + 1 < view->node_count ? view->nodes[node + 1].first_leaf : view->leaf_count;
    for (uint32_t leaf = first; leaf < end; leaf++) {
        raise_once(plain, family, leaf);
    }
}

static void raise_over_network(struct map_plain *plain, const struct map_family *family,
                               uint32_t node)
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
    /* The latency of a pair is that of the first layer which has it, so all layers share one
     * pass. */
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

struct tracing {
    struct map_view *view;
    struct map_slots *slots;
    struct map_plain plain; /* rules apart: the sums so far */
    int64_t *weight;        /* by leaf: the sum of all */
    uint32_t *leaves;       /* the allowed ones, in the order of the row */
    size_t count;
    uint32_t *pus;
    bool *taken;
    int64_t *shown[MAP_RULE_COUNT + 1]; /* rules 1 to 3 and total, by place in the row */
};

static int make_tracing(struct tracing *t)
{
    struct map_arena *arena = &t->view->arena;
    uint32_t leaves = t->view->leaf_count;
    if (map_plain_make(arena, t->view, true, &t->plain) < 0) {
        return -ENOMEM;
    }
    t->weight = map_arena_get(arena, leaves, sizeof *t->weight);
    t->leaves = map_arena_get(arena, leaves, sizeof *t->leaves);
    t->pus = map_arena_get(arena, leaves, sizeof *t->pus);
    t->taken = map_arena_get(arena, leaves, sizeof *t->taken);
    bool all = t->weight && t->leaves && t->pus && t->taken;
    for (int r = 0; r <= MAP_RULE_COUNT; r++) {
        t->shown[r] = map_arena_get(arena, leaves, sizeof *t->shown[r]);
        all = all && t->shown[r];
    }
    if (!all) {
        return -ENOMEM;
    }
    for (uint32_t leaf = 0; leaf < leaves; leaf++) {
        if (t->slots->key[leaf] != MAP_KEY_NEVER) {
            t->pus[t->count] = t->view->pu[leaf];
            t->leaves[t->count++] = leaf;
        }
    }
    return 0;
}

/* Takes over what was added since the last row; a PU that cannot be chosen now shows nothing. */
static void fill_row(struct tracing *t)
{
    uint32_t fewest = UINT32_MAX;
    for (size_t i = 0; i < t->count; i++) {
        uint32_t workers = map_key_workers(t->slots->key[t->leaves[i]]);
        fewest = workers < fewest ? workers : fewest;
    }
    for (size_t i = 0; i < t->count; i++) {
        uint32_t leaf = t->leaves[i];
        t->taken[i] = map_key_workers(t->slots->key[leaf]) > fewest;
        for (int r = 0; r < MAP_RULE_COUNT; r++) {
            t->weight[leaf] += t->plain.rule[r][leaf];
            t->shown[r][i] = t->taken[i] ? 0 : t->plain.rule[r][leaf];
        }
        t->shown[MAP_RULE_COUNT][i] = t->taken[i] ? 0 : t->weight[leaf];
    }
    for (int r = 0; r < MAP_RULE_COUNT; r++) {
        memset(t->plain.rule[r], 0, t->view->leaf_count * sizeof *t->plain.rule[r]);
    }
}

int map_traced(struct map_view *view, struct map_slots *slots, size_t workers, uint32_t *out,
               const struct map_trace *trace)
{
    struct tracing t = {.view = view, .slots = slots};
    if (make_tracing(&t) < 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < slots->taken_count; i++) {
        map_plain_choose(&t.plain, slots->taken[i]);
    }
    for (size_t w = 0; w < workers; w++) {
        fill_row(&t);
        uint32_t leaf = map_slots_lowest(slots, t.weight);
        out[w] = view->pu[leaf];
        struct map_row row = {.worker = w,
                              .pus = t.pus,
                              .pu_count = t.count,
                              .denominator = view->denominator,
                              .rule1 = t.shown[MAP_RULE_CACHE],
                              .rule2 = t.shown[MAP_RULE_MEMORY],
                              .rule3 = t.shown[MAP_RULE_LATENCY],
                              .total = t.shown[MAP_RULE_COUNT],
                              .taken = t.taken,
                              .chosen = out[w]};
        trace->row(trace->context, &row);
        map_slots_choose(slots, leaf);
        map_plain_choose(&t.plain, leaf);
    }
    return 0;
}
