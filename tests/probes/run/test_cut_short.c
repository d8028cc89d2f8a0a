/* Whole runs whose copies or messages the machine's time ends, whose PUs never run at the same
 * time, or that are in a hurry: what stays, and what is said of the rest. */
#include "probes/memory/rates.h"
#include "probes/run/result.h"
#include "probes/run/run.h"
#include "profile/codec/codec.h"
#include "profile/query.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

static size_t most_copied; /* bytes of an array */

COPY(copy_alone)
{
    return count > 1 ? -ETIME : honest->copy(subject, what, pus, count, rates);
}

COPY(copy_noting)
{
    most_copied = what->bytes > most_copied ? what->bytes : most_copied;
    return honest->copy(subject, what, pus, count, rates);
}

static const struct probe_run one_by_one = {.probes = PROBE_MEMORY, .one_by_one = true},
                              in_time = {
                                  .probes = PROBE_MEMORY, .one_by_one = true, .budget_s = 100};

typedef int copy_function(struct machine *, const struct machine_copy *, const uint32_t *, size_t,
                          double *);

/* What is found of the memory of a machine whose copies are made so; it declares so many levels. */
static const struct servet_profile *profile;
static const struct profile_memory *memory;
static size_t declared_levels;

static void run_with(const char *name, copy_function *copies, struct probe_run run)
{
    open_machine_of(name);
    replace_operations()->copy = copies;
    declared_levels = machine.declared->classes[0].memory.level_count;
    ck_assert_uint_gt(declared_levels, 0);
    profile = run_probes(run);
    memory = &profile->classes[0].memory;
}

/* So many levels, of this origin. */
static void expect_levels(size_t count, enum profile_origin origin)
{
    ck_assert_uint_eq(memory->level_count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(memory->levels[i].quality.origin, origin);
    }
}

TEST(what_one_pu_gets_stays_and_declared_levels_are_not_taken_for_none)
{
    run_with("two-packages", copy_alone,
             (struct probe_run){.probes = PROBE_MEMORY, .budget_s = 100});
    ck_assert_double_gt(memory->reference_bytes_per_s, 0);
    expect_levels(declared_levels, PROFILE_DECLARED);
}

/* The PUs of so many copies of so many workers do not run at the same time. */
static size_t apart_yet, apart_from = 2;

COPY(copy_apart)
{
    int rc = honest->copy(subject, what, pus, count, rates);
    subject->guard.not_concurrent = count >= apart_from && apart_yet > 0;
    apart_yet -= subject->guard.not_concurrent;
    for (size_t i = 0; rc == 0 && subject->guard.not_concurrent && i < count; i++) {
        rc = honest->copy(subject, what, &pus[i], 1, &rates[i]);
    }
    return rc;
}

TEST(pus_that_never_ran_at_the_same_time_are_not_said_to_leave_each_other_alone, .loops = 2)
{
    apart_yet = _i ? SIZE_MAX : 3;
    run_with("two-packages", copy_apart, (struct probe_run){.probes = PROBE_MEMORY});
    ck_assert_double_gt(memory->reference_bytes_per_s, 0);
    ck_assert_uint_gt(memory->level_count, 0);
    expect_levels(memory->level_count, _i ? PROFILE_DECLARED : PROFILE_MEASURED);
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
}

/* With one PU neither sharing nor messages are measured. */
TEST(one_pu_lacks_nothing_that_two_would_have)
{
    open_machine_of("sets/one-pu");
    replace_operations()->copy = copy_apart;
    profile = run_probes((struct probe_run){.probes = PROBE_ALL, .budget_s = 0.001});
    const char *budget = profile_condition(profile, "budget");
    ck_assert_ptr_nonnull(budget);
    ck_assert_msg(strstr(budget, "cache") && !strstr(budget, "sharing") &&
                      !strstr(budget, "message"),
                  "%s", budget);
}

/* A set whose workers do not run at the same time seems free of collisions. Its figures are not
 * reported, and the declared ones stay. */
TEST(sets_that_never_ran_at_the_same_time_do_not_lack_domains, .loops = 3)
{
    const bool meet = _i < 2;
    apart_from = 3;
    apart_yet = _i == 0 ? 0 : _i == 1 ? 3 : SIZE_MAX; /* never, a few times, always */
    run_with("sets/links-of-three", copy_apart, one_by_one);
    apart_from = 2;
    expect_levels(meet ? 1 : declared_levels, meet ? PROFILE_MEASURED : PROFILE_DECLARED);
    ck_assert_uint_gt(memory->pair_rate_count, 0);
    const char *note = memory->quality.note;
    ck_assert(meet == !(note && strstr(note, "sets of PUs not all measured: other tasks")));
}

/* Copies of so many workers, then the time is over. */
static size_t copies_left, counted_from = 3;

COPY(copy_until)
{
    if (count >= counted_from && copies_left == 0) {
        return -ETIME;
    }
    copies_left -= count >= counted_from;
    return honest->copy(subject, what, pus, count, rates);
}

/* Domains found before the time was over stay, and unmeasured ones are reported as such. */
TEST(domains_that_were_found_before_the_time_was_over_stay)
{
    copies_left = SIZE_MAX;
    run_with("sets/links-of-three", copy_until, in_time);
    const size_t all = SIZE_MAX - copies_left;
    bool found = false, found_and_more_to_ask = false;
    for (size_t left = 0; left < all; left++) {
        copies_left = left;
        run_with("sets/links-of-three", copy_until, in_time);
        const char *note = memory->quality.note;
        const bool here = memory->levels[0].quality.origin == PROFILE_MEASURED;
        const bool said = note && strstr(note, "sets of PUs not all measured: the budget");
        ck_assert_msg(here || !found, "lost after %zu copies", left);
        ck_assert_msg(here || said, "not said after %zu copies", left);
        found = here;
        found_and_more_to_ask |= here && said;
    }
    ck_assert(found_and_more_to_ask);
}

TEST(a_level_without_a_figure_takes_none_from_others)
{
    counted_from = 2;
    size_t all = SIZE_MAX, without = 0;
    for (size_t left = SIZE_MAX; left > 0; left = left > all ? all - 1 : left - 1) {
        copies_left = left;
        run_with("sets/nested-links", copy_until, in_time);
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
    apart_from = 3;
    apart_yet = SIZE_MAX;
    run_with("two-packages", copy_apart, one_by_one);
    apart_from = 2;
    size_t measured = 0;
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        const bool here = level->quality.origin == PROFILE_MEASURED;
        measured += here;
        ck_assert_uint_eq(level->scaling_count, here ? 2 : 0);
    }
    ck_assert_uint_gt(measured, 0);
}

/* The first copy of PUs of both packages is disturbed, and no other. */
COPY(copy_once_disturbed)
{
    static bool done;
    const bool far = count == 2 && pus[0] / 4 != pus[1] / 4, now = far && !done;
    int rc = honest->copy(subject, what, pus, count, rates);
    done |= far;
    for (size_t i = 0; rc == 0 && now && i < count; i++) {
        rates[i] /= 2;
    }
    return rc;
}

TEST(one_disturbed_pair_does_not_speak_for_all_that_there_was_no_time_for)
{
    run_with("two-packages", copy_once_disturbed,
             (struct probe_run){.probes = PROBE_MEMORY, .budget_s = 0.5});
    const char *budget = profile_condition(profile, "budget");
    ck_assert(budget && strstr(budget, "cut short: memory"));
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_memory_level *level = &memory->levels[i];
        ck_assert(level->quality.origin == PROFILE_DECLARED ||
                  (!profile_related(&level->collisions, 0, 4) &&
                   !profile_related(&level->collisions, 3, 7)));
    }
}

TEST(where_the_search_was_ended_only_what_nests_stays_declared)
{
    open_machine_of("numa-nodes");
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

COPY(no_time)
{
    return -ETIME;
}

TEST(a_budget_in_which_nothing_could_be_measured_says_so)
{
    struct servet_profile *none;
    struct servet_error error = {.text = ""};
    open_machine_of("two-packages");
    replace_operations()->copy = no_time;
    ck_assert_int_eq(
        try_probes((struct probe_run){.probes = PROBE_MEMORY, .budget_s = 7}, &none, &error),
        -ETIME);
    ck_assert_str_eq(error.text, "nothing could be measured in 7 s; expected a larger --budget");
}

EXCHANGE(no_message)
{
    return -ETIME;
}

/* Standard error of a run without time for MPI, with messages between threads or without any. */
static void said_without_time_for_mpi(bool messages, int expected, char *text, size_t size)
{
    const struct probe_run run = {.probes = PROBE_MESSAGE, .budget_s = 0.001, .mpi = true};
    struct servet_profile *none;
    struct servet_error error = {.text = ""};
    FILE *file = tmpfile();
    const int shown = dup(STDERR_FILENO);
    open_machine_of("two-packages");
    struct machine_ops *ops = replace_operations();
    ops->exchange = messages ? ops->exchange : no_message;
    machine.name = "native";
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    const int rc = try_probes(run, &none, &error);
    fflush(stderr);
    dup2(shown, STDERR_FILENO);
    close(shown);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    ck_assert_msg(rc == expected, "%d: %s", rc, error.text);
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
    open_machine_of("epyc-7402");
    const struct probe calm = {.machine = &machine},
                       hurried = {.machine = &machine, .hurried = true};
    const size_t last = 100u << 20;
    ck_assert_uint_eq(probe_memory_bytes(&hurried, last), last);
    ck_assert_uint_gt(probe_memory_bytes(&calm, last), last);
    ck_assert_uint_eq(probe_memory_bytes(&hurried, 1u << 20), probe_memory_bytes(&calm, 1u << 20));
}

TEST(a_run_in_a_hurry_copies_small_arrays_and_says_so, .loops = 2)
{
    const bool hurried = _i == 1;
    most_copied = 0;
    run_with("epyc-7402", copy_noting,
             (struct probe_run){.probes = PROBE_MEMORY, .budget_s = hurried ? 0.5 : 1e4});
    const struct probe asked = {.machine = &machine, .hurried = hurried};
    ck_assert_uint_eq(most_copied, probe_memory_bytes(&asked, 16u << 20));
    const char *budget = profile_condition(profile, "budget");
    ck_assert(hurried == (budget && strstr(budget, "cut short: memory")));
}

TESTS(.seconds = 400)
