/* Runs one command and says how long it took and what it printed. */
#ifndef SERVET_BENCH_RUNNER_H
#define SERVET_BENCH_RUNNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "benchmarks/servet_bench/words.h"

struct run {
    int status;      /* exit status; 128 + signal; 127 when it cannot be started */
    bool timed_out;  /* it, and its process group, were killed */
    double seconds;  /* wall time from before fork to after wait */
    char *out;       /* what it wrote on stdout, as much as RUNNER_OUTPUT_LIMIT */
    char *complaint; /* the last line of stderr that is not empty, or NULL */
};

#define RUNNER_OUTPUT_LIMIT (1u << 20)

/* Runs `copies` of the command at the same time and fills runs[copies]; after `limit_seconds` they
 * are killed. The inherited environment loses whatever places programs (see comparator.h). */
void runner_run(const struct words *argv, const struct words *environment, size_t copies,
                double limit_seconds, struct run *runs);
void runner_free(struct run *run);

/* Seconds since some moment. */
double runner_now(void);

#endif
