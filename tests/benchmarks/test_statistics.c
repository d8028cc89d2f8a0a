/* Are the intervals of servet-bench what they are said to be, and which files are NPB programs? */
#include "benchmarks/bench/programs.h"
#include "benchmarks/bench/statistics.h"
#include "tests/base/runner.h"

TEST(medians_and_intervals)
{
    const double odd[] = {5.0, 1.0, 3.0}, even[] = {4.0, 1.0, 3.0, 2.0},
                 same[] = {2.0, 2.0, 2.0, 2.0};
    struct interval interval;
    ck_assert_double_eq_tol(bench_statistics_median(even, 4, &interval), 2.5, 1e-15);
    ck_assert_double_eq_tol(bench_statistics_median(same, 4, &interval), 2.0, 1e-15);
    ck_assert_double_eq_tol(interval.low, 2.0, 1e-15);
    ck_assert_double_eq_tol(interval.high, 2.0, 1e-15);
    ck_assert_double_eq_tol(bench_statistics_median(odd, 3, &interval), 3.0, 1e-15);
    ck_assert_double_eq_tol(interval.low, 1.0, 1e-15);
    ck_assert_double_eq_tol(interval.high, 5.0, 1e-15);
}

/* A slow spell that hits both programs in the same rounds is no difference: with independent
 * resamples the interval would reach from 0.2 to 20. */
TEST(ratios_are_paired_by_round)
{
    double a[20], b[20];
    for (int i = 0; i < 20; i++) {
        b[i] = i % 2 ? 10.0 : 1.0;
        a[i] = 2.0 * b[i];
    }
    struct interval interval;
    ck_assert_double_eq_tol(bench_statistics_ratio(a, 20, b, 20, &interval), 2.0, 1e-12);
    ck_assert_double_eq_tol(interval.low, 2.0, 1e-12);
    ck_assert_double_eq_tol(interval.high, 2.0, 1e-12);
}

/* Of 200 comparisons of equal distributions about 5 % may exclude 1; with an interval that is too
 * narrow many do. */
TEST(the_interval_covers_what_it_says)
{
    uint64_t state = 7;
    int excluded = 0;
    for (int trial = 0; trial < 200; trial++) {
        double a[15], b[15];
        for (int i = 0; i < 15; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            a[i] = 1.0 + 0.1 * (double)(state >> 40) / (double)(1 << 24);
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            b[i] = 1.0 + 0.1 * (double)(state >> 40) / (double)(1 << 24);
        }
        struct interval interval;
        bench_statistics_ratio(a, 15, b, 15, &interval);
        excluded += interval.low > 1.0 || interval.high < 1.0;
    }
    ck_assert_int_le(excluded, 20);
}

TEST(npb_names)
{
    static const char *const good[] = {"bt.A.x", "cg.B.4", "sp-mz.W.x", "lu.C.16"};
    static const char *const bad[] = {"bt.A",    "bt.Z.x",   "cg.B.0", "cg.b.x",
                                      "xcg.B.x", "cg.B.x.o", "bt.A.4x"};
    static const size_t numbers[] = {0, 4, 0, 16};
    size_t ranks;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert_msg(bench_npb_is_name(good[i], &ranks), "%s", good[i]);
        ck_assert_uint_eq(ranks, numbers[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(!bench_npb_is_name(bad[i], &ranks), "%s", bad[i]);
    }
}

TESTS(.seconds = 100)
