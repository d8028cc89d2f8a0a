/* Does measuring stop early where the figures agree, go on where they do not, and end in any
 * case? */
#include "probes/probe.h"
#include "profile/base/random.h"
#include "tests/base/runner.h"

/* How often a figure of that noise is measured. */
static size_t rounds(struct random *random, double noise, double *values)
{
    size_t count = 0;
    while (!probe_repeat_median_settled(values, count)) {
        values[count++] = 1 + noise * random_normal(random);
    }
    return count;
}

TEST(calm_figures_are_measured_three_times_and_noisy_ones_more_often)
{
    enum { TRIALS = 200 };
    struct random random = {5};
    double values[REPEAT_MEDIAN_MOST], sum[3] = {0};
    static const double noise[] = {0.005, 0.04, 0.2};
    for (size_t i = 0; i < 3 * TRIALS; i++) {
        size_t count = rounds(&random, noise[i % 3], values);
        ck_assert_uint_ge(count, REPEAT_MEDIAN_LEAST);
        ck_assert_uint_le(count, REPEAT_MEDIAN_MOST);
        sum[i % 3] += (double)count / TRIALS;
    }
    ck_assert_double_lt(sum[0], 3.01);
    ck_assert_double_gt(sum[1], 3.2);
    ck_assert_double_lt(sum[1], 6);
    ck_assert_double_gt(sum[2], 8);
}

TEST(minima_are_settled_when_the_two_smallest_agree)
{
    const double apart[] = {1, 1.2, 1.3, 1.4, 1.5}, agree[] = {1.5, 1.02, 1};
    ck_assert(!probe_repeat_minimum_settled(apart, 1));
    ck_assert(!probe_repeat_minimum_settled(apart, 4));
    ck_assert(probe_repeat_minimum_settled(apart, 5));
    ck_assert(!probe_repeat_minimum_settled(agree, 2));
    ck_assert(probe_repeat_minimum_settled(agree, 3));
}
