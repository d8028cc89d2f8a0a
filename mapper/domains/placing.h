/* Groups that lie inside each other, as a tree. */
#ifndef SERVET_MAPPER_DOMAINS_PLACING_H
#define SERVET_MAPPER_DOMAINS_PLACING_H

#include "mapper/domains/containers.h"
#include "mapper/weights/plain.h"
#include "mapper/weights/slots.h"
#include "mapper/weights/view.h"

/* One set of items that one or more families have as a group. Parents come before their
 * children. */
struct map_nest_group {
    const uint32_t *members;
    uint32_t count;
    uint32_t parent; /* MAP_NONE: the root */
    int64_t collide; /* sum of the values of rules 1 and 2 */
    uint32_t layer;  /* lowest index of a layer's family that has it; MAP_NONE: none */
};

struct map_nest {
    struct map_nest_group *groups; /* groups[0] is the root: all items */
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
int map_nest_make(struct map_arena *arena, const struct map_family *families, size_t family_count,
                  uint32_t item_count, struct map_nest *out, struct map_crossing *crossing);

/* The work behind map_domains(): which PUs are open, which container a rank gets, and which PUs of
 * it in which order.
 */

struct map_rank {
    size_t index; /* in the request */
    uint32_t threads;
    size_t at; /* where its threads begin in the output */
};

/* A PU is open when it may get one more thread in this round: it holds no more than `round`
 * threads, and in the first round its core has not reached `smt` threads. */
struct map_placing {
    struct map_view *view;
    struct map_slots slots;
    struct map_plain plain;
    struct map_containers *classes; /* by class */
    uint32_t **open_in;             /* by node, then by container: open PUs */
    bool *open;                     /* by leaf */
    uint32_t smt, round;
    /* Ranks of different widths: which memory domains the next one may take so that the rest still
     * fits. */
    bool packing;
    uint32_t *first_domain; /* by node: number of its first memory domain */
    uint32_t *room;         /* by memory domain: open PUs */
    bool *suits;            /* by memory domain */
    size_t domains;
    /* of the domain that is being made, by position in its node */
    uint32_t *distance; /* size of the smallest container around the PU and one that is in;
                           MAP_NONE: none */
    bool *reached;      /* by container */
    bool *in;
    uint32_t *domain; /* leaves */
};

static inline const struct map_containers *map_containers_of(const struct map_placing *p,
                                                             uint32_t node)
{
    return &p->classes[p->view->nodes[node].class_index];
}

static inline uint32_t map_node_size(const struct map_placing *p, uint32_t node)
{
    return (uint32_t)p->view->classes[p->view->nodes[node].class_index].of->pus.count;
}

/* Decides for every PU whether it is open. */
void map_placing_open(struct map_placing *p);

/* Places all ranks, widest first; `sizes` are their threads. out[rank.at …] gets the PU numbers. */
void map_placing_run(struct map_placing *p, const struct map_rank *ranks, const uint32_t *sizes,
                     size_t count, uint32_t *out);

#endif
