/* mpibind's placements, where its library was built for the measurement (see with_mpibind). */
#ifndef SERVET_BENCHMARKS_MAPPER_MPIBIND_H
#define SERVET_BENCHMARKS_MAPPER_MPIBIND_H

#include <stdbool.h>
#include <stdint.h>

/* Where mpibind puts `ranks` of `threads` each on the machine of an hwloc XML file or a
 * description: OS indices, rank by rank; threads are spread over their rank's set, as the
 * OMP_PROC_BIND=spread that it exports does. False: it gave a rank no PU, or crashed. */
bool bench_mpibind_place(const char *machine, uint32_t ranks, uint32_t threads, uint32_t *pus);

#endif
