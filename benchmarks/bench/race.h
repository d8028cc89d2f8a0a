/* Which of many candidates is the fastest, in few runs: successive halving (Karnin, Koren and
 * Somekh, ICML 2013) on medians of interleaved rounds. A pure function of what runs them.
 *
 * After the first round the better half stays, after the third a quarter, until the sixth. The time
 * that is left goes to all whose intervals still overlap the best's, those that went among them.
 * The first candidate is what the others are compared with: it stays until the sixth round. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "benchmarks/bench/statistics.h"

/* The most of one candidate: its interval is then less than half as wide as that of six, and a
 * smaller difference is not worth more time. */
#define RACE_ROUNDS 32

enum race_state {
    RACE_RUNS,   /* it is in the race; of a run: it is done, its value and seconds are set */
    RACE_BEHIND, /* others were faster */
    RACE_SLOW,   /* a run was stopped at its limit, far longer than the best so far */
    RACE_FAILED, /* a run failed */
    RACE_OVER,   /* of a run that counts for nothing: there is no time left, or the user ends it */
};

struct racer {
    enum race_state state;
    double values[RACE_ROUNDS]; /* less is better */
    size_t rounds;              /* values that there are */
    double median;              /* of them */
    struct interval interval;
    double longest_s; /* of its runs */
};

struct race_run {
    double value, seconds;
};

struct race {
    /* Runs a candidate once; it is stopped after `limit_s`, 0: without a limit of the race's. */
    enum race_state (*run)(void *context, size_t candidate, double limit_s, struct race_run *out);
    /* Is the one to be preferred where nothing distinguishes it from the other? */
    bool (*simpler)(void *context, size_t candidate, size_t other);
    void *context;
    struct racer *racers; /* zeros at first */
    size_t count;
    size_t runs; /* that count */
};

/* Runs the race, until a run answers RACE_OVER, the best is distinguished from all others, or those
 * that are left have RACE_ROUNDS. */
void bench_race(struct race *race);

/* Order of two racers, as qsort() takes it: the best first, those without a value last. */
int bench_race_order(const struct racer *a, const struct racer *b);

/* The first in that order of those that are in or behind; SIZE_MAX: none has a value. */
size_t bench_race_best(const struct race *race);

/* Nothing tells it from the best: it is that, or both have intervals, and these overlap. */
bool bench_race_equal(const struct race *race, size_t candidate);

/* The first, unless another is measurably better, by BENCH_LEAST_ROUNDS of both and intervals that
 * lie apart: then the simplest of those that are, and that nothing tells from the best. SIZE_MAX:
 * none has a value. */
size_t bench_race_choice(const struct race *race);
