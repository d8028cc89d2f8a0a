/* The weights of all PUs as one array: raising costs the size of the groups of the chosen PU. Takes
 * any relation, also those that do not nest, and is where the rows of the papers' tables come from.
 */
#ifndef SERVET_MAPPER_WEIGHTS_PLAIN_H
#define SERVET_MAPPER_WEIGHTS_PLAIN_H

#include "mapper/weights/slots.h"
#include "mapper/weights/view.h"

struct map_plain {
    const struct map_view *view;
    int64_t *rule[MAP_RULE_COUNT]; /* by leaf; the same array three times unless the rules are kept
                                      apart */
    uint32_t *stamp;               /* by leaf: the last pass that reached it */
    uint32_t pass;
};

/* `apart`: each rule sums into an array of its own. 0 or -ENOMEM; the memory is the arena's. */
int map_plain_make(struct map_arena *arena, const struct map_view *view, bool apart,
                   struct map_plain *out);

/* Adds what the choice of leaf `chosen` does to every other leaf. */
void map_plain_choose(struct map_plain *plain, uint32_t chosen);

/* The same choices with every step shown: the rows of the papers' tables. */

/* Chooses `workers` PUs as map_workers() does and reports each row. 0 or -ENOMEM. */
int map_traced(struct map_view *view, struct map_slots *slots, size_t workers, uint32_t *out,
               const struct map_trace *trace);

#endif
