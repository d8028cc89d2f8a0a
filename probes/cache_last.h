/* A second look at the last level: shapes that only large shared caches have.
 *
 * The search of cache_fit.h knows caches whose lines fall into sets side by side or by random pages. The last level of
 * most processors is hashed over slices, or holds the victims of the level before it: shapes that depend on more than
 * the catalogue lists. Beside the other terms, which stay, the last level is tried in every shape whose sets, ways and
 * slices give a size near the one that was found.
 */
#ifndef SERVET_PROBES_CACHE_LAST_H
#define SERVET_PROBES_CACHE_LAST_H

#include "cache_fit.h"
#include "cache_squares.h"

struct cache_last {
    const struct cache_curve *curve;
    const double *fixed[CACHE_COLUMNS_MAX]; /* the terms that stay, by point: the constant first, then miss shares */
    size_t fixed_count;
    uint64_t found_bytes;  /* the level's size so far */
    uint64_t before_bytes; /* the level before it */
    double margin;         /* of the objective, for the sizes that explain the curve about as well */
};

struct cache_last_found {
    struct cache_shape shape;
    double coefficients[CACHE_COLUMNS_MAX]; /* of the terms that stay, then of the last level */
    uint64_t low_bytes, high_bytes;
};

/* False: no memory, or the level is too small to be one of these; then `out` is not set. */
bool cache_last_refine(const struct cache_last *last, struct cache_last_found *out);

#endif
