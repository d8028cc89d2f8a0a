/* servet-bench --all: the kernels of our own under all comparators, the costs, the predicted
 * figures. */
#ifndef SERVET_BENCH_SUITE_H
#define SERVET_BENCH_SUITE_H

#include "benchmarks/servet_bench/comparator.h"

struct suite {
    struct program *programs;
    size_t count;
};

/* The kernels that were built, in sizes that take about a second each on a few cores: OpenMP with
 * `threads`, MPI with `threads` ranks, hybrid with two ranks. Fails by cli_fail() when the kernels
 * are not there. */
void suite_kernels(size_t threads, struct suite *out);
/* What is run on a loaded machine: kernels of one process. */
void suite_loaded(size_t threads, struct suite *out);
void suite_free(struct suite *suite);

/* The line that our kernels print. */
#define SUITE_METRIC "^time +([0-9.]+) s$"

#endif
