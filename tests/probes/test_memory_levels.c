/* Do overhead levels and groups come out of pair bandwidths as in Section III-C of the 2010 paper,
 * and are pairs asked no more often than that takes? */
#include "probes/memory/memory.h"
#include "probes/memory/rates.h"
#include "probes/pairs/partition.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

static const double alone = 2.55e9;
/* The rate that each of two PUs gets beside the other. */
static double (*pair_rate)(uint32_t low, uint32_t high);

COPY(copy_of_pairs)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t other = pus[(i ^ 1) < count ? i ^ 1 : i];
        rates[i] = pus[i] == other  ? alone
                   : pus[i] < other ? pair_rate(pus[i], other)
                                    : pair_rate(other, pus[i]);
    }
    return 0;
}

/* "0-1 2-3, 0-3": the levels of so many PUs whose pairs copy at such rates. */
static const char *levels_of(size_t pus, double (*rate)(uint32_t, uint32_t))
{
    FREED_BY(probe_memory_free) struct probe_memory found;
    const char *text = "";
    open_machine_with(1, "'pus': '0-%zu'", pus - 1);
    replace_operations()->copy = copy_of_pairs;
    pair_rate = rate;
    ck_assert_int_eq(probe_memory(&probe, 8u << 20, &found, NULL), 0);
    for (size_t i = 0; i < found.memory.level_count; i++) {
        const struct profile_memory_level *level = &found.memory.levels[i];
        text = formatted("%s%s%s: %.1f", text, i ? ", " : "", lists_of(&level->collisions),
                         level->bytes_per_s / 1e9);
    }
    return text;
}

/* Pm = (0,1), (0,2), (3,4), (3,5) and their completions: {0,1,2} and {3,4,5} */
static double of_the_paper(uint32_t low, uint32_t high)
{
    return low / 3 == high / 3 ? 2.0e9 + 1e7 * low : alone;
}

TEST(the_papers_example_gives_two_groups)
{
    ck_assert_str_eq(levels_of(6, of_the_paper), "0-2 3-5: 2.0");
}

/* Finis Terrae: bus mates (0-3, 4-7) collide worst, cell mates (0-7) less, the other cell (8-15)
 * not at all. */
static double of_finis_terrae(uint32_t low, uint32_t high)
{
    return low / 4 == high / 4 ? 1.1e9 : low / 8 == high / 8 ? 1.9e9 : 2.5e9;
}

TEST(levels_are_worst_first_and_nest)
{
    ck_assert_str_eq(levels_of(16, of_finis_terrae), "0-3 4-7 8-11 12-15: 1.1, 0-7 8-15: 1.9");
}

static double of_noise(uint32_t low, uint32_t high)
{
    return (0.96 - 0.02 * (low + high - 1)) * alone;
}

TEST(small_differences_are_no_collision)
{
    ck_assert_str_eq(levels_of(3, of_noise), "");
}

/* -- a PU that is far from all memory, where the time ends while they are asked -- */

COPY(copy_of_the_first_two)
{
    rates[0] = pus[0] == 0 ? alone : alone / 2;
    return pus[0] < 2 && count == 1 ? 0 : -ETIME;
}

TEST(a_pu_is_scaled_though_there_is_no_time_for_the_next)
{
    FREED_BY(probe_memory_free) struct probe_memory found;
    open_machine_of("two-packages");
    replace_operations()->copy = copy_of_the_first_two;
    ck_assert_int_eq(probe_memory(&probe, 8u << 20, &found, NULL), 0);
    ck_assert_double_eq_tol(found.memory.reference_bytes_per_s, alone, 1);
    ck_assert_uint_ge(found.memory.quality.repetitions, 2);
    ck_assert_double_eq_tol(found.memory.quality.spread, 0, 1e-9);
}

/* -- how often a pair is asked -- */

enum { PUS = 16, PAIRS = PUS * (PUS - 1) / 2, FIRST = 24 }; /* pairs that are asked in full */

static size_t asked[PAIRS], pairs_asked;
static bool lies; /* one of two PUs of a bus seems alone, the first time */
static size_t lied_of;

COPY(copy_counting)
{
    int rc = honest->copy(subject, what, pus, count, rates);
    for (size_t i = 0; count > 1 && i < count; i += 2) {
        const size_t pair = probe_pair_index(PUS, pus[i], pus[i + 1]);
        pairs_asked += asked[pair]++ == 0;
    }
    const size_t pair = count == 2 ? probe_pair_index(PUS, pus[0], pus[1]) : PAIRS;
    if (lies && lied_of == PAIRS && count == 2 && pus[0] / 4 == pus[1] / 4 && pairs_asked > FIRST &&
        asked[pair] == 1) {
        lied_of = pair;
        if (rc == 0) {
            rc = honest->copy(subject, what, pus, 1, rates);
        }
        rates[1] = rates[0];
    }
    return rc;
}

/* A Finis Terrae without any declaration: cells of 8, buses of 4 PUs. */
static struct probe_memory measure_counting(bool exhaustive, bool lying)
{
    struct probe_memory found;
    open_machine_of("finis-terrae");
    ck_assert_uint_eq(machine.pus.count, PUS);
    replace_operations()->copy = copy_counting;
    memset(asked, 0, sizeof asked);
    pairs_asked = 0;
    lies = lying;
    lied_of = PAIRS;
    probe.exhaustive = exhaustive;
    ck_assert_int_eq(probe_memory(&probe, 8u << 20, &found, NULL), 0);
    return found;
}

/* How many pairs were asked fewer times than a median needs. */
static size_t asked_few_times(bool of_one_cell)
{
    size_t few = 0;
    for (size_t i = 0; i < PUS; i++) {
        for (size_t j = i + 1; j < PUS; j++) {
            few += (i / 8 == j / 8) == of_one_cell &&
                   asked[probe_pair_index(PUS, i, j)] < REPEAT_MEDIAN_LEAST;
        }
    }
    return few;
}

TEST(pairs_that_clearly_do_not_collide_are_asked_once)
{
    struct probe_memory found = measure_counting(false, false);
    ck_assert_uint_gt(asked_few_times(false), PUS);
    ck_assert_uint_eq(asked_few_times(true), 0);
    ck_assert_uint_eq(found.memory.levels[0].quality.repetitions, REPEAT_MEDIAN_LEAST);
    probe_memory_free(&found);
    found = measure_counting(true, false);
    ck_assert_uint_eq(asked_few_times(false), 0);
    probe_memory_free(&found);
}

TEST(one_round_that_nobody_disturbed_does_not_break_a_group)
{
    FREED_BY(probe_memory_free) struct probe_memory found = measure_counting(false, true);
    ck_assert_uint_lt(lied_of, PAIRS);
    ck_assert_uint_gt(asked[lied_of], REPEAT_MEDIAN_LEAST);
    ck_assert_uint_eq(found.memory.levels[0].collisions.group_count, 4);
    ck_assert_uint_eq(found.memory.levels[0].collisions.pair_count, 0);
}

TEST(a_figure_of_slow_memory_takes_no_longer_than_one_of_fast)
{
    open_machine_of("finis-terrae");
    for (double rate = 1e9; rate < 8e10; rate *= 2) {
        const struct probe slow = {.machine = &machine, .alone_bytes_per_s = rate},
                           fast = {.machine = &machine, .alone_bytes_per_s = 4e10};
        const struct machine_copy what = probe_memory_what(&slow, 1u << 30, -1),
                                  of_fast = probe_memory_what(&fast, 1u << 30, -1);
        ck_assert_double_le((double)machine_copy_pass(&what) / rate,
                            1.1 * (double)machine_copy_pass(&of_fast) / 4e10);
        ck_assert_uint_ge(machine_copy_pass(&what), 32 * what.burst);
    }
}
