/* Cache levels out of a latency curve, by penalised selection of a model.
 *
 * The model is a sum of levels, y(S) = base + sum_t cost_t * tlb_t(S) + sum_i rise_i * miss_i(S),
 * all coefficients >= 0, with multiplicative errors: n log(squared relative error) is minus twice
 * its log likelihood. Each level costs a price, as in Schwarz's criterion (BIC, 1978), and so does
 * an unusual size or shape: minus twice the log of a prior. A shape is wrong all along a knee, so
 * that its points are off together and say less than independent ones: the misfit is divided by a
 * dispersion (quasi-likelihood: McCullagh and Nelder, "Generalized Linear Models", 1989, Chapter
 * 9).
 *
 * The search: for each number of knees from none to five a dynamic programme over the grid of sizes
 * (Bellman, "On the approximation of curves by line segments using dynamic programming", CACM 1961)
 * gives the exact optimum of a curve that is made of one knee after the other (knees.c). From there
 * each level takes its best candidate beside the others until none improves (fit.c), and the number
 * of knees with the least penalised error wins.
 *
 * The answer: the posterior of each level over the candidates' sizes, summed over all shapes. The
 * reported size is the likeliest between the quartiles, the interval holds most of the posterior
 * (posterior.c). */
#pragma once

#include "probes/cache/curve.h"
#include "probes/cache/model.h"

#define CACHE_LEVELS_MAX 4

struct cache_level_fit {
    struct cache_shape shape;
    /* of a load that misses all levels before this one and hits here */
    double seconds;
    uint64_t low_bytes, high_bytes;
};

/* 0 and the levels (ascending; at most CACHE_LEVELS_MAX), or -EINVAL (fewer than eight points),
 * -ENOMEM. `beyond_s` (may be NULL): the latency beyond the last level. */
int probe_cache_fit(const struct cache_curve *curve,
                    struct cache_level_fit levels[CACHE_LEVELS_MAX], size_t *count,
                    double *beyond_s);

/* -- what the files of the fit share -- */

/* one more than levels: the slow rise of page walks may take one */
#define CACHE_KNEES_MAX (CACHE_LEVELS_MAX + 1)
#define CACHE_COLUMNS_MAX (CACHE_TLBS_MAX + CACHE_KNEES_MAX + 1)

/* Two levels are at least so many times apart: closer ones are never built, and one of an unknown
 * shape would pass for two. */
extern const double probe_cache_apart;
/* A knee reaches from its size over so much to its size times so much. */
extern const double probe_cache_knee;
/* A level's latency beyond over that in it, at least. */
extern const double probe_cache_least_rise;

/* A curve as a weighted regression. */
struct cache_terms {
    const struct cache_curve *curve;
    size_t points, tlbs;
    /* of the points, each counted by its share */
    double count;
    /* by point: 1 / its error; weighted latency */
    double *weight, *right;
    /* weighted: the constant, the TLBs, then the levels of a solution */
    double *columns[CACHE_COLUMNS_MAX];
    /* of the level that is tried */
    double *column;
    /* 0, or -ENOMEM of a column that could not be had: it stays, and the fit is none */
    int *rc;
};

/* A level that may be, and minus twice the log of its prior. */
struct cache_candidate {
    struct cache_shape shape;
    double price;
};

/* Levels by size, with their coefficients: the constant, TLBs, levels. */
struct cache_solution {
    struct cache_candidate levels[CACHE_KNEES_MAX];
    size_t count;
    double coefficients[CACHE_COLUMNS_MAX];
    double objective;
};

/* The best curves of 1, 2, 3 … knees one after the other, as starts; of count 0 where there is
 * none. 0 or -ENOMEM. */
int probe_cache_knees(const struct cache_terms *terms,
                      struct cache_solution starts[CACHE_KNEES_MAX]);

/* Calls `visit` with every candidate for the level at `at`, between its neighbours. `coarse`: of
 * shared caches only some shapes. */
typedef void cache_visit(const struct cache_candidate *candidate, void *argument);
void probe_cache_candidates(const struct cache_terms *terms, const struct cache_solution *solution,
                            size_t at, bool coarse, cache_visit *visit, void *argument);

/* One level beside the others, which stay. */
struct cache_trial {
    const struct cache_terms *terms;
    double gram[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX], right[CACHE_COLUMNS_MAX], total;
    double x[CACHE_COLUMNS_MAX];
    size_t count, column;
};

struct cache_trial probe_cache_trial(const struct cache_terms *terms,
                                     const struct cache_solution *solution, size_t at);
/* Misfit, minus twice the log likelihood, with the candidate in the level's place. */
double probe_cache_try(struct cache_trial *trial, const struct cache_candidate *candidate);

/* Reports the level at `at`, which takes the candidate that is reported. 0 or -ENOMEM. */
int probe_cache_posterior(const struct cache_terms *terms, struct cache_solution *solution,
                          size_t at, struct cache_level_fit *out);
