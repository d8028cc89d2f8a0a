/* Does servet-bench give the reason that holds where servet is slower? */
#include "benchmarks/bench/report.h"
#include "tests/base/runner.h"

static char app[] = "app";
static const struct program program = {.label = app, .threads = 1};
static const struct metric wall_time = {0}, figure = {.expression = "x"};

static const char *reason(const struct metric *metric, double ours, double best)
{
    struct comparison comparison = {
        .program = &program, .metric = metric, .conditions.jobs = 4096, .rounds = 6};
    const struct series with = {.comparator = bench_comparator_find("servet-mem"), .median = ours},
                        without = {.comparator = bench_comparator_find("omp-spread"),
                                   .median = best};
    const struct verdict verdict = {.ours = &with, .best = &without};
    return bench_reason(&comparison, &verdict);
}

/* 5 ms more of wall time are servet-pin itself; 5 ms in a figure of the program's, or 50 ms, are
 * not. */
TEST(the_start_of_servet_pin_is_a_reason)
{
    ck_assert_str_eq(reason(&wall_time, 0.010, 0.005),
                     "a run is so short that the start of servet-pin counts");
    ck_assert_ptr_nonnull(strstr(reason(&figure, 0.010, 0.005), "more threads than PUs"));
    ck_assert_ptr_nonnull(strstr(reason(&wall_time, 0.060, 0.010), "more threads than PUs"));
}

TESTS(0)
