/* What the user asked servet-bench for, and where results go while it runs. */
#ifndef SERVET_BENCH_REQUEST_H
#define SERVET_BENCH_REQUEST_H

#include <jansson.h>
#include <stdio.h>

#include "benchmarks/servet_bench/measure.h"

#define MOST_COMPARATORS 32

struct request {
    bool npb, kernels, costs, figures, all, list, json, rounds_chosen;
    const char *npb_folder, *output, *plot;
    char *names_text;
    const char *names[MOST_COMPARATORS + 1]; /* ended by NULL; none: all that suit the program */
    size_t ranks, threads;
    double within_seconds; /* what --all may take */
    struct metric metric;
    struct conditions conditions;
};

/* Time of --all: what is left is shared by the comparisons that are left. */
struct clock {
    double end;  /* runner_now() at which all must be over; 0: no such time */
    size_t left; /* comparisons that are still to be run */
};

struct results {
    FILE *text;                      /* where tables go */
    json_t *comparisons;             /* array */
    json_t *exceptions;              /* array of verdicts against servet, each with its reason */
    json_t *costs, *figures, *parts; /* NULL: not asked for */
    struct clock clock;
};

/* "FOLDER/NAME" of the output folder in `path`, which is returned. Fails by cli_fail(). */
const char *request_path(const struct request *request, const char *name, char *path, size_t size);

#endif
