/* The weights of all PUs, raised by every choice: two engines that give the same answers.
 *
 *   tree    Every group of the profile is one subtree of a binary tree: raising a group touches its
 *           root alone and the PU to choose next stands at the top, so that a choice costs the
 *           depth of the tree, O(log PUs + levels). Only for relations that nest.
 *   exact   One array over all PUs; raising costs the size of the groups of the chosen PU. Takes
 *           any relation, and is where the rows of the papers' tables come from.
 */
#ifndef SERVET_MAPPER_WEIGHTS_ENGINE_H
#define SERVET_MAPPER_WEIGHTS_ENGINE_H

#include "mapper/weights/slots.h"
#include "mapper/weights/view.h"

/* -- tree.c -- */

struct map_tree;

/* 0; -ENOTSUP: the relations do not nest (use the exact engine); -ENOMEM. The memory is the
 * view's. */
int map_tree_make(struct map_view *view, const struct map_slots *slots, struct map_tree **out);

/* The leaf to choose next: lowest key, then lowest weight, then lowest PU. */
uint32_t map_tree_lowest(const struct map_tree *tree);

/* Adds what the choice of `leaf` does to all others, and takes over the keys that
 * map_slots_choose() changed. */
void map_tree_raise(struct map_tree *tree, uint32_t leaf);

/* -- exact.c -- */

struct map_exact {
    const struct map_view *view;
    map_weight *weight;           /* by leaf */
    int64_t *sum[MAP_RULE_COUNT]; /* by leaf: the paper's sum of each rule; NULL: not kept */
    uint32_t *stamp;              /* by leaf: the last pass that reached it */
    uint32_t pass;
};

/* `sums`: keeps the paper's sums too. 0 or -ENOMEM; the memory is the view's. */
int map_exact_make(struct map_view *view, bool sums, struct map_exact *out);

/* Adds what the choice of leaf `chosen` does to every other leaf. */
void map_exact_raise(struct map_exact *exact, uint32_t chosen);

#endif
