/* Regressions: least squares with coefficients >= 0 over a few columns, from their products, and
 * the isotonic one. */
#ifndef SERVET_PROBES_CACHE_FIT_H
#define SERVET_PROBES_CACHE_FIT_H

#include <stddef.h>

#include "probes/cache/model.h"

/* The constant, four levels, two TLBs that were measured and two that were not. */
#define CACHE_COLUMNS_MAX 9

double probe_cache_dot(const double *a, const double *b, size_t count);

/* gram[i][j] = column i * column j, right[i] = column i * right side, total = right side squared;
 * the first n count. The coefficients go to `x`. Not always the exact optimum, but columns of
 * misses are all non-negative and rising, for which it is. Returns the residual sum of squares. */
double probe_cache_solve_positive(const double gram[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX],
                                  const double *right, double total, size_t n, double *x);

/* Makes `values` non-decreasing: the isotonic regression (pool adjacent violators) of their
 * logarithms. */
void probe_cache_isotonic(double *values, size_t count);

/* Cache levels out of a latency curve.
 *
 * The curve is fitted, with relative errors, by  y(S) = base + sum_i rise_i * miss_i(S), rises >=
 * 0, where miss_i is one of the shapes of model.h, and a point counts the less the less sure
 * it is. Levels are added greedily as long as each pays for itself, and every level is then tried
 * at every other size, number of ways, policy and page mapping until nothing improves; so that a
 * first choice does not stand in the way of a better whole, a level that does not pay for itself is
 * tried together with the moves that it allows, and every level at its next best size. Sizes are
 * weighed by how often caches of that size are built, which decides only between sizes the curve
 * cannot tell apart. The last of three levels or more is then looked at again, in the shapes of
 * caches that many share (last.h).
 */

#define CACHE_LEVELS_MAX 4

/* Latency by working set size; ascending sizes. */
struct cache_curve {
    double *bytes;
    double *seconds;
    double *error_s;       /* what each may be off, beside what holds for all; NULL: nothing */
    double *spread;        /* relative, of the samples of each; < 0: not known; NULL: of none */
    uint32_t *repetitions; /* samples of each; NULL: one of each */
    size_t count;
    size_t page_bytes;         /* the contiguous piece of memory */
    double tlb_reach_bytes[2]; /* known reaches of TLB levels: they bend the curve, too */
    double tlb_seconds[2];     /* what a miss of each costs; 0: not known */
    size_t tlb_count;
    bool quick; /* leave out that second look, most of the time that a fit takes */
    const struct cache_curve
        *fine; /* the same curve with more points around the last knee, for the second look at the
                  last level (last.h); NULL: this one is all there is */
};

struct cache_level_fit {
    struct cache_shape shape;
    double seconds; /* of a load that misses all levels before this one and hits here */
    double rise;    /* latency beyond this level / latency in it */
    uint64_t low_bytes, high_bytes; /* sizes that explain the curve about as well */
};

/* 0 and the levels (ascending; at most CACHE_LEVELS_MAX), or -EINVAL (fewer than eight points),
 * -ENOMEM. `beyond_s` (may be NULL): the latency beyond the last level. */
int probe_cache_fit(const struct cache_curve *curve,
                    struct cache_level_fit levels[CACHE_LEVELS_MAX], size_t *count,
                    double *beyond_s);

#endif
