/* A median and how sure it is. */
#ifndef SERVET_MAPPER_SPMD_MEDIAN_H
#define SERVET_MAPPER_SPMD_MEDIAN_H

#include <stddef.h>

/* The median, and the values that hold it with 95 % or more: order statistics, whatever the distribution (David and
 * Nagaraja, Order Statistics, 7.1). Fewer than six values have no such interval: the smallest and the largest then.
 * Sorts them; count >= 1. */
struct spmd_median {
    double median, low, high;
};
struct spmd_median spmd_median(double *values, size_t count);

#endif
