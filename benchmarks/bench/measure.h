/* One program under every comparator, interleaved: A B C A B C … */
#pragma once

#include <regex.h>

#include "benchmarks/bench/comparator.h"
#include "benchmarks/bench/run.h"
#include "benchmarks/bench/statistics.h"

struct metric {
    /* of the line on stdout that holds the number; NULL: wall time in seconds */
    const char *expression;
    regex_t compiled;
    bool higher; /* is better */
};

struct conditions {
    size_t rounds;
    double budget_seconds; /* start no further round once the program has taken that long: from the
                              sixth on (see statistics.h), or twice that long, from the first on; 0:
                              no limit */
    double limit_seconds;  /* of one run */
    size_t jobs; /* copies of the program at the same time, each with all its threads; figure: the
                    worst */
    size_t load_pus; /* background job on that many PUs */
};

struct series {
    const struct comparator *comparator;
    char *tool;
    char *command;  /* the whole command line, for the report */
    char *left_out; /* why there are no figures, or NULL */
    double *values; /* one per round */
    double median;
    struct interval interval;
    double ratio; /* to the first series, whatever direction is better */
    struct interval ratio_interval;
};

struct comparison {
    const struct program *program;
    const struct metric *metric;
    struct conditions conditions;
    size_t rounds; /* that were run */
    struct series *series;
    size_t count;
};

/* Compiles metric->expression: 0, or cli_usage(). */
void bench_metric_compile(struct metric *metric);

/* The figure of one run, or the reason why there is none, a new string. `limit`: that it had. */
char *bench_figure(const struct metric *metric, const struct bench_run *run, double limit,
                   double *value);

/* Runs the program under each of `names` (ended by NULL). A comparator that cannot be used, or
 * under which the program fails, is left out with its reason. */
void bench_measure(const struct program *program, const struct metric *metric,
                   const struct conditions *conditions, const char *const *names,
                   struct comparison *out);
void bench_measure_free(struct comparison *comparison);

/* The best of the series whose name does (`ours`) or does not begin with "servet-"; NULL when there
 * is none. */
const struct series *bench_measure_best(const struct comparison *comparison, bool ours);
