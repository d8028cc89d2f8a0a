/* Node classes of nothing but memory, for tests of tiers and of what follows from them. */
#pragma once

#include "profile/model.h"

/* A NUMA node as it is measured and declared, 0 and NULL: not. */
struct node_figures {
    const char *pus;
    uint64_t gib;
    double worker_gb_s, latency_ns, declared_gb_s;
    const char *kind;
};

/* Stays. The figures are those from the node's own PUs; from others latencies are three times as
 * long. */
const struct profile_class *class_of_nodes(const struct node_figures *figures, size_t count);

#define CLASS_OF(figures) class_of_nodes(figures, sizeof(figures) / sizeof *(figures))

/* Xeon Max in flat mode: one core gets as much from either memory. */
extern const struct node_figures xeon_max[4];
/* Two packages, and CXL memory at the second. */
extern const struct node_figures with_cxl[3];
/* Four nodes of DRAM, one with a channel less. */
extern const struct node_figures all_alike[4];
