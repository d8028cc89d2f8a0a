/* Does measuring cache sizes end when the time granted is over, on the machine's own clock, and is
 * what it then says of them still true? */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/cache/cache.h"
#include "probes/pairs/memory.h"
#include "probes/run/run.h"
#include "profile/codec/codec.h"
#include "profile/query.h"
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

/* A machine of two PUs that answers by `ops`, as ever at first. Returns how many it had, which is
 * put back before it is closed. */
static size_t open_pair(struct machine *machine, struct machine_ops *ops)
{
    open_machine_of("two-packages", machine);
    const size_t all = machine->pus.count;
    *ops = *machine->ops;
    machine->ops = ops;
    machine->pus.count = 2;
    return all;
}

TEST(messages_that_do_not_settle_are_not_asked_again_after_the_deadline)
{
    struct machine machine;
    struct servet_error error;
    struct profile_communication found;
    struct machine_ops ops;
    const size_t all = open_pair(&machine, &ops);
    ops.exchange = ever_faster;
    ops.elapsed = second_each;
    ops.disturbed = NULL;
    exchanges = 0;
    /* two of the first sweep, and one of the second */
    struct probe probe = {.machine = &machine, .seed = 1, .deadline = 3.5};
    ck_assert_int_eq(probe_message(&probe, 64, &found, &error), 0);
    ck_assert_uint_eq(exchanges, 3);
    probe_message_free(&found);
    machine.pus.count = all;
    probe_machine_close(&machine);
}

/* -- the time is over in one of the exchanges -- */

static size_t over_from;

static int over_then(struct machine *machine, const struct machine_exchange *what,
                     const struct profile_pair *pairs, size_t count, double *seconds)
{
    int rc = ever_faster(machine, what, pairs, count, seconds);
    return exchanges >= over_from ? -ETIME : rc;
}

TEST(messages_that_were_measured_stay_whenever_the_time_is_over)
{
    struct machine machine;
    struct servet_error error;
    struct profile_communication found;
    struct machine_ops ops;
    const size_t all = open_pair(&machine, &ops);
    ops.exchange = over_then;
    for (over_from = 1; over_from <= 30; over_from++) {
        struct probe probe = {.machine = &machine, .seed = 1};
        exchanges = 0;
        ck_assert_int_eq(probe_message(&probe, 64, &found, &error), over_from > 1 ? 0 : -ETIME);
        ck_assert_uint_eq(over_from > 1 ? found.layer_count : 1, 1);
        for (size_t i = 0; over_from > 1 && i < found.layer_count; i++) {
            ck_assert_double_gt(found.layers[i].seconds, 0);
            ck_assert_uint_ne(found.layers[i].curve_count, 1); /* nothing is interpolated */
        }
        if (over_from > 1) {
            probe_message_free(&found);
        }
    }
    machine.pus.count = all;
    probe_machine_close(&machine);
}

/* -- whole runs where everything takes thirty times as long, as in an emulator -- */

static const struct machine_ops *simulated;
static const double slower = 30;
static double given_up_s; /* of operations that the machine's time ended */

static double elapsed(struct machine *machine)
{
    return slower * simulated->elapsed(machine) - given_up_s;
}

/* As native operations, they do not go on beyond the machine's time. */
static int ended(struct machine *machine, int rc)
{
    const double over_s = machine->until_s > 0 ? elapsed(machine) - machine->until_s : 0;
    given_up_s += over_s > 0 ? over_s : 0;
    return rc == 0 && over_s > 0 ? -ETIME : rc;
}

static int traverse(struct machine *machine, const struct machine_traversal *what,
                    const uint32_t *pus, size_t count, double *seconds)
{
    int rc = simulated->traverse(machine, what, pus, count, seconds);
    for (size_t i = 0; i < count && rc == 0; i++) {
        seconds[i] *= slower;
    }
    return ended(machine, rc);
}

static int copy(struct machine *machine, const struct machine_copy *what, const uint32_t *pus,
                size_t count, double *rates)
{
    int rc = simulated->copy(machine, what, pus, count, rates);
    for (size_t i = 0; i < count && rc == 0; i++) {
        rates[i] /= slower;
    }
    return ended(machine, rc);
}

static int exchange(struct machine *machine, const struct machine_exchange *what,
                    const struct profile_pair *pairs, size_t count, double *seconds)
{
    int rc = simulated->exchange(machine, what, pairs, count, seconds);
    for (size_t i = 0; i < count && rc == 0; i++) {
        seconds[i] *= slower;
    }
    return ended(machine, rc);
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
    given_up_s = 0;
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

/* -- whole runs that the machine's time ends -- */

static const struct machine_ops *whole;
static size_t most_copied; /* bytes of an array */

static int copy_alone(struct machine *machine, const struct machine_copy *what, const uint32_t *pus,
                      size_t count, double *rates)
{
    return count > 1 ? -ETIME : whole->copy(machine, what, pus, count, rates);
}

static int copy_noting(struct machine *machine, const struct machine_copy *what,
                       const uint32_t *pus, size_t count, double *rates)
{
    most_copied = what->bytes > most_copied ? what->bytes : most_copied;
    return whole->copy(machine, what, pus, count, rates);
}

static int run_with(struct machine *machine,
                    int (*copies)(struct machine *, const struct machine_copy *, const uint32_t *,
                                  size_t, double *),
                    struct probe_run *run, struct servet_profile **profile,
                    struct servet_error *error)
{
    static struct machine_ops ops;
    static struct progress progress = {.events = -1};
    whole = machine->ops;
    ops = *whole;
    ops.copy = copies;
    machine->ops = &ops;
    run->seed = 1;
    run->machine = machine;
    run->progress = &progress;
    return probe_run_run(run, profile, error);
}

static const char *condition(const struct servet_profile *profile, const char *key)
{
    for (size_t i = 0; i < profile->condition_count; i++) {
        if (strcmp(profile->conditions[i].key, key) == 0) {
            return profile->conditions[i].value;
        }
    }
    return "";
}

TEST(what_one_pu_gets_stays_and_declared_levels_are_not_taken_for_none)
{
    struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    struct probe_run run = {.probes = PROBE_MEMORY, .budget_s = 100};
    open_machine_of("two-packages", &machine);
    const size_t declared = machine.declared->classes[0].memory.level_count;
    ck_assert_uint_gt(declared, 0);
    ck_assert_msg(run_with(&machine, copy_alone, &run, &profile, &error) == 0, "%s", error.text);
    const struct profile_class *node_class = &profile->classes[0];
    ck_assert_double_gt(node_class->memory.reference_bytes_per_s, 0);
    ck_assert_uint_eq(node_class->memory.level_count, declared);
    ck_assert_int_eq(node_class->memory.levels[0].quality.origin, PROFILE_DECLARED);
    ck_assert_msg(profile_check(profile, &error) == 0, "%s", error.text);
    profile_free(profile);
    probe_machine_close(&machine);
}

/* The PUs of so many copies do not run at the same time. */
static size_t apart_yet;

static int copy_apart(struct machine *machine, const struct machine_copy *what, const uint32_t *pus,
                      size_t count, double *rates)
{
    int rc = whole->copy(machine, what, pus, count, rates);
    machine->guard.apart = count > 1 && apart_yet > 0;
    apart_yet -= machine->guard.apart;
    for (size_t i = 0; rc == 0 && machine->guard.apart && i < count; i++) {
        rc = whole->copy(machine, what, &pus[i], 1, &rates[i]);
    }
    return rc;
}

TEST(pus_that_never_ran_at_the_same_time_are_not_said_to_leave_each_other_alone, .loops = 2)
{
    struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    struct probe_run run = {.probes = PROBE_MEMORY};
    open_machine_of("two-packages", &machine);
    apart_yet = _i ? SIZE_MAX : 3;
    ck_assert_msg(run_with(&machine, copy_apart, &run, &profile, &error) == 0, "%s", error.text);
    const struct profile_memory *memory = &profile->classes[0].memory;
    ck_assert_double_gt(memory->reference_bytes_per_s, 0);
    ck_assert_uint_gt(memory->level_count, 0);
    for (size_t i = 0; i < memory->level_count; i++) {
        ck_assert_int_eq(memory->levels[i].quality.origin,
                         _i ? PROFILE_DECLARED : PROFILE_MEASURED);
    }
    ck_assert_int_eq(memory->pair_rate_count == 0, _i);
    ck_assert_int_eq(memory->kernel_count == 0, _i);
    ck_assert_int_eq(memory->quality.note != NULL, _i);
    ck_assert_msg(profile_check(profile, &error) == 0, "%s", error.text);
    profile_free(profile);
    probe_machine_close(&machine);
}

/* The first copy of PUs of both packages is disturbed, and no other. */
static int copy_once_disturbed(struct machine *machine, const struct machine_copy *what,
                               const uint32_t *pus, size_t count, double *rates)
{
    static bool done;
    const bool far = count == 2 && pus[0] / 4 != pus[1] / 4, now = far && !done;
    int rc = whole->copy(machine, what, pus, count, rates);
    done |= far;
    for (size_t i = 0; rc == 0 && now && i < count; i++) {
        rates[i] /= 2;
    }
    return rc;
}

TEST(one_disturbed_pair_does_not_speak_for_all_that_there_was_no_time_for)
{
    struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    struct probe_run run = {.probes = PROBE_MEMORY, .budget_s = 0.5};
    open_machine_of("two-packages", &machine);
    ck_assert_msg(run_with(&machine, copy_once_disturbed, &run, &profile, &error) == 0, "%s",
                  error.text);
    ck_assert_ptr_nonnull(strstr(condition(profile, "budget"), "cut short: memory"));
    const struct profile_memory *memory = &profile->classes[0].memory;
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        ck_assert(level->quality.origin == PROFILE_DECLARED ||
                  (!profile_related(&level->collisions, 0, 4) &&
                   !profile_related(&level->collisions, 3, 7)));
    }
    profile_free(profile);
    probe_machine_close(&machine);
}

TEST(where_the_search_was_ended_only_what_nests_stays_declared)
{
    struct machine machine;
    open_machine_of("numa-nodes", &machine);
    const struct profile_memory *declared = &machine.declared->classes[0].memory;
    ck_assert_uint_gt(declared->level_count, 0);
    struct profile_set across;
    struct profile_memory_level *level = calloc(1, sizeof *level);
    const uint32_t ids[] = {machine.pus.ids[0], machine.pus.ids[machine.pus.count - 1]};
    ck_assert_int_eq(profile_set_from_array(ids, 2, &across), 0);
    *level = (struct profile_memory_level){
        .bytes_per_s = 1e9, .collisions = {.groups = malloc(sizeof across), .group_count = 1}};
    level->collisions.groups[0] = across;
    struct profile_memory found = {.levels = level, .level_count = 1};
    ck_assert_int_eq(probe_result_keep_levels(declared, &found), 0);
    ck_assert_uint_eq(found.level_count, 1);
    ck_assert_double_gt(found.levels[0].bytes_per_s, 0);
    profile_memory_free(&found);
    ck_assert_int_eq(probe_result_keep_levels(declared, &found), 0);
    ck_assert_uint_eq(found.level_count, declared->level_count);
    profile_memory_free(&found);
    probe_machine_close(&machine);
}

static int no_time(struct machine *machine, const struct machine_copy *what, const uint32_t *pus,
                   size_t count, double *rates)
{
    (void)machine, (void)what, (void)pus, (void)count, (void)rates;
    return -ETIME;
}

TEST(a_budget_in_which_nothing_could_be_measured_says_what_would_do)
{
    struct machine machine;
    struct servet_profile *profile;
    struct servet_error error = {.text = ""};
    struct probe_run run = {.probes = PROBE_MEMORY, .budget_s = 7};
    open_machine_of("two-packages", &machine);
    ck_assert_int_eq(run_with(&machine, no_time, &run, &profile, &error), -ETIME);
    const char *than = strstr(error.text, "nothing could be measured in 7 s"),
               *given = strstr(error.text, "--budget ");
    ck_assert_msg(than && given, "%s", error.text);
    ck_assert_double_ge(strtod(given + strlen("--budget "), NULL), 14);
    probe_machine_close(&machine);
}

static int no_message(struct machine *machine, const struct machine_exchange *what,
                      const struct profile_pair *pairs, size_t count, double *seconds)
{
    (void)machine, (void)what, (void)pairs, (void)count, (void)seconds;
    return -ETIME;
}

/* What a machine that is taken for this one says on standard error when there is no time for MPI,
 * with messages between threads or without any. */
static void said_without_time_for_mpi(bool messages, int expected, char *text, size_t size)
{
    struct machine machine;
    struct servet_profile *profile = NULL;
    struct servet_error error = {.text = ""};
    struct probe_run run = {.probes = PROBE_MESSAGE, .budget_s = 0.001, .mpi = true};
    FILE *file = tmpfile();
    const int shown = dup(STDERR_FILENO);
    open_machine_of("two-packages", &machine);
    struct machine_ops ops = *machine.ops;
    ops.exchange = messages ? ops.exchange : no_message;
    machine.ops = &ops;
    machine.name = "native";
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    const int rc = run_with(&machine, ops.copy, &run, &profile, &error);
    fflush(stderr);
    dup2(shown, STDERR_FILENO);
    close(shown);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    ck_assert_msg(rc == expected, "%d: %s", rc, error.text);
    profile_free(profile);
    probe_machine_close(&machine);
}

TEST(messages_between_threads_are_said_to_be_measured_once_they_are)
{
    char text[1024];
    said_without_time_for_mpi(true, 0, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "leaves no time to start it; measured between threads"));
    said_without_time_for_mpi(false, -ETIME, text, sizeof text);
    ck_assert_str_eq(text, "");
}

TEST(operations_end_a_little_after_the_budget)
{
    struct machine machine;
    struct probe_results results = {.estimate = {0}};
    struct probe_run run = {.machine = &machine, .budget_s = 10};
    open_machine_of("two-packages", &machine);
    probe_budget_start(&run, &results);
    ck_assert_double_eq(results.until_s, 10);
    ck_assert(machine.until_s > 10 && machine.until_s < 15);
    run.budget_s = 0;
    probe_budget_start(&run, &results);
    ck_assert(results.until_s <= 0 && machine.until_s <= 0);
    run.budget_s = 0.01; /* the least there is */
    probe_budget_start(&run, &results);
    ck_assert(results.until_s > 0 && machine.until_s <= 0);
    probe_machine_close(&machine);
}

/* -- what is decided by how much time there is -- */

/* What was busy is counted out of the machine file. */
static double others_now;

static double others(struct machine *machine)
{
    (void)machine;
    return others_now;
}

TEST(ranks_of_mpi_are_started_where_they_and_their_least_fit)
{
    static const struct {
        double others, left_s;
        bool fits;
    } cases[] = {{0, 0.40, false}, {0, 0.46, true}, {8, 7.5, false}, {8, 7.7, true}};
    struct machine machine;
    open_machine_of("two-packages", &machine);
    struct machine_ops ops = *machine.ops;
    ops.others = others;
    machine.ops = &ops;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        /* a rank needs a PU, messages two at a time: 9 * 0.4 s and 81 * 0.05 s beside eight others
         */
        struct probe_results results = {.probe = {.machine = &machine},
                                        .estimate = {.mpi_s = 0.4, .message_least_s = 0.05},
                                        .until_s = cases[i].left_s};
        const struct probe_run run = {.machine = &machine, .budget_s = cases[i].left_s};
        others_now = cases[i].others;
        ck_assert_msg(probe_budget_fits_ranks(&run, &results) == cases[i].fits, "case %zu", i);
    }
    struct probe_results endless = {.probe = {.machine = &machine}, .estimate = {.mpi_s = 1e6}};
    ck_assert(probe_budget_fits_ranks(&(struct probe_run){.machine = &machine}, &endless));
    probe_machine_close(&machine);
}

static double clock_now;

static double clock_of(struct machine *machine)
{
    (void)machine;
    return clock_now;
}

/* Estimates of this machine; whatever is begun takes as long as operations may. */
TEST(who_is_begun_leaves_those_after_it_what_they_need_first)
{
    struct machine machine;
    open_machine_of("two-packages", &machine);
    struct machine_ops ops = *machine.ops;
    ops.others = others;
    ops.elapsed = clock_of;
    machine.ops = &ops;
    size_t all = 0;
    for (others_now = 0; others_now < 40; others_now += 3) {
        for (double budget_s = 2; budget_s < 300; budget_s *= 1.2) {
            const struct probe_run run = {
                .machine = &machine, .budget_s = budget_s, .probes = PROBE_ALL};
            struct probe_results results = {.probe = {.machine = &machine},
                                            .estimate = {.cache_s = 5,
                                                         .cache_least_s = 0.95,
                                                         .sharing_s = 0.3,
                                                         .sharing_least_s = 0.04,
                                                         .memory_s = 1.2,
                                                         .memory_least_s = 0.54,
                                                         .memory_alone_s = 0.25,
                                                         .message_s = 0.5,
                                                         .message_least_s = 0.05}};
            bool before = false;
            clock_now = 0.02;
            probe_budget_start(&run, &results);
            for (unsigned probe = PROBE_CACHE; probe < PROBE_ALL; probe <<= 1) {
                const bool begun = probe_budget_wants(&run, &results, probe);
                ck_assert_msg(begun || !before || probe == PROBE_SHARING,
                              "%u is left out of %g s beside %g others", probe, budget_s,
                              others_now);
                before |= begun;
                clock_now = begun ? fmax(clock_now, machine.until_s) : clock_now;
            }
            ck_assert_double_le(clock_now, 1.5 * budget_s);
            all += results.left_out == 0;
        }
    }
    ck_assert_uint_gt(all, 100);
    probe_machine_close(&machine);
}

/* Beside many others caches are expected to take more than there is, and what is measured in their
 * place takes next to nothing of it; of what a quota forbids nothing is waited for. */
TEST(what_was_left_out_has_the_time_that_is_left, .loops = 2)
{
    struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    struct progress progress = {.events = -1};
    struct probe_run run = {.probes = _i ? PROBE_ALL : PROBE_CACHE | PROBE_MEMORY,
                            .seed = 1,
                            .budget_s = 10,
                            .machine = &machine,
                            .progress = &progress};
    open_machine_of("two-packages", &machine);
    struct machine_ops ops = *machine.ops;
    ops.others = others;
    others_now = 20;
    machine.ops = &ops;
    machine.cpu_quota = _i ? 1.5 : 0;
    ck_assert_msg(probe_run_run(&run, &profile, &error) == 0, "%s", error.text);
    ck_assert_int_eq(profile->classes[0].caches[0].quality.origin, PROFILE_MEASURED);
    ck_assert_double_gt(profile->classes[0].memory.reference_bytes_per_s, 0);
    ck_assert_ptr_null(strstr(condition(profile, "budget"), "not measured"));
    profile_free(profile);
    probe_machine_close(&machine);
}

TEST(a_run_in_a_hurry_copies_small_arrays_and_says_so, .loops = 2)
{
    struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    const bool hurried = _i == 1;
    struct probe_run run = {.probes = PROBE_MEMORY};
    open_machine_of("epyc-7402", &machine);
    const char *name = machine.name;
    machine.name = "native"; /* whose memory has to be touched first */
    const double least_s = estimate_of(&machine, true).unhurried_least_s;
    run.budget_s = hurried ? least_s * 0.9 : least_s * 1e4;
    most_copied = 0;
    ck_assert_msg(run_with(&machine, copy_noting, &run, &profile, &error) == 0, "%s", error.text);
    const struct probe asked = {.machine = &machine, .hurried = hurried};
    ck_assert_uint_eq(most_copied, probe_memory_bytes(&asked, 16u << 20));
    ck_assert(hurried == (strstr(condition(profile, "budget"), "cut short: memory") != NULL));
    machine.name = name;
    profile_free(profile);
    probe_machine_close(&machine);
}

/* -- what is said to be left -- */

/* Packages of half of the PUs, links of eight. */
static void open_large(struct machine *machine, size_t pus)
{
    const char *eights = groups_of(pus, 8), *halves = groups_of(pus, pus / 2);
    open_machine_with(
        machine, 1,
        "{'servet_machine': 1, 'name': 'large', 'pus': '0-%zu', 'page_bytes': 4096, 'packages': "
        "[%s], 'caches': [{'level': 1, 'size_bytes': 32768, 'ways': 8, 'seconds': 1e-9}, {'level': "
        "2, 'size_bytes': 33554432, 'ways': 16, 'seconds': 1.2e-8, 'groups': [%s]}], 'memory': "
        "{'seconds': 1e-7, 'pu_bytes_per_s': 1.2e10, 'domains': [{'groups': [%s], 'bytes_per_s': "
        "4e10}, {'groups': [%s], 'bytes_per_s': %g}]}, 'layers': [{'name': 'L2', 'groups': [%s], "
        "'seconds': 3e-7, 'bytes_per_s': 9e9}, {'name': 'package', 'groups': [%s], 'seconds': "
        "9e-7, 'bytes_per_s': 7e9}, {'name': 'node', 'groups': ['0-%zu'], 'seconds': 2e-6, "
        "'bytes_per_s': 4e9}], 'noise': {'relative': 0.02}}",
        pus - 1, halves, eights, eights, halves, 1.2e10 * (double)pus / 8, eights, halves, pus - 1);
}

/* Memory of 2 GB/s a PU, where 10 are expected, is not known at the start. */
TEST(what_is_said_to_be_left_at_the_start_is_what_it_takes, .loops = 7)
{
    static const size_t sizes[] = {64, 128, 256};
    static const char *const fixtures[] = {"xeon-snc4", "epyc-2-sockets", "dunnington",
                                           "finis-terrae"};
    const double limit = _i < 5 ? 1.5 : 2;
    struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    FILE *events = tmpfile();
    struct progress progress;
    char line[512];
    const char *left = NULL;
    if (_i < 3) {
        open_large(&machine, sizes[_i]);
    } else {
        open_machine_of(fixtures[_i - 3], &machine);
    }
    probe_progress_start(&progress, false, fileno(events));
    struct probe_run run = {.probes = PROBE_MEMORY | PROBE_MESSAGE,
                            .seed = 1,
                            .machine = &machine,
                            .progress = &progress};
    ck_assert_msg(probe_run_run(&run, &profile, &error) == 0, "%s", error.text);
    const double took_s = probe_machine_elapsed(&machine);
    rewind(events);
    while (!left && fgets(line, sizeof line, events)) {
        left = strstr(line, "\"seconds_left\": ");
    }
    ck_assert_ptr_nonnull(left);
    const double said_s = strtod(left + strlen("\"seconds_left\": "), NULL);
    ck_assert_msg(said_s > took_s / limit && said_s < limit * took_s, "said %g, took %g", said_s,
                  took_s);
    fclose(events);
    profile_free(profile);
    probe_machine_close(&machine);
}

TESTS(.seconds = 400)
