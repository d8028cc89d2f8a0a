/* Synthetic clusters: nodes x packages x L3 groups x cores, racks of nodes. */
#ifndef SERVET_BENCHMARKS_MAPPER_CLUSTER_H
#define SERVET_BENCHMARKS_MAPPER_CLUSTER_H

#include "profile/model.h"

struct cluster_shape {
    uint32_t nodes, nodes_per_rack;
    uint32_t packages, l3_groups, cores; /* of a node, of a package, of an L3 group */
};

/* Free with profile_free(). NULL when memory is short. */
struct servet_profile *bench_cluster_make(const struct cluster_shape *shape);

#endif
