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

struct world {
    size_t asked;
    bool odd;  /* PU 5 has a slow link that no topology knows of */
    bool late; /* half of the machine has, the one with the higher numbers */
};

static double latency(const struct world *world, size_t i, size_t j)
{
    double seconds = i / PACKAGE == j / PACKAGE ? 1e-6 : 2e-6;
    if (world->late && (i >= PUS / 2 || j >= PUS / 2)) {
        return 3 * seconds;
    }
    return world->odd && (i % 4 == 1 || j % 4 == 1) ? 3 * seconds : seconds;
}

static int ask(void *argument, const struct pair_position *pairs, size_t count, double *seconds,
               double *figures)
{
    struct world *world = argument;
    for (size_t k = 0; k < count; k++) {
        world->asked++;
        figures[k] = seconds[k] = latency(world, pairs[k].i, pairs[k].j);
    }
    return 0;
}

/* A declared machine; add_groups() gives it some. */
static struct profile_class *declared(void)
{
    struct servet_profile *profile = kept(profile_topology_new());
    return &profile->classes[0];
}

static void add_groups(struct profile_relation *relation, size_t pus, size_t size)
{
    for (size_t first = 0; first < pus; first += size) {
        struct profile_set group;
        ck_assert_int_eq(
            profile_set_parse(formatted("%zu-%zu", first, first + (pus < size ? pus : size) - 1),
                              &group),
            0);
        ck_assert_int_eq(profile_topology_add_group(relation, group), 0);
    }
}

static struct profile_set pus_up_to(size_t last)
{
    struct profile_set pus;
    ck_assert_int_eq(profile_set_parse(formatted("0-%zu", last), &pus), 0);
    kept(pus.ids);
    return pus;
}

static double values[PAIRS];
static bool measured[PAIRS];

/* Runs over packages of 16 PUs and returns whether every value is right. */
static bool run(struct world *world, bool exhaustive, struct sampling_outcome *outcome)
{
    struct profile_class *node_class = declared();
    struct profile_set pus = pus_up_to(PUS - 1);
    FREED_BY(probe_sampling_free) struct sampling sampling;
    bool right = true;
    add_groups(&node_class->packages, PUS, PACKAGE);
    ck_assert_int_eq(probe_sampling_init(&sampling, &pus, node_class), 0);
    ck_assert_uint_eq(sampling.presumed_count, 2);
    sampling.exhaustive = exhaustive;
    *outcome = (struct sampling_outcome){.values = values, .measured = measured};
    ck_assert_int_eq(probe_sampling_run(&sampling, NULL, 3, ask, world, outcome), 0);
    for (size_t i = 0; i < PUS; i++) {
        for (size_t j = i + 1; j < PUS; j++) {
            double ratio = values[probe_pair_index(PUS, i, j)] / latency(world, i, j);
            right &= ratio > 0.99 && ratio < 1.01;
        }
    }
    return right;
}

TEST(a_regular_machine_needs_few_measurements)
{
    struct world world = {0};
    struct sampling_outcome outcome;
    ck_assert(run(&world, false, &outcome));
    ck_assert_uint_le(world.asked, 60); /* two classes of 4 log2(64) = 24 */
    ck_assert_uint_eq(outcome.measured_count, world.asked);
    ck_assert_uint_eq(outcome.pair_count, PAIRS);
    ck_assert_uint_eq(outcome.fallbacks, 0);
    FREED char *note;
    ck_assert_int_eq(probe_sampling_note(&outcome, &note), 0);
    ck_assert_ptr_nonnull(note);
}

TEST(where_the_sample_disagrees_every_figure_is_right)
{
    struct world world = {.odd = true};
    struct sampling_outcome outcome;
    ck_assert(run(&world, false, &outcome));
    ck_assert_uint_ge(outcome.fallbacks, 2);
    ck_assert_uint_gt(world.asked, 100);
}

TEST(a_sample_is_of_the_whole_class)
{
    struct world world = {.late = true};
    struct sampling_outcome outcome;
    ck_assert(run(&world, false, &outcome));
    ck_assert_uint_eq(outcome.fallbacks, 2);
}

TEST(a_pair_is_of_its_closest_class)
{
    struct profile_class *class = declared();
    struct profile_set pus = pus_up_to(7);
    FREED_BY(probe_sampling_free) struct sampling sampling;
    add_groups(&class->cores, 8, 2);
    add_groups(&class->packages, 8, 4);
    ck_assert_int_eq(probe_sampling_init(&sampling, &pus, class), 0);
    ck_assert_uint_eq(sampling.presumed_count, 3);
    ck_assert_uint_eq(sampling.presumed[probe_pair_index(8, 0, 1)], 0);
    ck_assert_uint_eq(sampling.presumed[probe_pair_index(8, 0, 2)], 1);
    ck_assert_uint_eq(sampling.presumed[probe_pair_index(8, 0, 4)], 2);
}

TEST(exhaustive_measures_every_pair)
{
    struct world world = {0};
    struct sampling_outcome outcome;
    ck_assert(run(&world, true, &outcome));
    ck_assert_uint_eq(world.asked, PAIRS);
    char *note;
    ck_assert_int_eq(probe_sampling_note(&outcome, &note), 0);
    ck_assert_ptr_null(note);
}

/* Asks nothing of the world but counts: all pairs of a class are alike. */
static int ask_regular(void *argument, const struct pair_position *pairs, size_t count,
                       double *seconds, double *figures)
{
    for (size_t k = 0; k < count; k++) {
        ++*(size_t *)argument;
        figures[k] = seconds[k] = pairs[k].i / PACKAGE == pairs[k].j / PACKAGE ? 1e-6 : 2e-6;
    }
    return 0;
}

/* Measurements of a machine of packages of 16 PUs. */
static size_t asked_of(size_t count)
{
    struct profile_class *node_class = declared();
    struct profile_set pus = pus_up_to(count - 1);
    FREED_BY(probe_sampling_free) struct sampling sampling;
    size_t asked = 0;
    add_groups(&node_class->packages, count, PACKAGE);
    struct sampling_outcome outcome = {
        .values = kept(calloc(probe_pair_count(count), sizeof *outcome.values)),
        .measured = kept(calloc(probe_pair_count(count), sizeof *outcome.measured))};
    ck_assert_int_eq(probe_sampling_init(&sampling, &pus, node_class), 0);
    ck_assert_int_eq(probe_sampling_run(&sampling, NULL, 3, ask_regular, &asked, &outcome), 0);
    ck_assert_uint_eq(outcome.fallbacks, 0);
    return asked;
}

TEST(measurements_of_regular_machines_grow_no_faster_than_n_log_n)
{
    for (size_t count = 8; count <= 1024; count *= 2) {
        size_t asked = asked_of(count);
        double bound = (double)count * log2((double)count);
        printf("%4zu PUs, %6zu pairs: %3zu measured, n log2 n is %.0f\n", count,
               probe_pair_count(count), asked, bound);
        ck_assert_msg((double)asked <= bound, "%zu PUs: %zu measurements", count, asked);
    }
}

/* All have only the last cache in common, yet two fast cores are no pair of a fast and a slow
 * one. */
TEST(pairs_of_other_kinds_of_cores_are_not_taken_for_alike)
{
    struct profile_class *node_class = declared();
    struct profile_set pus = pus_up_to(7), fast, slow;
    FREED_BY(probe_sampling_free) struct sampling sampling;
    add_groups(&node_class->packages, 8, 8);
    ck_assert_int_eq(profile_set_parse("0-3", &slow), 0);
    ck_assert_int_eq(profile_set_parse("4-7", &fast), 0);
    ck_assert_int_eq(profile_topology_add_kind(node_class, 0, slow), 0);
    ck_assert_int_eq(profile_topology_add_kind(node_class, 1, fast), 0);
    ck_assert_int_eq(probe_sampling_init(&sampling, &pus, node_class), 0);
    ck_assert_uint_eq(sampling.presumed_count, 3);
    uint32_t both_slow = sampling.presumed[probe_pair_index(8, 0, 3)],
             mixed = sampling.presumed[probe_pair_index(8, 0, 4)],
             both_fast = sampling.presumed[probe_pair_index(8, 5, 7)];
    ck_assert(both_slow != mixed && mixed != both_fast && both_slow != both_fast);
    ck_assert_uint_eq(sampling.presumed[probe_pair_index(8, 3, 7)], mixed);
}

/* -- very many pairs that are not alike -- */

enum { MANY = 256, GROUP = 16, ODD = 3, OTHER = 9 };

struct flat {
    size_t asked;
    bool disorder; /* near or far at random: no groups */
    bool siblings; /* three cores of a group have two PUs, of the others one is offline */
};

/* Groups of 16 in two undeclared halves. A few PUs of one group are farther from another one than
 * the rest. */
static double flat_latency(const struct flat *flat, size_t i, size_t j)
{
    size_t g = i / GROUP, h = j / GROUP;
    if (flat->disorder) {
        struct random random = {.state = probe_pair_index(MANY, i, j)};
        return random_below(&random, 2) > 0 ? 1e-6 : 3e-6;
    }
    if (flat->siblings && g == h && i % GROUP >= 4 && i % GROUP < 7 && j == i + 6) {
        return 0.3e-6;
    }
    if (g == ODD && h == OTHER && i % GROUP < 4) {
        return 6e-6;
    }
    return g == h ? 1e-6 : g / 8 == h / 8 ? 2e-6 : 4e-6;
}

static int ask_flat(void *argument, const struct pair_position *pairs, size_t count,
                    double *seconds, double *figures)
{
    struct flat *flat = argument;
    for (size_t k = 0; k < count; k++) {
        flat->asked++;
        figures[k] = seconds[k] = flat_latency(flat, pairs[k].i, pairs[k].j);
    }
    return 0;
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

/* Values of all pairs. */
static void run_flat(struct flat *flat)
{
    const size_t pairs = probe_pair_count(MANY);
    struct profile_set pus = pus_up_to(MANY - 1);
    FREED_BY(probe_sampling_free) struct sampling sampling;
    struct sampling_outcome outcome = {.values = kept(calloc(pairs, sizeof *outcome.values)),
                                       .measured = kept(calloc(pairs, sizeof *outcome.measured))};
    ck_assert_int_eq(probe_sampling_init(&sampling, &pus, NULL), 0);
    sampling.cheap = true;
    sampling.agree = none_is_faster;
    ck_assert_int_eq(probe_sampling_run(&sampling, NULL, 3, ask_flat, flat, &outcome), 0);
    ck_assert_uint_eq(outcome.measured_count, flat->asked);
    for (size_t i = 0, k = 0; i < MANY; i++) {
        for (size_t j = i + 1; j < MANY; j++, k++) {
            ck_assert_msg(fabs(outcome.values[k] / flat_latency(flat, i, j) - 1) < 0.01,
                          "pair %zu, %zu: %g", i, j, outcome.values[k]);
        }
    }
}

TEST(groups_that_nobody_declares_stand_for_their_pairs)
{
    struct flat flat = {0};
    run_flat(&flat);
    ck_assert_uint_lt(flat.asked, probe_pair_count(MANY) / 4);
}

TEST(a_few_near_pairs_inside_of_groups_are_found)
{
    struct flat flat = {.siblings = true};
    run_flat(&flat);
    ck_assert_uint_lt(flat.asked, probe_pair_count(MANY) / 4);
}

enum { HALVED = 100, SEEDS = 400 };

/* PUs share a cache with the one beside them. */
static int ask_neighbours(void *argument, const struct pair_position *pairs, size_t count,
                          double *shares, double *figures)
{
    (void)argument;
    for (size_t k = 0; k < count; k++) {
        figures[k] = 1e-6;
        shares[k] = pairs[k].i / 2 == pairs[k].j / 2 ? PAIR_TOGETHER : PAIR_APART;
    }
    return 0;
}

/* Of 4,950 pairs 50: of a sample of 26 most have none of them. */
TEST(groups_of_two_are_never_missed_where_the_pairs_of_one_pu_are_asked)
{
    const size_t pairs = probe_pair_count(HALVED);
    FREED_BY(profile_set_free) struct profile_set pus;
    FREED_BY(probe_sampling_free) struct sampling sampling;
    ck_assert_int_eq(profile_set_parse("0-99", &pus), 0);
    ck_assert_int_eq(probe_sampling_init(&sampling, &pus, NULL), 0);
    sampling.strategy = SAMPLING_ROWS;
    sampling.agree = probe_sampling_equal;
    ck_assert_uint_lt(probe_sampling_planned(&sampling, NULL), 2 * HALVED);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sampling_outcome outcome = {.values = calloc(pairs, sizeof *outcome.values),
                                           .measured = calloc(pairs, sizeof *outcome.measured)};
        ck_assert_int_eq(probe_sampling_run(&sampling, NULL, seed, ask_neighbours, NULL, &outcome),
                         0);
        ck_assert_uint_eq(outcome.measured_count, pairs);
        free(outcome.values);
        free(outcome.measured);
    }
}

/* Of 75 cores 25 have two PUs: the pairs are 1 of 2 n. */
static int ask_halved(void *argument, const struct pair_position *pairs, size_t count,
                      double *seconds, double *figures)
{
    (void)argument;
    for (size_t k = 0; k < count; k++) {
        bool siblings = pairs[k].j < 50 && pairs[k].j == pairs[k].i + 25;
        figures[k] = seconds[k] = siblings ? 0.3e-6 : 1e-6;
    }
    return 0;
}

/* Where half of the PUs are offline, most have no sibling, such as the one whose row is asked. */
TEST(siblings_of_a_few_cores_are_missed_in_one_search_of_a_hundred)
{
    const size_t pairs = probe_pair_count(HALVED);
    struct profile_set pus = pus_up_to(HALVED - 1);
    FREED_BY(probe_sampling_free) struct sampling sampling;
    size_t missed = 0;
    ck_assert_int_eq(probe_sampling_init(&sampling, &pus, NULL), 0);
    sampling.cheap = true;
    sampling.agree = none_is_faster;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sampling_outcome outcome = {.values = calloc(pairs, sizeof *outcome.values),
                                           .measured = calloc(pairs, sizeof *outcome.measured)};
        ck_assert_int_eq(probe_sampling_run(&sampling, NULL, seed, ask_halved, NULL, &outcome), 0);
        missed += outcome.measured_count < pairs;
        free(outcome.values);
        free(outcome.measured);
    }
    ck_assert_msg(missed <= SEEDS / 100, "%zu of %d", missed, SEEDS);
    ck_assert_uint_lt(probe_sampling_planned(&sampling, NULL), pairs / 4);
}

TEST(where_there_are_no_groups_all_are_measured)
{
    struct flat flat = {.disorder = true};
    run_flat(&flat);
    ck_assert_uint_eq(flat.asked, probe_pair_count(MANY));
}

/* The same as a machine with noise: messages come to the same groups in a fraction of the time. */
TEST(layers_of_a_flat_machine_of_many_pus_are_found_in_time)
{
    static const double limit_s = 30; /* all pairs in two sweeps took 76 s */
    struct machine machine;
    FREED_BY(profile_communication_free) struct profile_communication found;
    open_machine_with(
        &machine, 1,
        "{'servet_machine': 1, 'pus': '0-255', " SOME_CACHE ", 'memory': {'seconds': 1e-7, "
        "'pu_bytes_per_s': 1e10}, 'layers': [{'groups': [%s], 'seconds': 3e-7, 'bytes_per_s': 9e9, "
        "'parallel': 1}, {'groups': [%s], 'seconds': 9e-7, 'bytes_per_s': 7e9, 'parallel': 1}, "
        "{'groups': [%s], 'seconds': 3e-6, 'bytes_per_s': 4e9, 'parallel': 1}], 'noise': "
        "{'relative': 0.02, 'outlier_probability': 0.03, 'outlier_factor': 3}}",
        groups_of(MANY, GROUP), groups_of(MANY, MANY / 2), groups_of(MANY, MANY));
    struct probe probe = {
        .machine = &machine, .seed = 1, .declared = &machine.declared->classes[0]};
    ck_assert_int_eq(probe_message(&probe, 32 << 10, &found, NULL), 0);
    ck_assert_uint_eq(found.layer_count, 3);
    ck_assert_uint_eq(found.layers[0].members.group_count, MANY / GROUP);
    ck_assert_uint_eq(found.layers[1].members.group_count, 2);
    ck_assert_uint_eq(found.layers[2].members.group_count, 1);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(found.layers[i].members.pair_count, 0);
    }
    ck_assert_double_lt(probe_machine_elapsed(&machine), limit_s);
}

/* A machine with a clock and nothing else. */
static double ticking(struct machine *machine)
{
    return (double)(*(size_t *)machine->state)++;
}

/* All 64 PUs by a clock that begins at `ticks`; it is late from 10 on. `values` and `measured` hold
 * what came of it. */
static struct sampling_outcome run_until_late(size_t ticks, bool exhaustive, struct probe *probe)
{
    static const struct machine_ops ops = {.elapsed = ticking};
    struct machine clock = {.ops = &ops, .state = &ticks};
    *probe = (struct probe){.machine = &clock, .deadline = 10};
    struct profile_set pus = pus_up_to(PUS - 1);
    struct sampling sampling;
    struct world world = {0};
    struct sampling_outcome outcome = {.values = values, .measured = measured};
    ck_assert_int_eq(probe_sampling_init(&sampling, &pus, NULL), 0);
    sampling.exhaustive = exhaustive;
    sampling.probe = probe;
    ck_assert_int_eq(probe_sampling_run(&sampling, NULL, 3, ask, &world, &outcome), 0);
    probe_sampling_free(&sampling);
    probe->machine = NULL; /* it was this call's */
    return outcome;
}

TEST(a_late_probe_stops_and_says_so)
{
    struct probe probe;
    struct sampling_outcome outcome = run_until_late(0, true, &probe);
    ck_assert_uint_ge(outcome.measured_count, 2);
    ck_assert_uint_lt(outcome.measured_count, 20);
    ck_assert_uint_eq(outcome.planned_count, PAIRS);
    ck_assert(outcome.cut_short);
    for (size_t k = 0; k < PAIRS; k++) {
        ck_assert(values[k] > 0); /* the others take over what there is */
    }
    FREED char *note;
    ck_assert_int_eq(probe_sampling_note(&outcome, &note), 0);
    ck_assert_ptr_nonnull(strstr(note, "cut short by the budget"));
    ck_assert_uint_eq(probe.pairs.planned, 0);
}

TEST(however_late_it_is_every_class_has_a_figure)
{
    struct probe probe;
    struct sampling_outcome outcome = run_until_late(100, false, &probe);
    ck_assert_uint_eq(outcome.measured_count, 1);
    ck_assert(outcome.cut_short);
    for (size_t k = 0; k < PAIRS; k++) {
        ck_assert(values[k] > 0);
    }
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
    struct profile_set pus = pus_up_to(ANSWERING - 1);
    double *found = calloc(ANSWERING_PAIRS, sizeof *found);
    bool *is_measured = calloc(ANSWERING_PAIRS, sizeof *is_measured);
    struct sampling_outcome outcome = {.values = found, .measured = is_measured};
    struct sampling sampling;
    world.times = calloc(ANSWERING_PAIRS, 1);
    ck_assert_int_eq(probe_sampling_init(&sampling, &pus, NULL), 0);
    sampling.strategy = row ? SAMPLING_ROWS : SAMPLING_RANDOM;
    sampling.agree = probe_sampling_equal;
    sampling.answers = true;
    ck_assert_int_eq(probe_sampling_run(&sampling, NULL, seed, answer, &world, &outcome), 0);
    for (size_t i = 0, k = 0; i < ANSWERING; i++) {
        for (size_t j = i + 1; j < ANSWERING; j++, k++) {
            ck_assert_msg(found[k] == (belong(&world, i, j) ? PAIR_TOGETHER : PAIR_APART),
                          "%zu and %zu, seed %d", i, j, (int)seed);
        }
    }
    probe_sampling_free(&sampling);
    free(found);
    free(is_measured);
    free(world.times);
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
