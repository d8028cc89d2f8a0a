/* The interface of mapper/weights/ to its own files and to the rest of the room. */
#pragma once

#include <errno.h>
#include <stddef.h>

#include "mapper/map.h"

/* -- view -- */

/* Memory of one mapping: many small arrays that are all given back at once. */

struct map_arena {
    struct map_arena_chunk *chunks;
    bool is_short; /* of memory: one of the arrays was not to be had */
};

/* Room for `count` things of `size` bytes, zeroed, aligned for any of our types; NULL when memory
 * is short. Zero things give a pointer that must not be followed. */
void *map_arena_get(struct map_arena *arena, size_t count, size_t size);
/* 0 or -ENOMEM: of all that was got so far. */
static inline int map_arena_check(const struct map_arena *arena)
{
    return arena->is_short ? -ENOMEM : 0;
}
void map_arena_free(struct map_arena *arena);

/* Memory that was short gets its text where the room is left, and nowhere below. Returns rc. */
int map_out_of_memory(int rc, struct servet_error *error);

/* A profile as the mapper reads it: PUs numbered without gaps ("leaves", in PU order), relations as
 * arrays of leaves, and what every relation adds to a weight. */

#define MAP_NONE UINT32_MAX

/* A relation over items 0 … item_count - 1 (positions in a class's PU set, or node numbers). */
struct map_groups {
    uint32_t item_count, group_count;
    uint32_t *group_of;   /* by item; MAP_NONE: in no group */
    uint32_t *start;      /* by group, and one more: where its members begin in `members` */
    uint32_t *members;    /* ascending in each group */
    uint32_t *pair_start; /* by item, and one more: where its partners begin; NULL: no pairs */
    uint32_t *pair_with;
};

/* The paper's three rules, and what only breaks a tie that they leave. */
enum map_rule {
    MAP_RULE_CACHE,
    MAP_RULE_MEMORY,
    MAP_RULE_LATENCY,
    MAP_RULE_COUNT,
    MAP_TIE_PACKAGE = MAP_RULE_COUNT
};

/* Two figures that are compared in order and two tie-breaks, in one number: what the priority
 * favours in the upper bits, the other rules below it, then what a PU starts with, and lowest the
 * workers of its package. All fit for MAP_WORKER_LIMIT choices (view.c has the shifts). An integer
 * of 128 bits in two words, because compilers for 32-bit processors have none. */
typedef struct {
    int64_t high;
    uint64_t low;
} map_weight;

/* value x 2^shift, shift < 128; what lies above 128 bits is lost. */
static inline map_weight map_weight_of(int64_t value, unsigned shift)
{
    uint64_t low = (uint64_t)value, high = value < 0 ? UINT64_MAX : 0;
    if (shift >= 64) {
        return (map_weight){.high = (int64_t)(low << (shift - 64))};
    }
    high = shift ? high << shift | low >> (64 - shift) : high;
    return (map_weight){.high = (int64_t)high, .low = low << shift};
}

static inline map_weight map_weight_plus(map_weight a, map_weight b)
{
    uint64_t low = a.low + b.low;
    return (map_weight){.high = a.high + b.high + (low < a.low), .low = low};
}

static inline map_weight map_weight_minus(map_weight a)
{
    return map_weight_plus((map_weight){~a.high, ~a.low}, (map_weight){.low = 1});
}

static inline bool map_weight_less(map_weight a, map_weight b)
{
    return a.high < b.high || (a.high == b.high && a.low < b.low);
}

/* One cache level, memory overhead level or communication layer, or the packages. */
struct map_family {
    enum map_rule rule;
    int64_t value;     /* what the paper adds to a PU related to the chosen one, over the view's
                      denominator; <= 0 for rule 3 */
    map_weight weight; /* what is added and compared where the rules are compared in order */
    struct map_groups groups;
    /* of a communication layer */
    const struct profile_communication *in;
    const struct profile_layer *layer;
    double distance; /* profile_layer_distance() */
};

struct map_class {
    const struct profile_class *of;
    struct map_family *families; /* caches, memory levels, packages (once), then layers from the
                                    lowest latency */
    size_t family_count;
    struct map_groups cores;
    const struct map_groups *packages;
    uint16_t *kind;       /* by position: 0 is the most capable */
    bool *far;            /* by position: has no memory of its own, though others have */
    uint16_t *cache_rank; /* by position: 0 has the largest last-level cache */
    uint32_t memory_room; /* workers of a node until the next one would lose bandwidth */
};

struct map_node {
    uint32_t class_index;
    uint32_t first_pu, first_leaf;
};

struct map_view {
    struct map_arena arena;
    const struct servet_profile *profile;
    bool latencies_known; /* of all layers; else their order is what counts */
    enum map_priority priority;
    bool sums; /* the paper's literal sums decide, not the order of the rules: set before use */
    int64_t denominator;
    struct map_class *classes;
    size_t class_count;
    struct map_node *nodes;
    uint32_t node_count;
    struct map_family *network; /* items are nodes */
    size_t network_count;
    uint32_t leaf_count;
    uint32_t *pu;      /* PU number of a leaf; ascending */
    uint32_t *node_of; /* of a leaf */
};

/* `load` is the number of choices that will be weighed (workers and taken PUs): it bounds the
 * weights, and where a 64-bit weight could not hold them the latencies are rounded to a multiple of
 * the quantum.
 * 0, -ENOMEM; the view is to be freed only on success. */
int map_view_make(const struct servet_profile *profile, enum map_priority priority, size_t load,
                  struct map_view *view, struct servet_error *error);
void map_view_free(struct map_view *view);

/* The weight of the leaf before any choice: more where its last-level cache is smaller, by less
 * than any rule adds; 0 of the paper's sums. */
map_weight map_view_first_weight(const struct map_view *view, uint32_t leaf);

/* The relation with ids replaced by their position in `ids`; ids that are not there are left
 * out. */
int map_groups_make(struct map_arena *arena, const struct profile_relation *relation,
                    const struct profile_set *ids, struct map_groups *out);

/* The same of the PUs of each core: the declared ones; where none is declared, or PUs of one were
 * measured not to share the first cache, those that share a measured one. */
int map_groups_of_cores(struct map_arena *arena, const struct profile_class *of,
                        struct map_groups *out);

/* Leaf of a PU number, or MAP_NONE. */
uint32_t map_view_leaf(const struct map_view *view, uint32_t pu);

/* Are two leaves in one group, or listed as a pair? */
bool map_groups_related(const struct map_groups *groups, uint32_t a, uint32_t b);

/* A relation of a class: a family by its number, or one of these. */
enum { MAP_NODES = -3, MAP_PACKAGES, MAP_CORES };

/* NULL: nodes, and families that the class does not have. */
const struct map_groups *map_class_groups(const struct map_class *class, int which);

static inline const struct map_class *map_view_class(const struct map_view *view, uint32_t leaf)
{
    return &view->classes[view->nodes[view->node_of[leaf]].class_index];
}

/* The lowest leaf of the leaf's group in a relation; of its node where there are no groups. */
uint32_t map_lowest_leaf(const struct map_view *view, uint32_t leaf, int which);

/* The layer that gives a pair of leaves its latency: the first of their class that lists it, else
 * of the network; NULL: none does, or it is one PU. */
const struct map_family *map_latency_between(const struct map_view *view, uint32_t a, uint32_t b);

/* -- slots -- */

/* Occupancy: which PUs may be used, how many workers every PU and every core holds, and the
 * order in which that makes PUs eligible before any weight is looked at. */

/* Sorts PUs before their weight: workers on the PU, then workers on its core, then nodes that have
 * no worker or no room behind those that have both, then PUs without memory of their own behind the
 * others, then kind (0 the most capable). So the fastest cores come first, slower ones join when
 * each fast one has a worker, and siblings when every core has. */
typedef uint64_t map_key;

#define MAP_KEY_NEVER UINT64_MAX
#define MAP_KEY_WORKER ((map_key)1 << 40)
#define MAP_KEY_CORE_WORKER ((map_key)1 << 18)
#define MAP_KEY_OTHER_NODE ((map_key)1 << 17)
#define MAP_KEY_FAR ((map_key)1 << 16)

static inline uint32_t map_key_workers(map_key key)
{
    return (uint32_t)(key / MAP_KEY_WORKER);
}

/* The lowest part: memory of its own and kind. */
static inline map_key map_key_kind(map_key key)
{
    return key % (2 * MAP_KEY_FAR);
}

static inline uint32_t map_key_core_workers(map_key key)
{
    return (uint32_t)(key % MAP_KEY_WORKER / MAP_KEY_CORE_WORKER);
}

struct map_slots {
    const struct map_view *view;
    map_key *key; /* by leaf; MAP_KEY_NEVER: may not be used */
    /* leaves that other programs hold, ascending; also those that may not be used */
    uint32_t *taken;
    size_t taken_count;
    uint32_t *in_node; /* by node: workers; NULL: nodes are not filled one after the other */
};

/* Keys before the first worker. 0; -EINVAL (none of the PUs of `allowed` is known: the text says
 * so); -ENOMEM without a text. */
int map_slots_make(struct map_view *view, const struct profile_set *allowed,
                   const struct profile_set *taken, struct map_slots *out,
                   struct servet_error *error);

/* One more worker on `leaf`. */
void map_slots_choose(struct map_slots *slots, uint32_t leaf);

/* Added to the key of every PU of a node: MAP_KEY_OTHER_NODE unless the node has workers
 * and room for more. So memory priority fills one node until the next worker would lose bandwidth
 * there, and then goes on to another. */
map_key map_slots_node_key(const struct map_slots *slots, uint32_t node);

/* How many PUs of its core below a leaf are `in` (by leaf; NULL: all). */
uint32_t map_core_mates_before(const struct map_view *view, uint32_t leaf, const bool *in);

/* -- engine -- */

/* The weights of all PUs, raised by every choice. */
struct map_engine;

/* 0 or -ENOMEM; the memory is the view's. */
int map_engine_make(struct map_view *view, struct map_engine **out);

/* Weights as before the first choice, keys of `slots`: before the first use too. */
void map_engine_restart(struct map_engine *engine, struct map_slots *slots);

/* Chooses the leaf with the lowest key, then the lowest weight, then the lowest PU. */
uint32_t map_engine_take(struct map_engine *engine);

/* Adds what the choice of `leaf` does to all others, and takes over the keys that
 * map_slots_choose() changed. */
void map_engine_raise(struct map_engine *engine, uint32_t leaf);

/* -- order -- */

/* The machine's tree as an order, and what it is for: numbering workers so that neighbours are
 * near, and finding the smallest group that holds them all. */

/* Items (PUs of a class, or nodes) in an order in which the groups of the widest relation lie
 * together, inside them those of the next, …; items of no group lie together inside the group of
 * the wider relation. Groups that cross are cut by the wider relation. */
struct map_order {
    uint32_t *item;  /* by place in the order */
    uint32_t *place; /* by item */
    uint32_t *group; /* by item, `depth` of them: its group on each level, widest first, named by
                           the lowest item of it */
    uint32_t depth;
};

/* Orders the PUs of a class, by its communication layers alone (near is a low latency), or by
 * everything that the profile knows as a group; where groups as wide cross, the priority says
 * whether layers or what is shared cuts the others. 0 or -ENOMEM. */
int map_order_by_layers(struct map_arena *arena, const struct map_class *class,
                        struct map_order *out);
int map_order_by_all(struct map_arena *arena, const struct map_class *class,
                     enum map_priority priority, struct map_order *out);
/* Orders the nodes, by the layers of the network. 0 or -ENOMEM. */
int map_order_of_nodes(struct map_view *view, struct map_order *out);

/* Sorts `count` leaves by the layers, the first worker of every PU before any second one. 0 or
 * -ENOMEM. */
int map_order_workers(struct map_view *view, uint32_t *leaves, size_t count);

/* Communication priority with a known number of workers: PUs outside of the smallest group of a
 * layer (inside a node, else of nodes) that has a free core of the most capable kind for each may
 * not be used any more. Nothing changes where no group has: the other kinds then join, or every
 * core gets a worker before any a second one. 0 or -ENOMEM. */
int map_order_limit(struct map_view *view, struct map_slots *slots, size_t workers);
