/* Are disjoint pairs measured at the same time where they do not disturb one another, one by one
 * where they do, and are the figures those of pairs alone in both cases? */
#include "probes/machine.h"
#include "probes/memory/memory.h"
#include "probes/pairs/messages.h"
#include "probes/pairs/partition.h"
#include "probes/pairs/sample.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

enum { PUS = 32, PACKAGE = 8 };

/* Four packages of eight PUs. `parallel`: messages that a package, and the node, carry at once
 * without slowing down; `domain`: what the PUs of a package may copy together. */
static void open_machine(double parallel, double domain)
{
    open_machine_with(
        3,
        "'pus': '0-31', 'packages': [%s], 'memory': {'seconds': 1e-7, 'pu_bytes_per_s': 1e10, "
        "'domains': [{'groups': [%s], 'bytes_per_s': [{'bytes_per_s': %g}]}]}, 'layers': "
        "[{'groups': [%s], 'seconds': "
        "4e-7, 'bytes_per_s': 9e9, 'parallel': %g}, "
        "{'groups': ['0-31'], 'seconds': 9e-7, 'bytes_per_s': 4e9, 'parallel': %g}], "
        "'noise': {'relative': 0.02, 'outlier_probability': 0.02, 'outlier_factor': 3}",
        groups_of(PUS, PACKAGE), groups_of(PUS, PACKAGE), domain, groups_of(PUS, PACKAGE), parallel,
        parallel);
}

static void all_pairs(bool one_by_one)
{
    probe.declared = &machine.declared->classes[0];
    probe.exhaustive = true;
    probe.one_by_one = one_by_one;
}

static struct profile_communication messages(bool one_by_one, double *seconds)
{
    struct profile_communication found;
    all_pairs(one_by_one);
    double before = probe_machine_elapsed(&machine);
    ck_assert_int_eq(probe_message(&probe, 32 << 10, &found, NULL), 0);
    *seconds = probe_machine_elapsed(&machine) - before;
    ck_assert_uint_eq(found.layer_count, 2);
    /* Noise only lengthens: of the truth, no less, and not as much more as a disturbed pair has. */
    const double truth[] = {4e-7 + 32768 / 9e9, 9e-7 + 32768 / 4e9};
    for (size_t i = 0; i < 2; i++) {
        ck_assert_double_ge(found.layers[i].seconds, truth[i]);
        ck_assert_double_lt(found.layers[i].seconds, 1.05 * truth[i]);
    }
    return found;
}

static bool says_together(const struct profile_quality *quality)
{
    return quality->note && strstr(quality->note, "disjoint pairs measured at a time");
}

TEST(pairs_that_do_not_disturb_are_measured_together)
{
    double together_s, alone_s;
    open_machine(16, 1e12);
    struct profile_communication found = messages(false, &together_s);
    ck_assert(says_together(&found.layers[0].quality));
    profile_communication_free(&found);
    found = messages(true, &alone_s);
    ck_assert(!says_together(&found.layers[0].quality));
    ck_assert_msg(together_s < alone_s / 3, "%g s against %g s", together_s, alone_s);
    profile_communication_free(&found);
}

TEST(pairs_that_disturb_are_measured_one_by_one)
{
    double together_s, alone_s;
    open_machine(1, 1e12); /* every message beside another one of its package slows both down */
    struct profile_communication found = messages(false, &together_s);
    /* Packages have links of their own: one pair in each is the most; between packages there is one
     * link. */
    ck_assert(says_together(&found.layers[0].quality));
    ck_assert_ptr_nonnull(strstr(found.layers[0].quality.note, "up to 4 disjoint pairs"));
    profile_communication_free(&found);
    found = messages(true, &alone_s);
    ck_assert_double_lt(together_s, alone_s);
    ck_assert_double_gt(together_s, alone_s / 2); /* most pairs are between packages */
    profile_communication_free(&found);
}

static int take_a_second(void *argument, const struct pair_position *pairs, size_t count,
                         double *seconds, double *figures)
{
    (void)argument;
    (void)pairs;
    for (size_t k = 0; k < count; k++) {
        seconds[k] = figures[k] = 1;
    }
    return 0;
}

/* A sample of twenty pairs is measured sooner than tried. */
TEST(a_check_that_costs_more_than_it_saves_is_not_made)
{
    enum { PAIRS = 496 };
    double values[PAIRS];
    bool measured[PAIRS];
    struct sampling_outcome outcome = {.values = values, .measured = measured};
    FREED_BY(probe_sampling_free) struct sampling sampling;
    open_machine(16, 1e12);
    ck_assert_int_eq(probe_sampling_init(&sampling, &machine.pus, &machine.declared->classes[0]),
                     0);
    sampling.at_once = CONCURRENT_MOST;
    ck_assert_int_eq(probe_sampling_run(&sampling, NULL, 1, take_a_second, NULL, &outcome), 0);
    ck_assert_uint_eq(outcome.measured_count, 40);
    ck_assert_uint_eq(outcome.most_at_once, 1);
}

static void copies(bool one_by_one, size_t levels, double *seconds, bool *together)
{
    FREED_BY(probe_memory_free) struct probe_memory found;
    all_pairs(one_by_one);
    double before = probe_machine_elapsed(&machine);
    ck_assert_int_eq(probe_memory(&probe, 8 << 20, &found, NULL), 0);
    *seconds = probe_machine_elapsed(&machine) - before;
    ck_assert_uint_eq(found.memory.level_count, levels);
    if (levels > 0) {
        ck_assert_uint_eq(found.memory.levels[0].collisions.group_count, PUS / PACKAGE);
        ck_assert_double_eq_tol(found.memory.levels[0].bytes_per_s, 6e9, 0.4e9);
        *together = says_together(&found.memory.levels[0].quality);
    }
}

TEST(copies_run_beside_those_of_other_packages_only)
{
    double together_s, alone_s;
    bool together;
    open_machine(16, 1.2e10);
    copies(true, 1, &alone_s, &together);
    ck_assert(!together);
    copies(false, 1, &together_s, &together);
    ck_assert(together);
    ck_assert_msg(together_s < 0.8 * alone_s, "%g s against %g s", together_s, alone_s);
}

/* -- batches -- */

TEST(a_batch_is_disjoint_and_no_larger_than_allowed)
{
    FREED_BY(probe_concurrent_free) struct concurrent units;
    struct pair_position pairs[PUS * (PUS - 1) / 2];
    size_t count = 0;
    open_machine(1, 1e12);
    ck_assert_int_eq(probe_concurrent_init(&units, &machine.pus, &machine.declared->classes[0]), 0);
    ck_assert_uint_eq(units.count, 2); /* packages, PUs */
    for (size_t i = 0; i < PUS; i++) {
        for (size_t j = i + 1; j < PUS; j++) {
            pairs[count++] = (struct pair_position){i, j};
        }
    }
    for (size_t most = 2; most <= PUS / 2; most *= 2) {
        const struct concurrent_limit limit = {.pairs = most, .partition = 1};
        size_t touched[PUS] = {0};
        size_t batch = probe_concurrent_compose(&units, &limit, pairs, count);
        ck_assert_uint_gt(batch, 1);
        ck_assert_uint_le(batch, most);
        for (size_t k = 0; k < batch; k++) {
            ck_assert_uint_eq(touched[pairs[k].i]++, 0);
            ck_assert_uint_eq(touched[pairs[k].j]++, 0);
        }
    }
    const struct concurrent_limit apart = {.pairs = 64, .partition = 0}, alone = {.pairs = 1};
    ck_assert_uint_le(probe_concurrent_compose(&units, &apart, pairs, count), PUS / PACKAGE);
    ck_assert_uint_eq(probe_concurrent_compose(&units, &alone, pairs, count), 1);
}

TEST(ratios_are_judged_by_the_measured_spread)
{
    double calm[] = {0.004, -0.003, 0.002, -0.001}, rough[] = {0.06, -0.08, 0.05, -0.07};
    double slower[] = {0.05, 0.06, 0.04}, doubled[] = {0.69, 0.7, 0.68},
           one_outlier[] = {0.001, 1.1, -0.002};
    ck_assert(!probe_concurrent_undisturbed(slower, 3, calm, 4));
    ck_assert(probe_concurrent_undisturbed(slower, 3, rough, 4));
    ck_assert(!probe_concurrent_undisturbed(doubled, 3, rough, 4));
    ck_assert(probe_concurrent_undisturbed(one_outlier, 3, calm, 4));
    double wild[] = {1, -1, 2, -2}, tenth[] = {0.15, 0.16, 0.17};
    ck_assert(
        !probe_concurrent_undisturbed(tenth, 3, wild, 4)); /* noise does not excuse everything */
}

/* A class of two kinds: pairs of the lower half of the PUs are slow, and disturb one another. */
static size_t asked;

static int two_kinds(void *argument, const struct pair_position *pairs, size_t count,
                     double *values, double *figures)
{
    size_t slow = 0;
    (void)argument;
    asked++;
    for (size_t k = 0; k < count; k++) {
        slow += pairs[k].j < PUS / 2;
    }
    for (size_t k = 0; k < count; k++) {
        figures[k] = values[k] = pairs[k].j < PUS / 2 ? 5e-6 * (double)slow : 1e-6;
    }
    return 0;
}

TEST(pairs_of_another_kind_than_the_checked_ones_are_measured_alone)
{
    enum { PAIRS = PUS * (PUS - 1) / 2 };
    static double values[PAIRS];
    static bool measured[PAIRS];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const struct profile_set pus = set_of("0-31");
        FREED_BY(probe_sampling_free) struct sampling sampling;
        struct sampling_outcome outcome = {.values = values, .measured = measured};
        ck_assert_int_eq(probe_sampling_init(&sampling, &pus, NULL), 0);
        sampling.exhaustive = true;
        sampling.at_once = CONCURRENT_MOST;
        ck_assert_int_eq(probe_sampling_run(&sampling, NULL, seed, two_kinds, NULL, &outcome), 0);
        for (size_t i = 0; i < PUS; i++) {
            for (size_t j = i + 1; j < PUS; j++) {
                double truth = j < PUS / 2 ? 5e-6 : 1e-6;
                ck_assert_double_eq_tol(values[probe_pair_index(PUS, i, j)], truth, 1e-12);
            }
        }
    }
}

/* Every message takes as long, however many there are: what counts is how many were tried. */
static size_t most_pairs;

EXCHANGE(exchange_alike)
{
    most_pairs = count > most_pairs ? count : most_pairs;
    for (size_t i = 0; i < count; i++) {
        seconds[i] = 1e-6;
    }
    return 0;
}

TEST(messages_at_a_time_go_up_to_all_pus)
{
    static const struct machine_ops ops = {.exchange = exchange_alike};
    struct machine alike = {.ops = &ops, .name = "alike", .pus = set_of("0-159")};
    FREED_BY(profile_communication_free) struct profile_communication found;
    probe = (struct probe){.machine = &alike, .seed = 1};
    most_pairs = 0;
    ck_assert_int_eq(probe_message(&probe, 1024, &found, NULL), 0);
    ck_assert_uint_eq(found.layer_count, 1);
    ck_assert_uint_eq(most_pairs, 80);
    const struct profile_layer *layer = &found.layers[0];
    ck_assert_uint_eq(layer->concurrency[layer->concurrency_count - 1].messages, 80);
}
