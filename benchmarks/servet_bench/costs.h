/* What placing costs, beside the tools that could do it instead: start-up of a program, creation of a thread, the time
 * of a mapping. (What probing costs, servet-probe says of itself.) */
#ifndef SERVET_BENCH_COSTS_H
#define SERVET_BENCH_COSTS_H

#include <jansson.h>
#include <stdio.h>

/* Measures, interleaved, `rounds` of each; prints tables on `out`; numbers into a new *json. */
void costs_run(FILE *out, size_t rounds, json_t **json);

#endif
