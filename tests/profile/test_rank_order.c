/* Do ranks that talk to each other get neighbouring numbers (or places), and is a good order left
 * as it is? */
#include <stdlib.h>

#include "profile/servet.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

static servet_profile *nehalem(void)
{
    servet_profile *profile;
    ck_assert_int_eq(servet_profile_open(FIXTURES "/nehalem-2-nodes.json", &profile, NULL), 0);
    return kept(profile);
}

static void ask(const uint32_t *pus, uint32_t ranks, const double *traffic, uint32_t *order)
{
    struct servet_error error = {""};
    ck_assert_msg(servet_rank_order(nehalem(), pus, ranks, traffic, order, &error) == 0, "%s",
                  error.text);
}

TEST(neighbours_in_rank_order_get_on_one_node)
{
    /* ranks dealt out over the two nodes in turn */
    uint32_t order[6], seen = 0;
    ask((uint32_t[]){0, 8, 1, 9, 2, 10}, 6, NULL, order);
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_msg((order[i] < 3) == (order[i % 2] < 3), "rank %u: got %u", i, order[i]);
        seen |= 1u << order[i];
    }
    ck_assert_uint_eq(seen, 0x3f);
}

TEST(a_good_order_stays)
{
    uint32_t order[6];
    ask((uint32_t[]){0, 1, 2, 8, 9, 10}, 6, NULL, order);
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_uint_eq(order[i], i);
    }
    ask((uint32_t[]){5}, 1, NULL, order);
    ck_assert_uint_eq(order[0], 0);
    ask((uint32_t[]){3, 3, 3}, 3, NULL, order); /* several on one PU */
    ck_assert_uint_eq(order[2], 2);
}

TEST(a_matrix_says_who_talks)
{
    /* new ranks 0 and 3 talk, 1 and 2 talk; old ranks 0, 1 are on one node and 2, 3 on the other */
    const double traffic[16] = {0, 0, 0, 9, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    uint32_t order[4];
    ask((uint32_t[]){0, 1, 8, 9}, 4, traffic, order);
    ck_assert_uint_eq(order[0] + order[1], 3);
    ck_assert_uint_eq(order[2] + order[3], 3);
    ck_assert_uint_ne(order[0], order[2]);
}

TEST(bad_input_is_refused_by_name)
{
    servet_profile *profile = nehalem();
    struct servet_error error;
    uint32_t order[2] = {77, 77};
    const double traffic[4] = {0, -1, 0, 0};
    ck_assert_int_lt(servet_rank_order(profile, (uint32_t[]){0, 99}, 2, NULL, order, &error), 0);
    ck_assert_str_eq(error.text, "rank 1: expected a PU of the profile, got 99");
    ck_assert_int_lt(servet_rank_order(profile, (uint32_t[]){0, 1}, 2, traffic, order, &error), 0);
    ck_assert_int_lt(servet_rank_order(profile, NULL, 0, NULL, order, &error), 0);
    ck_assert_uint_eq(order[0], 77);
}
