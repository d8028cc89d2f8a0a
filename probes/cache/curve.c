/* Which samples of a latency curve count (curve.h): the fastest of a place, since interference only
 * slows down, and the mean of the places, since the model that is fitted is of their mean. To see
 * it: tests/probes/test_cache_curve.c. */
#include "probes/cache/fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/probe.h"
#include "profile/base/statistics.h"

bool probe_cache_samples_add(struct cache_samples *samples, double bytes, bool between)
{
    size_t at = samples->count;
    while (at > 0 && samples->points[at - 1].bytes > bytes) {
        at--;
    }
    if (samples->count == CACHE_POINTS_MAX || (at > 0 && samples->points[at - 1].bytes == bytes)) {
        return false;
    }
    memmove(&samples->points[at + 1], &samples->points[at],
            (samples->count - at) * sizeof *samples->points);
    samples->points[at] = (struct cache_point){
        .bytes = bytes,
        .between = between,
        .seed = samples->seed + (uint64_t)bytes / CACHE_NODE_LARGE * CACHE_PLACES_MAX};
    samples->count++;
    return true;
}

void probe_cache_point_put(struct cache_point *point, size_t place, double seconds)
{
    if (place < CACHE_PLACES_MAX && point->repeats[place] < CACHE_REPEATS_MAX) {
        point->seconds[place][point->repeats[place]++] = seconds;
    }
}

/* Of all places. */
static size_t samples_of(const struct cache_point *point)
{
    size_t sum = 0;
    for (size_t place = 0; place < CACHE_PLACES_MAX; place++) {
        sum += point->repeats[place];
    }
    return sum;
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / (double)count;
}

/* What is known of the latency at one place, or of a point. */
struct estimate {
    double seconds;
    double error_s; /* that it may be off; of a point, but for what its places differ by */
    double spread;  /* relative, of the samples; < 0: not known */
    double squares; /* of a point: the sum of what its places are off it, relative, squared */
    size_t freedom; /* of a point: the number of its places but one */
};

/* The fastest of a place: beside a load half of all samples are disturbed. If the next one is far
 * from it, it may be disturbed, too. */
static struct estimate estimate_of_place(const double *sorted, size_t count)
{
    double median = sorted[count / 2];
    return (struct estimate){.seconds = sorted[0],
                             .error_s = count > 1 ? sorted[1] - sorted[0] : 0,
                             .spread = count > 1 ? (median - sorted[0]) / median : -1};
}

/* The mean of the places, of small working sets, too: second levels of 128 KiB are built, and the
 * luckiest places would make them smaller. Where each place has one sample, what differs from place
 * to place cannot be told from what disturbs: their median. */
static struct estimate point_of(struct cache_point *point)
{
    struct estimate sum = {.spread = 0};
    double seconds[CACHE_PLACES_MAX], own = 0;
    size_t count = 0, repeated = 0;
    for (size_t place = 0; place < CACHE_PLACES_MAX; place++) {
        if (point->repeats[place] > 0) {
            profile_sort(point->seconds[place], point->repeats[place]);
            const struct estimate one =
                estimate_of_place(point->seconds[place], point->repeats[place]);
            seconds[count++] = one.seconds;
            own += one.error_s * one.error_s;
            sum.spread += fmax(one.spread, 0);
            repeated += one.spread >= 0;
        }
    }
    sum.seconds = repeated > 0 ? mean_of(seconds, count) : profile_median_value(seconds, count);
    sum.error_s = sqrt(own) / (double)count;
    sum.spread = repeated > 0 ? probe_spread_rounded(sum.spread / (double)repeated)
                              : probe_spread(seconds, count);
    for (size_t i = 0; i < count; i++) {
        double off = seconds[i] / sum.seconds - 1;
        sum.squares += off * off;
    }
    sum.freedom = count - 1;
    return sum;
}

/* Seconds that a point is off because of what places differ by, told together with the points
 * beside it: at the foot of a knee six places may by luck all be without conflicts, and their point
 * would count as the surest. So Cartesius' L2 of 256 KiB came out as 224 KiB, and Dempsey's of 2
 * MiB, looked at in two places, as two levels. */
static double error_of_places(const struct estimate *points, size_t count, size_t i)
{
    const size_t first = i > 0 ? i - 1 : i, last = i + 1 < count ? i + 1 : i;
    double squares = 0, freedom = 0;
    for (size_t j = first; j <= last; j++) {
        squares += points[j].squares;
        freedom += (double)points[j].freedom;
    }
    double variance = freedom > 0 ? squares / freedom : 0;
    return points[i].seconds * sqrt(variance / (double)(points[i].freedom + 1));
}

/* Neighbours that have one value. */
struct cache_pooled {
    double mean, weight;
    size_t size;
};

int probe_cache_isotonic(double *values, const double *weights, size_t count)
{
    FREED struct cache_pooled *pooled = malloc(count * sizeof *pooled);
    struct cache_pooled *last = pooled;
    TRY(pooled ? 0 : -ENOMEM);
    for (size_t i = 0; i < count; i++) {
        *last++ = (struct cache_pooled){log(values[i]), weights ? weights[i] : 1, 1};
        for (; last - pooled > 1 && last[-2].mean > last[-1].mean; last--) {
            const double all = last[-2].weight + last[-1].weight;
            last[-2].mean =
                (last[-2].mean * last[-2].weight + last[-1].mean * last[-1].weight) / all;
            last[-2].weight = all;
            last[-2].size += last[-1].size;
        }
    }
    for (const struct cache_pooled *one = pooled; one < last; one++) {
        for (size_t j = 0; j < one->size; j++) {
            *values++ = exp(one->mean);
        }
    }
    return 0;
}

int probe_cache_samples_curve(struct cache_samples *samples, bool all, struct cache_curve *out)
{
    FREED_BY(probe_cache_curve_free)
    struct cache_curve curve = {.bytes = malloc(samples->count * sizeof *curve.bytes),
                                .seconds = malloc(samples->count * sizeof *curve.seconds),
                                .error_s = malloc(samples->count * sizeof *curve.error_s),
                                .spread = malloc(samples->count * sizeof *curve.spread),
                                .repetitions = malloc(samples->count * sizeof *curve.repetitions)};
    FREED double *weights = malloc(samples->count * sizeof *weights);
    FREED struct estimate *found = malloc(samples->count * sizeof *found);
    TRY(weights && found && curve.bytes && curve.seconds && curve.error_s && curve.spread &&
                curve.repetitions
            ? 0
            : -ENOMEM);
    for (size_t i = 0; i < samples->count; i++) {
        struct cache_point *point = &samples->points[i];
        if ((point->between && !all) || samples_of(point) == 0) {
            continue;
        }
        found[curve.count] = point_of(point);
        curve.bytes[curve.count] = point->bytes;
        curve.spread[curve.count] = found[curve.count].spread;
        curve.repetitions[curve.count++] = (uint32_t)samples_of(point);
    }
    for (size_t i = 0; i < curve.count; i++) {
        curve.seconds[i] = found[i].seconds;
        curve.error_s[i] = hypot(error_of_places(found, curve.count, i), found[i].error_s);
        const double relative = hypot(probe_cache_model_error, curve.error_s[i] / curve.seconds[i]);
        weights[i] = 1 / (relative * relative);
    }
    TRY(probe_cache_isotonic(curve.seconds, weights, curve.count));
    *out = TAKE(curve);
    return 0;
}

void probe_cache_curve_free(struct cache_curve *curve)
{
    free(curve->bytes);
    free(curve->seconds);
    free(curve->error_s);
    free(curve->spread);
    free(curve->repetitions);
    memset(curve, 0, sizeof *curve);
}

double probe_cache_samples_spread(struct cache_samples *samples, double bytes)
{
    double least = INFINITY, spread = -1;
    for (size_t i = 0; i < samples->count; i++) {
        struct cache_point *point = &samples->points[i];
        const double off = fabs(log(point->bytes / bytes));
        if (off < least && samples_of(point) > 0) {
            least = off;
            spread = point_of(point).spread;
        }
    }
    return spread;
}

double probe_cache_point_share(const struct cache_curve *curve, size_t i)
{
    double before = curve->bytes[i > 0 ? i - 1 : i],
           after = curve->bytes[i + 1 < curve->count ? i + 1 : i];
    return fmin(1, log2(after / before) / 2 * CACHE_STEPS_PER_OCTAVE);
}
