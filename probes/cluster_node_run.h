/* The probes of one node, as servet-probe runs them on a computer of its own, in a process of its own: the MPI
 * library's threads and spinning ranks stay out of it. */
#ifndef SERVET_PROBES_CLUSTER_NODE_RUN_H
#define SERVET_PROBES_CLUSTER_NODE_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "set.h"

struct node_run {
    pid_t pid; /* 0: none runs */
    int from;
    char *text; /* what it wrote so far, or the answer */
    size_t length;
};

/* Starts `command` -o - with these probes on the PUs. Without probes the declared topology is the answer. Trouble
 * becomes the answer too. */
void node_run_start(struct node_run *run, const char *command, const char *probes, uint64_t seed,
                    const struct profile_set *pus);
/* Reads what there is; true as long as it runs. `run` is a struct node_run. */
bool node_run_busy(void *run);
/* A profile in JSON, or "! reason". free() it. */
char *node_run_text(void *run);

#endif
