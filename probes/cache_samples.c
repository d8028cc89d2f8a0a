#include "cache_samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cache_squares.h"
#include "probe.h"

/* How many of a point's samples count, fastest first. Disturbance only slows down, so the more is dropped the better,
 * but for one thing: in a physically indexed cache of few page colours misses differ from place to place in memory,
 * very unevenly, and the model that is fitted is of their mean. First levels are indexed virtually: there the fastest
 * third counts. A large shared cache is seldom left alone and has many colours: there the faster half counts but for
 * the fastest, which would make the cache look larger; of few samples the fastest. */
static const double first_level_up_to = 96 << 10; /* bytes; beyond, a point may be of a second level */
static const double shared_from = 4 << 20;        /* bytes; caches that large have many colours */
static const double kept_first = 1.0 / 3, kept_later = 0.9;
static const size_t few_samples = 3, some_samples = 6; /* of up to few one counts, of up to some two */

/* Which of the samples, fastest first, count. */
struct kept {
    size_t from, count;
};

static struct kept kept_samples(double bytes, size_t count)
{
    if (count <= few_samples) {
        return (struct kept){0, 1};
    }
    if (bytes > shared_from && count <= some_samples) {
        return (struct kept){0, 2};
    }
    if (bytes > shared_from) {
        return (struct kept){1, count / 2};
    }
    return (struct kept){0, (size_t)((bytes <= first_level_up_to ? kept_first : kept_later) * (double)count)};
}

bool cache_samples_add(struct cache_samples *samples, double bytes, bool between)
{
    size_t at = samples->count;
    while (at > 0 && samples->points[at - 1].bytes > bytes) {
        at--;
    }
    if (samples->count == CACHE_POINTS_MAX || (at > 0 && samples->points[at - 1].bytes == bytes)) {
        return false;
    }
    memmove(&samples->points[at + 1], &samples->points[at], (samples->count - at) * sizeof *samples->points);
    samples->points[at] = (struct cache_point){.bytes = bytes, .between = between};
    samples->count++;
    return true;
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / (double)count;
}

/* What the mean of a point may be off: its standard error, and what dropping the slowest changed. At the foot of a
 * knee a cache of few page colours is either hit or missed as a whole; few samples say little there. */
static double error_of(const double *values, size_t count, double kept_mean)
{
    double mean = mean_of(values, count), squares = 0;
    for (size_t i = 0; i < count; i++) {
        squares += (values[i] - mean) * (values[i] - mean);
    }
    double standard = count > 1 ? sqrt(squares / (double)(count - 1) / (double)count) : 0;
    return hypot(standard, mean - kept_mean);
}

int cache_samples_curve(struct cache_samples *samples, bool all, struct cache_curve *out)
{
    struct cache_curve curve = {.bytes = malloc(samples->count * sizeof *curve.bytes),
                                .seconds = malloc(samples->count * sizeof *curve.seconds),
                                .error_s = malloc(samples->count * sizeof *curve.error_s),
                                .spread = malloc(samples->count * sizeof *curve.spread),
                                .repetitions = malloc(samples->count * sizeof *curve.repetitions)};
    if (!curve.bytes || !curve.seconds || !curve.error_s || !curve.spread || !curve.repetitions) {
        cache_curve_free(&curve);
        return -ENOMEM;
    }
    for (size_t i = 0; i < samples->count; i++) {
        struct cache_point *point = &samples->points[i];
        if ((point->between && !all) || point->count == 0) {
            continue;
        }
        probe_median(point->seconds, point->count); /* sorts */
        struct kept kept = kept_samples(point->bytes, point->count);
        curve.bytes[curve.count] = point->bytes;
        curve.seconds[curve.count] = mean_of(point->seconds + kept.from, kept.count);
        curve.spread[curve.count] = probe_spread(point->seconds, point->count);
        curve.repetitions[curve.count] = (uint32_t)point->count;
        curve.error_s[curve.count] = error_of(point->seconds, point->count, curve.seconds[curve.count]);
        curve.count++;
    }
    cache_isotonic(curve.seconds, curve.count);
    *out = curve;
    return 0;
}

void cache_curve_free(struct cache_curve *curve)
{
    free(curve->bytes);
    free(curve->seconds);
    free(curve->error_s);
    free(curve->spread);
    free(curve->repetitions);
    memset(curve, 0, sizeof *curve);
}

double cache_samples_spread(struct cache_samples *samples, double bytes)
{
    size_t best = 0;
    for (size_t i = 1; i < samples->count; i++) {
        if (fabs(log(samples->points[i].bytes / bytes)) < fabs(log(samples->points[best].bytes / bytes))) {
            best = i;
        }
    }
    return probe_spread(samples->points[best].seconds, samples->points[best].count);
}
