/* What the search for levels (fit.c) and what is told of them (told.c) have in common. */
#ifndef SERVET_PROBES_CACHE_FIT_H
#define SERVET_PROBES_CACHE_FIT_H

#include "probes/cache/cache.h"

#define CACHE_TERMS_MAX (CACHE_COLUMNS_MAX - 1) /* beside the constant */

/* The curve as a sum of candidates: TLBs that were measured, then what was found. */
struct cache_solution {
    size_t terms[CACHE_TERMS_MAX]; /* candidate numbers */
    size_t count;
    double coefficients[CACHE_COLUMNS_MAX]; /* base, then rises, in seconds */
    double objective;                       /* the less the better */
};

/* The relative error below which nothing is evidence. */
double probe_cache_floor_of(const struct cache_terms *fit);

typedef void cache_visit(const struct cache_candidate *candidate, double objective, void *argument);

/* Tries every candidate at `position` of the solution (== count: one more level). True when
 * something better than what `solution` holds was found; then it holds that. `visit` (may be NULL)
 * sees every objective. */
bool probe_cache_best_at(const struct cache_terms *fit, struct cache_solution *solution,
                         size_t position, cache_visit *visit, void *argument);

/* Coefficients and objective of the terms as they stand. */
void probe_cache_solve_terms(const struct cache_terms *fit, struct cache_solution *solution);

/* The levels of a solution, ascending (at most CACHE_LEVELS_MAX), and how many; `beyond_s` (may be
 * NULL): the latency beyond the last, in seconds. `solution` is what is told afterwards. */
size_t probe_cache_tell(const struct cache_terms *fit, const struct cache_curve *curve,
                        struct cache_solution *solution, struct cache_level_fit *levels,
                        double *beyond_s);

#endif
