/* Do pairs become groups exactly where the bond is transitive? */
#include <stdlib.h>

#include "probes/pairs/pairs.h"
#include "tests/base/runner.h"

static struct profile_set pus(const char *text)
{
    struct profile_set set;
    ck_assert_int_eq(profile_set_parse(text, &set), 0);
    return set;
}

static void assert_group(const struct profile_relation *relation, size_t index,
                         const char *expected)
{
    char *text = profile_set_text(&relation->groups[index]);
    ck_assert_str_eq(text, expected);
    free(text);
}

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

TEST(complete_components_are_groups)
{
    struct profile_set set = pus("0,2,4,6,9");
    struct pair_classes classes;
    struct profile_relation relation;
    ck_assert_int_eq(probe_pair_classes_init(&classes, &set), 0);
    classes.of[probe_pair_index(5, 0, 2)] = 0; /* 0-4 */
    classes.of[probe_pair_index(5, 1, 4)] = 1; /* 2-9 */
    ck_assert_int_eq(probe_relation_from_classes(&classes, 0, 0, &relation), 0);
    ck_assert_uint_eq(relation.group_count, 1);
    assert_group(&relation, 0, "0,4");
    probe_relation_free(&relation);
    ck_assert_int_eq(probe_relation_from_classes(&classes, 0, 1, &relation), 0);
    ck_assert_uint_eq(relation.group_count, 2);
    assert_group(&relation, 1, "2,9");
    probe_relation_free(&relation);
    probe_pair_classes_free(&classes);
    profile_set_free(&set);
}

TEST(a_group_of_four_is_one_group)
{
    struct profile_set set = pus("0-5");
    struct pair_classes classes;
    struct profile_relation relation;
    ck_assert_int_eq(probe_pair_classes_init(&classes, &set), 0);
    for (size_t i = 1; i < 5; i++) {
        for (size_t j = i + 1; j < 5; j++) {
            classes.of[probe_pair_index(6, i, j)] = 0;
        }
    }
    ck_assert_int_eq(probe_relation_from_classes(&classes, 0, 0, &relation), 0);
    ck_assert_uint_eq(relation.group_count, 1);
    ck_assert_uint_eq(relation.pair_count, 0);
    assert_group(&relation, 0, "1-4");
    probe_relation_free(&relation);
    probe_pair_classes_free(&classes);
    profile_set_free(&set);
}

/* 0-5-2 and 1-4-3: components that are found in another order than that of their pairs. */
TEST(chains_stay_pairs_and_pairs_are_in_order)
{
    static const size_t bonds[][2] = {{0, 5}, {5, 2}, {1, 4}, {4, 3}};
    struct profile_set set = pus("0-5");
    struct pair_classes classes;
    struct profile_relation relation;
    ck_assert_int_eq(probe_pair_classes_init(&classes, &set), 0);
    for (size_t i = 0; i < 4; i++) {
        classes.of[probe_pair_index(6, bonds[i][0], bonds[i][1])] = 0;
    }
    ck_assert_int_eq(probe_relation_from_classes(&classes, 0, 0, &relation), 0);
    ck_assert_uint_eq(relation.group_count, 0);
    ck_assert_uint_eq(relation.pair_count, 4);
    for (size_t i = 0; i + 1 < 4; i++) {
        const struct profile_pair *x = &relation.pairs[i], *y = x + 1;
        ck_assert(x->a < y->a || (x->a == y->a && x->b < y->b));
    }
    probe_relation_free(&relation);
    probe_pair_classes_free(&classes);
    profile_set_free(&set);
}

TEST(what_is_not_transitive_stays_pairs)
{
    struct profile_set set = pus("0-3");
    struct pair_classes classes;
    struct profile_relation relation;
    ck_assert_int_eq(probe_pair_classes_init(&classes, &set), 0);
    classes.of[probe_pair_index(4, 1, 2)] = 0;
    classes.of[probe_pair_index(4, 0, 1)] = 0;
    ck_assert_int_eq(probe_relation_from_classes(&classes, 0, 0, &relation), 0);
    ck_assert_uint_eq(relation.group_count, 0);
    ck_assert_uint_eq(relation.pair_count, 2);
    ck_assert_uint_eq(relation.pairs[0].a, 0);
    ck_assert_uint_eq(relation.pairs[1].b, 2);
    probe_relation_free(&relation);
    probe_pair_classes_free(&classes);
    profile_set_free(&set);
}

TEST(one_pu_has_no_relation)
{
    struct profile_set set = pus("5");
    struct pair_classes classes;
    struct profile_relation relation;
    ck_assert_int_eq(probe_pair_classes_init(&classes, &set), 0);
    ck_assert_int_eq(probe_relation_from_classes(&classes, 0, 0, &relation), 0);
    ck_assert_uint_eq(relation.group_count + relation.pair_count, 0);
    probe_relation_free(&relation);
    probe_pair_classes_free(&classes);
    profile_set_free(&set);
}
