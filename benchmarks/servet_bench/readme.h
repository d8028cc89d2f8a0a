/* The figures of the README that programs of the build folder print: each part runs one of them. */
#ifndef SERVET_BENCH_README_H
#define SERVET_BENCH_README_H

#include "benchmarks/servet_bench/request.h"

struct readme_part {
    const char *name;        /* of the files with what it printed */
    const char *title;       /* what it measures */
    double seconds;          /* that it took on two quiet PUs */
    unsigned repeat;         /* runs; 0: one */
    const char *command[12]; /* words; see readme.c for the names in braces */
};

extern const struct readme_part readme_parts[];
extern const size_t readme_count;

/* Runs the part, at most `limit_seconds`; what it prints goes to `text`. A new object: "name",
 * "what", "command", "seconds", and "output" (lines) or "left_out" (why there is none). */
json_t *readme_run(const struct readme_part *part, const struct request *request,
                   double limit_seconds, FILE *text);

#endif
