/* What is measured inside the nodes of a cluster: by each node itself, and between its ranks. */
#ifndef SERVET_PROBES_NETWORK_INSIDE_H
#define SERVET_PROBES_NETWORK_INSIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "probes/network/nodes.h"
#include "probes/network/survey.h"
#include "profile/set.h"

/* Messages between the ranks of one node, for one node of each class; the others of the class are
 * compared. */

/* pus[first[n] + i] of the layout is the rank on the i-th PU of node n. Replaces the layers of
 * every class that is `covered` (by class: there is a rank on each PU). One pair of each layer is
 * measured on all other nodes of the class: nodes that differ get a line in `outliers`. 0, -errno
 * with a line. */
int probe_inside_measure(struct probe *probe, const struct survey_layout *layout,
                         struct cluster_classes *classes, const bool *covered, size_t message_bytes,
                         char *const *names, FILE *outliers, struct servet_error *error);

/* The probes of one node, as servet-probe runs them on a computer of its own, in a process of its
 * own: the MPI library's threads and spinning ranks stay out of it. */

struct node_run {
    pid_t pid; /* 0: none runs */
    int from;
    char *text; /* what it wrote so far, or the answer */
    size_t length;
};

/* Starts `command` -o - with these probes on the PUs. Without probes the declared topology is the
 * answer. Trouble becomes the answer too. */
void probe_node_run_start(struct node_run *run, const char *command, const char *probes,
                          uint64_t seed, const struct profile_set *pus);
/* Reads what there is; true as long as it runs. `run` is a struct node_run. */
bool probe_node_run_busy(void *run);
/* A profile in JSON, or "! reason". free() it. */
char *probe_node_run_text(void *run);

#endif
