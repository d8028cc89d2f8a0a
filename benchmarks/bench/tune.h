/* servet-bench --tune: which ranks, threads and placement of a program are the fastest here. */
#pragma once

#include "benchmarks/bench/compare.h"

/* cli_usage() for options that --tune chooses itself. */
void bench_tune_check(const struct request *request);

/* Tunes the program of that line, prints the table (or JSON) and keeps it beside the profile. The
 * exit status; cli_usage() where the budget holds no run, cli_fail() where none succeeds. */
int bench_tune(const struct request *request, char **argv);
