/* The machine's tree as an order, and what it is for: numbering workers so that neighbours are
 * near, and finding the smallest group that holds them all. */
#ifndef SERVET_MAPPER_WEIGHTS_ORDER_H
#define SERVET_MAPPER_WEIGHTS_ORDER_H

#include "mapper/weights/slots.h"
#include "mapper/weights/view.h"

/* Items (PUs of a class, or nodes) in an order in which the groups of the widest relation lie
 * together, inside them those of the next, …; items of no group stand for themselves. Groups that
 * cross are cut by the wider relation. */
struct map_order {
    uint32_t *item;  /* by place in the order */
    uint32_t *place; /* by item */
    uint32_t *group; /* by item, `depth` of them: its group on each level, widest first, named by
                           the lowest item of it */
    uint32_t depth;
};

/* `levels` in any order; they are sorted by the number of their groups. 0 or -ENOMEM. */
int map_order_make(struct map_arena *arena, const struct map_groups **levels, uint32_t depth,
                   uint32_t items, struct map_order *out);

/* Of the PUs of a class, by its communication layers alone (near is what has a low latency), or by
 * everything that the profile knows as a group. 0 or -ENOMEM. */
int map_order_by_layers(struct map_arena *arena, const struct map_class *class,
                        struct map_order *out);
int map_order_by_all(struct map_arena *arena, const struct map_class *class, struct map_order *out);
/* Of the nodes, by the layers of the network. 0 or -ENOMEM. */
int map_order_of_nodes(struct map_view *view, struct map_order *out);

/* Sorts `count` leaves by the layers, the first worker of every PU before any second one. 0 or
 * -ENOMEM. */
int map_order_workers(struct map_view *view, uint32_t *leaves, size_t count);

/* Communication priority with a known number of workers: PUs outside of the smallest group of a
 * layer (inside a node, else of nodes) that holds all of them may not be used any more. Free cores
 * count, free PUs where there are fewer cores; only the most capable kind, which comes first
 * anyway. Nothing changes where no group holds them. 0 or -ENOMEM. */
int map_order_limit(struct map_view *view, struct map_slots *slots, size_t workers);

#endif
