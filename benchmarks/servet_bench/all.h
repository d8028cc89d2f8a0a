/* servet-bench --all: every figure of the README in one run, part by part, in a given time. */
#ifndef SERVET_BENCH_ALL_H
#define SERVET_BENCH_ALL_H

#include "benchmarks/servet_bench/request.h"

/* Runs all parts. Each one's table goes to NAME.txt and its numbers to NAME.json of the output
 * folder, with plots beside them, and everything to stdout as it comes, and to results.txt. On
 * stderr: which part begins, and about how long the rest takes. What is measured by parts of a
 * fixed length comes first; the kernels share the time that is left until
 * request->within_seconds. */
void all_run(struct request *request, struct results *results);

#endif
