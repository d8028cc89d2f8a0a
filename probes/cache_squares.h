/* Regressions: least squares with coefficients >= 0 over a few columns, from their products, and the isotonic one. */
#ifndef SERVET_PROBES_CACHE_SQUARES_H
#define SERVET_PROBES_CACHE_SQUARES_H

#include <stddef.h>

/* The constant, four levels, two TLBs that were measured and two that were not. */
#define CACHE_COLUMNS_MAX 9

double cache_dot(const double *a, const double *b, size_t count);

/* gram[i][j] = column i * column j, right[i] = column i * right side, total = right side squared; the first n count.
 * The coefficients go to `x`. Not always the exact optimum, but columns of misses are all non-negative and rising, for
 * which it is. Returns the residual sum of squares. */
double cache_solve_positive(const double gram[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX], const double *right, double total,
                            size_t n, double *x);

/* Makes `values` non-decreasing: the isotonic regression (pool adjacent violators) of their logarithms. */
void cache_isotonic(double *values, size_t count);

#endif
