/* The set and the order are two questions. The weights choose the set; where the number of workers
 * is known they are numbered by the machine's tree, because parallel programs talk mostly to
 * neighbours in rank order. The tree is made of paths, not of nested groups: measured groups may
 * cross. */
#include "mapper/weights/weights.h"

#include <stdlib.h>
#include <string.h>

#include "profile/scope.h"
/* Wide groups join many pairs. */
static uint64_t joined_pairs(const struct map_groups *groups)
{
    uint64_t pairs = 0;
    for (uint32_t g = 0; g < groups->group_count; g++) {
        uint64_t members = groups->start[g + 1] - groups->start[g];
        pairs += members * (members - 1) / 2;
    }
    return pairs;
}

/* The groups of one level. Items of none stay together inside the group of the level before: caches
 * of one level may be several relations (of the fast cores, of the small ones), and what one of
 * them does not speak of, another one or a core still holds together. */
static void name_groups(struct map_order *order, const struct map_groups *groups, uint32_t level,
                        uint32_t items, uint32_t *rest)
{
    memset(rest, 0xff, items * sizeof *rest); /* MAP_NONE */
    for (uint32_t i = 0; i < items; i++) {
        uint32_t *path = order->group + (size_t)i * order->depth, group = groups->group_of[i];
        uint32_t before = level ? path[level - 1] : 0;
        if (group != MAP_NONE) {
            path[level] = groups->members[groups->start[group]];
            continue;
        }
        rest[before] = rest[before] == MAP_NONE ? i : rest[before];
        path[level] = rest[before];
    }
}

/* Few relations: put where it belongs, behind those that are as wide. */
static void sort_levels(const struct map_groups **levels, uint32_t depth)
{
    for (uint32_t i = 1; i < depth; i++) {
        const struct map_groups *level = levels[i];
        uint64_t pairs = joined_pairs(level);
        uint32_t at = i;
        for (; at > 0 && joined_pairs(levels[at - 1]) < pairs; at--) {
            levels[at] = levels[at - 1];
        }
        levels[at] = level;
    }
}

static int by_path(const void *a, const void *b, void *context)
{
    const struct map_order *order = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const uint32_t *p = order->group + (size_t)x * order->depth;
    const uint32_t *q = order->group + (size_t)y * order->depth;
    for (uint32_t d = 0; d < order->depth; d++) {
        if (p[d] != q[d]) {
            return p[d] < q[d] ? -1 : 1;
        }
    }
    return x < y ? -1 : x > y;
}

/* `levels` are sorted by the pairs that they join, most first; of as many the first one stays the
 * first. */
static int make_order(struct map_arena *arena, const struct map_groups **levels, uint32_t depth,
                      uint32_t items, struct map_order *out)
{
    struct map_order order = {.depth = depth};
    order.item = map_arena_get(arena, items, sizeof *order.item);
    order.place = map_arena_get(arena, items, sizeof *order.place);
    order.group = map_arena_get(arena, (size_t)items * depth, sizeof *order.group);
    uint32_t *rest = map_arena_get(arena, items, sizeof *rest);
    TRY(map_arena_check(arena));
    sort_levels(levels, depth);
    for (uint32_t d = 0; d < depth; d++) {
        name_groups(&order, levels[d], d, items, rest);
    }
    for (uint32_t i = 0; i < items; i++) {
        order.item[i] = i;
    }
    qsort_r(order.item, items, sizeof *order.item, by_path, &order);
    for (uint32_t i = 0; i < items; i++) {
        order.place[order.item[i]] = i;
    }
    *out = order;
    return 0;
}

/* The layers, or all others but what only breaks ties, behind the `depth` levels that are there. */
static uint32_t append_levels(const struct map_class *class, bool layers,
                              const struct map_groups **levels, uint32_t depth)
{
    for (size_t f = 0; f < class->family_count; f++) {
        enum map_rule rule = class->families[f].rule;
        if ((rule == MAP_RULE_LATENCY) == layers && rule != MAP_TIE_PACKAGE) {
            levels[depth++] = &class->families[f].groups;
        }
    }
    return depth;
}

int map_order_by_layers(struct map_arena *arena, const struct map_class *class,
                        struct map_order *out)
{
    const struct map_groups **levels = map_arena_get(arena, class->family_count, sizeof *levels);
    TRY(map_arena_check(arena));
    return make_order(arena, levels, append_levels(class, true, levels, 0),
                      (uint32_t) class->of->pus.count, out);
}

int map_order_by_all(struct map_arena *arena, const struct map_class *class,
                     enum map_priority priority, struct map_order *out)
{
    const struct map_groups **levels =
        map_arena_get(arena, class->family_count + 2, sizeof *levels);
    bool layers_first = priority == MAP_COMMUNICATION;
    TRY(map_arena_check(arena));
    uint32_t depth = append_levels(class, layers_first, levels, 0);
    depth = append_levels(class, !layers_first, levels, depth);
    levels[depth++] = class->packages;
    levels[depth++] = &class->cores;
    return make_order(arena, levels, depth, (uint32_t) class->of->pus.count, out);
}

int map_order_of_nodes(struct map_view *view, struct map_order *out)
{
    const struct map_groups **levels =
        map_arena_get(&view->arena, view->network_count, sizeof *levels);
    TRY(map_arena_check(&view->arena));
    for (size_t f = 0; f < view->network_count; f++) {
        levels[f] = &view->network[f].groups;
    }
    return make_order(&view->arena, levels, (uint32_t)view->network_count, view->node_count, out);
}

/* -- numbering -- */

struct worker {
    uint32_t round, leaf;
    uint64_t place; /* of the node, then in it */
};

static int by_round_and_place(const void *a, const void *b)
{
    const struct worker *x = a, *y = b;
    if (x->round != y->round) {
        return x->round < y->round ? -1 : 1;
    }
    return x->place < y->place ? -1 : x->place > y->place;
}

int map_order_workers(struct map_view *view, uint32_t *leaves, size_t count)
{
    struct map_arena *arena = &view->arena;
    struct map_order nodes, *classes = map_arena_get(arena, view->class_count, sizeof *classes);
    struct worker *workers = map_arena_get(arena, count, sizeof *workers);
    uint32_t *rounds = map_arena_get(arena, view->leaf_count, sizeof *rounds);
    TRY(map_arena_check(arena));
    TRY(map_order_of_nodes(view, &nodes));
    for (size_t c = 0; c < view->class_count; c++) {
        TRY(map_order_by_layers(arena, &view->classes[c], &classes[c]));
    }
    for (size_t w = 0; w < count; w++) {
        uint32_t leaf = leaves[w], node = view->node_of[leaf];
        const struct map_node *of = &view->nodes[node];
        uint64_t place = classes[of->class_index].place[leaf - of->first_leaf];
        workers[w] =
            (struct worker){rounds[leaf]++, leaf, (uint64_t)nodes.place[node] << 32 | place};
    }
    qsort(workers, count, sizeof *workers, by_round_and_place);
    for (size_t w = 0; w < count; w++) {
        leaves[w] = workers[w].leaf;
    }
    return 0;
}

/* -- the smallest group -- */

struct limiting {
    struct map_view *view;
    struct map_slots *slots;
    size_t workers;
    bool *open;     /* by leaf: a place for a worker */
    uint32_t *room; /* by node: places */
    uint32_t least;
    /* The best so far: a group inside `node`, or of nodes; NULL: none. */
    const struct map_groups *groups;
    uint32_t node, group;
};

/* Places: one free PU for each core without a worker, of the kind that comes first. */
static size_t mark_places(struct limiting *l)
{
    const struct map_view *view = l->view;
    map_key best = MAP_KEY_NEVER;
    size_t count = 0;
    for (uint32_t leaf = 0; leaf < view->leaf_count; leaf++) {
        map_key key = l->slots->key[leaf];
        best = key != MAP_KEY_NEVER && map_key_kind(key) < best ? map_key_kind(key) : best;
    }
    for (uint32_t leaf = 0; leaf < view->leaf_count; leaf++) {
        map_key key = l->slots->key[leaf];
        l->open[leaf] = key != MAP_KEY_NEVER && map_key_kind(key) == best &&
                        !map_key_workers(key) && !map_key_core_workers(key) &&
                        !map_core_mates_before(view, leaf, l->open);
        l->room[view->node_of[leaf]] += l->open[leaf];
        count += l->open[leaf];
    }
    return count;
}

/* Offers the groups of a relation inside a node, or of nodes, by the places in their items. */
static void offer_groups(struct limiting *l, const struct map_groups *groups, uint32_t node)
{
    const bool *open = node == MAP_NONE ? NULL : l->open + l->view->nodes[node].first_leaf;
    for (uint32_t g = 0; g < groups->group_count; g++) {
        size_t room = 0;
        for (uint32_t i = groups->start[g]; i < groups->start[g + 1]; i++) {
            room += open ? open[groups->members[i]] : l->room[groups->members[i]];
        }
        if (room >= l->workers && room < l->least) {
            l->least = (uint32_t)room;
            l->groups = groups;
            l->node = node;
            l->group = g;
        }
    }
}

static void close_others(struct limiting *l)
{
    for (uint32_t leaf = 0; leaf < l->view->leaf_count; leaf++) {
        uint32_t node = l->view->node_of[leaf];
        bool in = l->node == MAP_NONE
                      ? l->groups->group_of[node] == l->group
                      : node == l->node &&
                            l->groups->group_of[leaf - l->view->nodes[node].first_leaf] == l->group;
        if (!in) {
            l->slots->key[leaf] = MAP_KEY_NEVER;
        }
    }
}

int map_order_limit(struct map_view *view, struct map_slots *slots, size_t workers)
{
    struct limiting l = {.view = view, .slots = slots, .workers = workers, .least = UINT32_MAX};
    l.open = map_arena_get(&view->arena, view->leaf_count, sizeof *l.open);
    l.room = map_arena_get(&view->arena, view->node_count, sizeof *l.room);
    TRY(map_arena_check(&view->arena));
    if (mark_places(&l) < workers) {
        return 0;
    }
    for (uint32_t node = 0; node < view->node_count; node++) {
        const struct map_class *class = &view->classes[view->nodes[node].class_index];
        for (size_t f = 0; f < class->family_count && l.room[node] >= workers; f++) {
            if (class->families[f].rule == MAP_RULE_LATENCY) {
                offer_groups(&l, &class->families[f].groups, node);
            }
        }
    }
    bool in_a_node = l.groups;
    for (size_t f = 0; !in_a_node && f < view->network_count; f++) {
        offer_groups(&l, &view->network[f].groups, MAP_NONE);
    }
    if (l.groups) {
        close_others(&l);
    }
    return 0;
}
