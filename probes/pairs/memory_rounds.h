/* Rounds of copies, of single PUs and of pairs by turns, until each pair's figure is settled. Only
 * probe_memory.c and memory_*.c. */
#ifndef SERVET_PROBES_PAIRS_MEMORY_ROUNDS_H
#define SERVET_PROBES_PAIRS_MEMORY_ROUNDS_H

#include "probes/pairs/memory.h"
#include "probes/pairs/together.h"

enum { MEMORY_ALONE_MAX = 64 }; /* measurements of one PU alone; more say nothing new */

/* Alone and in pairs by turns, so that a drift of the machine meets both. The reference is the best
 * of its rounds, a pair is the median of its own: alone nothing can make a copy faster than it
 * is. */
struct memory_rounds {
    struct probe *probe;
    size_t bytes, asked;
    double alone[MEMORY_ALONE_MAX];
    size_t alone_count;
    uint32_t fewest_rounds; /* of any pair */
    double
        *totals; /* of both PUs of a pair together, by probe_pair_index(); 0: not measured. Owned */
    double *spreads; /* of a pair's rounds, by probe_pair_index(); < 0: not known. Owned */
    double *scale;   /* by position of the PU: what its kind of cores is behind the best one alone.
                        Owned */
    double *logs;    /* of the ratios of two rounds of one pair. Owned */
    size_t ratios;
    double spread; /* of one figure, from them */
};

/* 0 or -ENOMEM. */
int probe_memory_rounds_init(struct memory_rounds *rounds, struct probe *probe, size_t bytes);
void probe_memory_rounds_free(struct memory_rounds *rounds);

/* Copies, once, on all of `pus`. */
int probe_memory_copy(struct probe *probe, size_t bytes, const uint32_t *pus, size_t count,
                      double *bytes_per_s);
/* Where there are kinds of cores, what one of each copies alone, so that a slow core does not pass
 * for a disturbed one. 0 or -errno. */
int probe_memory_rounds_kinds(struct memory_rounds *rounds);
/* One more figure of a PU alone, up to MEMORY_ALONE_MAX. */
int probe_memory_rounds_alone(struct memory_rounds *rounds, uint32_t pu);
/* A pairs_measure_function: what the slower PU of each pair gets; learns the spread from the first
 * pairs. */
int probe_memory_rounds_ask(void *rounds, const struct pair_position *pairs, size_t count,
                            double *bytes_per_s, double *figures);
/* One pair once more, and the better figure counts: disturbance only takes bandwidth away. */
int probe_memory_rounds_better(struct memory_rounds *rounds, size_t i, size_t j,
                               double *bytes_per_s);

#endif
