/* The ways to place ranks by their traffic. */
#ifndef SERVET_MAPPER_PLACERS_H
#define SERVET_MAPPER_PLACERS_H

#include "traffic.h"

struct map_traffic {
    struct map_view *view;
    const struct map_matrix *matrix;
    const uint32_t *leaves; /* to be used, one each */
    uint32_t *place;        /* by rank: its leaf; MAP_NONE: not placed yet */
};

/* Predicted time of what the rank exchanges with ranks that are placed, if it were on `leaf`. */
double map_traffic_of_rank(const struct map_traffic *traffic, uint32_t rank, uint32_t leaf);

/* Predicted time of all messages of a complete placement. */
double map_traffic_total(const struct map_traffic *traffic);

/* Next is always the rank with the most bytes to those placed, on the free PU where that takes least time; then ranks
 * change places while that saves time. Or rank order after such changes, where that is better. 0 or -ENOMEM. */
int map_place_greedily(struct map_traffic *traffic);

/* Exchanges ranks of a complete placement while it saves time. */
void map_improve_by_swaps(struct map_traffic *traffic);

extern const bool map_scotch_built;
/* Static mapping by Scotch, then swaps. 0, -ENOTSUP, -ENOMEM. */
int map_place_by_scotch(struct map_traffic *traffic);

#endif
