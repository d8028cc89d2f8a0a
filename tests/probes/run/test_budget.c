/* Does measuring cache sizes end when the time granted is over, on the machine's own clock, and is
 * what it then says of them still true? */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/cache/cache.h"
#include "probes/pairs/memory.h"
#include "probes/run/run.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

static const char *const names[] = {"two-packages", "dempsey"};
enum { NAMES = sizeof names / sizeof *names };
/* Of the time granted: an estimate of the next sweep may be off by so much. */
static const double overshoot = 1.2;

static double elapsed_s;

/* Measured until `deadline_s` after the start; 0: without end. */
static struct probe_cache measure(const char *name, double deadline_s)
{
    char path[4096];
    struct machine machine;
    struct servet_error error;
    struct probe_cache found;
    snprintf(path, sizeof path, "%s/%s.json", getenv("MACHINES"), name);
    ck_assert_msg(probe_machine_open_simulated(path, 1, &machine, &error) == 0, "%s", error.text);
    struct probe probe = {.machine = &machine, .seed = 1, .deadline = deadline_s};
    ck_assert_int_eq(probe_cache(&probe, machine.pus.ids[0], &found, NULL), 0);
    elapsed_s = probe_machine_elapsed(&machine);
    probe_machine_close(&machine);
    return found;
}

static uint32_t repetitions_at_most(const struct cache_curve *curve)
{
    uint32_t most = 0;
    for (size_t i = 0; i < curve->count; i++) {
        most = curve->repetitions[i] > most ? curve->repetitions[i] : most;
    }
    return most;
}

TEST(the_least_is_a_look_at_every_other_size_and_says_so, .loops = NAMES)
{
    struct probe_cache all = measure(names[_i], 0);
    double full_s = elapsed_s;
    struct probe_cache least = measure(names[_i], 0.001);
    ck_assert_double_lt(elapsed_s, full_s / 8);
    ck_assert_uint_eq(least.sweeps, 0);
    ck_assert_uint_eq(least.coarse, 1);
    ck_assert(least.shortened);
    ck_assert_uint_le(least.curve.count, all.curve.count / 2 + 1);
    ck_assert_uint_le(repetitions_at_most(&least.curve), 3);
    ck_assert_uint_eq(least.tlb.repetitions, 1);
    ck_assert_uint_eq(least.count, all.count);
    for (size_t i = 0; i < least.count; i++) {
        ck_assert_uint_eq(least.levels[i].repetitions, 1);
        ck_assert_uint_eq(least.levels[i].ways, 0);
        ck_assert(i > 1 || strcmp(least.levels[i].ways_unknown, "the budget was used up") == 0);
        double ratio = (double)least.levels[i].size_bytes / (double)all.levels[i].size_bytes;
        ck_assert_double_lt(fabs(log2(ratio)), 0.5);
    }
    probe_cache_free(&all);
    probe_cache_free(&least);
}

TEST(it_ends_in_time_and_uses_it, .loops = NAMES)
{
    probe_cache_free((struct probe_cache[]){measure(names[_i], 0.001)});
    const double least_s = elapsed_s;
    uint32_t sweeps = 0;
    for (double granted_s = 0.9; granted_s < 20; granted_s *= 4) {
        struct probe_cache found = measure(names[_i], granted_s);
        ck_assert_double_le(elapsed_s, overshoot * fmax(least_s, granted_s));
        ck_assert_uint_ge(found.sweeps, sweeps);
        sweeps = found.sweeps;
        ck_assert(found.shortened || sweeps == 3);
        ck_assert_uint_eq(found.levels[0].repetitions, sweeps + 1);
        ck_assert_uint_eq(found.tlb.repetitions, sweeps + 1);
        probe_cache_free(&found);
    }
    ck_assert_uint_eq(sweeps, 3);
}

TEST(without_a_budget_nothing_is_left_out)
{
    struct probe_cache all = measure("two-packages", 0);
    ck_assert(!all.shortened);
    ck_assert_uint_eq(all.sweeps, 3);
    ck_assert_uint_eq(all.coarse, 0);
    ck_assert_uint_gt(all.levels[0].ways, 0);
    probe_cache_free(&all);
}

/* -- arrays of the last level's size where there is no time to touch larger ones -- */

static struct probe_estimate estimate_of(struct machine *machine, bool native)
{
    const struct probe probe = {.machine = machine, .declared = &machine->declared->classes[0]};
    struct probe_estimate estimate;
    ck_assert_int_eq(probe_estimate_make(&probe, native, false, &estimate), 0);
    return estimate;
}

TEST(in_a_hurry_arrays_are_of_the_last_level_and_never_without)
{
    struct machine machine;
    open_machine_of("epyc-7402", &machine);
    const struct probe calm = {.machine = &machine},
                       hurried = {.machine = &machine, .hurried = true};
    const size_t last = 100u << 20;
    ck_assert_uint_eq(probe_memory_bytes(&hurried, last), last);
    ck_assert_uint_gt(probe_memory_bytes(&calm, last), last);
    ck_assert_uint_eq(probe_memory_bytes(&hurried, 1u << 20), probe_memory_bytes(&calm, 1u << 20));
    probe_machine_close(&machine);
}

TEST(the_least_of_memory_is_with_arrays_of_a_hurry)
{
    struct machine machine;
    struct probe_estimate native, simulated_one;
    open_machine_of("epyc-7402", &machine);
    native = estimate_of(&machine, true);
    simulated_one = estimate_of(&machine, false);
    ck_assert_double_lt(native.touch_least_s, native.touch_s);
    ck_assert_double_lt(native.memory_least_s, native.unhurried_least_s);
    ck_assert(probe_estimate_hurries(&native, 0.9 * native.unhurried_least_s));
    ck_assert(!probe_estimate_hurries(&native, 1.1 * native.unhurried_least_s));
    ck_assert(!probe_estimate_hurries(&native, INFINITY));
    /* nothing has to be touched there */
    ck_assert(simulated_one.memory_least_s == simulated_one.unhurried_least_s);
    ck_assert(!probe_estimate_hurries(&simulated_one, 0));
    probe_machine_close(&machine);
}

/* -- messages that never settle, each of which takes a second -- */

static size_t exchanges;

static int ever_faster(struct machine *machine, const struct machine_exchange *what,
                       const struct profile_pair *pairs, size_t count, double *seconds)
{
    (void)machine, (void)what, (void)pairs;
    exchanges++;
    for (size_t i = 0; i < count; i++) {
        seconds[i] = 1e-3 / pow(2, (double)exchanges);
    }
    return 0;
}

static double second_each(struct machine *machine)
{
    (void)machine;
    return (double)exchanges;
}

TEST(messages_that_do_not_settle_are_not_asked_again_after_the_deadline)
{
    struct machine machine;
    struct servet_error error;
    struct profile_communication found;
    open_machine_of("two-packages", &machine);
    const size_t all = machine.pus.count;
    struct machine_ops ops = *machine.ops;
    ops.exchange = ever_faster;
    ops.elapsed = second_each;
    ops.disturbed = NULL;
    machine.ops = &ops;
    machine.pus.count = 2;
    exchanges = 0;
    /* two of the first sweep, and one of the second */
    struct probe probe = {.machine = &machine, .seed = 1, .deadline = 3.5};
    ck_assert_int_eq(probe_message(&probe, 64, &found, &error), 0);
    ck_assert_uint_eq(exchanges, 3);
    probe_message_free(&found);
    machine.pus.count = all;
    probe_machine_close(&machine);
}

/* -- whole runs where everything takes thirty times as long, as in an emulator -- */

static const struct machine_ops *simulated;
static const double slower = 30;

static int traverse(struct machine *machine, const struct machine_traversal *what,
                    const uint32_t *pus, size_t count, double *seconds)
{
    int rc = simulated->traverse(machine, what, pus, count, seconds);
    for (size_t i = 0; i < count && rc == 0; i++) {
        seconds[i] *= slower;
    }
    return rc;
}

static int copy(struct machine *machine, const struct machine_copy *what, const uint32_t *pus,
                size_t count, double *rates)
{
    int rc = simulated->copy(machine, what, pus, count, rates);
    for (size_t i = 0; i < count && rc == 0; i++) {
        rates[i] /= slower;
    }
    return rc;
}

static int exchange(struct machine *machine, const struct machine_exchange *what,
                    const struct profile_pair *pairs, size_t count, double *seconds)
{
    int rc = simulated->exchange(machine, what, pairs, count, seconds);
    for (size_t i = 0; i < count && rc == 0; i++) {
        seconds[i] *= slower;
    }
    return rc;
}

static double elapsed(struct machine *machine)
{
    return slower * simulated->elapsed(machine);
}

TEST(a_slow_machine_keeps_to_the_budget_within_half_of_it, .loops = 6)
{
    static const char *const machines[] = {"two-packages", "epyc-7402", "dunnington"};
    static const double budgets_s[] = {5, 30};
    struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    struct progress progress = {.events = -1};
    const double budget_s = budgets_s[_i % 2];
    open_machine_of(machines[_i / 2], &machine);
    simulated = machine.ops;
    struct machine_ops slow = *simulated;
    slow.traverse = traverse;
    slow.copy = copy;
    slow.exchange = exchange;
    slow.elapsed = elapsed;
    machine.ops = &slow;
    struct probe_run run = {.probes = PROBE_ALL,
                            .seed = 1,
                            .budget_s = budget_s,
                            .machine = &machine,
                            .progress = &progress};
    ck_assert_msg(probe_run_run(&run, &profile, &error) == 0, "%s", error.text);
    ck_assert_msg(profile_check(profile, &error) == 0, "%s", error.text);
    ck_assert_double_le(probe_machine_elapsed(&machine), 1.5 * budget_s);
    ck_assert_double_gt(run.expected_s, budget_s);
    ck_assert_double_gt((double)profile->classes[0].caches[0].size_bytes, 0);
    probe_machine_close(&machine);
    profile_free(profile);
}

TESTS(.seconds = 120)
