/* Programs to compare: NPB binaries of the user, and our kernels. */
#pragma once

#include "benchmarks/bench/comparator.h"

struct programs {
    struct program *list;
    size_t count;
};
void bench_programs_free(struct programs *programs);

/* Programs called as NPB calls them (bt.A.x, cg.B.x, cg.B.4, sp-mz.W.x) in `folder` and three
 * levels below, by name: binaries that a user has built, NPB itself is not distributed with this
 * project. Which form one is follows from the libraries that it names: MPI, OpenMP, or both.
 * `ranks` and `threads` are what MPI programs get (a number at the end of the name wins over
 * `ranks`), `threads` alone what OpenMP programs get. 0, or -errno of opening the folder. */
int bench_npb_find(const char *folder, size_t ranks, size_t threads, struct programs *out);

/* Whether a name is one of NPB's; *ranks: the number at its end, or 0. */
bool bench_npb_is_name(const char *name, size_t *ranks);

/* The line that NPB programs print: "Mop/s total = …". Higher is better. */
#define BENCH_NPB_METRIC "Mop/s total *= *([0-9.Ee+-]+)"

/* The kernels that were built, in sizes that take about a second each on a few cores: OpenMP with
 * `threads`, MPI with `threads` ranks, hybrid with two ranks. Only the first `most` of them, which
 * begin with one process of CG. Fails by cli_fail() when the kernels are not there. */
void bench_kernels(size_t threads, size_t most, struct programs *out);

/* The line that our kernels print. */
#define BENCH_KERNEL_METRIC "^time +([0-9.]+) s$"
