/* A latency curve: seconds of a load by the size of the working set, with the error of each point.
 *
 * A point is measured at several places in memory, because in a physically indexed cache misses
 * differ from place to place, and several times at each place, seconds apart, because interference
 * only slows down and seldom lasts. The fastest sample of a place counts, and the mean of the
 * places. The curve is the isotonic regression of the points: a larger cycle takes no less time. It
 * is the regression of the fit (fit.h), which fits such curves: one idea in two files. */
#pragma once

#include "probes/machine.h"

enum {
    CACHE_STEPS_PER_OCTAVE = 8, /* of the even grid */
    CACHE_SWEEPS = 3,           /* of all sizes, which lie apart in time */
    CACHE_FEW_EACH = 2, /* sizes of which one is measured, where there is no time for more */
};
enum {
    CACHE_NODE_LARGE = 2 * MACHINE_NODE_BYTES, /* of the largest cycles; sizes differ by that */
};
#define CACHE_TLBS_MAX 2
/* The first two levels belong to a core, later ones are shared. */
enum { CACHE_CORE_LEVELS = 2 };
enum { CACHE_POINTS_MAX = 256, CACHE_PLACES_MAX = 24, CACHE_REPEATS_MAX = 12 };

struct cache_point {
    double bytes;
    /* of its first place in memory; the others follow */
    uint64_t seed;
    /* measured around a knee, not of the even grid */
    bool between;
    double seconds[CACHE_PLACES_MAX][CACHE_REPEATS_MAX];
    uint8_t repeats[CACHE_PLACES_MAX];
};

struct cache_samples {
    /* ascending sizes */
    struct cache_point points[CACHE_POINTS_MAX];
    size_t count;
    uint64_t seed;
};

/* Ascending sizes. */
struct cache_curve {
    double *bytes;
    double *seconds;
    /* of each point, beside the error that all share; NULL: none */
    double *error_s;
    /* relative dispersion of the samples of each; < 0: not known; NULL: of none */
    double *spread;
    /* samples of each; NULL: one of each */
    uint32_t *repetitions;
    size_t count;
    /* the contiguous piece of memory */
    size_t page_bytes;
    /* reaches of the TLB levels that were measured, and seconds of a miss of each */
    double tlb_reach_bytes[CACHE_TLBS_MAX], tlb_seconds[CACHE_TLBS_MAX];
    size_t tlb_count;
    /* sizes that the system declares for the first and second level */
    uint64_t declared_bytes[CACHE_CORE_LEVELS];
    size_t declared_count;
};

/* Puts a point without samples in its place. False: it is there, or there is no room. */
bool probe_cache_samples_add(struct cache_samples *samples, double bytes, bool between);

/* One more sample at a place; beyond CACHE_REPEATS_MAX it is dropped. */
void probe_cache_point_put(struct cache_point *point, size_t place, double seconds);

/* The curve of the even grid, or of all points. Its other fields are 0. Owned:
 * probe_cache_curve_free(). 0 or -ENOMEM. */
int probe_cache_samples_curve(struct cache_samples *samples, bool all, struct cache_curve *out);
void probe_cache_curve_free(struct cache_curve *curve);

/* The spread of the samples at the point nearest to `bytes`. */
double probe_cache_samples_spread(struct cache_samples *samples, double bytes);

/* The steps of the even grid that a point stands for, at most one: a shape is wrong all along a
 * knee, so that points closer together are not so much more evidence. */
double probe_cache_point_share(const struct cache_curve *curve, size_t i);

/* Makes `values` non-decreasing: the isotonic regression (pool adjacent violators) of their
 * logarithms, by `weights` (NULL: all alike). 0 or -ENOMEM. */
int probe_cache_isotonic(double *values, const double *weights, size_t count);
