/* What measuring a machine costs, by its size. */
#ifndef SERVET_BENCH_COSTS_PROBING_H
#define SERVET_BENCH_COSTS_PROBING_H

#include <jansson.h>
#include <stdio.h>

/* The real probes on simulated machines of 2 to 1,024 PUs, whose clock adds up what each
 * measurement takes on the native backend, and the survey of networks between up to 1,024 nodes (in
 * a build folder only): projections, with the starts of mpirun left out. Prints a table; a new
 * object like the other costs'. */
json_t *costs_probing(FILE *out);

#endif
