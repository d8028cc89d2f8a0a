/* Do the miss shapes agree with what is known of caches? */
#include <check.h>

#include "cache_model.h"

enum { PAGE = 4096, KIB = 1024 };

static double miss(uint64_t bytes, uint32_t ways, enum cache_policy policy, bool scattered, uint64_t set)
{
    const struct cache_shape shape = {bytes, ways, policy, scattered};
    return cache_miss_share(&shape, set, PAGE);
}

START_TEST(a_set_that_fits_does_not_miss)
{
    for (int policy = 0; policy < CACHE_POLICIES; policy++) {
        ck_assert_double_eq_tol(miss(32 * KIB, 8, (enum cache_policy)policy, false, 32 * KIB), 0, 1e-9);
    }
}
END_TEST

START_TEST(lru_loses_everything_one_way_too_many)
{
    ck_assert_double_eq_tol(miss(32 * KIB, 8, CACHE_LRU, false, 36 * KIB), 1, 1e-9);
    /* half a way too many: half of the sets hold nine lines */
    ck_assert_double_eq_tol(miss(32 * KIB, 8, CACHE_LRU, false, 34 * KIB), 9.0 / 17, 1e-9);
}
END_TEST

START_TEST(gentler_policies_lose_less)
{
    double lru = miss(32 * KIB, 8, CACHE_LRU, false, 40 * KIB), leaky = miss(32 * KIB, 8, CACHE_LEAKY, false, 40 * KIB);
    double random = miss(32 * KIB, 8, CACHE_RANDOM, false, 40 * KIB);
    double adaptive = miss(4096 * KIB, 16, CACHE_ADAPTIVE, false, 5120 * KIB);
    ck_assert(lru > leaky && leaky > random && random > 0.1 && adaptive < random);
    ck_assert_double_eq_tol(adaptive, 1 - 15.0 / 20, 1e-9);
}
END_TEST

START_TEST(ages_keep_some_of_a_set_that_is_a_little_too_large)
{
    double little = miss(1024 * KIB, 16, CACHE_AGED, false, 1088 * KIB);
    double more = miss(1024 * KIB, 16, CACHE_AGED, false, 1280 * KIB);
    ck_assert_double_eq_tol(miss(1024 * KIB, 16, CACHE_LRU, false, 1088 * KIB), 1, 1e-9);
    ck_assert_msg(little > 0.1 && little < 0.4 && more > little && more < 0.8, "%g and %g", little, more);
    ck_assert_double_eq_tol(miss(1024 * KIB, 16, CACHE_AGED, false, 8192 * KIB), 1, 1e-9);
}
END_TEST

START_TEST(random_pages_miss_before_the_cache_is_full_and_hit_beyond)
{
    double before = miss(1024 * KIB, 16, CACHE_LRU, true, 768 * KIB);
    double beyond = miss(1024 * KIB, 16, CACHE_LRU, true, 1280 * KIB);
    ck_assert(before > 0.02 && before < 0.4);
    ck_assert(beyond > 0.6 && beyond < 0.98);
}
END_TEST

START_TEST(shares_rise_with_the_working_set)
{
    for (int policy = 0; policy < CACHE_POLICIES; policy++) {
        double last = 0;
        for (uint64_t set = 256 * KIB; set <= 4096 * KIB; set += 64 * KIB) {
            double now = miss(1024 * KIB, 16, (enum cache_policy)policy, true, set);
            ck_assert_double_ge(now, last - 1e-6);
            last = now;
        }
    }
}
END_TEST

START_TEST(the_papers_binomial_model_is_reproduced)
{
    /* X ~ B(3, 1/2), K = 1: P(X > 1) = 1/2 */
    ck_assert_double_eq_tol(cache_binomial_tail(3, 1, PAGE, 2 * PAGE), 0.5, 1e-12);
    /* one page set: every page meets every other */
    ck_assert_double_eq_tol(cache_binomial_tail(9, 8, PAGE, 8 * PAGE), 1, 1e-12);
    ck_assert_double_eq_tol(cache_binomial_tail(8, 8, PAGE, 8 * PAGE), 0, 1e-12);
}
END_TEST

START_TEST(the_catalogue_has_the_sizes_that_are_built)
{
    static const uint64_t built[] = {16,       24,      32,       48,        64,        96,        128,
                                     192,      256,     512,      1 << 10,   1280,      2 << 10,   3 << 10,
                                     6 << 10,  9 << 10, 12 << 10, 16 << 10,  24 << 10,  30 << 10,  32 << 10,
                                     33 << 10, 36608,   96 << 10, 128 << 10, 256 << 10, 384 << 10, 14080};
    size_t count;
    const struct cache_size *sizes = cache_sizes(&count);
    for (size_t i = 0; i < sizeof built / sizeof *built; i++) {
        bool found = false;
        for (size_t j = 0; j < count; j++) {
            found |= sizes[j].bytes == built[i] * KIB;
        }
        ck_assert_msg(found, "%llu KiB", (unsigned long long)built[i]);
    }
    for (size_t j = 1; j < count; j++) {
        ck_assert_uint_gt(sizes[j].bytes, sizes[j - 1].bytes);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cache model");
    tcase_add_test(tests, a_set_that_fits_does_not_miss);
    tcase_add_test(tests, lru_loses_everything_one_way_too_many);
    tcase_add_test(tests, gentler_policies_lose_less);
    tcase_add_test(tests, ages_keep_some_of_a_set_that_is_a_little_too_large);
    tcase_add_test(tests, random_pages_miss_before_the_cache_is_full_and_hit_beyond);
    tcase_add_test(tests, shares_rise_with_the_working_set);
    tcase_add_test(tests, the_papers_binomial_model_is_reproduced);
    tcase_add_test(tests, the_catalogue_has_the_sizes_that_are_built);
    Suite *suite = suite_create("cache model");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
