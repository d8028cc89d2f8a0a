/* The engine: a weight for every PU, one that all PUs of a node have besides, and a tournament of
 * the nodes' best PUs. So a choice costs the PUs of its node, and the nodes that it is related to
 * by more than the outermost layer. (A pass over all nodes for each choice takes eight times as
 * long for 65,560 workers on 1,639 nodes: 0.79 s and 0.10 s.)
 *
 * Any relation will do: groups that cross each other and single pairs, as a noisy measurement
 * leaves them. */
#include "mapper/weights/weights.h"

#include "profile/scope.h"

struct node {
    map_weight added; /* to all its PUs */
    map_key key;      /* added to that of all its PUs */
    uint32_t best;    /* leaf */
    uint64_t reached; /* the last pass that did */
};

struct map_engine {
    const struct map_view *view;
    struct map_slots *slots;
    map_weight *weight; /* by leaf, without what was added to its node */
    uint64_t *reached;  /* by leaf: the last pass that did */
    uint64_t pass;      /* a PU or node that is reached a second time in a pass stays as it is */
    struct node *nodes;
    uint32_t *winner;  /* of slots 2i and 2i + 1 at i; node n is slot node_count + n */
    uint32_t *changed; /* the node of the choice, and those that its layers have reached */
    size_t changed_count;
};

/* -- the best -- */

static bool is_better(const struct map_engine *e, uint32_t a, uint32_t b)
{
    const struct node *of_a = &e->nodes[a], *of_b = &e->nodes[b];
    const map_key key = e->slots->key[of_a->best], other_key = e->slots->key[of_b->best];
    const map_key full = key == MAP_KEY_NEVER ? key : key + of_a->key,
                  other_full = other_key == MAP_KEY_NEVER ? other_key : other_key + of_b->key;
    if (full != other_full) {
        return full < other_full;
    }
    const map_weight weight = map_weight_plus(e->weight[of_a->best], of_a->added),
                     other = map_weight_plus(e->weight[of_b->best], of_b->added);
    return map_weight_less(weight, other) ||
           (of_a->best < of_b->best && !map_weight_less(other, weight));
}

static void play_slot(struct map_engine *e, uint32_t slot)
{
    const uint32_t a = e->winner[2 * slot], b = e->winner[2 * slot + 1];
    e->winner[slot] = is_better(e, a, b) ? a : b;
}

/* Plays again what the changed nodes take part in, from the bottom up; neighbours meet early. */
static void play_changed(struct map_engine *e)
{
    for (size_t i = 0; i < e->changed_count; i++) {
        e->changed[i] += e->view->node_count;
    }
    while (e->changed_count) {
        size_t kept = 0;
        for (size_t i = 0; i < e->changed_count; i++) {
            const uint32_t slot = e->changed[i] / 2;
            if (slot && (!kept || slot != e->changed[kept - 1])) {
                play_slot(e, slot);
                e->changed[kept++] = slot;
            }
        }
        e->changed_count = kept;
    }
}

static uint32_t count_pus(const struct map_view *view, uint32_t node)
{
    return (uint32_t)view->classes[view->nodes[node].class_index].of->pus.count;
}

static void find_best(struct map_engine *e, uint32_t node)
{
    const uint32_t first = e->view->nodes[node].first_leaf, count = count_pus(e->view, node);
    const map_key *key = e->slots->key;
    uint32_t best = first;
    for (uint32_t leaf = first + 1; leaf < first + count; leaf++) {
        if (key[leaf] < key[best] ||
            (key[leaf] == key[best] && map_weight_less(e->weight[leaf], e->weight[best]))) {
            best = leaf;
        }
    }
    e->nodes[node].best = best;
    e->nodes[node].key = map_slots_node_key(e->slots, node);
}

/* -- raising -- */

static void raise_leaf(struct map_engine *e, uint32_t leaf, map_weight what)
{
    if (e->reached[leaf] != e->pass) {
        e->reached[leaf] = e->pass;
        e->weight[leaf] = map_weight_plus(e->weight[leaf], what);
    }
}

static void raise_node(struct map_engine *e, uint32_t node, map_weight what)
{
    if (e->nodes[node].reached != e->pass) {
        e->nodes[node].reached = e->pass;
        e->nodes[node].added = map_weight_plus(e->nodes[node].added, what);
        e->changed[e->changed_count++] = node;
    }
}

static map_weight weight_of(const struct map_engine *e, const struct map_family *family)
{
    return e->view->sums ? map_weight_of(family->value, 0) : family->weight;
}

/* Raises what is related to the item, by `raise`: PUs of a node (from its first leaf), or nodes. */
static void raise_related(struct map_engine *e, const struct map_family *family, uint32_t first,
                          uint32_t item, void (*raise)(struct map_engine *e, uint32_t, map_weight))
{
    const struct map_groups *groups = &family->groups;
    const map_weight what = weight_of(e, family);
    const uint32_t group = groups->group_of[item];
    for (uint32_t i = group != MAP_NONE ? groups->start[group] : 0;
         group != MAP_NONE && i < groups->start[group + 1]; i++) {
        raise(e, first + groups->members[i], what);
    }
    for (uint32_t i = groups->pair_start ? groups->pair_start[item] : 0;
         groups->pair_start && i < groups->pair_start[item + 1]; i++) {
        raise(e, first + groups->pair_with[i], what);
    }
}

/* A pass in which the chosen PU was reached already: nothing is added to it. */
static void begin_pass(struct map_engine *e, uint32_t leaf)
{
    e->reached[leaf] = ++e->pass;
}

/* PUs of the node itself that no layer inside it has reached. */
static void raise_rest(struct map_engine *e, uint32_t node, map_weight what)
{
    const uint32_t first = e->view->nodes[node].first_leaf;
    for (uint32_t i = 0; i < count_pus(e->view, node); i++) {
        raise_leaf(e, first + i, what);
    }
}

/* A layer that joins all nodes is not added to all that are left: it is taken from those that were
 * reached before, which compares the same. */
static void lower_reached(struct map_engine *e, uint32_t node, map_weight what)
{
    const uint32_t first = e->view->nodes[node].first_leaf;
    const map_weight less = map_weight_minus(what);
    for (uint32_t leaf = first; leaf < first + count_pus(e->view, node); leaf++) {
        if (e->reached[leaf] == e->pass) {
            e->weight[leaf] = map_weight_plus(e->weight[leaf], less);
        }
    }
    for (size_t i = 1; i < e->changed_count; i++) {
        struct node *other = &e->nodes[e->changed[i]];
        other->added = map_weight_plus(other->added, less);
    }
}

static void raise_network(struct map_engine *e, uint32_t node)
{
    const struct map_view *view = e->view;
    e->changed[0] = node;
    e->changed_count = 1;
    e->nodes[node].reached = e->pass;
    for (size_t f = 0; f < view->network_count; f++) {
        const struct map_family *family = &view->network[f];
        const struct map_groups *groups = &family->groups;
        const map_weight what = weight_of(e, family);
        if (f + 1 == view->network_count && groups->group_count &&
            groups->start[1] == view->node_count) {
            lower_reached(e, node, what);
            break;
        }
        raise_related(e, family, 0, node, raise_node);
        if (groups->group_of[node] != MAP_NONE) {
            raise_rest(e, node, what);
        }
    }
}

/* The latency of a pair is that of the first layer which has it, so all layers share one pass, in
 * the node and outside of it. */
void map_engine_raise(struct map_engine *e, uint32_t leaf)
{
    const uint32_t node = e->view->node_of[leaf], first = e->view->nodes[node].first_leaf;
    const struct map_class *class = map_view_class(e->view, leaf);
    bool in_layers = false;
    for (size_t f = 0; f < class->family_count; f++) {
        if (!in_layers) {
            begin_pass(e, leaf);
            in_layers = class->families[f].rule == MAP_RULE_LATENCY;
        }
        raise_related(e, &class->families[f], first, leaf - first, raise_leaf);
    }
    if (!in_layers) {
        begin_pass(e, leaf);
    }
    raise_network(e, node);
    find_best(e, node);
    play_changed(e);
}

uint32_t map_engine_take(struct map_engine *e)
{
    const uint32_t leaf = e->nodes[e->winner[1]].best;
    map_slots_choose(e->slots, leaf);
    map_engine_raise(e, leaf);
    return leaf;
}

/* -- making -- */

void map_engine_restart(struct map_engine *e, struct map_slots *slots)
{
    const uint32_t count = e->view->node_count;
    e->slots = slots;
    for (uint32_t leaf = 0; leaf < e->view->leaf_count; leaf++) {
        e->weight[leaf] = map_view_first_weight(e->view, leaf);
    }
    for (uint32_t node = 0; node < count; node++) {
        e->nodes[node].added = (map_weight){0};
        find_best(e, node);
        e->winner[count + node] = node;
    }
    for (uint32_t slot = count; slot-- > 1;) {
        play_slot(e, slot);
    }
}

int map_engine_make(struct map_view *view, struct map_engine **out)
{
    struct map_arena *arena = &view->arena;
    struct map_engine *e = map_arena_get(arena, 1, sizeof *e);
    TRY(map_arena_check(arena));
    *e = (struct map_engine){
        .view = view,
        .weight = map_arena_get(arena, view->leaf_count, sizeof *e->weight),
        .reached = map_arena_get(arena, view->leaf_count, sizeof *e->reached),
        .nodes = map_arena_get(arena, view->node_count, sizeof *e->nodes),
        .winner = map_arena_get(arena, 2 * (size_t)view->node_count, sizeof *e->winner),
        .changed = map_arena_get(arena, view->node_count, sizeof *e->changed),
    };
    *out = e;
    return map_arena_check(arena);
}
