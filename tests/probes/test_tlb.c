/* Is the reach of one and of two TLB levels read off the extra time by pages, and none where there is none? Do the
 * lines that ask for it leave the caches alone? */
#include <check.h>
#include <math.h>

#include "probe_tlb.h"

enum { POINTS = 45 };

static double pages[POINTS], extra[POINTS], reference[POINTS];

static void draw(double first, double first_ns, double second, double second_ns)
{
    for (size_t i = 0; i < POINTS; i++) {
        pages[i] = floor(8 * exp2((double)i / 4));
        reference[i] = pages[i] <= 512 ? 1.2e-9 : 4e-9;
        extra[i] = (first > 0 && pages[i] > first ? first_ns * 1e-9 : 0) +
                   (second > 0 && pages[i] > second ? second_ns * 1e-9 : 0);
    }
}

START_TEST(two_levels_are_found)
{
    double reach[TLB_LEVELS_MAX], seconds[TLB_LEVELS_MAX];
    draw(64, 2.9, 1536, 9);
    ck_assert_uint_eq(probe_tlb_infer(pages, extra, reference, POINTS, reach, seconds), 2);
    ck_assert_double_eq_tol(log2(reach[0] / 64), 0, 0.3);
    ck_assert_double_eq_tol(log2(reach[1] / 1536), 0, 0.3);
    ck_assert_double_eq_tol(seconds[0], 2.9e-9, 0.6e-9);
}
END_TEST

START_TEST(one_level_is_found)
{
    double reach[TLB_LEVELS_MAX], seconds[TLB_LEVELS_MAX];
    draw(256, 7, 0, 0);
    ck_assert_uint_ge(probe_tlb_infer(pages, extra, reference, POINTS, reach, seconds), 1);
    ck_assert_double_eq_tol(log2(reach[0] / 256), 0, 0.3);
}
END_TEST

START_TEST(no_level_is_made_up)
{
    double reach[TLB_LEVELS_MAX], seconds[TLB_LEVELS_MAX];
    draw(0, 0, 0, 0);
    ck_assert_uint_eq(probe_tlb_infer(pages, extra, reference, POINTS, reach, seconds), 0);
}
END_TEST

/* A cache of 64-byte lines whose ways are `pages` pages large: on pages side by side no set may be visited twice before
 * all were visited once. */
START_TEST(spread_lines_fill_caches_evenly)
{
    enum { PAGE = 4096, LINE = 64, PAGES_MAX = 16, SETS_MAX = PAGES_MAX * PAGE / LINE };
    for (size_t pages_of_way = 1; pages_of_way <= PAGES_MAX; pages_of_way *= 2) {
        bool visited[SETS_MAX] = {false};
        const size_t sets = pages_of_way * PAGE / LINE;
        for (size_t i = 0; i < sets; i++) {
            size_t at = i * PAGE + machine_spread_offset(i, PAGE), set = at / LINE % sets;
            ck_assert_msg(!visited[set], "%zu pages: set %zu again at page %zu", pages_of_way, set, i);
            visited[set] = true;
        }
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tlb");
    tcase_add_test(tests, two_levels_are_found);
    tcase_add_test(tests, one_level_is_found);
    tcase_add_test(tests, no_level_is_made_up);
    tcase_add_test(tests, spread_lines_fill_caches_evenly);
    Suite *suite = suite_create("tlb");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
