/* Messages between the ranks of one node, for one node of each class; the others of the class are compared. */
#ifndef SERVET_PROBES_CLUSTER_INSIDE_H
#define SERVET_PROBES_CLUSTER_INSIDE_H

#include <stdio.h>

#include "cluster_nodes.h"
#include "cluster_survey.h"

/* pus[first[n] + i] of the layout is the rank on the i-th PU of node n. Replaces the layers of every class that is
 * `covered` (by class: there is a rank on each PU). One pair of each layer is measured on all other nodes of the class:
 * nodes that differ get a line in `outliers`. 0, -errno with a line. */
int inside_measure(struct probe *probe, const struct survey_layout *layout, struct cluster_classes *classes,
                   const bool *covered, size_t message_bytes, char *const *names, FILE *outliers,
                   struct servet_error *error);

#endif
