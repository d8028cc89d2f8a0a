/* Latency between the nodes of a cluster without measuring all n * n pairs.
 *
 * Hierarchical sampling. Nodes are taken in the order of their names (neighbours by name usually
 * share a switch). They are cut into blocks of SURVEY_BLOCK; in a block every pair is measured, in
 * the rounds of a tournament, so that all blocks measure at the same time; the last node of a block
 * is measured against the first of the next. Nodes in the lowest layers found that way are taken as
 * one, by the lowest of them, until half as many or fewer are left, which are cut into blocks
 * again. That is at most 15 n pairs in O(log n) rounds.
 *
 * Latencies between nodes are taken to be those of a tree (two nodes as near to a third are at
 * least that near to each other); from that follow the pairs that were not measured. A random
 * sample of these is measured too, and tells whether it holds. With up to SURVEY_ALL_UP_TO nodes
 * every pair is measured and nothing is taken for granted.
 *
 * How many pairs may be measured at the same time is itself measured: a sample alone and together
 * (2010 paper, Section III-D: concurrent messages slow each other down).
 */
#ifndef SERVET_PROBES_NETWORK_SURVEY_H
#define SERVET_PROBES_NETWORK_SURVEY_H

#include "probes/pairs/layers.h"
#include "probes/probe.h"

#define SURVEY_BLOCK 16u
#define SURVEY_ALL_UP_TO 32u
#define SURVEY_SWEEPS 2

/* Who the nodes are, as PUs of the machine (ranks): those of node n are pus[first[n]] … pus[first[n
 * + 1] - 1]. Pairs of nodes are measured between the first PUs of both. */
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
    bool local;    /* measured in the first blocks, among neighbours by name */
    bool in_block; /* every pair of some block was measured, this one among them */
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
    uint32_t *index; /* hash table of edges: position + 1 */
    size_t index_size;
    size_t width;        /* pairs at the same time; 0: not yet tried */
    double disturbance;  /* together / alone at that width, median of the sample */
    size_t rounds;       /* exchanges asked of the machine */
    size_t measurements; /* pairs in them: every repetition counts */
    bool out_of_time;
};

int probe_survey_open(struct survey *survey, struct probe *probe,
                      const struct survey_layout *layout, const struct survey_options *options);
void probe_survey_close(struct survey *survey);

/* Is there no time left? Remembers it. */
bool probe_survey_over(struct survey *survey);

/* The edge between two nodes, or NULL. */
const struct survey_edge *probe_survey_find(const struct survey *survey, uint32_t a, uint32_t b);

/* Measures pairs of nodes: `rounds` rounds, of which number r are the pairs from start[r] to
 * start[r + 1] - 1; those of one round are disjoint. Two sweeps, more (up to eight) of the pairs
 * whose two
 * least figures differ by more than 5 %. Pairs left when time is over are not
 * edges. 0 or -errno. */
int probe_survey_measure(struct survey *survey, const struct profile_pair *pairs,
                         const size_t *start, size_t rounds);

/* Every pair of `items` in blocks of `block` and the chain between the blocks. */
int probe_survey_blocks(struct survey *survey, const uint32_t *items, size_t count, size_t block);

/* The pairs that were measured, as the profile has them (profile_communication.measured). 0 or
 * -ENOMEM. */
int probe_survey_measured(const struct survey *survey, struct profile_relation *out);

/* About `wanted` random pairs that are not yet edges; *from is the first new edge. */
int probe_survey_random(struct survey *survey, size_t wanted, size_t *from);

#endif
