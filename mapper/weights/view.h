/* Memory of one mapping: many small arrays that are all given back at once. */
#ifndef SERVET_MAPPER_WEIGHTS_VIEW_H
#define SERVET_MAPPER_WEIGHTS_VIEW_H

#include <stddef.h>

#include "mapper/map.h"

struct map_arena {
    struct map_arena_chunk *chunks;
};

/* Room for `count` things of `size` bytes, zeroed, aligned for any of our types; NULL when memory
 * is short. Zero things give a pointer that must not be followed. */
void *map_arena_get(struct map_arena *arena, size_t count, size_t size);
void map_arena_free(struct map_arena *arena);

/* A profile as the mapper reads it: PUs numbered without gaps ("leaves", in PU order), relations as
 * arrays of leaves, and what every relation adds to a weight.
 */

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

enum map_rule { MAP_RULE_CACHE, MAP_RULE_MEMORY, MAP_RULE_LATENCY, MAP_RULE_COUNT };

/* Two figures that are compared in order and a tie-break, in one number: what the priority favours
 * in the upper bits, the other rules below it, and lowest what a PU starts with. Both figures fit
 * for MAP_WORKER_LIMIT choices (view.c has the shifts). */
typedef __int128 map_weight;

/* One cache level, memory overhead level or communication layer. */
struct map_family {
    enum map_rule rule;
    int64_t value;     /* what the paper adds to a PU related to the chosen one, over the view's
                      denominator; <= 0 for rule 3 */
    map_weight weight; /* what is added and compared: in order, or the paper's value */
    struct map_groups groups;
};

struct map_class {
    const struct profile_class *of;
    struct map_family *families; /* caches, memory levels, then layers from the lowest latency */
    size_t family_count;
    struct map_groups cores, packages;
    uint16_t *kind;       /* by position: 0 is the most capable */
    bool *far;            /* by position: has no memory of its own, though others have */
    uint16_t *cache_rank; /* by position: 0 has the largest last-level cache */
    uint32_t kind_count;
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
    bool sums; /* the paper's sums decide, see map_view_use_sums() */
    int64_t denominator;
    struct map_class *classes;
    size_t class_count;
    struct map_node *nodes;
    uint32_t node_count;
    struct map_family *network; /* items are nodes */
    size_t network_count;
    uint32_t leaf_count;
    uint32_t *pu;      /* PU number of a leaf; ascending */
    uint32_t *node_of; /* of a leaf; NULL: all of them on node 0 */
};

/* `load` is the number of choices that will be weighed (workers and taken PUs): it bounds the
 * weights, and where a 64-bit weight could not hold them the latencies are rounded to a multiple of
 * the quantum.
 * 0, -EINVAL (no PU), -ENOMEM; the view is to be freed only on success. */
int map_view_make(const struct servet_profile *profile, enum map_priority priority, size_t load,
                  struct map_view *view, struct servet_error *error);
void map_view_free(struct map_view *view);

/* From here on the paper's literal sums decide, not the order of the rules. */
void map_view_use_sums(struct map_view *view);

/* What the leaf weighs before any choice: more where its last-level cache is smaller, by less than
 * any rule adds; 0 of the paper's sums. */
map_weight map_view_first_weight(const struct map_view *view, uint32_t leaf);

/* The relation with ids replaced by their position in `ids`; ids that are not there are left out.
 * `position_of` is indexed by id (span entries, MAP_NONE where absent). */
int map_groups_make(struct map_arena *arena, const struct profile_relation *relation,
                    const uint32_t *position_of, uint32_t span, uint32_t item_count,
                    struct map_groups *out);

static inline uint32_t map_view_node(const struct map_view *view, uint32_t leaf)
{
    return view->node_of ? view->node_of[leaf] : 0;
}

/* Leaf of a PU number, or MAP_NONE. */
uint32_t map_view_leaf(const struct map_view *view, uint32_t pu);

/* Are two leaves in one group, or listed as a pair? */
bool map_groups_related(const struct map_groups *groups, uint32_t a, uint32_t b);

#endif
