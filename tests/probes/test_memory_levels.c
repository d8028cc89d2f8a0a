/* Do overhead levels and groups come out of pair bandwidths as in Section III-C of the 2010
 * paper? */
#include <errno.h>
#include <stdlib.h>

#include "probes/pairs/memory.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

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

/* -- PUs that are far from all memory, where the time ends while they are asked -- */

static const double usual = 1e10, far = 4e9;

/* PU 0 gets little alone; there is no time for PU 1. */
static int copy_of_the_first(struct machine *machine, const struct machine_copy *what,
                             const uint32_t *pus, size_t count, double *rates)
{
    (void)machine, (void)what, (void)count;
    rates[0] = far;
    return pus[0] == 0 ? 0 : -ETIME;
}

TEST(a_pu_is_scaled_with_its_pairs_though_there_is_no_time_for_the_next)
{
    enum { N = 8 };
    double pairs[N * (N - 1) / 2];
    bool measured[N * (N - 1) / 2];
    struct machine machine;
    struct memory_rounds rounds;
    open_machine_of("two-packages", &machine);
    ck_assert_uint_eq(machine.pus.count, N);
    struct machine_ops ops = *machine.ops;
    ops.copy = copy_of_the_first;
    machine.ops = &ops;
    struct probe probe = {.machine = &machine};
    for (size_t i = 0; i < N; i++) {
        for (size_t j = i + 1; j < N; j++) {
            set_pair(pairs, N, i, j, i < 2 ? far : usual);
            measured[probe_pair_index(N, i, j)] = true;
        }
    }
    struct schedule_outcome outcome = {.values = pairs, .measured = measured};
    ck_assert_int_eq(probe_memory_rounds_init(&rounds, &probe, 1u << 20), 0);
    rounds.alone[rounds.alone_count++] = usual;
    ck_assert_int_eq(probe_memory_rounds_slow(&rounds, &outcome), 0);
    ck_assert_double_eq_tol(far * rounds.scale[0], usual, 1);
    ck_assert_double_eq_tol(pairs[probe_pair_index(N, 0, 7)], usual, 1);
    ck_assert(rounds.scale[1] == 1);
    ck_assert(pairs[probe_pair_index(N, 1, 7)] == far);
    probe_memory_rounds_free(&rounds);
    probe_machine_close(&machine);
}
