/* Does measuring cache sizes end when the time granted is over, on the machine's own clock, and is
 * what it then says of them still true? */
#include "probes/cache/probe.h"
#include "probes/pairs/messages.h"
#include "probes/run/result.h"
#include "probes/run/run.h"
#include "profile/codec/codec.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

static const char *const names[] = {"two-packages", "dempsey"};
enum { NAMES = sizeof names / sizeof *names };
/* Share of the time granted by which an estimate of the next sweep may be off. */
static const double overshoot = 1.2;

static double elapsed_s;

/* Measured until `deadline_s` after the start; 0: without end. */
static struct probe_cache measure(const char *name, double deadline_s)
{
    struct probe_cache found;
    open_machine_of(name);
    probe.deadline = deadline_s;
    ck_assert_int_eq(probe_cache(&probe, machine.pus.ids[0], &found, NULL), 0);
    elapsed_s = probe_machine_elapsed(&machine);
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
    FREED_BY(probe_cache_free) struct probe_cache all = measure(names[_i], 0);
    double full_s = elapsed_s;
    FREED_BY(probe_cache_free) struct probe_cache least = measure(names[_i], 0.001);
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
        ck_assert_uint_eq(least.levels[i].line_bytes, 0);
        double ratio = (double)least.levels[i].size_bytes / (double)all.levels[i].size_bytes;
        ck_assert_double_lt(fabs(log2(ratio)), 0.5);
    }
}

/* A quota that runs out during every operation. */
static struct machine_times times_throttled(struct machine *subject)
{
    static double periods;
    (void)subject;
    return (struct machine_times){.throttled = ++periods};
}

/* With so many of its three caches declared, the last one as so many times as large. */
static struct probe_cache measure_throttled(double deadline_s, size_t declared, uint32_t times)
{
    struct probe_cache found;
    open_machine_of("two-packages");
    replace_operations()->times = times_throttled;
    machine.cpu_quota = 0.5;
    machine.declared->classes[0].cache_count = declared;
    machine.declared->classes[0].caches[declared - 1].declared_size_bytes *= times;
    probe.deadline = deadline_s;
    ck_assert_int_eq(probe_cache(&probe, machine.pus.ids[0], &found, NULL), 0);
    ck_assert_uint_gt(machine.guard.throttled, 0);
    probe_cache_curve_free(&found.curve);
    machine.declared->classes[0].cache_count = 3; /* to be freed */
    return found;
}

TEST(in_a_quota_that_runs_out_levels_count_as_far_as_they_are_declared)
{
    static const struct {
        double deadline_s;
        size_t declared, levels;
        uint32_t times;
    } cases[] = {{0.001, 3, 3, 1}, {0.001, 2, 2, 1}, {0.001, 3, 2, 5}, /* one sweep */
                 {0, 3, 3, 1},     {0, 2, 2, 1},     {0, 3, 3, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct probe_cache found =
            measure_throttled(cases[i].deadline_s, cases[i].declared, cases[i].times);
        ck_assert_uint_eq(found.count, cases[i].levels);
        ck_assert_uint_eq(found.unconfirmed, 3 - cases[i].levels);
    }
}

TEST(it_ends_in_time_and_uses_it, .loops = NAMES)
{
    probe_cache_free((struct probe_cache[]){measure(names[_i], 0.001)});
    const double least_s = elapsed_s;
    uint32_t sweeps = 0;
    for (double granted_s = 0.9; granted_s < 20; granted_s *= 4) {
        FREED_BY(probe_cache_free) struct probe_cache found = measure(names[_i], granted_s);
        ck_assert_double_le(elapsed_s, overshoot * fmax(least_s, granted_s));
        ck_assert_uint_ge(found.sweeps, sweeps);
        sweeps = found.sweeps;
        ck_assert(found.shortened || sweeps == 3);
        ck_assert_uint_eq(found.levels[0].repetitions, sweeps + 1);
        ck_assert_uint_eq(found.tlb.repetitions, sweeps + 1);
    }
    ck_assert_uint_eq(sweeps, 3);
}

TEST(without_a_budget_nothing_is_left_out)
{
    FREED_BY(probe_cache_free) struct probe_cache all = measure("two-packages", 0);
    ck_assert(!all.shortened);
    ck_assert_uint_eq(all.sweeps, 3);
    ck_assert_uint_eq(all.coarse, 0);
    ck_assert_uint_gt(all.levels[0].line_bytes, 0);
}

/* -- messages that never settle, each of which takes a second -- */

static size_t exchanges;

EXCHANGE(ever_faster)
{
    exchanges++;
    for (size_t i = 0; i < count; i++) {
        seconds[i] = 1e-3 / pow(2, (double)exchanges);
    }
    return 0;
}

static double second_each(struct machine *subject)
{
    (void)subject;
    return (double)exchanges;
}

/* A machine of two PUs. */
static struct machine_ops *open_pair(void)
{
    open_machine_of("two-packages");
    machine.pus.count = 2;
    return replace_operations();
}

TEST(messages_that_do_not_settle_are_not_asked_again_after_the_deadline)
{
    FREED_BY(profile_communication_free) struct profile_communication found;
    struct machine_ops *ops = open_pair();
    ops->exchange = ever_faster;
    ops->elapsed = second_each;
    ops->times = NULL;
    exchanges = 0;
    /* two of the first sweep, and one of the second */
    probe.deadline = 3.5;
    ck_assert_int_eq(probe_message(&probe, 64, &found, NULL), 0);
    ck_assert_uint_eq(exchanges, 3);
}

/* -- the time is over in one of the exchanges -- */

static size_t over_from;

EXCHANGE(over_then)
{
    int rc = ever_faster(subject, what, pairs, count, seconds);
    return exchanges >= over_from ? -ETIME : rc;
}

TEST(messages_that_were_measured_stay_whenever_the_time_is_over)
{
    struct profile_communication found;
    open_pair()->exchange = over_then;
    over_from = 1;
    ck_assert_int_eq(probe_message(&probe, 64, &found, NULL), -ETIME);
    for (over_from = 2; over_from <= 30; over_from++) {
        exchanges = 0;
        ck_assert_int_eq(probe_message(&probe, 64, &found, NULL), 0);
        ck_assert_uint_eq(found.layer_count, 1);
        ck_assert_double_gt(found.layers[0].seconds, 0);
        ck_assert_uint_ne(found.layers[0].curve_count, 1); /* nothing is interpolated */
        profile_communication_free(&found);
    }
}

/* -- whole runs where everything takes thirty times as long, as in an emulator -- */

static const double slower = 30;
static double given_up_s; /* of operations that the machine's time ended */

static double elapsed(struct machine *subject)
{
    return slower * honest->elapsed(subject) - given_up_s;
}

/* As native operations, they do not go on beyond the machine's time. */
static int ended(struct machine *subject, int rc)
{
    const double over_s = subject->until_s > 0 ? elapsed(subject) - subject->until_s : 0;
    given_up_s += over_s > 0 ? over_s : 0;
    return rc == 0 && over_s > 0 ? -ETIME : rc;
}

TRAVERSE(traverse)
{
    int rc = honest->traverse(subject, what, pus, count, seconds);
    for (size_t i = 0; i < count && rc == 0; i++) {
        seconds[i] *= slower;
    }
    return ended(subject, rc);
}

COPY(copy)
{
    int rc = honest->copy(subject, what, pus, count, rates);
    for (size_t i = 0; i < count && rc == 0; i++) {
        rates[i] /= slower;
    }
    return ended(subject, rc);
}

EXCHANGE(exchange)
{
    int rc = honest->exchange(subject, what, pairs, count, seconds);
    for (size_t i = 0; i < count && rc == 0; i++) {
        seconds[i] *= slower;
    }
    return ended(subject, rc);
}

TEST(a_slow_machine_keeps_to_the_budget_within_half_of_it, .loops = 6)
{
    static const char *const machines[] = {"two-packages", "epyc-7402", "dunnington"};
    static const double budgets_s[] = {5, 30};
    const double budget_s = budgets_s[_i % 2];
    open_machine_of(machines[_i / 2]);
    given_up_s = 0;
    struct machine_ops *slow = replace_operations();
    slow->traverse = traverse;
    slow->copy = copy;
    slow->exchange = exchange;
    slow->elapsed = elapsed;
    const struct servet_profile *profile =
        run_probes((struct probe_run){.probes = PROBE_ALL, .budget_s = budget_s});
    ck_assert_double_le(probe_machine_elapsed(&machine), 1.5 * budget_s);
    ck_assert_double_gt((double)profile->classes[0].caches[0].size_bytes, 0);
}

TEST(operations_end_a_little_after_the_budget)
{
    struct probe_run run = {.machine = &machine, .budget_s = 10};
    struct probe_results results = {.run = &run};
    open_machine_of("two-packages");
    probe_budget_start(&results);
    ck_assert_double_eq(results.until_s, 10);
    ck_assert(machine.until_s > 10 && machine.until_s < 15);
    run.budget_s = 0;
    probe_budget_start(&results);
    ck_assert(results.until_s <= 0 && machine.until_s <= 0);
    run.budget_s = 0.01; /* the least there is */
    probe_budget_start(&results);
    ck_assert(results.until_s > 0 && machine.until_s <= 0);
}

/* -- what is decided by how much time there is -- */

/* Busy workers are described in the machine file. */
static double others_now;

static double others(struct machine *subject)
{
    (void)subject;
    return others_now;
}

static double clock_now;

static double clock_of(struct machine *subject)
{
    (void)subject;
    return clock_now;
}

/* Its conditions on time and other processes belong to the run. */
static void open_on_our_clock(void)
{
    open_machine_of("two-packages");
    struct machine_ops *ops = replace_operations();
    ops->others = others;
    ops->elapsed = clock_of;
}

/* Whatever is begun takes as long as operations may, and time after them. */
TEST(a_step_leaves_those_after_it_their_least)
{
    struct progress progress = {.events = -1};
    open_on_our_clock();
    size_t all = 0;
    for (others_now = 0; others_now < 40; others_now += 3) {
        for (double budget_s = 2; budget_s < 300; budget_s *= 1.2) {
            const struct probe_run run = {.machine = &machine,
                                          .budget_s = budget_s,
                                          .probes = PROBE_ALL,
                                          .progress = &progress};
            struct probe_results results = {.run = &run, .probe = {.machine = &machine}};
            bool before = false;
            clock_now = 0.02;
            probe_budget_start(&results);
            for (unsigned step = PROBE_CACHE; step < PROBE_ALL; step <<= 1) {
                const bool begun = probe_budget_begins(&results, step);
                ck_assert_msg(begun || !before || step == PROBE_SHARING,
                              "%u is left out of %g s beside %g others", step, budget_s,
                              others_now);
                before |= begun;
                clock_now = begun ? fmax(clock_now, machine.until_s - 1e-3) : clock_now;
            }
            ck_assert_double_le(clock_now, 1.5 * budget_s);
            all += results.left_out == 0;
        }
    }
    ck_assert_uint_gt(all, 100);
}

TEST(an_idle_machine_has_every_step_from_five_seconds_on)
{
    struct progress progress = {.events = -1};
    open_on_our_clock();
    others_now = 0;
    for (double budget_s = 5; budget_s < 100; budget_s *= 1.5) {
        const struct probe_run run = {
            .machine = &machine, .budget_s = budget_s, .probes = PROBE_ALL, .progress = &progress};
        struct probe_results results = {.run = &run, .probe = {.machine = &machine}};
        clock_now = 0.3;
        probe_budget_start(&results);
        for (unsigned step = PROBE_CACHE; step <= PROBE_REPEATS; step <<= 1) {
            ck_assert(probe_budget_begins(&results, step));
            clock_now = fmax(clock_now, results.probe.deadline);
        }
        ck_assert_uint_eq(results.step, probe_budget_steps(&run));
        ck_assert_double_le(clock_now, 1.2 * budget_s);
    }
}

/* A quota that leaves too few workers for it waits for nothing. */
TEST(what_a_quota_forbids_takes_no_step)
{
    const struct probe_run run = {
        .probes = PROBE_ALL & ~(unsigned)PROBE_DEVICE, .budget_s = 10, .machine = &machine};
    open_machine_of("two-packages");
    machine.cpu_quota = 1.5;
    ck_assert_uint_eq(probe_budget_steps(&run), 3); /* caches, memory, repetitions */
    const struct servet_profile *profile = run_probes(run);
    ck_assert_int_eq(profile->classes[0].caches[0].quality.origin, PROFILE_MEASURED);
    ck_assert_double_gt(profile->classes[0].memory.reference_bytes_per_s, 0);
    const char *budget = profile_condition(profile, "budget");
    ck_assert(!budget || !strstr(budget, "not measured"));
}

TESTS(.seconds = 400)
