/* Nodes that are alike become one class; the others are named. */
#ifndef SERVET_PROBES_NETWORK_NODES_H
#define SERVET_PROBES_NETWORK_NODES_H

#include "profile/model.h"

/* What one node said of itself: a profile of one class and one node. */
struct cluster_node {
    char *name;
    struct servet_profile *profile;
};

/* Do two nodes agree? Built alike (PUs, cores, caches' levels and sharing, memory levels, layers)
 * and measured alike (within the tolerances in cluster_nodes.c). Otherwise false and `why` names
 * the first difference, "b" seen from "a".
 */
bool probe_network_nodes_agree(const struct profile_class *a, const struct profile_class *b,
                               char *why, size_t size);

struct cluster_classes {
    struct servet_profile
        *profile; /* classes and nodes of the cluster, in the order of the nodes; no network */
    uint32_t *representative; /* by class: the node that its figures are of */
    uint32_t *class_of;       /* by node */
    uint32_t largest;         /* class with the most nodes */
    char *outliers; /* one line for every node that is not in it: "node3: 1 PU, node1 has 2". "" */
};

/* `nodes` in order; their classes are moved into the result, the rest stays. 0, -ENOMEM, -EINVAL
 * (no node). */
int probe_network_classes_make(struct cluster_node *nodes, uint32_t count,
                               struct cluster_classes *out);
void probe_network_classes_free(struct cluster_classes *classes);

/* "node[1-3]": a run of `count` names as a hostlist; a new string or NULL. Names that differ in
 * more than one number are listed one by one. */
char *probe_network_hostlist(char *const *names, uint32_t count);

/* By name, numbers by value: node2 before node10. */
int probe_network_compare_names(const char *a, const char *b);

#endif
