/* Programs under all comparators: measured, printed, kept, and where servet is slower, looked at
 * again. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "benchmarks/bench/measure.h"

#define MOST_COMPARATORS 32

/* The user's request. */
struct request {
    bool npb, kernels, tune, list, json;
    const char *npb_folder;
    const char *plot; /* a file (.svg) or a folder that is there; NULL: no plots */
    char *names_text;
    const char *names[MOST_COMPARATORS + 1]; /* ended by NULL; none: all that suit the program */
    size_t ranks, threads;
    struct metric metric;
    struct conditions conditions;
};

struct results {
    FILE *text;          /* where tables go */
    json_t *comparisons; /* array */
    json_t *exceptions;  /* array of verdicts against servet, each with its reason */
};

/* The kernels of our own: alone, with plots if request->plot is a folder, then on a loaded
 * machine. */
void bench_compare_kernels(const struct request *request, struct results *results);
/* Those of NPB in request->npb_folder; cli_usage() when there are none. */
void bench_compare_npb(const struct request *request, struct results *results);
/* The user's program: a name or path and its arguments. cli_fail() when it runs under no
 * comparator. */
void bench_compare_program(const struct request *request, char **argv, struct results *results);

/* How many programs servet is slower on than the best of the others, and why, one line each. */
void bench_compare_exceptions(const struct results *results);
