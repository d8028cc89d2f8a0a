/* Does measuring stop early where the figures agree, go on where they do not, and end in any
 * case? */
#include "probes/pairs/stopping.h"
#include "profile/base/random.h"
#include "tests/base/runner.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

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

TEST(one_outlier_does_not_go_on_to_the_end_of_a_long_series)
{
    const double early[] = {1, 1.01, 3}, late[] = {1, 1.01, 3, 0.99, 1, 1.02, 1, 1.01, 1};
    ck_assert(!probe_repeat_median_settled(early, 3));
    ck_assert_double_gt(probe_repeat_half_width(early, 3), 0.9);
    ck_assert_double_lt(probe_repeat_half_width(late, 9), 0.02);
}

/* For six or more values of any distribution. */
TEST(the_interval_holds_the_median_as_often_as_it_says)
{
    enum { TRIALS = 4000 };
    struct random random = {7};
    for (size_t count = 6; count <= 20; count += 7) {
        size_t inside = 0;
        for (size_t i = 0; i < TRIALS; i++) {
            double values[32];
            for (size_t k = 0; k < count; k++) {
                values[k] = 1 + 0.01 * random_normal(&random);
            }
            double half = probe_repeat_half_width(values, count), middle = median(values, count);
            inside +=
                fabs(middle - 1) <= 2 * half * middle; /* the interval need not be symmetric */
        }
        ck_assert_uint_ge(inside, TRIALS * 94 / 100);
    }
    ck_assert(isinf(probe_repeat_half_width(NULL, 0)));
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
