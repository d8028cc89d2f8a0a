/* Groups that lie inside each other, as a tree: what the tree engine is built on, and how groups
 * that cross each other (a noisy measurement leaves such) are found. */
#ifndef SERVET_MAPPER_WEIGHTS_HIERARCHY_H
#define SERVET_MAPPER_WEIGHTS_HIERARCHY_H

#include "mapper/weights/view.h"

/* One set of items that one or more families have as a group. Parents come before their
 * children. */
struct map_hierarchy_group {
    const uint32_t *members;
    uint32_t count;
    uint32_t parent;    /* MAP_NONE: the root */
    map_weight collide; /* sum of the weights of rules 1 and 2 */
    uint32_t layer;     /* lowest index of a layer's family that has it; MAP_NONE: none */
};

struct map_hierarchy {
    struct map_hierarchy_group *groups; /* groups[0] is the root: all items */
    uint32_t group_count;
    uint32_t *owner; /* by item: the smallest group that has it */
    uint32_t item_count;
};

/* 0; -ENOTSUP: some groups cross each other, or a family has pairs (`first` and `second`, if not
 * NULL, are then the families that contradict each other, or one twice); -ENOMEM. */
struct map_crossing {
    size_t first, second;               /* families */
    uint32_t first_group, second_group; /* MAP_NONE: pairs */
};
int map_hierarchy_make(struct map_arena *arena, const struct map_family *families,
                       size_t family_count, uint32_t item_count, struct map_hierarchy *out,
                       struct map_crossing *crossing);

#endif
