/* The tree engine: a tree over the PUs of every node, of one shape for all nodes of a class, and a
 * tree over the nodes. The root of a group has what the group adds; the weight of a PU is the sum
 * of what is written on the way to the top, so that the best PU of a subtree stays its best when
 * something is added to all of it. */
#include "mapper/weights/weights.h"

#include <errno.h>
#include <stdlib.h>

/* Slot 1 is the root; siblings are slots 2i and 2i + 1. */
#define ROOT 1u

/* A subtree as it is seen from outside: its best PU. */
struct slot {
    map_weight weight; /* of the best PU, with what was added to this subtree and those inside it */
    map_weight added;  /* to this subtree */
    map_key key;
    uint32_t leaf;
};

/* The shape of a tree over `item_count` items: the same for all nodes of a class. */
struct shape {
    uint32_t item_count, slot_count; /* slot 0 is not used */
    uint32_t *parent;                /* by slot */
    uint32_t *slot_of;               /* by item */
    map_weight *raise;               /* by slot: what is added when a PU below it is chosen */
    bool *top_layer;                 /* by slot: no layer is above it in this shape */
    map_weight *own;                 /* by item: sum of `raise` on the way to the root */
    bool *in_layer;                  /* by item: some slot on that way is in top_layer */
};

struct node {
    struct slot *slots;
    const struct shape *shape;
    uint32_t first_leaf, item_count;
    map_weight outer_latency; /* rule 3 for two PUs of this node that no layer of its class lists */
};

struct map_tree {
    const struct map_view *view;
    const struct map_slots *keys;
    struct shape *shapes; /* by class */
    struct node *nodes;
    struct shape network;
    struct slot *top; /* over nodes */
};

/* -- shapes -- */

struct shaping {
    const struct map_hierarchy *hierarchy;
    struct shape *shape;
    uint32_t next_slot;
    map_weight *raise;  /* by group of the hierarchy */
    bool *top_layer;    /* by group */
    uint32_t *start;    /* by group, and one more: where its children begin in `children` */
    uint32_t *children; /* items below item_count, then groups */
};

static void add(map_weight *sum, map_weight what)
{
    *sum = map_weight_plus(*sum, what);
}

/* The first layer that has a pair decides: rule 3 of a group is that of the lowest layer on the way
 * to the root, and what a group adds is the difference to its parent. */
static void set_raises(struct shaping *s, const struct map_family *families, uint32_t *layer)
{
    for (uint32_t g = 0; g < s->hierarchy->group_count; g++) {
        const struct map_hierarchy_group *group = &s->hierarchy->groups[g];
        uint32_t outer = group->parent == MAP_NONE ? MAP_NONE : layer[group->parent];
        layer[g] = group->layer < outer ? group->layer : outer;
        s->raise[g] = group->collide;
        if (layer[g] != outer) {
            map_weight above = outer == MAP_NONE ? (map_weight){0} : families[outer].weight;
            add(&s->raise[g], map_weight_minus(families[layer[g]].weight, above));
            s->top_layer[g] = outer == MAP_NONE;
        }
    }
}

static void list_children(struct shaping *s)
{
    const struct map_hierarchy *hierarchy = s->hierarchy;
    for (uint32_t i = 0; i < hierarchy->item_count; i++) {
        s->start[hierarchy->owner[i] + 2]++;
    }
    for (uint32_t g = 1; g < hierarchy->group_count; g++) {
        s->start[hierarchy->groups[g].parent + 2]++;
    }
    for (uint32_t g = 2; g < hierarchy->group_count + 2; g++) {
        s->start[g] += s->start[g - 1];
    }
    for (uint32_t i = 0; i < hierarchy->item_count; i++) {
        s->children[s->start[hierarchy->owner[i] + 1]++] = i;
    }
    for (uint32_t g = 1; g < hierarchy->group_count; g++) {
        s->children[s->start[hierarchy->groups[g].parent + 1]++] = hierarchy->item_count + g;
    }
}

static void build(struct shaping *s, uint32_t slot, const uint32_t *children, uint32_t count)
{
    uint32_t items = s->hierarchy->item_count;
    while (count == 1 && children[0] >= items) { /* a group */
        uint32_t group = children[0] - items;
        add(&s->shape->raise[slot], s->raise[group]);
        s->shape->top_layer[slot] = s->shape->top_layer[slot] || s->top_layer[group];
        children = s->children + s->start[group];
        count = s->start[group + 1] - s->start[group];
    }
    if (count == 1) {
        s->shape->slot_of[children[0]] = slot;
        return;
    }
    uint32_t pair = s->next_slot;
    s->next_slot += 2;
    s->shape->parent[pair] = s->shape->parent[pair + 1] = slot;
    build(s, pair, children, count / 2);
    build(s, pair + 1, children + count / 2, count - count / 2);
}

static void sum_own(struct shape *shape)
{
    for (uint32_t i = 0; i < shape->item_count; i++) {
        for (uint32_t slot = shape->slot_of[i]; slot; slot = shape->parent[slot]) {
            add(&shape->own[i], shape->raise[slot]);
            shape->in_layer[i] = shape->in_layer[i] || shape->top_layer[slot];
        }
    }
}

static int alloc_shape(struct map_arena *arena, uint32_t items, uint32_t groups, struct shaping *s)
{
    struct shape *shape = s->shape;
    shape->item_count = items;
    shape->slot_count = 2 * items;
    shape->parent = map_arena_get(arena, shape->slot_count, sizeof *shape->parent);
    shape->slot_of = map_arena_get(arena, items, sizeof *shape->slot_of);
    shape->raise = map_arena_get(arena, shape->slot_count, sizeof *shape->raise);
    shape->top_layer = map_arena_get(arena, shape->slot_count, sizeof *shape->top_layer);
    shape->own = map_arena_get(arena, items, sizeof *shape->own);
    shape->in_layer = map_arena_get(arena, items, sizeof *shape->in_layer);
    s->raise = map_arena_get(arena, groups, sizeof *s->raise);
    s->top_layer = map_arena_get(arena, groups, sizeof *s->top_layer);
    s->start = map_arena_get(arena, (size_t)groups + 2, sizeof *s->start);
    s->children = map_arena_get(arena, (size_t)items + groups, sizeof *s->children);
    bool all = shape->parent && shape->slot_of && shape->raise && shape->top_layer && shape->own &&
               shape->in_layer;
    return all && s->raise && s->top_layer && s->start && s->children ? 0 : -ENOMEM;
}

static int make_shape(struct map_arena *arena, const struct map_family *families,
                      size_t family_count, uint32_t item_count, struct shape *out)
{
    struct map_hierarchy hierarchy;
    int rc = map_hierarchy_make(arena, families, family_count, item_count, &hierarchy);
    if (rc < 0) {
        return rc;
    }
    struct shaping s = {.hierarchy = &hierarchy, .shape = out, .next_slot = ROOT + 1};
    uint32_t *layer = map_arena_get(arena, hierarchy.group_count, sizeof *layer);
    if (!layer || alloc_shape(arena, item_count, hierarchy.group_count, &s) < 0) {
        return -ENOMEM;
    }
    set_raises(&s, families, layer);
    list_children(&s);
    uint32_t root = item_count;
    build(&s, ROOT, &root, 1);
    sum_own(out);
    return 0;
}

/* -- slots -- */

static bool before(const struct slot *a, const struct slot *b)
{
    if (a->key != b->key) {
        return a->key < b->key;
    }
    return map_weight_equal(a->weight, b->weight) ? a->leaf < b->leaf
                                                  : map_weight_less(a->weight, b->weight);
}

/* Takes over the better of the two children; false: nothing changed. */
static bool refresh(struct slot *slots, uint32_t child, uint32_t parent)
{
    const struct slot *best =
        before(&slots[child], &slots[child ^ 1]) ? &slots[child] : &slots[child ^ 1];
    struct slot *slot = &slots[parent];
    map_weight weight = map_weight_plus(best->weight, slot->added);
    if (slot->key == best->key && map_weight_equal(slot->weight, weight) &&
        slot->leaf == best->leaf) {
        return false;
    }
    slot->key = best->key;
    slot->weight = weight;
    slot->leaf = best->leaf;
    return true;
}

static void refresh_all(struct slot *slots, const struct shape *shape)
{
    for (uint32_t slot = shape->slot_count - 2; slot > ROOT; slot -= 2) {
        refresh(slots, slot, shape->parent[slot]);
    }
}

static void fill_node(const struct map_tree *tree, const struct node *node)
{
    for (uint32_t i = 0; i < node->item_count; i++) {
        struct slot *slot = &node->slots[node->shape->slot_of[i]];
        slot->leaf = node->first_leaf + i;
        slot->key = tree->keys->key[slot->leaf];
        slot->added = map_view_first_weight(tree->view, slot->leaf);
        slot->weight = slot->added;
    }
    if (node->item_count > 1) {
        refresh_all(node->slots, node->shape);
    }
}

/* The root of a node is the leaf of the tree over the nodes; what is added there stays there. */
static void lift(struct map_tree *tree, uint32_t node)
{
    struct slot *slot = &tree->top[tree->network.slot_of[node]];
    if (!tree->nodes[node].item_count) {
        slot->key = MAP_KEY_NEVER;
        return;
    }
    const struct slot *root = &tree->nodes[node].slots[ROOT];
    slot->key =
        root->key == MAP_KEY_NEVER ? root->key : root->key + map_slots_node_key(tree->keys, node);
    slot->weight = map_weight_plus(root->weight, slot->added);
    slot->leaf = root->leaf;
}

/* -- choosing -- */

/* Raises every group around the slot. */
static void raise_groups(struct slot *slots, const struct shape *shape, uint32_t slot,
                         map_weight outer_latency)
{
    for (;;) {
        map_weight raise = shape->raise[slot];
        raise = shape->top_layer[slot] ? map_weight_minus(raise, outer_latency) : raise;
        add(&slots[slot].added, raise);
        add(&slots[slot].weight, raise);
        if (slot == ROOT) {
            return;
        }
        refresh(slots, slot, shape->parent[slot]);
        slot = shape->parent[slot];
    }
}

/* Raises every group around the item, and takes the sum off the item itself. */
static void raise_node(struct node *node, uint32_t item)
{
    const struct shape *shape = node->shape;
    struct slot *slot = &node->slots[shape->slot_of[item]];
    map_weight own = shape->own[item];
    if (!shape->in_layer[item]) {
        add(&own, node->outer_latency);
    }
    slot->added = map_weight_minus(slot->added, own);
    slot->weight = map_weight_minus(slot->weight, own);
    raise_groups(node->slots, shape, shape->slot_of[item], node->outer_latency);
}

static void take_key(const struct map_tree *tree, struct node *node, uint32_t item)
{
    const struct shape *shape = node->shape;
    uint32_t slot = shape->slot_of[item];
    node->slots[slot].key = tree->keys->key[node->first_leaf + item];
    node->slots[slot].weight = node->slots[slot].added;
    while (slot != ROOT && refresh(node->slots, slot, shape->parent[slot])) {
        slot = shape->parent[slot];
    }
}

uint32_t map_tree_lowest(const struct map_tree *tree)
{
    return tree->top[ROOT].leaf;
}

void map_tree_raise(struct map_tree *tree, uint32_t leaf)
{
    uint32_t index = map_view_node(tree->view, leaf);
    struct node *node = &tree->nodes[index];
    struct map_core core = map_core_of(tree->view, leaf);
    for (uint32_t i = 0; i < core.count; i++) {
        take_key(tree, node, core.members[i]);
    }
    node->slots[node->shape->slot_of[leaf - node->first_leaf]].key = tree->keys->key[leaf];
    raise_node(node, leaf - node->first_leaf);
    lift(tree, index);
    /* No latency is outside of the network: nothing is taken off its top layers. */
    raise_groups(tree->top, &tree->network, tree->network.slot_of[index], (map_weight){0});
}

/* -- making -- */

static int make_nodes(struct map_tree *tree, struct map_arena *arena)
{
    const struct map_view *view = tree->view;
    tree->nodes = map_arena_get(arena, view->node_count, sizeof *tree->nodes);
    tree->top = map_arena_get(arena, tree->network.slot_count, sizeof *tree->top);
    size_t slots = 0;
    for (uint32_t n = 0; n < view->node_count; n++) {
        slots += tree->shapes[view->nodes[n].class_index].slot_count;
    }
    struct slot *next = map_arena_get(arena, slots, sizeof *next);
    if (!tree->nodes || !tree->top || !next) {
        return -ENOMEM;
    }
    for (uint32_t n = 0; n < view->node_count; n++) {
        const struct shape *shape = &tree->shapes[view->nodes[n].class_index];
        tree->nodes[n] = (struct node){.slots = next,
                                       .shape = shape,
                                       .first_leaf = view->nodes[n].first_leaf,
                                       .item_count = shape->item_count,
                                       .outer_latency = tree->network.own[n]};
        next += shape->slot_count;
        fill_node(tree, &tree->nodes[n]);
        lift(tree, n);
    }
    if (view->node_count > 1) {
        refresh_all(tree->top, &tree->network);
    }
    return 0;
}

int map_tree_make(struct map_view *view, const struct map_slots *slots, struct map_tree **out)
{
    struct map_arena *arena = &view->arena;
    struct map_tree *tree = map_arena_get(arena, 1, sizeof *tree);
    if (!tree) {
        return -ENOMEM;
    }
    tree->view = view;
    tree->keys = slots;
    tree->shapes = map_arena_get(arena, view->class_count, sizeof *tree->shapes);
    if (!tree->shapes) {
        return -ENOMEM;
    }
    int rc =
        make_shape(arena, view->network, view->network_count, view->node_count, &tree->network);
    for (size_t c = 0; rc == 0 && c < view->class_count; c++) {
        const struct map_class *class = &view->classes[c];
        if (class->of->pus.count) {
            rc = make_shape(arena, class->families, class->family_count,
                            (uint32_t) class->of->pus.count, &tree->shapes[c]);
        }
    }
    rc = rc < 0 ? rc : make_nodes(tree, arena);
    if (rc == 0) {
        *out = tree;
    }
    return rc;
}
