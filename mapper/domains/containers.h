/* The sets of PUs that a rank could be put into: everything that the profile knows as a group
 * (core, cache, memory domain, package, layer) and the whole node.
 */
#ifndef SERVET_MAPPER_DOMAINS_CONTAINERS_H
#define SERVET_MAPPER_DOMAINS_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapper/weights/view.h"

struct map_container {
    const uint32_t *members; /* positions in the class's PU set */
    uint32_t count;
    uint32_t straddles; /* kinds of memory domain (overhead levels, NUMA nodes) that it is not
                           inside of */
    uint32_t domain;    /* the memory domain of the worst overhead level that it is inside of;
                           MAP_NONE: of none */
};

/* Those of one class, the most wanted first: fewest straddled memory domains, then smallest. */
struct map_containers {
    struct map_container *list;
    uint32_t count;
    uint32_t *start; /* by position, and one more: where its containers begin in `of` */
    uint32_t *of;    /* indices into `list`, ascending for each position */
    const struct map_groups
        *domains; /* those of the worst overhead level, else NUMA nodes; may be without a group */
};

static inline bool map_containers_equal(const struct map_container *a,
                                        const struct map_container *b)
{
    return a->straddles == b->straddles && a->count == b->count;
}

/* 0 or -ENOMEM; the memory is the arena's. */
int map_containers_make(struct map_arena *arena, const struct map_class *of,
                        struct map_containers *out);

/* Do ranks of different widths fit into memory domains, each into one? */

/* `sizes` descending; `room` of each domain is used as scratch and left as it was. Gives up with
 * false after MAP_PACKING_STEPS tries: bin packing is NP-hard, though machines have few domains and
 * few kinds of rank. */
#define MAP_PACKING_STEPS 20000
bool map_packing_fits(const uint32_t *sizes, size_t count, uint32_t *room, size_t domains);

#endif
