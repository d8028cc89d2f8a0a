/* Are similar values found similar, different ones different, and single outliers no cluster of
 * their own? */
#include <check.h>
#include <errno.h>
#include <math.h>

#include "probes/pairs/layers.h"
#include "profile/base/random.h"
#include "tests/base/runner.h"

enum { MANY = 276 }; /* pairs of 24 PUs */

/* MANY values around 1, 1.35 and 1.9 with the given deviation between pairs; every `outlier`-th
 * twice too slow. */
static void fill(double *values, double deviation, size_t outlier, uint64_t seed)
{
    static const double centres[] = {1, 1.35, 1.9};
    struct random random = {seed};
    for (size_t i = 0; i < MANY; i++) {
        values[i] = centres[i % 3] * exp(deviation * profile_random_normal(&random));
        if (outlier && i % outlier == 0) {
            values[i] *= 1 + 2 * random_unit(&random);
        }
    }
}

START_TEST(three_layers_a_third_apart_are_told_apart)
{
    double values[MANY];
    uint32_t cluster_of[MANY];
    struct clusters clusters;
    int right = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        fill(values, 0.03, 0, seed);
        ck_assert_int_eq(probe_layers_cluster(values, MANY, 0.01, cluster_of, &clusters), 0);
        right += clusters.count == 3;
    }
    ck_assert_msg(right >= 49, "%d of 50", right);
    ck_assert_double_eq_tol(clusters.centre[1], 1.35, 0.03);
}
END_TEST

START_TEST(members_are_those_of_their_layer)
{
    double values[MANY];
    uint32_t cluster_of[MANY];
    struct clusters clusters;
    fill(values, 0.02, 0, 7);
    ck_assert_int_eq(probe_layers_cluster(values, MANY, 0.01, cluster_of, &clusters), 0);
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(cluster_of[i], i % 3);
    }
}
END_TEST

START_TEST(one_layer_stays_one)
{
    double values[MANY];
    uint32_t cluster_of[MANY];
    struct clusters clusters;
    struct random random = {3};
    for (size_t i = 0; i < MANY; i++) {
        values[i] = 5e-6 * exp(0.05 * profile_random_normal(&random));
    }
    ck_assert_int_eq(probe_layers_cluster(values, MANY, 0.01, cluster_of, &clusters), 0);
    ck_assert_uint_eq(clusters.count, 1);
    ck_assert_uint_eq(clusters.size[0], MANY);
}
END_TEST

START_TEST(a_few_outliers_are_no_layer)
{
    double values[MANY];
    uint32_t cluster_of[MANY];
    struct clusters clusters;
    for (size_t i = 0; i < MANY; i++) {
        values[i] = 1 + 0.01 * (double)(i % 5);
    }
    values[10] = 3;
    values[200] = 40;
    ck_assert_int_eq(probe_layers_cluster(values, MANY, 0.01, cluster_of, &clusters), 0);
    ck_assert_uint_eq(clusters.count, 1);
}
END_TEST

START_TEST(with_few_values_every_one_counts)
{
    const double values[] = {1.0, 1.01, 4.0};
    uint32_t cluster_of[3];
    struct clusters clusters;
    ck_assert_int_eq(probe_layers_cluster(values, 3, 0.01, cluster_of, &clusters), 0);
    ck_assert_uint_eq(clusters.count, 2);
    ck_assert_uint_eq(cluster_of[2], 1);
}
END_TEST

/* Pairs that differ by far more than their measurement does: 91 of these 100 stay one layer, 74
 * without the joining of neighbours. */
START_TEST(scattered_pairs_of_one_layer_are_seldom_torn_apart)
{
    enum { FEW = 28, SEEDS = 100, LEAST = 85 };
    double values[FEW];
    uint32_t cluster_of[FEW];
    struct clusters clusters;
    int right = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct random random = {seed};
        for (size_t i = 0; i < FEW; i++) {
            values[i] = exp(0.12 * profile_random_normal(&random));
        }
        ck_assert_int_eq(probe_layers_cluster(values, FEW, 0.01, cluster_of, &clusters), 0);
        right += clusters.count == 1;
    }
    ck_assert_msg(right >= LEAST, "%d of %d", right, SEEDS);
}
END_TEST

/* The threshold is the measured spread: what a quiet measurement tells apart, a noisy one does
 * not. */
START_TEST(noise_decides_what_is_similar)
{
    const double values[] = {1.0, 1.01, 1.2, 1.21};
    uint32_t cluster_of[4];
    struct clusters clusters;
    ck_assert_int_eq(probe_layers_cluster(values, 4, 0.01, cluster_of, &clusters), 0);
    ck_assert_uint_eq(clusters.count, 2);
    ck_assert_uint_eq(cluster_of[1], 0);
    ck_assert_uint_eq(cluster_of[2], 1);
    ck_assert_int_eq(probe_layers_cluster(values, 4, 0.08, cluster_of, &clusters), 0);
    ck_assert_uint_eq(clusters.count, 1);
}
END_TEST

START_TEST(the_spread_is_that_of_one_figure_and_bears_outliers)
{
    enum { RATIOS = 400 };
    double logs[RATIOS];
    struct random random = {11};
    for (size_t i = 0; i < RATIOS; i++) {
        logs[i] = 0.03 * (profile_random_normal(&random) - profile_random_normal(&random));
        logs[i] += i % 10 == 0 ? 1 : 0;
    }
    ck_assert_double_eq_tol(probe_layers_spread(logs, RATIOS), 0.03, 0.006);
    ck_assert_double_eq(probe_layers_spread(logs, 0), 0);
}
END_TEST

START_TEST(no_values_and_impossible_ones_are_refused)
{
    const double zero[] = {1, 0}, none[] = {NAN};
    uint32_t cluster_of[2];
    struct clusters clusters;
    ck_assert_int_eq(probe_layers_cluster(zero, 0, 0, cluster_of, &clusters), -EINVAL);
    ck_assert_int_eq(probe_layers_cluster(zero, 2, 0, cluster_of, &clusters), -EINVAL);
    ck_assert_int_eq(probe_layers_cluster(none, 1, 0, cluster_of, &clusters), -EINVAL);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cluster");
    tcase_add_test(tests, three_layers_a_third_apart_are_told_apart);
    tcase_add_test(tests, members_are_those_of_their_layer);
    tcase_add_test(tests, one_layer_stays_one);
    tcase_add_test(tests, a_few_outliers_are_no_layer);
    tcase_add_test(tests, with_few_values_every_one_counts);
    tcase_add_test(tests, scattered_pairs_of_one_layer_are_seldom_torn_apart);
    tcase_add_test(tests, noise_decides_what_is_similar);
    tcase_add_test(tests, the_spread_is_that_of_one_figure_and_bears_outliers);
    tcase_add_test(tests, no_values_and_impossible_ones_are_refused);
    return run_tests(tests);
}
