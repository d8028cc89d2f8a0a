/* Are the tuner's candidates what servet-map --suggest proposes, and its neighbours? */
#include "benchmarks/bench/candidates.h"
#include "mapper/map.h"
#include "tests/base/runner.h"

static struct bench_candidates found;

/* The second node has so many times the bandwidth of the first; 0: it was not measured. */
static double times = 0;

static struct bench_habit habit;

static void find(const char *fixture, bool ranks)
{
    habit.ranks = ranks;
    struct servet_profile *profile;
    struct servet_error error;
    struct map_node_view view;
    ck_assert_msg(profile_load(fixture, &profile, &error) == 0, "%s", error.text);
    const struct profile_class *of = profile_node_class(profile, 0);
    for (size_t i = 0; times > 0 && i < of->numa_count; i++) {
        of->numa[i].together_bytes_per_s = 1e10 * (i ? times : 1);
    }
    ck_assert_int_eq(bench_candidates(map_one_node(of, &view), &of->pus, &habit, &found, &error),
                     0);
    kept(found.list);
    profile_free(profile);
}

static size_t count_of(uint32_t ranks, uint32_t threads, enum pin_tuned_placement placement)
{
    size_t count = 0;
    for (size_t i = 0; i < found.count; i++) {
        const struct pin_tuned *one = &found.list[i];
        count += one->ranks == ranks && one->threads == threads && one->placement == placement;
    }
    return count;
}

/* Of 24 cores of which two fill the memory, in packages of six. */
#define DUNNINGTON FIXTURES "/dunnington.json"

/* Those with a * come first, memory's before communication's; then the others, then the steps. */
TEST(what_is_proposed_comes_first)
{
    static const uint32_t first[][2] = {{1, 2}, {4, 6}, {1, 24}, {24, 1}, {8, 3}, {12, 2}, {2, 1}};
    find(DUNNINGTON, true);
    size_t at = 1; /* behind what was run before */
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        ck_assert_uint_eq(found.list[at].ranks, first[i][0]);
        ck_assert_uint_eq(found.list[at].threads, first[i][1]);
        ck_assert_int_eq(found.list[at].placement, PIN_TUNED_MEMORY);
        while (found.list[at].ranks == first[i][0] && found.list[at].threads == first[i][1]) {
            at++;
        }
    }
}

/* One process has as many threads as PUs, a rank has one, unless the user or the line says so. All
 * candidates have what the line fixes. */
TEST(the_first_is_what_was_run_before)
{
    static const struct {
        struct bench_habit habit;
        uint32_t ranks, threads;
    } cases[] = {{{0}, 0, 24},
                 {{.before = 3}, 0, 3},
                 {{.ranks = true}, 24, 1},
                 {{.ranks = true, .before = 6}, 4, 6},
                 {{.ranks = true, .before = 48}, 1, 48},
                 {{.ranks = true, .before = 6, .fixed = 2}, 12, 2},
                 {{.fixed = 2}, 0, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        habit = cases[i].habit;
        find(DUNNINGTON, habit.ranks);
        ck_assert_uint_eq(found.list[0].ranks, cases[i].ranks);
        ck_assert_uint_eq(found.list[0].threads, cases[i].threads);
        ck_assert_int_eq(found.list[0].placement, PIN_TUNED_DEFAULT);
        ck_assert_uint_eq(count_of(cases[i].ranks, cases[i].threads, PIN_TUNED_DEFAULT), 1);
        for (size_t c = 0; c < found.count; c++) {
            ck_assert(!habit.fixed || found.list[c].threads == habit.fixed);
        }
        for (uint32_t ranks = 1; habit.fixed && habit.ranks && ranks <= 12; ranks *= 2) {
            ck_assert_uint_le(count_of(ranks, habit.fixed, PIN_TUNED_DEFAULT), 1);
        }
    }
    habit = (struct bench_habit){0};
}

TEST(the_systems_own_placement_and_fewer_ranks_are_simpler)
{
    static const struct pin_tuned order[] = {
        {1, 8, PIN_TUNED_DEFAULT, 0, 0}, {2, 4, PIN_TUNED_DEFAULT, 0, 0},
        {1, 4, PIN_TUNED_MEMORY, 0, 0},  {1, 8, PIN_TUNED_MEMORY, 0, 0},
        {2, 1, PIN_TUNED_MEMORY, 0, 0},  {2, 1, PIN_TUNED_COMMUNICATION, 0, 0},
        {2, 1, PIN_TUNED_MEMORY, 1, 0},
    };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        for (size_t j = 0; j < sizeof order / sizeof *order; j++) {
            ck_assert_int_eq(bench_candidate_simpler(&order[i], &order[j]), i < j);
        }
    }
}

TEST(neighbours_are_twice_and_half_as_many)
{
    static const uint32_t there[][2] = {{8, 3}, {2, 12}, {4, 3}, {1, 4}, {1, 1}, {1, 12}, {12, 2}};
    static const uint32_t missing[][2] = {{4, 12}, {1, 48}, {48, 1}, {24, 2}, {1, 6}, {0, 2}};
    find(DUNNINGTON, true);
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        ck_assert_uint_eq(count_of(there[i][0], there[i][1], PIN_TUNED_DEFAULT), 1);
    }
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        ck_assert_uint_eq(count_of(missing[i][0], missing[i][1], PIN_TUNED_DEFAULT), 0);
    }
}

/* Four cores of 24 at a time: they are divided, and no step goes beyond them. */
TEST(a_quota_bounds_the_workers)
{
    habit.most = 4;
    find(DUNNINGTON, true);
    ck_assert_uint_eq(count_of(4, 1, PIN_TUNED_MEMORY), 1);
    ck_assert_uint_eq(count_of(1, 4, PIN_TUNED_MEMORY), 1);
    ck_assert_uint_eq(count_of(1, 2, PIN_TUNED_COMMUNICATION), 1);
    for (size_t i = 1; i < found.count; i++) {
        ck_assert_uint_le(found.list[i].ranks * found.list[i].threads, 4);
    }
    habit = (struct bench_habit){0};
}

/* On all cores both priorities give the same PUs; of two threads they do not. */
TEST(one_placement_is_one_candidate)
{
    find(DUNNINGTON, true);
    ck_assert_uint_eq(count_of(4, 6, PIN_TUNED_MEMORY), 1);
    ck_assert_uint_eq(count_of(4, 6, PIN_TUNED_COMMUNICATION), 0);
    ck_assert_uint_eq(count_of(1, 2, PIN_TUNED_MEMORY), 1);
    ck_assert_uint_eq(count_of(1, 2, PIN_TUNED_COMMUNICATION), 1);
}

/* One process: as many threads as the ranks would have together. */
TEST(without_ranks_there_are_threads)
{
    static const uint32_t threads[] = {2, 24, 1, 4, 12};
    find(DUNNINGTON, false);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        ck_assert_uint_eq(count_of(0, threads[i], PIN_TUNED_MEMORY), 1);
    }
    ck_assert_uint_eq(count_of(0, 6, PIN_TUNED_MEMORY), 0); /* those of one rank */
    for (size_t i = 0; i < found.count; i++) {
        ck_assert_uint_eq(found.list[i].ranks, 0);
        ck_assert_uint_le(found.list[i].threads, 24);
    }
}

static size_t count_memories(enum pin_tuned_placement placement, enum pin_tuned_memory memory)
{
    size_t count = 0;
    for (size_t i = 0; i < found.count; i++) {
        count += found.list[i].placement == placement && found.list[i].memory == memory;
    }
    return count;
}

/* Each placement with each policy; the system's own has none. */
TEST(tiers_of_memory_are_a_dimension)
{
    for (times = 0; times < 3; times++) {
        const bool tiers = times == 2;
        find(FIXTURES "/nehalem-2-nodes.json", true);
        for (unsigned placement = 0; placement < PIN_TUNED_PLACEMENTS; placement++) {
            size_t without = count_memories(placement, PIN_TUNED_FIRST_TOUCH),
                   with = tiers && placement != PIN_TUNED_DEFAULT ? without : 0;
            ck_assert(without > 0 || placement == PIN_TUNED_COMMUNICATION);
            ck_assert_uint_eq(count_memories(placement, PIN_TUNED_FAST), with);
            ck_assert_uint_eq(count_memories(placement, PIN_TUNED_WEIGHTED), with);
        }
    }
    times = 0;
}

TESTS()
