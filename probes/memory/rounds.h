/* A round measures one PU alone and then pairs together, so that a drift of the machine meets both.
 * A pair's figure is the median of its rounds; the reference is the best that any PU got alone,
 * because alone nothing makes a copy faster than it is. */
#ifndef SERVET_PROBES_MEMORY_ROUNDS_H
#define SERVET_PROBES_MEMORY_ROUNDS_H

#include "probes/memory/rates.h"
#include "probes/pairs/sample.h"

enum { MEMORY_ALONE_MAX = 64 }; /* measurements of one PU alone; more add nothing */

struct memory_rounds {
    struct probe *probe;
    size_t bytes;
    double alone[MEMORY_ALONE_MAX]; /* scaled */
    size_t alone_count;
    uint32_t fewest_rounds; /* of any pair */
    /* by probe_pair_index(): the slower PU as it is; of a pair's rounds, < 0: not known. Owned, as
     * all below */
    double *slower, *spreads;
    double *scale; /* by position of the PU: the best PU alone over this one */
    double *logs;  /* of the ratios of two rounds of one pair */
    size_t ratios;
    double spread;       /* of one figure, from them */
    bool thorough;       /* one round is not enough, however much a pair gets */
    bool not_concurrent; /* the PUs of the last round never ran at the same time */
};

/* 0 or -ENOMEM; freed in any case. */
int probe_memory_rounds_init(struct memory_rounds *rounds, struct probe *probe, size_t bytes);
void probe_memory_rounds_free(struct memory_rounds *rounds);

/* Every PU alone: one that is far from all memory, or of a slower kind of cores, copies less, and
 * its pairs are compared with that. Ends early where it is late. 0 or -errno. */
int probe_memory_rounds_alone(struct memory_rounds *rounds);
/* The best that any PU got alone so far, scaled. */
double probe_memory_rounds_reference(const struct memory_rounds *rounds);
/* One PU until its median is settled. 0 or -errno. */
int probe_memory_rounds_one(struct memory_rounds *rounds, uint32_t pu);

/* A pairs_measure_function: what the slower PU of each pair gets, scaled; learns the spread from
 * the first pairs. */
int probe_memory_rounds_ask(void *rounds, const struct pair_position *pairs, size_t count,
                            double *bytes_per_s, double *figures);
/* The pair once more, in all rounds. Where it collided the better figure counts, since interference
 * only takes bandwidth away; else the later one. 0 or -errno. */
int probe_memory_rounds_again(struct memory_rounds *rounds, const struct pair_position *pair,
                              double *bytes_per_s);

#endif
