/* The percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, 13.3). */
#include "benchmarks/bench/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/bench/tools.h"
#include "profile/base/random.h"
#include "profile/base/statistics.h"

#define RESAMPLES 2000 /* the ends of a 95 % interval then rest on 50 draws each */
#define OUTSIDE 0.025
#define SEED UINT64_C(20101120)

static double *memory(size_t count)
{
    return bench_memory(count, sizeof(double));
}

double bench_statistics_median(const double *values, size_t count)
{
    double *copy = memory(count);
    memcpy(copy, values, count * sizeof *copy);
    double median = profile_median_value(copy, count);
    free(copy);
    return median;
}

/* A modulo's bias does not matter: count is below 2^20. */
static size_t draw(struct random *random, size_t count)
{
    return (size_t)(random_next(random) % count);
}

static struct interval middle(double *figures, size_t count)
{
    profile_sort(figures, count);
    size_t low = (size_t)floor(OUTSIDE * (double)(count - 1));
    return (struct interval){figures[low], figures[count - 1 - low]};
}

double bench_statistics_ratio(const double *a, const double *b, size_t count,
                              struct interval *interval)
{
    double *ratios = memory(RESAMPLES), *x = memory(count), *y = memory(count);
    struct random state = {SEED};
    for (size_t sample = 0; sample < RESAMPLES; sample++) {
        for (size_t i = 0; i < count; i++) {
            size_t round = draw(&state, count);
            x[i] = a[round];
            y[i] = b[round];
        }
        ratios[sample] = profile_median_value(x, count) / profile_median_value(y, count);
    }
    *interval = middle(ratios, RESAMPLES);
    free(ratios);
    free(x);
    free(y);
    return bench_statistics_median(a, count) / bench_statistics_median(b, count);
}

struct interval bench_statistics_interval(const double *values, size_t count)
{
    double *medians = memory(RESAMPLES), *x = memory(count);
    struct random state = {SEED};
    for (size_t sample = 0; sample < RESAMPLES; sample++) {
        for (size_t i = 0; i < count; i++) {
            x[i] = values[draw(&state, count)];
        }
        medians[sample] = profile_median_value(x, count);
    }
    struct interval interval = middle(medians, RESAMPLES);
    free(medians);
    free(x);
    return interval;
}
