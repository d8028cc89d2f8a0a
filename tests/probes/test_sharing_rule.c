/* Is a shared cache told from a private one at the noise that was measured on a virtual machine? */
#include <string.h>

#include "probes/pairs/pairs.h"
#include "profile/base/random.h"
#include "tests/base/runner.h"

/* Ratios of ten trials each, measured on two virtual cores (private L1 and L2, shared L3; the
 * slower of both threads).
 */
static const double measured_l1[] = {.99, 1.0, 1.0, 1.01, 1.05, 1.12, 1.2, 1.6, 1.84, 2.52};
static const double measured_l2[] = {1.0, 1.02, 1.02, 1.06, 1.14, 1.19, 1.2, 1.21, 2.33, 2.46};
static const double measured_l3[] = {4.1, 4.5, 4.7, 5.1, 5.2, 5.2, 5.7, 5.8, 7.2, 8.3};

static int called_shared(const double *measured, int draws)
{
    struct random random = {11};
    int shared = 0;
    for (int i = 0; i < draws; i++) {
        double ratios[5];
        for (int j = 0; j < 5; j++) {
            ratios[j] = measured[random_below(&random, 10)];
        }
        shared += probe_sharing_decide(ratios, 5, PROBE_SHARING_RATIO) == SHARING_YES;
    }
    return shared;
}

TEST(private_caches_are_seldom_called_shared)
{
    ck_assert_int_le(called_shared(measured_l1, 1000), 10);
    ck_assert_int_le(called_shared(measured_l2, 1000), 20);
}

TEST(a_shared_cache_is_found)
{
    ck_assert_int_eq(called_shared(measured_l3, 1000), 1000);
}

TEST(between_the_papers_two_ratios_it_is_uncertain)
{
    double ratios[] = {1.7, 1.6, 1.8, 1.7, 1.6};
    ck_assert_int_eq(probe_sharing_decide(ratios, 5, PROBE_SHARING_RATIO), SHARING_UNCERTAIN);
    double one[] = {1.2};
    ck_assert_int_eq(probe_sharing_decide(one, 1, PROBE_SHARING_RATIO), SHARING_NO);
}

/* An L2 of four efficiency cores whose L3 takes 2.3 times as long: ratios of pairs in it and of
 * pairs that are not. */
TEST(where_the_next_level_is_near_the_threshold_is_lower)
{
    double together[] = {1.95, 1.9, 2.05, 1.85, 2.1}, apart[] = {1.02, 1.1, 1.0, 1.05, 1.3};
    double threshold = probe_sharing_threshold(2.3);
    ck_assert(threshold >= 1.5 && threshold < 1.6);
    ck_assert_int_eq(probe_sharing_decide(together, 5, threshold), SHARING_YES);
    ck_assert_int_eq(probe_sharing_decide(apart, 5, threshold), SHARING_NO);
    ck_assert_double_eq(probe_sharing_threshold(1.2), 1.5);
    ck_assert_double_eq(probe_sharing_threshold(5), PROBE_SHARING_RATIO);
}
