/* Programs under all comparators: measured, printed, kept, and where servet is slower, looked at
 * again. */
#ifndef SERVET_BENCH_COMPARE_H
#define SERVET_BENCH_COMPARE_H

#include "benchmarks/servet_bench/request.h"

/* The kernels of our own: alone with plots in the output folder if there is one, then on a loaded
 * machine. */
void compare_kernels(const struct request *request, struct results *results);
/* How many comparisons that makes, for the clock. */
size_t compare_kernels_count(const struct request *request);
void compare_npb(const struct request *request, struct results *results);
/* The user's program: a name or path and its arguments. cli_fail() when it runs under no
 * comparator. */
void compare_program(const struct request *request, char **argv, struct results *results);

/* How many programs servet is slower on than the best of the others, and why, one line each. */
void compare_exceptions(const struct results *results);

#endif
