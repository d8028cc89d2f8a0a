/* Does a median come with the values that hold it, however many were measured? */
#include <check.h>

#include "profile/base/statistics.h"

START_TEST(a_median_comes_with_the_values_that_hold_it)
{
    /* Binomial(n, 1/2): how many of the smallest may be left out for 95 %. */
    static const size_t left_out[][2] = {{1, 0},  {5, 0},  {6, 0},  {8, 0},  {9, 1},
                                         {11, 1}, {12, 2}, {20, 5}, {41, 13}};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        double values[41];
        size_t count = left_out[i][0], skip = left_out[i][1];
        for (size_t k = 0; k < count; k++) {
            values[k] =
                (double)((k * 7 + 3) % count); /* 0 … count - 1 where 7 does not divide it */
        }
        struct profile_median found = profile_median(values, count);
        ck_assert_double_eq_tol(found.median, (double)(count - 1) / 2, 1e-12);
        ck_assert_double_eq_tol(found.low, (double)skip, 1e-12);
        ck_assert_double_eq_tol(found.high, (double)(count - 1 - skip), 1e-12);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("median");
    tcase_add_test(tests, a_median_comes_with_the_values_that_hold_it);
    Suite *suite = suite_create("median");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
