/* The samples of a latency curve, and what of them counts. */
#ifndef SERVET_PROBES_CACHE_SAMPLES_H
#define SERVET_PROBES_CACHE_SAMPLES_H

#include "cache_fit.h"

enum { CACHE_POINTS_MAX = 224, CACHE_SAMPLES_MAX = 36 };

struct cache_point {
    double bytes; /* working set */
    bool between; /* not of the even grid: measured around a knee */
    double seconds[CACHE_SAMPLES_MAX];
    size_t count;
};

struct cache_samples {
    struct cache_point points[CACHE_POINTS_MAX]; /* ascending sizes */
    size_t count;
};

/* Puts a point without samples in its place. False: it is there, or there is no room. */
bool cache_samples_add(struct cache_samples *samples, double bytes, bool between);

/* The curve of the even grid, or of all points: for each the mean of the samples that count, made non-decreasing. Its
 * other fields are 0. Owned: cache_curve_free(). 0 or -ENOMEM. */
int cache_samples_curve(struct cache_samples *samples, bool all, struct cache_curve *out);
void cache_curve_free(struct cache_curve *curve);

/* The spread of the samples at the point nearest to `bytes`. */
double cache_samples_spread(struct cache_samples *samples, double bytes);

#endif
