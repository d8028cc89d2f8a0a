/* Medians and their uncertainty.
 *
 * GSL has medians and random numbers, but no bootstrap, and its licence (GPL 3) would become that
 * of a command that links it; what is needed of it is this file. */
#pragma once

#include <stddef.h>

/* The smallest and the largest of n values hold the median between them with probability 1 - 2 /
 * 2^n: below 95 % under six values, so that no interval of fewer can claim it. */
#define BENCH_LEAST_ROUNDS 6

struct interval {
    double low, high;
};

/* Median of `a` over median of `b`, counts > 0. With equal counts a[i] and b[i] were measured in
 * the same round. A resample draws rounds then, so that a slow spell of the machine that hit both
 * does not look like a difference. With other counts each is drawn for itself. `interval`:
 * percentile bootstrap, 95 %. The draws are the same for the same counts: figures can be
 * reproduced. */
double bench_statistics_ratio(const double *a, size_t count, const double *b, size_t count_b,
                              struct interval *interval);

/* The middle one of count > 0 values, or the mean of both, with the interval by the same
 * bootstrap. */
double bench_statistics_median(const double *values, size_t count, struct interval *interval);
