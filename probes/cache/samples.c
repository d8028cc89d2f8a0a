/* What of the samples of a latency curve counts. A point is measured at several places in memory,
 * because in a physically indexed cache of few page colours misses differ from place to place, and
 * the model that is fitted (model.c) is of their mean; and at each place several times, seconds
 * apart, because what disturbs only ever slows down and lasts for less than that. So the fastest
 * of a place count, and of the places the mean: fastest samples of all places together would choose
 * the lucky places, means of all samples would take a neighbour for a smaller cache. To see it:
 * tests/probes/test_cache_samples.c. */
#include "probes/cache/cache.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/statistics.h"

/* First levels are indexed virtually, so that places are alike: there the fastest third counts. */
static const double first_level_up_to = 96 << 10; /* bytes; beyond, it may be a second level's */
static const double kept_places = 1.0 / 3;
/* Of a place's samples: one of up to five, two of six, three of eight. Beside a load half of all
 * samples are disturbed; fewer than that have to count. */
static const double kept_repeats = 3.0 / 8;
/* What a latency is off at least, relative; a point is not made to count more by luck. */
static const double least_error = 0.01;

static const uint64_t seed_step_bytes = 512; /* sizes differ by so much at least */

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
        .seed = samples->seed + (uint64_t)bytes / seed_step_bytes * CACHE_PLACES_MAX};
    samples->count++;
    return true;
}

void probe_cache_point_put(struct cache_point *point, size_t place, double seconds)
{
    if (place < CACHE_PLACES_MAX && point->repeats[place] < CACHE_REPEATS_MAX) {
        point->seconds[place][point->repeats[place]++] = seconds;
    }
}

size_t probe_cache_point_samples(const struct cache_point *point)
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
    double error_s; /* that it may be off */
    double spread;  /* relative, of the samples; < 0: not known */
};

/* The fastest of a place. If the next one is far from them, they may be disturbed, too. */
static struct estimate place_of(const double *sorted, size_t count)
{
    size_t kept = (size_t)fmax(1, floor(kept_repeats * (double)count));
    double mean = mean_of(sorted, kept);
    double median = sorted[count / 2];
    return (struct estimate){.seconds = mean,
                             .error_s = count > kept ? sorted[kept] - mean : 0,
                             .spread = count > 1 ? (median - sorted[0]) / median : -1};
}

static int by_seconds(const void *a, const void *b)
{
    double x = ((const struct estimate *)a)->seconds, y = ((const struct estimate *)b)->seconds;
    return (x > y) - (x < y);
}

/* The mean of the places. It is off by what they differ, and by what each may be off. */
static struct estimate point_of(struct cache_point *point)
{
    struct estimate places[CACHE_PLACES_MAX], sum = {.spread = -1};
    size_t count = 0;
    double own = 0, squares = 0, spread = 0;
    for (size_t place = 0; place < CACHE_PLACES_MAX; place++) {
        if (point->repeats[place] > 0) {
            profile_sort(point->seconds[place], point->repeats[place]);
            places[count++] = place_of(point->seconds[place], point->repeats[place]);
        }
    }
    qsort(places, count, sizeof *places, by_seconds);
    if (point->bytes <= first_level_up_to) {
        count = (size_t)fmax(1, round(kept_places * (double)count));
    }
    for (size_t i = 0; i < count; i++) {
        sum.seconds += places[i].seconds / (double)count;
        own += places[i].error_s * places[i].error_s;
        spread += places[i].spread / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        squares += (places[i].seconds - sum.seconds) * (places[i].seconds - sum.seconds);
    }
    double differ = count > 1 ? sqrt(squares / (double)(count - 1) / (double)count) : 0;
    sum.error_s = hypot(differ, sqrt(own) / (double)count);
    sum.spread = round(spread * 1e4) / 1e4;
    return sum;
}

int probe_cache_samples_curve(struct cache_samples *samples, bool all, struct cache_curve *out)
{
    struct cache_curve curve = {.bytes = malloc(samples->count * sizeof *curve.bytes),
                                .seconds = malloc(samples->count * sizeof *curve.seconds),
                                .error_s = malloc(samples->count * sizeof *curve.error_s),
                                .spread = malloc(samples->count * sizeof *curve.spread),
                                .repetitions = malloc(samples->count * sizeof *curve.repetitions)};
    double *weights = malloc(samples->count * sizeof *weights);
    if (!weights || !curve.bytes || !curve.seconds || !curve.error_s || !curve.spread ||
        !curve.repetitions) {
        free(weights);
        probe_cache_curve_free(&curve);
        return -ENOMEM;
    }
    for (size_t i = 0; i < samples->count; i++) {
        struct cache_point *point = &samples->points[i];
        if ((point->between && !all) || probe_cache_point_samples(point) == 0) {
            continue;
        }
        const struct estimate found = point_of(point);
        const double relative = hypot(least_error, found.error_s / found.seconds);
        curve.bytes[curve.count] = point->bytes;
        curve.seconds[curve.count] = found.seconds;
        curve.spread[curve.count] = found.spread;
        curve.repetitions[curve.count] = (uint32_t)probe_cache_point_samples(point);
        curve.error_s[curve.count] = found.error_s;
        weights[curve.count++] = 1 / (relative * relative);
    }
    probe_cache_isotonic(curve.seconds, weights, curve.count);
    free(weights);
    *out = curve;
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
    size_t best = 0;
    for (size_t i = 1; i < samples->count; i++) {
        if (fabs(log(samples->points[i].bytes / bytes)) <
            fabs(log(samples->points[best].bytes / bytes))) {
            best = i;
        }
    }
    return point_of(&samples->points[best]).spread;
}
