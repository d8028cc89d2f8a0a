/* Whole runs whose copies or messages the machine's time ends, whose PUs never run at the same
 * time, or that are in a hurry: what stays, and what is said of the rest. */
#include "probes/memory/pairs.h"
#include "probes/memory/rates.h"
#include "probes/run/conditions.h"
#include "probes/run/result.h"
#include "probes/run/run.h"
#include "profile/codec/codec.h"
#include "profile/query.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

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

TEST(what_one_pu_gets_stays_and_declared_levels_are_not_taken_for_none)
{
    FREED_BY(probe_machine_close) struct machine machine;
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
}

/* The PUs of so many copies of so many workers do not run at the same time. */
static size_t apart_yet, apart_from = 2;

static int copy_apart(struct machine *machine, const struct machine_copy *what, const uint32_t *pus,
                      size_t count, double *rates)
{
    int rc = whole->copy(machine, what, pus, count, rates);
    machine->guard.not_concurrent = count >= apart_from && apart_yet > 0;
    apart_yet -= machine->guard.not_concurrent;
    for (size_t i = 0; rc == 0 && machine->guard.not_concurrent && i < count; i++) {
        rc = whole->copy(machine, what, &pus[i], 1, &rates[i]);
    }
    return rc;
}

TEST(pus_that_never_ran_at_the_same_time_are_not_said_to_leave_each_other_alone, .loops = 2)
{
    FREED_BY(probe_machine_close) struct machine machine;
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
    /* what one PU gets is known all the same */
    ck_assert_uint_gt(memory->kernel_count, 0);
    for (size_t i = 0; i < memory->kernel_count; i++) {
        ck_assert_double_gt(memory->kernels[i].bytes_per_s, 0);
        ck_assert_int_eq(memory->kernels[i].together_bytes_per_s <= 0, _i);
    }
    const char *note = memory->quality.note;
    ck_assert_int_eq(note != NULL, _i);
    ck_assert(!_i || strstr(note, "loops not all measured: other tasks"));
    char text[256];
    ck_assert_int_eq(probe_conditions_unsettled(profile, 0, text, sizeof text), _i);
    ck_assert_str_eq(text,
                     _i ? "memory (beside others); measure again when nothing else runs" : "");
    ck_assert_msg(profile_check(profile, &error) == 0, "%s", error.text);
    profile_free(profile);
}

/* With one PU neither sharing nor messages are measured. */
TEST(one_pu_lacks_nothing_that_two_would_have)
{
    FREED_BY(probe_machine_close) struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    struct probe_run run = {.probes = PROBE_ALL, .budget_s = 0.001};
    open_machine_with(&machine, 1,
                      "{'servet_machine': 1, 'name': 'one', 'pus': '0', 'page_bytes': 4096, "
                      "'caches': [{'level': 1, 'size_bytes': 32768, 'ways': 8, 'seconds': 1e-9}], "
                      "'memory': {'seconds': 1e-7, 'pu_bytes_per_s': 1e10}}");
    ck_assert_msg(run_with(&machine, copy_apart, &run, &profile, &error) == 0, "%s", error.text);
    const char *budget = profile_condition(profile, "budget");
    ck_assert_ptr_nonnull(budget);
    ck_assert_msg(strstr(budget, "cache") && !strstr(budget, "sharing") &&
                      !strstr(budget, "message"),
                  "%s", budget);
    profile_free(profile);
}

/* Two packages of eight cores, each with a link that three of them fill: no pair shows it. */
static void open_link(struct machine *machine)
{
    open_machine_with(
        machine, 1,
        "{'servet_machine': 1, 'name': 'link', 'pus': '0-15', 'page_bytes': 4096, 'packages': "
        "['0-7', '8-15'], 'caches': [{'level': 1, 'size_bytes': 32768, 'ways': 8, 'seconds': "
        "1e-9}], 'memory': {'seconds': 1e-7, 'pu_bytes_per_s': 1e10, 'domains': [{'groups': "
        "['0-7', '8-15'], 'bytes_per_s': 3e10}]}, 'noise': {'relative': 0.02}}");
}

/* A set whose workers do not run at the same time seems free of collisions. Its figures are not
 * reported, and the declared ones stay. */
TEST(sets_that_never_ran_at_the_same_time_do_not_lack_domains, .loops = 3)
{
    FREED_BY(probe_machine_close) struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    struct probe_run run = {.probes = PROBE_MEMORY, .one_by_one = true};
    const bool meet = _i < 2;
    open_link(&machine);
    const size_t declared = machine.declared->classes[0].memory.level_count;
    apart_from = 3;
    apart_yet = _i == 0 ? 0 : _i == 1 ? 3 : SIZE_MAX; /* never, a few times, always */
    ck_assert_msg(run_with(&machine, copy_apart, &run, &profile, &error) == 0, "%s", error.text);
    apart_from = 2;
    const struct profile_memory *memory = &profile->classes[0].memory;
    ck_assert_uint_eq(memory->level_count, meet ? 1 : declared);
    for (size_t i = 0; i < memory->level_count; i++) {
        ck_assert_int_eq(memory->levels[i].quality.origin,
                         meet ? PROFILE_MEASURED : PROFILE_DECLARED);
    }
    ck_assert_uint_gt(memory->pair_rate_count, 0);
    const char *note = memory->quality.note;
    ck_assert(meet == !(note && strstr(note, "sets of PUs not all measured: other tasks")));
    ck_assert_msg(profile_check(profile, &error) == 0, "%s", error.text);
    profile_free(profile);
}

/* Copies of so many workers, then the time is over. */
static size_t copies_left, counted_from = 3;

static int copy_until(struct machine *machine, const struct machine_copy *what, const uint32_t *pus,
                      size_t count, double *rates)
{
    if (count >= counted_from && copies_left == 0) {
        return -ETIME;
    }
    copies_left -= count >= counted_from;
    return whole->copy(machine, what, pus, count, rates);
}

/* Domains found before the time was over stay, and unmeasured ones are reported as such. */
TEST(domains_that_were_found_before_the_time_was_over_stay)
{
    struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    struct probe_run run = {.probes = PROBE_MEMORY, .one_by_one = true, .budget_s = 100};
    open_link(&machine);
    copies_left = SIZE_MAX;
    ck_assert_msg(run_with(&machine, copy_until, &run, &profile, &error) == 0, "%s", error.text);
    const size_t all = SIZE_MAX - copies_left;
    profile_free(profile);
    probe_machine_close(&machine);
    bool found = false, found_and_more_to_ask = false;
    for (size_t left = 0; left < all; left++) {
        open_link(&machine);
        copies_left = left;
        ck_assert_msg(run_with(&machine, copy_until, &run, &profile, &error) == 0, "%s",
                      error.text);
        const struct profile_memory *memory = &profile->classes[0].memory;
        const char *note = memory->quality.note;
        const bool here = memory->levels[0].quality.origin == PROFILE_MEASURED;
        const bool said = note && strstr(note, "sets of PUs not all measured: the budget");
        ck_assert_msg(here || !found, "lost after %zu copies", left);
        ck_assert_msg(here || said, "not said after %zu copies", left);
        found = here;
        found_and_more_to_ask |= here && said;
        profile_free(profile);
        probe_machine_close(&machine);
    }
    ck_assert(found_and_more_to_ask);
}

/* Two packages of two caches of four cores, each with a link. The inner curves come first. */
static void open_nested(struct machine *machine)
{
    open_machine_with(
        machine, 1,
        "{'servet_machine': 1, 'name': 'nested', 'pus': '0-15', 'page_bytes': 4096, 'packages': "
        "['0-7', '8-15'], 'caches': [{'level': 1, 'size_bytes': 32768, 'ways': 8, 'seconds': "
        "1e-9}, {'level': 2, 'size_bytes': 1048576, 'ways': 16, 'seconds': 5e-9, 'groups': "
        "['0-3', '4-7', '8-11', '12-15']}], 'memory': {'seconds': 1e-7, 'pu_bytes_per_s': 1e10, "
        "'domains': [{'groups': ['0-3', '4-7', '8-11', '12-15'], 'bytes_per_s': 2.5e10}, "
        "{'groups': ['0-7', '8-15'], 'bytes_per_s': 3e10}]}, 'noise': {'relative': 0.01}}");
}

TEST(a_level_without_a_figure_takes_none_from_others)
{
    struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    struct probe_run run = {.probes = PROBE_MEMORY, .one_by_one = true, .budget_s = 100};
    counted_from = 2;
    size_t all = SIZE_MAX, without = 0;
    for (size_t left = SIZE_MAX; left > 0; left = left > all ? all - 1 : left - 1) {
        open_nested(&machine);
        copies_left = left;
        ck_assert_msg(run_with(&machine, copy_until, &run, &profile, &error) == 0, "%s",
                      error.text);
        const struct profile_memory *memory = &profile->classes[0].memory;
        all = left == SIZE_MAX ? left - copies_left : all;
        for (size_t i = 0; i < memory->level_count; i++) {
            const struct profile_memory_level *level = &memory->levels[i];
            const bool measured = level->quality.origin == PROFILE_MEASURED;
            ck_assert_msg(!measured || (level->scaling_count > 1) == (level->bytes_per_s > 0),
                          "%zu copies: %zu workers, %g bytes/s", left, level->scaling_count,
                          level->bytes_per_s);
            without += measured && !(level->bytes_per_s > 0);
        }
        const bool enough =
            memory->level_count == 0 || memory->levels[0].quality.origin != PROFILE_MEASURED;
        profile_free(profile);
        probe_machine_close(&machine);
        if (enough) {
            break;
        }
    }
    counted_from = 3;
    ck_assert_uint_gt(without, 0);
}

/* The curve of a domain that pairs show ends before the workers that never met. */
TEST(a_curve_ends_where_its_workers_never_ran_at_the_same_time)
{
    FREED_BY(probe_machine_close) struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    struct probe_run run = {.probes = PROBE_MEMORY, .one_by_one = true};
    open_machine_of("two-packages", &machine);
    apart_from = 3;
    apart_yet = SIZE_MAX;
    ck_assert_msg(run_with(&machine, copy_apart, &run, &profile, &error) == 0, "%s", error.text);
    apart_from = 2;
    const struct profile_memory *memory = &profile->classes[0].memory;
    size_t measured = 0;
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        const bool here = level->quality.origin == PROFILE_MEASURED;
        measured += here;
        ck_assert_uint_eq(level->scaling_count, here ? 2 : 0);
    }
    ck_assert_uint_gt(measured, 0);
    ck_assert_msg(profile_check(profile, &error) == 0, "%s", error.text);
    profile_free(profile);
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
    FREED_BY(probe_machine_close) struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    struct probe_run run = {.probes = PROBE_MEMORY, .budget_s = 0.5};
    open_machine_of("two-packages", &machine);
    ck_assert_msg(run_with(&machine, copy_once_disturbed, &run, &profile, &error) == 0, "%s",
                  error.text);
    const char *budget = profile_condition(profile, "budget");
    ck_assert(budget && strstr(budget, "cut short: memory"));
    const struct profile_memory *memory = &profile->classes[0].memory;
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        ck_assert(level->quality.origin == PROFILE_DECLARED ||
                  (!profile_related(&level->collisions, 0, 4) &&
                   !profile_related(&level->collisions, 3, 7)));
    }
    profile_free(profile);
}

TEST(where_the_search_was_ended_only_what_nests_stays_declared)
{
    FREED_BY(probe_machine_close) struct machine machine;
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
}

static int no_time(struct machine *machine, const struct machine_copy *what, const uint32_t *pus,
                   size_t count, double *rates)
{
    (void)machine, (void)what, (void)pus, (void)count, (void)rates;
    return -ETIME;
}

TEST(a_budget_in_which_nothing_could_be_measured_says_so)
{
    FREED_BY(probe_machine_close) struct machine machine;
    struct servet_profile *profile;
    struct servet_error error = {.text = ""};
    struct probe_run run = {.probes = PROBE_MEMORY, .budget_s = 7};
    open_machine_of("two-packages", &machine);
    ck_assert_int_eq(run_with(&machine, no_time, &run, &profile, &error), -ETIME);
    ck_assert_str_eq(error.text, "nothing could be measured in 7 s; expected a larger --budget");
}

static int no_message(struct machine *machine, const struct machine_exchange *what,
                      const struct profile_pair *pairs, size_t count, double *seconds)
{
    (void)machine, (void)what, (void)pairs, (void)count, (void)seconds;
    return -ETIME;
}

/* Standard error of a run without time for MPI, with messages between threads or without any. */
static void said_without_time_for_mpi(bool messages, int expected, char *text, size_t size)
{
    struct machine_ops ops;
    FREED_BY(probe_machine_close) struct machine machine;
    struct servet_profile *profile = NULL;
    struct servet_error error = {.text = ""};
    struct probe_run run = {.probes = PROBE_MESSAGE, .budget_s = 0.001, .mpi = true};
    FILE *file = tmpfile();
    const int shown = dup(STDERR_FILENO);
    open_machine_of("two-packages", &machine);
    ops = *machine.ops;
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
}

TEST(messages_between_threads_are_said_to_be_measured_once_they_are)
{
    char text[1024];
    said_without_time_for_mpi(true, 0, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "leaves no time to start it; measured between threads"));
    said_without_time_for_mpi(false, -ETIME, text, sizeof text);
    ck_assert_str_eq(text, "");
}

/* -- arrays of the last level's size where there is no time to touch larger ones -- */

TEST(in_a_hurry_arrays_are_of_the_last_level_and_never_without)
{
    FREED_BY(probe_machine_close) struct machine machine;
    open_machine_of("epyc-7402", &machine);
    const struct probe calm = {.machine = &machine},
                       hurried = {.machine = &machine, .hurried = true};
    const size_t last = 100u << 20;
    ck_assert_uint_eq(probe_memory_bytes(&hurried, last), last);
    ck_assert_uint_gt(probe_memory_bytes(&calm, last), last);
    ck_assert_uint_eq(probe_memory_bytes(&hurried, 1u << 20), probe_memory_bytes(&calm, 1u << 20));
}

TEST(a_run_in_a_hurry_copies_small_arrays_and_says_so, .loops = 2)
{
    FREED_BY(probe_machine_close) struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    const bool hurried = _i == 1;
    struct probe_run run = {.probes = PROBE_MEMORY};
    open_machine_of("epyc-7402", &machine);
    run.budget_s = hurried ? 0.5 : 1e4;
    most_copied = 0;
    ck_assert_msg(run_with(&machine, copy_noting, &run, &profile, &error) == 0, "%s", error.text);
    const struct probe asked = {.machine = &machine, .hurried = hurried};
    ck_assert_uint_eq(most_copied, probe_memory_bytes(&asked, 16u << 20));
    const char *budget = profile_condition(profile, "budget");
    ck_assert(hurried == (budget && strstr(budget, "cut short: memory")));
    profile_free(profile);
}

TESTS(.seconds = 400)
