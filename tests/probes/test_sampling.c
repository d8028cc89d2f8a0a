/* Are few pairs measured where the machine is as regular as its topology says, and all where it is
 * not? */
#include "probes/pairs/layers.h"
#include "probes/pairs/messages.h"
#include "probes/pairs/sample.h"
#include "profile/base/random.h"
#include "profile/topology/topology.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

enum { PUS = 64, PAIRS = PUS * (PUS - 1) / 2, PACKAGE = 16 };

/* The time of each pair, and how many were asked. */
struct world {
    double (*seconds)(const struct world *world, size_t i, size_t j);
    size_t asked;
    bool odd;      /* PU 5 has a slow link that no topology knows of */
    bool late;     /* half of the machine has, the one with the higher numbers */
    bool disorder; /* near or far at random: no groups */
    bool siblings; /* three cores of a group have two PUs, of the others one is offline */
};

static int ask(void *argument, const struct pair_position *pairs, size_t count, double *seconds,
               double *figures)
{
    struct world *world = argument;
    for (size_t k = 0; k < count; k++) {
        world->asked++;
        figures[k] = seconds[k] = world->seconds(world, pairs[k].i, pairs[k].j);
    }
    return 0;
}

static struct profile_class *packages_of(size_t pus, size_t size)
{
    struct servet_profile *profile = kept(profile_topology_new());
    profile->classes[0].packages = relation_of(blocks_of(pus, size, " "));
    return &profile->classes[0];
}

/* The class may be NULL. */
static struct sampling sampling_of(size_t pus, const struct profile_class *declared)
{
    static struct profile_set all;
    struct sampling sampling;
    all = set_of(formatted("0-%zu", pus - 1));
    ck_assert_int_eq(probe_sampling_init(&sampling, &all, declared), 0);
    return sampling;
}

static struct sampling_outcome outcome;

static void run(struct sampling *sampling, pairs_measure_function *measure, void *argument,
                uint64_t seed)
{
    const size_t pairs = probe_pair_count(sampling->pus->count);
    outcome = (struct sampling_outcome){.values = kept(calloc(pairs, sizeof *outcome.values)),
                                        .measured = kept(calloc(pairs, sizeof *outcome.measured))};
    ck_assert_int_eq(probe_sampling_run(sampling, NULL, seed, measure, argument, &outcome), 0);
}

/* Every pair gets what is its own. */
static void run_right(struct sampling sampling, struct world *world)
{
    const size_t pus = sampling.pus->count;
    run(&sampling, ask, world, 3);
    probe_sampling_free(&sampling);
    for (size_t i = 0, k = 0; i < pus; i++) {
        for (size_t j = i + 1; j < pus; j++, k++) {
            ck_assert_msg(fabs(outcome.values[k] / world->seconds(world, i, j) - 1) < 0.01,
                          "pair %zu, %zu: %g", i, j, outcome.values[k]);
        }
    }
}

static double of_packages(const struct world *world, size_t i, size_t j)
{
    double seconds = i / PACKAGE == j / PACKAGE ? 1e-6 : 2e-6;
    if (world->late && (i >= PUS / 2 || j >= PUS / 2)) {
        return 3 * seconds;
    }
    return world->odd && (i % 4 == 1 || j % 4 == 1) ? 3 * seconds : seconds;
}

static void run_packages(struct world *world, bool exhaustive)
{
    struct sampling sampling = sampling_of(PUS, packages_of(PUS, PACKAGE));
    ck_assert_uint_eq(sampling.presumed_count, 2);
    sampling.exhaustive = exhaustive;
    world->seconds = of_packages;
    run_right(sampling, world);
}

static const char *note(void)
{
    char *text;
    ck_assert_int_eq(probe_sampling_note(&outcome, &text), 0);
    return text ? kept(text) : NULL;
}

TEST(a_regular_machine_needs_few_measurements)
{
    struct world world = {0};
    run_packages(&world, false);
    ck_assert_uint_le(world.asked, 60); /* two classes of 4 log2(64) = 24 */
    ck_assert_uint_eq(outcome.measured_count, world.asked);
    ck_assert_uint_eq(outcome.pair_count, PAIRS);
    ck_assert_uint_eq(outcome.fallbacks, 0);
    ck_assert_ptr_nonnull(note());
}

TEST(where_the_sample_disagrees_every_figure_is_right)
{
    struct world world = {.odd = true};
    run_packages(&world, false);
    ck_assert_uint_ge(outcome.fallbacks, 2);
    ck_assert_uint_gt(world.asked, 100);
}

TEST(a_sample_is_of_the_whole_class)
{
    run_packages(&(struct world){.late = true}, false);
    ck_assert_uint_eq(outcome.fallbacks, 2);
}

TEST(exhaustive_measures_every_pair)
{
    struct world world = {0};
    run_packages(&world, true);
    ck_assert_uint_eq(world.asked, PAIRS);
    ck_assert_ptr_null(note());
}

TEST(a_pair_is_of_its_closest_class)
{
    struct profile_class *class = packages_of(8, 4);
    class->cores = relation_of(blocks_of(8, 2, " "));
    FREED_BY(probe_sampling_free) struct sampling sampling = sampling_of(8, class);
    ck_assert_uint_eq(sampling.presumed_count, 3);
    ck_assert_uint_eq(sampling.presumed[probe_pair_index(8, 0, 1)], 0);
    ck_assert_uint_eq(sampling.presumed[probe_pair_index(8, 0, 2)], 1);
    ck_assert_uint_eq(sampling.presumed[probe_pair_index(8, 0, 4)], 2);
}

TEST(measurements_of_regular_machines_grow_no_faster_than_n_log_n)
{
    for (size_t count = 8; count <= 1024; count *= 2) {
        const double bound = (double)count * log2((double)count);
        struct world world = {.seconds = of_packages};
        run_right(sampling_of(count, packages_of(count, PACKAGE)), &world);
        printf("%4zu PUs, %6zu pairs: %3zu measured, n log2 n is %.0f\n", count,
               probe_pair_count(count), world.asked, bound);
        ck_assert_uint_eq(outcome.fallbacks, 0);
        ck_assert_msg((double)world.asked <= bound, "%zu PUs: %zu measurements", count,
                      world.asked);
    }
}

/* All have only the last cache in common, yet two fast cores are no pair of a fast and a slow
 * one. */
TEST(pairs_of_other_kinds_of_cores_are_not_taken_for_alike)
{
    struct profile_class *class = packages_of(8, 8);
    ck_assert_int_eq(profile_topology_add_kind(class, (struct profile_kind){0, set_of("0-3")}), 0);
    ck_assert_int_eq(profile_topology_add_kind(class, (struct profile_kind){1, set_of("4-7")}), 0);
    FREED_BY(probe_sampling_free) struct sampling sampling = sampling_of(8, class);
    ck_assert_uint_eq(sampling.presumed_count, 3);
    uint32_t both_slow = sampling.presumed[probe_pair_index(8, 0, 3)],
             mixed = sampling.presumed[probe_pair_index(8, 0, 4)],
             both_fast = sampling.presumed[probe_pair_index(8, 5, 7)];
    ck_assert(both_slow != mixed && mixed != both_fast && both_slow != both_fast);
    ck_assert_uint_eq(sampling.presumed[probe_pair_index(8, 3, 7)], mixed);
}

/* -- very many pairs that are not alike -- */

enum { MANY = 256, GROUP = 16, ODD = 3, OTHER = 9 };

/* Groups of 16 in two undeclared halves. A few PUs of one group are farther from another one than
 * the rest. */
static double of_flat(const struct world *world, size_t i, size_t j)
{
    size_t g = i / GROUP, h = j / GROUP;
    if (world->disorder) {
        struct random random = {.state = probe_pair_index(MANY, i, j)};
        return random_below(&random, 2) > 0 ? 1e-6 : 3e-6;
    }
    if (world->siblings && g == h && i % GROUP >= 4 && i % GROUP < 7 && j == i + 6) {
        return 0.3e-6;
    }
    if (g == ODD && h == OTHER && i % GROUP < 4) {
        return 6e-6;
    }
    return g == h ? 1e-6 : g / 8 == h / 8 ? 2e-6 : 4e-6;
}

/* As messages are judged: one that is clearly faster is structure. */
static bool none_is_faster(double *seconds, size_t count, double spread)
{
    double middle = profile_median_value(seconds, count);
    for (size_t i = 0; i < count; i++) {
        if (seconds[i] < middle / 1.4) {
            return false;
        }
    }
    return probe_layers_one_cluster(seconds, count, spread);
}

static struct sampling sampling_of_messages(size_t pus)
{
    struct sampling sampling = sampling_of(pus, NULL);
    sampling.cheap = true;
    sampling.agree = none_is_faster;
    return sampling;
}

/* How many pairs were asked. */
static size_t run_flat(struct world world)
{
    world.seconds = of_flat;
    run_right(sampling_of_messages(MANY), &world);
    ck_assert_uint_eq(outcome.measured_count, world.asked);
    return world.asked;
}

TEST(groups_that_nobody_declares_stand_for_their_pairs)
{
    ck_assert_uint_lt(run_flat((struct world){0}), probe_pair_count(MANY) / 4);
}

TEST(a_few_near_pairs_inside_of_groups_are_found)
{
    ck_assert_uint_lt(run_flat((struct world){.siblings = true}), probe_pair_count(MANY) / 4);
}

TEST(where_there_are_no_groups_all_are_measured)
{
    ck_assert_uint_eq(run_flat((struct world){.disorder = true}), probe_pair_count(MANY));
}

enum { HALVED = 100, SEEDS = 400 };

/* PUs share a cache with the one beside them. */
static double answer_of_neighbours(const struct world *world, size_t i, size_t j)
{
    (void)world;
    return i / 2 == j / 2 ? PAIR_TOGETHER : PAIR_APART;
}

/* Of 4,950 pairs 50: of a sample of 26 most have none of them. */
TEST(groups_of_two_are_never_missed_where_the_pairs_of_one_pu_are_asked)
{
    FREED_BY(probe_sampling_free) struct sampling sampling = sampling_of(HALVED, NULL);
    sampling.strategy = SAMPLING_ROWS;
    sampling.agree = probe_sampling_equal;
    ck_assert_uint_lt(probe_sampling_planned(&sampling, NULL), 2 * HALVED);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run(&sampling, ask, &(struct world){.seconds = answer_of_neighbours}, seed);
        ck_assert_uint_eq(outcome.measured_count, probe_pair_count(HALVED));
    }
}

/* Of 75 cores 25 have two PUs: the pairs are 1 of 2 n. */
static double of_halved(const struct world *world, size_t i, size_t j)
{
    (void)world;
    return j < 50 && j == i + 25 ? 0.3e-6 : 1e-6;
}

/* Where half of the PUs are offline, most have no sibling, such as the one whose row is asked. */
TEST(siblings_of_a_few_cores_are_missed_in_one_search_of_a_hundred)
{
    FREED_BY(probe_sampling_free) struct sampling sampling = sampling_of_messages(HALVED);
    size_t missed = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run(&sampling, ask, &(struct world){.seconds = of_halved}, seed);
        missed += outcome.measured_count < probe_pair_count(HALVED);
    }
    ck_assert_msg(missed <= SEEDS / 100, "%zu of %d", missed, SEEDS);
    ck_assert_uint_lt(probe_sampling_planned(&sampling, NULL), probe_pair_count(HALVED) / 4);
}

/* The same as a machine with noise: messages come to the same groups in a fraction of the time. */
TEST(layers_of_a_flat_machine_of_many_pus_are_found_in_time)
{
    static const double limit_s = 30; /* all pairs in two sweeps took 76 s */
    static const size_t groups[] = {MANY / GROUP, 2, 1};
    FREED_BY(profile_communication_free) struct profile_communication found;
    open_machine_with(
        1,
        "'pus': '0-255', 'layers': [{'groups': [%s], 'seconds': 3e-7, 'bytes_per_s': 9e9, "
        "'parallel': 1}, {'groups': [%s], 'seconds': 9e-7, 'bytes_per_s': 7e9, 'parallel': 1}, "
        "{'groups': [%s], 'seconds': 3e-6, 'bytes_per_s': 4e9, 'parallel': 1}], 'noise': "
        "{'relative': 0.02, 'outlier_probability': 0.03, 'outlier_factor': 3}",
        groups_of(MANY, GROUP), groups_of(MANY, MANY / 2), groups_of(MANY, MANY));
    probe.declared = &machine.declared->classes[0];
    ck_assert_int_eq(probe_message(&probe, 32 << 10, &found, NULL), 0);
    ck_assert_uint_eq(found.layer_count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(found.layers[i].members.group_count, groups[i]);
        ck_assert_uint_eq(found.layers[i].members.pair_count, 0);
    }
    ck_assert_double_lt(probe_machine_elapsed(&machine), limit_s);
}

/* A machine with a clock and nothing else. */
static double ticking(struct machine *subject)
{
    return (double)(*(size_t *)subject->state)++;
}

/* All 64 PUs by a clock that begins at `ticks`; it is late from 10 on, and every pair takes over
 * what there is. */
static void run_until_late(size_t ticks, bool exhaustive)
{
    static const struct machine_ops ops = {.elapsed = ticking};
    struct machine clock = {.ops = &ops, .state = &ticks};
    probe = (struct probe){.machine = &clock, .deadline = 10};
    FREED_BY(probe_sampling_free) struct sampling sampling = sampling_of(PUS, NULL);
    sampling.exhaustive = exhaustive;
    sampling.probe = &probe;
    run(&sampling, ask, &(struct world){.seconds = of_packages}, 3);
    ck_assert(outcome.cut_short);
    for (size_t k = 0; k < PAIRS; k++) {
        ck_assert(outcome.values[k] > 0);
    }
}

TEST(a_late_probe_stops_and_says_so)
{
    run_until_late(0, true);
    ck_assert_uint_ge(outcome.measured_count, 2);
    ck_assert_uint_lt(outcome.measured_count, 20);
    ck_assert_uint_eq(outcome.planned_count, PAIRS);
    ck_assert_ptr_nonnull(strstr(note(), "cut short by the budget"));
    ck_assert_uint_eq(probe.pairs.planned, 0);
}

TEST(however_late_it_is_every_class_has_a_figure)
{
    run_until_late(100, false);
    ck_assert_uint_eq(outcome.measured_count, 1);
}

/* -- answers: yes or no -- */

enum { ANSWERING = 128, ANSWERING_PAIRS = ANSWERING * (ANSWERING - 1) / 2 };

/* PUs of one group belong together, others never. The first answer for some pairs wrongly says that
 * they do. */
struct answering {
    size_t group;  /* PUs of one; 0: there are none */
    size_t stride; /* numbers of its PUs lie so many parts of the machine apart; 1: one another */
    size_t disturbed; /* the first of so many answers is; 0: none */
    size_t doubting;  /* second answers are undecided while fewer than that were asked */
    bool first_is_undecided;
    size_t asked;
    uint8_t *times; /* by pair */
};

static bool belong(const struct answering *world, size_t i, size_t j)
{
    const size_t part = ANSWERING / world->stride;
    const size_t a = i / part + i % part * world->stride, b = j / part + j % part * world->stride;
    return world->group > 0 && a / world->group == b / world->group;
}

static int answer(void *argument, const struct pair_position *pairs, size_t count, double *found,
                  double *figures)
{
    struct answering *world = argument;
    for (size_t k = 0; k < count; k++) {
        const size_t pair = probe_pair_index(ANSWERING, pairs[k].i, pairs[k].j);
        const bool first = world->times[pair]++ == 0;
        const bool undecided = (world->first_is_undecided && world->asked == 0) ||
                               (!first && world->asked < world->doubting);
        const bool disturbed =
            first && world->disturbed > 0 && world->asked % world->disturbed == 0;
        found[k] = undecided                                            ? NAN
                   : belong(world, pairs[k].i, pairs[k].j) || disturbed ? PAIR_TOGETHER
                                                                        : PAIR_APART;
        figures[k] = 1;
        world->asked++;
    }
    return 0;
}

/* Every pair has the answer that is true in the end. How many were asked, some twice. */
static size_t asked_for_answers(struct answering world, bool row, uint64_t seed)
{
    FREED_BY(probe_sampling_free) struct sampling sampling = sampling_of(ANSWERING, NULL);
    world.times = kept(calloc(ANSWERING_PAIRS, 1));
    sampling.strategy = row ? SAMPLING_ROWS : SAMPLING_RANDOM;
    sampling.agree = probe_sampling_equal;
    sampling.answers = true;
    run(&sampling, answer, &world, seed);
    for (size_t i = 0, k = 0; i < ANSWERING; i++) {
        for (size_t j = i + 1; j < ANSWERING; j++, k++) {
            ck_assert_msg(outcome.values[k] == (belong(&world, i, j) ? PAIR_TOGETHER : PAIR_APART),
                          "%zu and %zu, seed %d", i, j, (int)seed);
        }
    }
    return world.asked;
}

/* Numbers of a group's PUs one after the other, or far apart as those of siblings. */
TEST(answers_of_a_few_pairs_tell_those_of_their_groups)
{
    const size_t small = 4, large = 32, disturbed = 50;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        const struct answering near = {.group = small, .stride = 1, .disturbed = disturbed},
                               far = {.group = small, .stride = 2, .disturbed = disturbed},
                               few = {.group = large, .stride = 1, .disturbed = disturbed};
        ck_assert_uint_lt(asked_for_answers(near, true, seed), ANSWERING_PAIRS / 4);
        ck_assert_uint_lt(asked_for_answers(far, true, seed), ANSWERING_PAIRS / 4);
        ck_assert_uint_lt(asked_for_answers(few, true, seed), ANSWERING_PAIRS / 8);
    }
}

/* One pair that seemed to share a cache sent all of its class to be measured. */
TEST(one_disturbed_answer_is_asked_again_and_not_its_whole_class)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        const struct answering none = {.stride = 1},
                               one = {.stride = 1, .disturbed = ANSWERING_PAIRS};
        const size_t sample = asked_for_answers(none, false, seed);
        ck_assert_uint_eq(asked_for_answers(one, false, seed), sample + 1);
    }
}

/* The few pairs of the sample that belong together are measured again, and are undecided. */
TEST(an_undecided_answer_takes_no_other_back)
{
    const size_t many = ANSWERING_PAIRS / 8;
    const struct answering world = {.group = 16, .stride = 1, .doubting = 2 * ANSWERING};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        ck_assert_uint_lt(asked_for_answers(world, true, seed), many);
    }
}

TEST(an_undecided_answer_neither_joins_nor_parts)
{
    const struct answering none = {.stride = 1}, one = {.stride = 1, .first_is_undecided = true};
    const size_t sample = asked_for_answers(none, false, 1);
    ck_assert_uint_eq(asked_for_answers(one, false, 1), sample);
}
