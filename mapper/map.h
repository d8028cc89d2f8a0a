/* Where work should go: the weight algorithm (Algorithm 1 of "Automatic Mapping of Parallel Applications on
 * Multicore Architectures using the Servet Benchmark Suite", Computers & Electrical Engineering, 2012).
 *
 * All weights start at 0. Each worker takes the allowed PU with the lowest weight, the lowest PU number on ties.
 * Then, for the chosen PU c and every PU x that is not taken:
 *
 *   rule 1   for every cache level that x shares with c           weight(x) += A
 *   rule 2   for every memory overhead level that x shares with c weight(x) += A
 *   rule 3   if latency(c,x) is below MaxLatency                  weight(x) -= B (Max - latency(c,x)) / (Max - Min)
 *
 * Memory priority: A = 10, B = 1. Communication priority: A = 1, B = 10. "Significantly below" is decided when the layers are
 * made: pairs of one layer have one latency. Weights are exact (integers over the common denominator Max - Min, in units of
 * MAP_LATENCY_QUANTUM_SECONDS), so that the same profile gives the same mapping on every machine and compiler.
 */
#ifndef SERVET_MAPPER_MAP_H
#define SERVET_MAPPER_MAP_H

#include "model.h"

/* 0.1 ns: below what any clock we measure with can tell. */
#define MAP_LATENCY_QUANTUM_SECONDS 1e-10

enum map_priority { MAP_MEMORY, MAP_COMMUNICATION };

struct map_request {
    enum map_priority priority;
    size_t workers;                    /* >= 1; more than PUs: the least occupied PUs first, then the weight */
    const struct profile_set *allowed; /* PU numbers that may be used; NULL: all of the profile */
    const struct profile_set *taken;   /* PU numbers that other programs hold: they count as chosen before the first worker; NULL: none */
};

/* What --explain and the golden tests see: one row of the papers' tables, before the choice of one worker. Arrays are
 * indexed as `pus`; figures are scaled: divide by `denominator`. The rules' columns are what the previous choice added;
 * a PU that is taken has no weight (taken[i]). */
struct map_row {
    size_t worker; /* 0, 1, … */
    const uint32_t *pus;
    size_t pu_count;
    int64_t denominator;
    const int64_t *rule1, *rule2, *rule3, *total;
    const bool *taken;
    uint32_t chosen;
};

struct map_trace {
    void (*row)(void *context, const struct map_row *row);
    void *context;
};

/* Chooses request->workers PUs, in worker order. `out` has room for that many.
 * 0; -EINVAL (no worker, `allowed` holds no PU of the profile: the text says which); -ENOMEM. */
int map_workers(const struct servet_profile *profile, const struct map_request *request, uint32_t *out,
                const struct map_trace *trace, struct servet_error *error);

#endif
