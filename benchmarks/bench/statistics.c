/* The percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, 13.3). */
#include "benchmarks/bench/statistics.h"

#include <math.h>
#include <stdbool.h>

#include "benchmarks/bench/tools.h"
#include "profile/base/random.h"
#include "profile/base/statistics.h"
#include "profile/scope.h"

#define RESAMPLES 2000 /* the ends of a 95 % interval then rest on 50 draws each */
#define OUTSIDE 0.025
#define SEED UINT64_C(20101120)

/* A modulo's bias does not matter: count is below 2^20. */
static size_t draw(struct random *random, size_t count)
{
    return (size_t)(random_next(random) % count);
}

double bench_statistics_ratio(const double *a, size_t count, const double *b, size_t count_b,
                              struct interval *interval)
{
    double ratios[RESAMPLES], ratio = 0;
    FREED double *x = bench_memory(count, sizeof *x), *y = bench_memory(count_b, sizeof *y);
    struct random state = {SEED};
    for (size_t sample = 0; sample <= RESAMPLES; sample++) {
        const bool last = sample == RESAMPLES; /* all rounds as they were: the ratio itself */
        for (size_t i = 0; i < count; i++) {
            size_t round = last ? i : draw(&state, count);
            x[i] = a[round];
            if (count_b == count) {
                y[i] = b ? b[round] : 1;
            }
        }
        for (size_t i = 0; count_b != count && i < count_b; i++) {
            y[i] = b[last ? i : draw(&state, count_b)];
        }
        ratio = profile_median_value(x, count) / profile_median_value(y, count_b);
        if (!last) {
            ratios[sample] = ratio;
        }
    }
    profile_sort(ratios, RESAMPLES);
    size_t low = (size_t)floor(OUTSIDE * (RESAMPLES - 1));
    *interval = (struct interval){ratios[low], ratios[RESAMPLES - 1 - low]};
    return ratio;
}

double bench_statistics_median(const double *values, size_t count, struct interval *interval)
{
    return bench_statistics_ratio(values, count, NULL, count, interval);
}
