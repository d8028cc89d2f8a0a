/* Placing ranks from the top of the machine down: what the ways to cut a set of ranks share. */
#ifndef SERVET_MAPPER_TRAFFIC_DESCENT_H
#define SERVET_MAPPER_TRAFFIC_DESCENT_H

#include "mapper/traffic/traffic.h"

/* Some of the ranks, numbered from 0, and what they send to one another. */
struct map_subgraph {
    uint32_t count;
    const size_t *start;  /* by rank, and one more: where its partners begin */
    const uint32_t *with; /* numbers in the subgraph */
    const double *bytes;
};

/* Cuts the ranks into `parts` parts of exactly sizes[p] ranks (their sum is the count), so that few
 * bytes go between parts: part[r] for each rank. 0 or -ENOMEM. */
typedef int map_cut_fn(const struct map_subgraph *graph, const uint32_t *sizes, uint32_t parts,
                       uint32_t *part);

/* Parts one after the other, each grown from the rank with the most bytes: next is always the rank
 * with the most bytes to the part. n log n. */
map_cut_fn map_cut_by_growth;

/* Places all ranks: on each level of the machine (layers between nodes, nodes, layers inside them,
 * from the slowest down) they are cut into as many parts as the leaves lie in groups. Then ranks
 * change places with others near their partners while that saves time. 0 or -ENOMEM. */
int map_place_by_descent(struct map_traffic *traffic, map_cut_fn *cut);

#endif
