/* What placing costs, beside the tools that could do it instead: start-up of a program, creation of
 * a thread, the time of a mapping, of measuring this machine and, projected, larger ones. */
#ifndef SERVET_BENCH_COSTS_H
#define SERVET_BENCH_COSTS_H

#include <jansson.h>
#include <stdio.h>

/* Unless the user says another number; what takes long, or is a median already, is measured less
 * often. */
#define COSTS_ROUNDS 41

/* Measures, interleaved, `rounds` of each; prints tables on `out`; numbers into a new *json. */
void costs_run(FILE *out, size_t rounds, json_t **json);

#endif
