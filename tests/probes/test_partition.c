/* Do pairs become groups exactly where the bond is transitive? */
#include "probes/pairs/partition.h"
#include "profile/codec/codec.h"
#include "profile/scope.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"

TEST(pairs_are_numbered_in_order)
{
    size_t expected = 0;
    for (size_t i = 0; i < 7; i++) {
        for (size_t j = i + 1; j < 7; j++, expected++) {
            ck_assert_uint_eq(probe_pair_index(7, i, j), expected);
            ck_assert_uint_eq(probe_pair_index(7, j, i), expected);
        }
    }
    ck_assert_uint_eq(probe_pair_count(7), expected);
    ck_assert_uint_eq(probe_pair_count(1), 0);
}

/* "0,4 2,9 [1 2]": the groups and pairs of the classes up to `last`. */
static void expect(const char *pus, size_t count, const size_t (*bonds)[3], uint8_t last,
                   const char *expected)
{
    const struct profile_set set = set_of(pus);
    uint32_t class_of[32];
    FREED_BY(profile_relation_free) struct profile_relation relation;
    memset(class_of, 0xff, sizeof class_of); /* PAIR_NONE */
    for (size_t i = 0; i < count; i++) {
        class_of[probe_pair_index(set.count, bonds[i][0], bonds[i][1])] = (uint32_t)bonds[i][2];
    }
    ck_assert_int_eq(probe_relation_from_classes(&set, class_of, last, &relation), 0);
    ck_assert_str_eq(lists_of(&relation), expected);
}

TEST(pairs_become_groups_where_the_bond_is_transitive)
{
    /* positions of two PUs and the class of the pair */
    static const size_t two[][3] = {{0, 2, 0}, {1, 4, 1}},
                        four[][3] = {{1, 2, 0}, {1, 3, 0}, {1, 4, 0},
                                     {2, 3, 0}, {2, 4, 0}, {3, 4, 0}},
                        chain[][3] = {{1, 2, 0}, {0, 1, 0}};
    expect("0,2,4,6,9", 2, two, 0, "0,4");
    expect("0,2,4,6,9", 2, two, 1, "0,4 2,9");
    expect("0-5", 6, four, 0, "1-4");
    expect("0-3", 2, chain, 0, "[0 1] [1 2]");
    expect("5", 0, NULL, 0, "");
}

/* 0-5-2 and 1-4-3: components that are found in another order than that of their pairs. */
TEST(pairs_are_in_order)
{
    static const size_t bonds[][3] = {{0, 5, 0}, {5, 2, 0}, {1, 4, 0}, {4, 3, 0}};
    expect("0-5", 4, bonds, 0, "[0 5] [1 4] [2 5] [3 4]");
}
