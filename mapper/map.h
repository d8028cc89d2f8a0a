/* Where work should go: the weight algorithm (Algorithm 1 of "Automatic Mapping of Parallel
 * Applications on Multicore Architectures using the Servet Benchmark Suite", Computers & Electrical
 * Engineering, 2012).
 *
 * All weights start at 0. Each worker takes the allowed PU with the lowest weight, the lowest PU
 * number on ties. Then, for the chosen PU c and every other PU x:
 *
 *   rule 1   for every cache level that x shares with c           weight(x) += A
 *   rule 2   for every memory overhead level that x shares with c weight(x) += A
 *   rule 3   if latency(c,x) is below MaxLatency
 *                                weight(x) -= B (Max - latency(c,x)) / (Max - Min)
 *
 * Memory priority: A = 10, B = 1. Communication priority: A = 1, B = 10. "Significantly below" is
 * decided when the layers are made: pairs of one layer have one latency. Weights are exact
 * (integers over the common denominator Max - Min, in units of MAP_LATENCY_QUANTUM_SECONDS), so
 * that the same profile gives the same mapping on every machine and compiler.
 *
 * A priority is a priority: the rules are compared in order, not added. Memory priority: rules 1
 * and 2 (how much is shared) first, rule 3 (latency) among equals; communication priority: rule 3
 * first, rules 1 and 2 among equals. On the papers' machines both give the same; on nodes of ten
 * and more memory domains the sum lets the nearness of ten workers outweigh one collision, and two
 * workers share a domain while a node is empty. `paper` asks for the literal sum.
 *
 * The paper leaves open:
 *   occupancy   The least occupied PUs come first, whatever their weight; among them those on the
 *               least occupied core (SMT: no two workers on one core while a core is free); then
 *               the weight.
 *   nodes       Memory priority goes on to the next node when the next worker would lose more than
 *               10 % of its bandwidth by the measured curves, at once where pairs collide and
 *               nothing more is known: a job is not spread thinner over a network than its
 *               bandwidth asks for.
 *   memory      PUs without memory of their own come behind those that have some.
 *   kinds       The most capable kind of core comes first, the others join when each of its cores
 *               has a worker.
 *   ties        The larger last-level cache, the emptier package, then the lower PU number.
 *   no layer    A pair that no layer lists has MaxLatency.
 *
 * A `taken` PU is one that another program holds: it counts as chosen before the first worker. */
#pragma once

#include "profile/model.h"

/* 0.1 ns: below what any clock we measure with can tell. */
#define MAP_LATENCY_QUANTUM_SECONDS 1e-10

/* Most workers (or threads of all ranks) of one call, exclusive. */
#define MAP_WORKER_LIMIT PROFILE_SET_LIMIT

enum map_priority { MAP_MEMORY, MAP_COMMUNICATION };

struct map_request {
    enum map_priority priority;
    size_t workers; /* >= 1, of map_domains() ranks; more than PUs: the least occupied PUs first,
                       then the weight */
    const struct profile_set *allowed; /* PU numbers that may be used; NULL: all of the profile */
    const struct profile_set *taken;   /* PU numbers that other programs hold; NULL: none */
    bool paper;                        /* the paper's literal sums decide */
    /* The number of workers is known beforehand: they are numbered by the machine's tree (its
     * communication layers), so that neighbours are near, and communication priority takes the
     * smallest group with a core for each. False: workers come one by one, in the order of
     * choice. Of ranks it is known. */
    bool known;
    /* of ranks (processes) of a hybrid program alone */
    const uint32_t *threads; /* of each, >= 1; NULL: `threads_each` of every one */
    uint32_t threads_each;
    bool whole; /* no rank straddles groups that hold it, even if others then share less */
};

/* One row of the papers' tables, before the choice of one worker: for --explain and the golden
 * tests. Arrays are indexed as `pus` (the allowed PUs, ascending); figures are scaled: divide by
 * `denominator`. The rules' columns are what the previous choice added (in the first row: what the
 * taken PUs did); a PU that cannot be chosen now is taken[i]: its figures are not for use. */
struct map_row {
    size_t worker; /* 0, 1, … */
    const uint32_t *pus;
    size_t pu_count;
    int64_t denominator;
    const int64_t *rule1, *rule2, *rule3, *total;
    const bool *taken;
    uint32_t chosen;
    uint32_t by_sum; /* what the paper's sums would choose; another PU: the order decided */
};

struct map_explainer {
    void (*row)(void *context, const struct map_row *row);
    void *context;
};

/* The request that servet-map, the page and libservet begin with: the number of workers is
 * known. */
struct map_request map_request_of(enum map_priority priority, size_t workers);

/* Chooses request->workers PUs, in worker order. `out` has room for that many. An explainer (may be
 * NULL) is called for every row and costs workers x PUs.
 * 0; -EINVAL (no worker or too many, `allowed` holds no PU of the profile: the text says which);
 * -ENOMEM. */
int map_workers(const struct servet_profile *profile, const struct map_request *request,
                uint32_t *out, const struct map_explainer *explainer, struct servet_error *error);

static inline uint32_t map_threads_of(const struct map_request *request, size_t rank)
{
    return request->threads ? request->threads[rank] : request->threads_each;
}

/* Divides the allowed machine among the ranks top down (nodes, packages, memory domains, caches),
 * as evenly as it goes: a rank's part is its region. Cores are divided before threads: no core has
 * two threads while one is idle, nor two ranks while whole cores suffice. A region ends where
 * groups end while whole groups hold every rank. Memory priority spreads a rank's threads over its
 * region by the weights; it cuts groups only where that leaves the rank with least more of a cache
 * or of a memory domain (the narrowest ones, wider ones where they were measured): the ranks of a
 * group then get together what as many workers get, each its part in the order of the tree.
 * Communication priority fills the smallest group that holds all threads, one rank after the other;
 * cores that are left over lie where a rank would straddle; where all PUs are equally near, ranks
 * are spread as by memory priority if they share less then. A rank never leaves its node. One
 * thread per rank is map_workers() with a known number; one rank on one node gets the PUs that as
 * many workers get (2012 paper, Section 4.5 and Figure 5, for one rank a node).
 *
 * `out` gets the PU numbers of rank 0's threads in the order of the machine's tree, then those of
 * rank 1, …: the sum of all threads. 0; -EINVAL (as map_workers(), or a rank without threads);
 * -ENOMEM. */
int map_domains(const struct servet_profile *profile, const struct map_request *request,
                uint32_t *out, struct servet_error *error);

/* One node of a class as a profile of its own, for the calls above: PU numbers are the OS indices
 * of that node, and latencies between nodes play no part. The view borrows from `node_class`;
 * nothing is to be freed. */
struct map_node_view {
    struct servet_profile profile;
    struct profile_class node_class; /* its parts are those of the class it was made of */
    struct profile_node_range range;
};
const struct servet_profile *map_one_node(const struct profile_class *node_class,
                                          struct map_node_view *view);
