/* Do overhead levels and groups come out of pair bandwidths as in Section III-C of the 2010
 * paper? */
#include <stdlib.h>

#include "probes/pairs/memory.h"
#include "tests/base/runner.h"

static void assert_text(const struct profile_set *set, const char *expected)
{
    char *text = profile_set_text(set);
    ck_assert_str_eq(text, expected);
    free(text);
}

static void set_pair(double *pairs, size_t n, size_t i, size_t j, double rate)
{
    pairs[probe_pair_index(n, i, j)] = rate;
}

TEST(the_papers_example_gives_two_groups)
{
    /* Pm = (0,1), (0,2), (3,4), (3,5) and their completions: {0,1,2} and {3,4,5} */
    double pairs[15];
    struct profile_set pus;
    struct probe_memory found = {0};
    ck_assert_int_eq(profile_set_parse("0-5", &pus), 0);
    for (size_t i = 0; i < 6; i++) {
        for (size_t j = i + 1; j < 6; j++) {
            set_pair(pairs, 6, i, j, i / 3 == j / 3 ? 2.0e9 + 1e7 * (double)i : 3.5e9);
        }
    }
    ck_assert_int_eq(probe_memory_levels(&pus, 3.5e9, pairs, 0.01, &found.memory), 0);
    ck_assert_uint_eq(found.memory.level_count, 1);
    ck_assert_uint_eq(found.memory.levels[0].collisions.group_count, 2);
    assert_text(&found.memory.levels[0].collisions.groups[0], "0-2");
    assert_text(&found.memory.levels[0].collisions.groups[1], "3-5");
    ck_assert_double_eq_tol(found.memory.levels[0].bytes_per_s, 2.0e9, 1e8);
    probe_memory_free(&found);
    profile_set_free(&pus);
}

TEST(levels_are_worst_first_and_nest)
{
    /* Finis Terrae: bus mates (0-3, 4-7) collide worst, cell mates (0-7) less, the other cell
     * (8-15) not at all. */
    enum { N = 16 };
    double pairs[N * (N - 1) / 2];
    struct profile_set pus;
    struct probe_memory found = {0};
    ck_assert_int_eq(profile_set_parse("0-15", &pus), 0);
    for (size_t i = 0; i < N; i++) {
        for (size_t j = i + 1; j < N; j++) {
            set_pair(pairs, N, i, j, i / 4 == j / 4 ? 1.1e9 : i / 8 == j / 8 ? 1.9e9 : 2.5e9);
        }
    }
    ck_assert_int_eq(probe_memory_levels(&pus, 2.55e9, pairs, 0.01, &found.memory), 0);
    ck_assert_uint_eq(found.memory.level_count, 2);
    ck_assert_uint_eq(found.memory.levels[0].collisions.group_count, 4);
    assert_text(&found.memory.levels[0].collisions.groups[1], "4-7");
    ck_assert_uint_eq(found.memory.levels[1].collisions.group_count, 2);
    assert_text(&found.memory.levels[1].collisions.groups[0], "0-7");
    probe_memory_free(&found);
    profile_set_free(&pus);
}

TEST(small_differences_are_no_collision)
{
    const double pairs[] = {9.3e9, 9.6e9, 9.1e9};
    struct profile_set pus;
    struct probe_memory found = {0};
    ck_assert_int_eq(profile_set_parse("0-2", &pus), 0);
    ck_assert_int_eq(probe_memory_levels(&pus, 1e10, pairs, 0.01, &found.memory), 0);
    ck_assert_uint_eq(found.memory.level_count, 0);
    probe_memory_free(&found);
    profile_set_free(&pus);
}
