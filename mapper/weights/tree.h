/* The weights of all PUs as a binary tree in which every group of the profile is one subtree:
 * raising a group touches its root alone, and the lowest PU stands at the top. One choice costs the
 * depth of the tree, O(log PUs + levels).
 */
#ifndef SERVET_MAPPER_WEIGHTS_TREE_H
#define SERVET_MAPPER_WEIGHTS_TREE_H

#include "mapper/domains/placing.h"
#include "mapper/weights/slots.h"

struct map_tree;

/* 0; -ENOTSUP: the relations do not nest (use the plain engine); -ENOMEM. The memory is the
 * view's. */
int map_tree_make(struct map_view *view, const struct map_slots *slots, struct map_tree **out);

/* The leaf to choose next: lowest key, then lowest weight, then lowest PU. */
uint32_t map_tree_lowest(const struct map_tree *tree);

/* Adds what the choice of `leaf` does to all others, and takes over the keys that
 * map_slots_choose() changed. */
void map_tree_choose(struct map_tree *tree, uint32_t leaf);

#endif
