/* The binaries of NPB that a user has built: found, and told apart. NPB itself is not distributed
 * with this project. */
#ifndef SERVET_BENCH_NPB_H
#define SERVET_BENCH_NPB_H

#include "benchmarks/servet_bench/comparator.h"

struct npb_list {
    struct program *programs;
    size_t count;
};

/* Programs called as NPB calls them (bt.A.x, cg.B.x, cg.B.4, sp-mz.W.x) in `folder` and three
 * levels below, by name. Which form one is follows from the libraries that it names: MPI, OpenMP,
 * or both. `ranks` and `threads` are what MPI programs get (a number at the end of the name wins
 * over `ranks`), `threads` alone what OpenMP programs get.
 * 0, or -errno of opening the folder. */
int npb_find(const char *folder, size_t ranks, size_t threads, struct npb_list *out);
void npb_free(struct npb_list *list);

/* Whether a name is one of NPB's; *ranks: the number at its end, or 0. */
bool npb_is_name(const char *name, size_t *ranks);

/* The line that NPB programs print: "Mop/s total = …". Higher is better. */
#define NPB_METRIC "Mop/s total *= *([0-9.Ee+-]+)"

#endif
