/* A median and how sure it is. */
#ifndef SERVET_PROFILE_BASE_STATISTICS_H
#define SERVET_PROFILE_BASE_STATISTICS_H

#include <stddef.h>

/* The median, and the values that hold it with 95 % or more: order statistics, whatever the
 * distribution (David and Nagaraja, Order Statistics, 7.1). Fewer than six values have no such
 * interval: the smallest and the largest then. Sorts them; count >= 1. */
struct profile_median {
    double median, low, high;
};
struct profile_median profile_median(double *values, size_t count);

#endif
