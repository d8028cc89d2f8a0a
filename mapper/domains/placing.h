/* The work behind map_domains(): which PUs are open, which container a rank gets, and which PUs of
 * it in which order.
 */
#ifndef SERVET_MAPPER_DOMAINS_PLACING_H
#define SERVET_MAPPER_DOMAINS_PLACING_H

#include "mapper/domains/containers.h"
#include "mapper/weights/engine.h"
#include "mapper/weights/slots.h"
#include "mapper/weights/view.h"

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
    struct map_exact exact;
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
