/* Order statistics: what a figure is, and how sure it is. All sort the values they are given. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

void profile_sort(double *values, size_t count);

/* The value that a share q of the others lies below, 0 <= q <= 1: the one nearest to that rank,
 * nothing between two. NAN of none. */
double profile_quantile(double *values, size_t count, double q);

/* The middle value, or the mean of the two in the middle. NAN of none. */
double profile_median_value(double *values, size_t count);

/* The median, and the values that hold it with 95 % or more: order statistics, whatever the
 * distribution (David and Nagaraja, Order Statistics, 7.1). Fewer than six values have no such
 * interval: the smallest and the largest then. count >= 1. */
struct profile_median {
    double median, low, high;
};
struct profile_median profile_median(double *values, size_t count);

/* Two measurements of one figure: do they differ by no more than that part of the smaller? */
bool profile_same(double a, double b, double tolerance);
