/* The engine: a binary tree over the PUs of every node, and one over the nodes. An addition to a
 * slot counts for all PUs below it, so that the best PU of a subtree stays its best then, and the
 * best of all stands at the root.
 *
 * PUs stand in the order of the machine's tree, where a group is one run of places, or a few runs
 * where groups cross. So a choice costs the logarithm of the PUs for each group of the chosen PU,
 * and any relation will do: groups that cross each other and single pairs, as a noisy measurement
 * leaves them. */
#include "mapper/weights/weights.h"

#include <errno.h>
#include <string.h>

/* Slot 1 is the root; the children of slot i are 2i and 2i + 1. */
#define ROOT 1u

/* A subtree as it is seen from outside: its best PU. */
struct slot {
    map_weight weight; /* of the best PU, with what was added to this subtree and those inside it */
    map_weight added;  /* to this subtree */
    map_key key;
    uint32_t leaf;
};

/* The place p is slot count + p. */
struct weight_tree {
    struct slot *slots;
    uint32_t count;
};

/* Places [begin, end). */
struct weight_run {
    uint32_t begin, end;
};

/* One family as runs: those of group g are run[start[g]] and its next ones, count[g] of them. */
struct runs {
    struct weight_run *run;
    uint32_t *count;
    map_weight weight; /* what a choice adds to them */
};

/* The families of a class or of the network, over places in this order. */
struct relations {
    const struct map_family *families;
    size_t count;
    struct map_order order;
    struct runs *runs; /* by family */
};

/* A tree that is being raised. */
struct raising {
    struct weight_tree *tree;
    struct weight_run *reached; /* in this pass: apart from one another, ascending */
    size_t reached_count;
    uint64_t *stale; /* a bit for each slot: something below it has changed */
};

struct map_engine {
    const struct map_view *view;
    const struct map_slots *keys;
    struct relations *classes, network;
    struct weight_tree *nodes, top; /* over the PUs of each node; over the nodes */
    struct raising inside, outside;
};

/* -- slots -- */

static bool slot_before(const struct slot *a, const struct slot *b)
{
    if (a->key != b->key) {
        return a->key < b->key;
    }
    return map_weight_less(a->weight, b->weight) ||
           (a->leaf < b->leaf && !map_weight_less(b->weight, a->weight));
}

/* Takes over the better of the two children. */
static void refresh(struct slot *slots, uint32_t slot)
{
    const struct slot *child = &slots[2 * slot];
    const struct slot *best = slot_before(&child[0], &child[1]) ? &child[0] : &child[1];
    slots[slot].key = best->key;
    slots[slot].weight = map_weight_plus(best->weight, slots[slot].added);
    slots[slot].leaf = best->leaf;
}

/* Everything above a slot is stale. */
static void touch_slot(struct raising *r, uint32_t slot)
{
    for (slot /= 2; slot && !(r->stale[slot / 64] >> slot % 64 & 1); slot /= 2) {
        r->stale[slot / 64] |= UINT64_C(1) << slot % 64;
    }
}

/* From the last slot to the first: children come before their parents. */
static void settle_slots(struct raising *r)
{
    for (uint32_t word = r->tree->count / 64 + 1; word-- > 0;) {
        while (r->stale[word]) {
            uint32_t bit = 63 - (uint32_t)__builtin_clzll(r->stale[word]);
            r->stale[word] ^= UINT64_C(1) << bit;
            refresh(r->tree->slots, 64 * word + bit);
        }
    }
}

static void add_weight(struct raising *r, uint32_t slot, map_weight what)
{
    struct slot *to = &r->tree->slots[slot];
    to->added = map_weight_plus(to->added, what);
    to->weight = map_weight_plus(to->weight, what);
    touch_slot(r, slot);
}

static void add_to_places(struct raising *r, uint32_t begin, uint32_t end, map_weight what)
{
    uint32_t low = begin + r->tree->count, high = end + r->tree->count;
    bool any = begin < end && (what.high || what.low);
    for (; any && low < high; low /= 2, high /= 2) {
        if (low % 2) {
            add_weight(r, low++, what);
        }
        if (high % 2) {
            add_weight(r, --high, what);
        }
    }
}

/* -- raising -- */

/* A new pass: no place has been reached but that of the choice, which nothing is added to. */
static void begin_pass(struct raising *r, uint32_t place)
{
    r->reached[0] = (struct weight_run){place, place + 1};
    r->reached_count = 1;
}

/* Raises the places that were not reached in this pass. */
static void raise_run(struct raising *r, struct weight_run run, map_weight what)
{
    struct weight_run *first = r->reached, *last, *end = r->reached + r->reached_count;
    uint32_t begin = run.begin;
    while (first < end && first->end < run.begin) {
        first++;
    }
    struct weight_run joined = run;
    for (last = first; last < end && last->begin <= run.end; last++) {
        add_to_places(r, begin, last->begin, what);
        begin = last->end > begin ? last->end : begin;
        joined.begin = last->begin < joined.begin ? last->begin : joined.begin;
        joined.end = last->end > joined.end ? last->end : joined.end;
    }
    add_to_places(r, begin, run.end, what);
    memmove(first + 1, last, (size_t)(end - last) * sizeof *last);
    *first = joined;
    r->reached_count = (size_t)(end - r->reached) + 1 - (size_t)(last - first);
}

/* Raises what is related to the item in one family. */
static void raise_related(struct raising *r, const struct relations *in, size_t family,
                          uint32_t item)
{
    const struct map_groups *groups = &in->families[family].groups;
    map_weight what = in->runs[family].weight;
    uint32_t group = groups->group_of[item];
    for (uint32_t i = 0; group != MAP_NONE && i < in->runs[family].count[group]; i++) {
        raise_run(r, in->runs[family].run[groups->start[group] + i], what);
    }
    for (uint32_t i = groups->pair_start ? groups->pair_start[item] : 0;
         groups->pair_start && i < groups->pair_start[item + 1]; i++) {
        uint32_t place = in->order.place[groups->pair_with[i]];
        raise_run(r, (struct weight_run){place, place + 1}, what);
    }
}

/* The latency of a pair is that of the first layer which has it, so all layers share one pass, in
 * the node and outside of it. */
static void raise_all(struct map_engine *e, uint32_t node, uint32_t item)
{
    const struct relations *class = &e->classes[e->view->nodes[node].class_index];
    const struct weight_run all = {0, e->inside.tree->count};
    bool in_layers = false;
    for (size_t f = 0; f < class->count; f++) {
        if (!in_layers) {
            begin_pass(&e->inside, class->order.place[item]);
            in_layers = class->families[f].rule == MAP_RULE_LATENCY;
        }
        raise_related(&e->inside, class, f, item);
    }
    if (!in_layers) {
        begin_pass(&e->inside, class->order.place[item]);
    }
    begin_pass(&e->outside, e->network.order.place[node]);
    for (size_t f = 0; f < e->network.count; f++) {
        raise_related(&e->outside, &e->network, f, node);
        if (e->network.families[f].groups.group_of[node] != MAP_NONE) {
            raise_run(&e->inside, all, e->network.runs[f].weight);
        }
    }
}

/* -- keys -- */

static void take_key(struct map_engine *e, const struct map_order *order, uint32_t first_leaf,
                     uint32_t item)
{
    uint32_t slot = e->inside.tree->count + order->place[item];
    e->inside.tree->slots[slot].key = e->keys->key[first_leaf + item];
    touch_slot(&e->inside, slot);
}

/* The root of a node is a leaf of the tree over the nodes; what is added there stays there. */
static void lift(struct map_engine *e, uint32_t node)
{
    struct slot *slot = &e->top.slots[e->top.count + e->network.order.place[node]];
    if (!e->nodes[node].count) {
        slot->key = MAP_KEY_NEVER;
        return;
    }
    const struct slot *root = &e->nodes[node].slots[ROOT];
    slot->key =
        root->key == MAP_KEY_NEVER ? root->key : root->key + map_slots_node_key(e->keys, node);
    slot->weight = map_weight_plus(root->weight, slot->added);
    slot->leaf = root->leaf;
}

uint32_t map_engine_lowest(const struct map_engine *engine)
{
    return engine->top.slots[ROOT].leaf;
}

void map_engine_raise(struct map_engine *e, uint32_t leaf)
{
    uint32_t node = map_view_node(e->view, leaf), first_leaf = e->view->nodes[node].first_leaf;
    const struct map_order *order = &e->classes[e->view->nodes[node].class_index].order;
    struct map_core core = map_core_of(e->view, leaf);
    e->inside.tree = &e->nodes[node];
    e->outside.tree = &e->top;
    for (uint32_t i = 0; i < core.count; i++) {
        take_key(e, order, first_leaf, core.members[i]);
    }
    take_key(e, order, first_leaf, leaf - first_leaf);
    raise_all(e, node, leaf - first_leaf);
    settle_slots(&e->inside);
    lift(e, node);
    touch_slot(&e->outside, e->top.count + e->network.order.place[node]);
    settle_slots(&e->outside);
}

/* -- making -- */

static void refresh_all(const struct weight_tree *tree)
{
    for (uint32_t slot = tree->count; slot-- > ROOT;) {
        tree->slots[slot].added = (map_weight){0};
        refresh(tree->slots, slot);
    }
}

void map_engine_restart(struct map_engine *e, const struct map_slots *keys)
{
    e->keys = keys;
    for (uint32_t n = 0; n < e->view->node_count; n++) {
        const struct map_node *node = &e->view->nodes[n];
        const struct weight_tree *tree = &e->nodes[n];
        for (uint32_t i = 0; i < tree->count; i++) {
            uint32_t leaf = node->first_leaf + i;
            map_weight first = map_view_first_weight(e->view, leaf);
            tree->slots[tree->count + e->classes[node->class_index].order.place[i]] = (struct slot){
                .weight = first, .added = first, .key = keys->key[leaf], .leaf = leaf};
        }
        refresh_all(tree);
        e->top.slots[e->top.count + e->network.order.place[n]] = (struct slot){.leaf = 0};
        lift(e, n);
    }
    refresh_all(&e->top);
}

/* Goes over the places in order, so that a group's last run is the one that may go on. */
static int make_runs(struct map_arena *arena, const struct map_order *order,
                     const struct map_groups *groups, struct runs *out)
{
    out->run = map_arena_get(arena, groups->start[groups->group_count], sizeof *out->run);
    out->count = map_arena_get(arena, groups->group_count, sizeof *out->count);
    for (uint32_t p = 0; out->run && out->count && p < groups->item_count; p++) {
        uint32_t group = groups->group_of[order->item[p]];
        if (group == MAP_NONE) {
            continue;
        }
        struct weight_run *next = out->run + groups->start[group] + out->count[group];
        if (out->count[group] && next[-1].end == p) {
            next[-1].end = p + 1;
        } else {
            *next = (struct weight_run){p, p + 1};
            out->count[group]++;
        }
    }
    return out->run && out->count ? 0 : -ENOMEM;
}

/* The order is made already. */
static int make_relations(struct map_view *view, const struct map_family *families, size_t count,
                          struct relations *out)
{
    struct map_arena *arena = &view->arena;
    out->families = families;
    out->count = count;
    out->runs = map_arena_get(arena, count, sizeof *out->runs);
    int rc = out->runs ? 0 : -ENOMEM;
    for (size_t f = 0; rc == 0 && f < count; f++) {
        rc = make_runs(arena, &out->order, &families[f].groups, &out->runs[f]);
        out->runs[f].weight = view->sums ? map_weight_of(families[f].value, 0) : families[f].weight;
    }
    return rc;
}

static int make_raising(struct map_arena *arena, uint32_t count, struct raising *out)
{
    out->reached = map_arena_get(arena, (size_t)count + 1, sizeof *out->reached);
    out->stale = map_arena_get(arena, (size_t)count / 64 + 1, sizeof *out->stale);
    return out->reached && out->stale ? 0 : -ENOMEM;
}

static int make_trees(struct map_engine *e, struct map_arena *arena)
{
    const struct map_view *view = e->view;
    uint32_t widest = 0;
    e->nodes = map_arena_get(arena, view->node_count, sizeof *e->nodes);
    struct slot *next =
        map_arena_get(arena, 2 * ((size_t)view->leaf_count + view->node_count), sizeof *next);
    if (!e->nodes || !next) {
        return -ENOMEM;
    }
    e->top = (struct weight_tree){next, view->node_count};
    next += 2 * (size_t)view->node_count;
    for (uint32_t n = 0; n < view->node_count; n++) {
        const struct map_class *class = &view->classes[view->nodes[n].class_index];
        e->nodes[n] = (struct weight_tree){next, (uint32_t) class->of->pus.count};
        widest = e->nodes[n].count > widest ? e->nodes[n].count : widest;
        next += 2 * (size_t)e->nodes[n].count;
    }
    int rc = make_raising(arena, widest, &e->inside);
    return rc < 0 ? rc : make_raising(arena, view->node_count, &e->outside);
}

int map_engine_make(struct map_view *view, struct map_engine **out)
{
    struct map_arena *arena = &view->arena;
    struct map_engine *e = map_arena_get(arena, 1, sizeof *e);
    if (!e || !(e->classes = map_arena_get(arena, view->class_count, sizeof *e->classes))) {
        return -ENOMEM;
    }
    e->view = view;
    if (map_order_of_nodes(view, &e->network.order) < 0 ||
        make_relations(view, view->network, view->network_count, &e->network) < 0) {
        return -ENOMEM;
    }
    for (size_t c = 0; c < view->class_count; c++) {
        const struct map_class *class = &view->classes[c];
        if (map_order_by_all(arena, class, view->priority, &e->classes[c].order) < 0 ||
            make_relations(view, class->families, class->family_count, &e->classes[c]) < 0) {
            return -ENOMEM;
        }
    }
    *out = e;
    return make_trees(e, arena);
}
