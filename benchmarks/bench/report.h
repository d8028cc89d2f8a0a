/* Comparisons as a table, as JSON, and as a plot. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "benchmarks/bench/measure.h"

/* First in words, whether servet helped; then every figure. */
void bench_table(FILE *out, const struct comparison *comparison);

/* How servet (its first priority that was run, memory unless chosen otherwise) stands beside the
 * best of the others: the ratio of its figure to that, turned so that above 1 means slower. The
 * best was picked by the same rounds, which favours it. False when one of the two is missing, or
 * there were fewer than BENCH_LEAST_ROUNDS rounds. */
struct verdict {
    const struct series *ours, *best;
    double ratio;
    struct interval interval;
    bool slower; /* beyond the interval */
};
bool bench_verdict(const struct comparison *comparison, struct verdict *out);

/* A likely reason why servet is slower there: one line. */
const char *bench_reason(const struct comparison *comparison, const struct verdict *verdict);

/* An interval in words; "-", and null in JSON, of too few rounds for one. */
struct bench_span {
    char text[64];
};
struct bench_span bench_span(struct interval interval, size_t rounds, int digits);
json_t *bench_json_interval(struct interval interval, size_t rounds);

/* The program and how it was run, without figures. */
json_t *bench_json_conditions(const struct comparison *comparison);
json_t *bench_json(const struct comparison *comparison);

/* "host", "cpu", "kernel", "pus", "date": where and when. */
json_t *bench_json_machine(void);

/* Writes ratios to the first comparator with their intervals as SVG. Fails by cli_fail(). */
void bench_plot_ratios(const char *path, const struct comparison *comparisons, size_t count);
