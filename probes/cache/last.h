/* What a latency curve may be made of: every cache of the catalogue in every shape, and TLBs, as
 * weighted columns of least squares (see fit.h). */
#ifndef SERVET_PROBES_CACHE_LAST_H
#define SERVET_PROBES_CACHE_LAST_H

#include "probes/cache/fit.h"

extern const double probe_cache_relative_floor; /* errors below 2 % of a latency are no evidence */

/* What a rise of the curve may come from: a cache, or a TLB (then `reach_bytes` is not 0). */
struct cache_candidate {
    struct cache_shape shape;
    double reach_bytes; /* of a TLB; 0: a cache */
    double miss_s;      /* of a TLB that was measured: what a miss costs; 0: not known */
    double price;
    double size_price; /* what of it is the size's: not counted where a range is told */
    double *column;    /* miss share * weight, by point of the curve */
};

struct cache_terms {
    size_t points;
    double *base;  /* the constant's column: a point's weight, 1 / its error in units of
                      `relative_floor` */
    double *right; /* latency * weight */
    double total;  /* sum of the squares of `right` */
    struct cache_candidate *candidates;
    size_t candidate_count;
    size_t known; /* the first candidates: TLBs that were measured, part of every solution */
    double *columns;
};

/* 0 or -ENOMEM; `fit->points` is set before, all else 0. To be freed either way. */
int probe_cache_candidates_make(struct cache_terms *fit, const struct cache_curve *curve);
/* Misses per access, in [0, 1], of a cycle through so many bytes; `page_bytes` is the contiguous
 * piece. */
double probe_cache_candidate_miss_share(const struct cache_candidate *candidate, double bytes,
                                        size_t page_bytes);
void probe_cache_candidates_free(struct cache_terms *fit);

/* A second look at the last level: shapes that only large shared caches have.
 *
 * The search of fit.h knows caches whose lines fall into sets side by side or by random
 * pages. The last level of most processors is hashed over slices, or holds the victims of the level
 * before it: shapes that depend on more than the catalogue lists. Beside the other terms, which
 * stay, the last level is tried in every shape whose sets, ways and slices give a size near the one
 * that was found.
 */

struct cache_last {
    const struct cache_curve *curve;
    const double *fixed[CACHE_COLUMNS_MAX]; /* the terms that stay, by point: the constant first,
                                               then miss shares */
    size_t fixed_count;
    uint64_t found_bytes;  /* the level's size so far */
    uint64_t before_bytes; /* the level before it */
    double margin; /* of the objective, for the sizes that explain the curve about as well */
};

struct cache_last_found {
    struct cache_shape shape;
    double coefficients[CACHE_COLUMNS_MAX]; /* of the terms that stay, then of the last level */
    uint64_t low_bytes, high_bytes;
};

/* False: no memory, or the level is too small to be one of these; then `out` is not set. */
bool probe_cache_last_refine(const struct cache_last *last, struct cache_last_found *out);

#endif
