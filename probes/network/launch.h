/* servet-probe --cluster: its options, and the way from servet-probe to the program of the right
 * MPI library. */
#ifndef SERVET_PROBES_NETWORK_LAUNCH_H
#define SERVET_PROBES_NETWORK_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/run/options.h"

/* The path of servet-probe, for the program that takes its place. */
#define CLUSTER_COMMAND_VARIABLE "SERVET_PROBE_COMMAND"

struct cluster_options {
    struct run_options run;
    bool per_node;
    unsigned probes; /* enum probe_run_probes */
};

/* Is --cluster among the arguments (before a "--")? */
bool probe_network_wanted(int argc, char **argv);

/* Becomes servet-ranks-openmpi or -mpich, whichever fits the launcher that started this
 * rank; does not return. Not started by mpirun or srun: status 2. The program is not installed:
 * status 1. */
_Noreturn void probe_network_become(int argc, char **argv);

/* Number of this rank as the launcher's environment says, or -1. */
long probe_network_rank(void);

void probe_network_parse(int argc, char **argv, struct cluster_options *options);

/* Names of the probes that a node runs by itself: messages are left to the ranks where there is one
 * on every PU. */
void probe_network_node_probes(const struct cluster_options *options, bool covered, char *names,
                               size_t size);

#endif
