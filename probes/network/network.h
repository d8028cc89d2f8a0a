/* The network: a survey of nodes, layers, their curves, and measurements inside nodes. */
#pragma once

#include <limits.h>
#include <stdio.h>
#include <sys/types.h>

#include "probes/probe.h"
#include "probes/run/run.h"
#include "profile/model.h"

/* -- survey -- */

/* Latency between the nodes of a cluster from fewer than n * n pairs.
 *
 * Hierarchical sampling. Nodes are taken in the order of their names (neighbours by name usually
 * share a switch). They are cut into blocks of SURVEY_BLOCK; in a block every pair is measured, in
 * the rounds of a tournament, so that all blocks measure at the same time; the last node of a block
 * is measured against the first of the next. Nodes in the lowest layers found that way are taken as
 * one, by the lowest of them, until half as many or fewer are left, which are cut into blocks
 * again. This takes at most 15 n pairs in O(log n) rounds.
 *
 * Latencies between nodes are taken to be those of a tree (two nodes as near to a third are at
 * least that near to each other); from that follow the pairs that were not measured. A random
 * sample of these is measured too, and tells whether it holds. With up to SURVEY_ALL_UP_TO nodes
 * every pair is measured and nothing is taken for granted.
 *
 * How many pairs may be measured at the same time is itself measured: a sample alone and together
 * (2010 paper, Section III-D: concurrent messages slow each other down). */

#define SURVEY_BLOCK 16u
#define SURVEY_ALL_UP_TO (SURVEY_BLOCK * 2)

/* The nodes as PUs of the machine (ranks): those of node n are pus[first[n]] … pus[first[n + 1] -
 * 1]. Pairs of nodes are measured between the first PUs of both. */
struct survey_layout {
    uint32_t nodes;
    const uint32_t *first; /* nodes + 1 */
    const uint32_t *pus;
};

struct survey_options {
    size_t message_bytes;
    bool exhaustive;
    double until_s; /* in the machine's elapsed time; <= 0: no limit */
};

struct survey_edge {
    uint32_t a, b;  /* nodes, a < b */
    double seconds; /* the least of the sweeps */
    double next;    /* the second least; infinite after one sweep */
    uint8_t sweeps;
    uint32_t before; /* position + 1 of the last edge of the same `a` that is older; 0: none */
    bool local;      /* measured in the first blocks, among neighbours by name */
    bool in_block;   /* every pair of some block was measured, this one among them */
};

struct survey {
    struct probe *probe;
    struct survey_layout layout;
    struct survey_options options;
    struct survey_edge *edges; /* in the order of measurement */
    size_t edge_count, edge_room;
    struct profile_set *blocks; /* of nodes, in which every pair was measured */
    size_t block_count;
    bool spread_out; /* the first blocks are done */
    uint32_t *last;  /* by node: position + 1 of its last edge to a higher one */
    /* of one round: pairs of nodes, their PUs and their figures */
    struct profile_pair *round, *pus;
    double *seconds;
    size_t width;       /* pairs at the same time; 0: not yet tried */
    double disturbance; /* together / alone at that width, median of the sample */
    bool out_of_time;
};

/* 0 or -ENOMEM; closed in any case. */
int probe_survey_open(struct survey *survey, struct probe *probe,
                      const struct survey_layout *layout, const struct survey_options *options);
void probe_survey_close(struct survey *survey);

/* Is there no time left? Remembers it. */
bool probe_survey_over(struct survey *survey);

/* The edge between two nodes, or NULL. */
struct survey_edge *probe_survey_find(const struct survey *survey, uint32_t a, uint32_t b);

/* Every pair of `items` in blocks of `block` and the chain between the blocks. */
int probe_survey_blocks(struct survey *survey, const uint32_t *items, size_t count, size_t block);

/* The pairs that were measured, as the profile has them (profile_communication.measured). 0 or
 * -ENOMEM. */
int probe_survey_measured(const struct survey *survey, struct profile_relation *out);

/* About `wanted` random pairs that are not yet edges; *from is the first new edge. */
int probe_survey_random(struct survey *survey, size_t wanted, size_t *from);

/* -- layers of all pairs of nodes (2010 paper, Section III-D, over nodes) -- */

/* Relative deviation of the latency of one pair, from its two least figures; 0 where no pair was
 * measured twice. */
double probe_survey_spread(const struct survey *survey);

struct survey_result {
    struct profile_communication network; /* layers without curves; owned */
    size_t all_pairs, measured_pairs;
    size_t checked,
        elsewhere; /* random pairs measured, and those found in another layer than inferred */
    size_t contradictions;      /* measured pairs that are slower than the group they are in */
    struct profile_pair slower; /* one of them */
    uint32_t unreached;         /* nodes without any measured pair (out of time) */
};

/* Hierarchy, check, and the layers. -ETIME when not one pair was measured in time. */
int probe_survey_run(struct survey *survey, struct survey_result *out);

/* -- curves (2010 paper, Section III-D, Figure 10) -- */

/* Adds to every layer of `network` the curve of a representative pair from 1 B to 4 MiB, the
 * concurrency curve over 1, 2, 4 … of its pairs (PUs of the representative pair of nodes first,
 * since these share their network cards; then other nodes), and a note: how it
 * scales, and whether gathering small messages pays. Points without time left are left out. 0 or
 * -errno. */
int probe_survey_curves(struct survey *survey, struct profile_communication *network);

/* -- nodes that agree become one class -- */

struct cluster_classes {
    /* classes and nodes of the cluster, in the order of the nodes; no network */
    struct servet_profile *profile;
    uint32_t *representative; /* by class: the node that its figures are of */
    uint32_t *class_of;       /* by node */
    uint32_t largest;         /* class with the most nodes */
    char *outliers; /* one line for every node that is not in it: "node3: 1 PU, node1 has 2". "" */
};

/* A name and a profile (of one class and one node) for each of `count` nodes, in order; their
 * classes are moved into the result, the rest stays. 0, -ENOMEM, -EINVAL (no node). */
int probe_network_classes_make(char *const *names, struct servet_profile *const *nodes,
                               uint32_t count, struct cluster_classes *out);
void probe_network_classes_free(struct cluster_classes *classes);

/* "node[1-3]": a run of `count` names as a hostlist; a new string or NULL. Names that differ in
 * more than one number are listed one by one. */
char *probe_network_hostlist(char *const *names, uint32_t count);

/* -- inside the nodes: between the ranks of one node of each class -- */

/* pus[first[n] + i] of the layout is the rank on the i-th PU of node n. Replaces the layers of
 * every class that is `covered` (by class: there is a rank on each PU). One pair of each layer is
 * measured on all other nodes of the class: nodes that differ get a line in `outliers`. 0, -errno
 * with a line. */
struct inside_nodes {
    const struct survey_layout *layout;
    struct cluster_classes *classes;
    const bool *covered; /* by class */
    char *const *names;  /* by node */
};

int probe_inside_measure(struct probe *probe, const struct inside_nodes *nodes,
                         size_t message_bytes, FILE *outliers, struct servet_error *error);

/* The probes of one node, as servet-probe runs them on a computer of its own, in a process of its
 * own: the MPI library's threads and spinning ranks stay out of it. */

struct node_run {
    pid_t pid; /* 0: none runs */
    int output;
    char *text; /* the answer, once it has ended */
};

/* Starts `command` -o - with these probes on the PUs. Without probes the declared topology is the
 * answer. Trouble becomes the answer too. */
void probe_node_run_start(struct node_run *run, const char *command, unsigned probes, uint64_t seed,
                          const struct profile_set *pus);
/* True as long as it runs. */
bool probe_node_run_busy(struct node_run *run);
/* A profile in JSON, or "! reason". free() it. */
char *probe_node_run_text(struct node_run *run);

/* -- servet-probe --cluster: its options, and the way to the program of the right MPI library -- */

/* The path of servet-probe, for the program that takes its place. */
#define CLUSTER_COMMAND_VARIABLE "SERVET_PROBE_COMMAND"

struct cluster_options {
    struct run_options run;
    bool per_node;
    unsigned probes; /* enum probe_run_probes */
};

/* Is --cluster among the arguments (before a "--")? */
bool probe_network_wanted(int argc, char **argv);

/* The path of a program of ours: beside this command (build folder), in its prefix's libexec, or
 * where it was to be installed. 0 or -ENOENT. */
int probe_network_find(const char *program, char path[PATH_MAX]);

/* Becomes servet-ranks-openmpi or -mpich, whichever fits the launcher that started this
 * rank; does not return. Not started by mpirun or srun: status 2. The program is not installed:
 * status 1. */
_Noreturn void probe_network_become(int argc, char **argv);

/* Number of this rank as the launcher's environment says, or -1. */
long probe_network_rank(void);

void probe_network_parse(int argc, char **argv, struct cluster_options *options);

/* The probes that a node runs by itself: messages too, where they are asked for or the ranks do not
 * cover its PUs. */
unsigned probe_network_node_probes(const struct cluster_options *options, bool covered);
