/* Are PU lists read, written and combined as the kernel's cpulists are? */
#include <errno.h>
#include <stdlib.h>

#include "profile/model.h"
#include "profile/scope.h"
#include "tests/base/runner.h"

static struct profile_set parsed(const char *text)
{
    struct profile_set set;
    ck_assert_msg(profile_set_parse(text, &set) == 0, "'%s' was refused", text);
    return set;
}

static void assert_text(struct profile_set *set, const char *expected)
{
    FREED char *text = profile_set_text(set);
    ck_assert_str_eq(text, expected);
    profile_set_free(set);
}

TEST(lists_round_trip_in_shortest_form)
{
    const char *cases[][2] = {{"0", "0"},           {"0-3,8", "0-3,8"}, {"8,3,2,1,0", "0-3,8"},
                              {"0-3,2-5\n", "0-5"}, {"7,7,7", "7"},     {"1,3,5", "1,3,5"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct profile_set set = parsed(cases[i][0]);
        assert_text(&set, cases[i][1]);
    }
}

TEST(malformed_lists_are_refused)
{
    const char *cases[] = {"",   "a",  "1-", "-1",  "3-1", "1,,2",
                           "1,", " 1", "1 ", "0x1", "+1",  "1-2-3"};
    struct profile_set set;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(profile_set_parse(cases[i], &set) == -EINVAL, "'%s' was taken", cases[i]);
    }
    ck_assert_int_eq(profile_set_parse("0-4000000000", &set), -ERANGE);
}

TEST(sets_overlap_where_one_member_is_in_both)
{
    struct profile_set a = parsed("0-3,8"), b = parsed("2-9"), c = parsed("4-7,9"), none = {0};
    ck_assert(profile_set_overlaps(&a, &b) && profile_set_overlaps(&b, &a));
    ck_assert(!profile_set_overlaps(&a, &c) && !profile_set_overlaps(&c, &a));
    ck_assert(!profile_set_overlaps(&a, &none) && !profile_set_overlaps(&none, &a));
    profile_set_free(&a);
    profile_set_free(&b);
    profile_set_free(&c);
}

TEST(sets_combine)
{
    struct profile_set a = parsed("0-3,8"), b = parsed("2-9"), out;
    ck_assert(profile_set_has(&a, 8) && !profile_set_has(&a, 4));
    ck_assert(profile_set_has(&b, 2) && profile_set_has(&b, 9)); /* one without a gap */
    ck_assert(!profile_set_has(&b, 1) && !profile_set_has(&b, 10));
    ck_assert_uint_eq(profile_set_position(&b, 5), 3);
    ck_assert_int_eq(profile_set_intersect(&a, &b, &out), 0);
    ck_assert(profile_set_subset(&out, &a) && profile_set_subset(&out, &b) &&
              !profile_set_subset(&a, &b));
    assert_text(&out, "2-3,8");
    ck_assert_int_eq(profile_set_union(&a, &b, &out), 0);
    assert_text(&out, "0-9");
    profile_set_free(&a);
    profile_set_free(&b);
}
