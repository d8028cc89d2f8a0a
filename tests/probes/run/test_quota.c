/* Does a run under a quota of CPU time never keep more workers busy at a time than it allows? */
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

TEST(whole_workers_fit_into_a_quota)
{
    static const struct {
        double quota;
        size_t workers;
    } cases[] = {{0, SIZE_MAX}, {0.25, 1}, {1, 1}, {1.9, 1}, {1.999, 2}, {2, 2}, {7.5, 7}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        machine.cpu_quota = cases[i].quota;
        ck_assert_uint_eq(probe_machine_at_once(&machine), cases[i].workers);
    }
}

/* -- a run under a quota: the simulated machine, and how many of its PUs worked at a time -- */

static size_t most_at_once;

static void count_workers(size_t workers)
{
    most_at_once = workers > most_at_once ? workers : most_at_once;
}

TRAVERSE(traverse)
{
    count_workers(count);
    return honest->traverse(subject, what, pus, count, seconds);
}

COPY(copy)
{
    count_workers(count);
    return honest->copy(subject, what, pus, count, rates);
}

EXCHANGE(exchange)
{
    count_workers(2 * count);
    return honest->exchange(subject, what, pairs, count, seconds);
}

static const struct servet_profile *run_under(double quota, unsigned probes)
{
    open_machine_of("two-packages");
    struct machine_ops *counting = replace_operations();
    counting->traverse = traverse;
    counting->copy = copy;
    counting->exchange = exchange;
    machine.cpu_quota = quota;
    most_at_once = 0;
    return run_probes(
        (struct probe_run){.probes = probes, .budget_s = probes & PROBE_CACHE ? 5 : 0});
}

TEST(no_more_workers_at_a_time_than_the_quota_allows)
{
    const struct servet_profile *profile = run_under(0, PROBE_MEMORY | PROBE_MESSAGE);
    ck_assert_uint_gt(most_at_once, 3); /* or this test would prove nothing */
    ck_assert_ptr_null(profile_condition(profile, "cpu_quota"));
    profile = run_under(3.5, PROBE_MEMORY | PROBE_MESSAGE);
    const struct profile_class *node = &profile->classes[0];
    ck_assert_uint_eq(most_at_once, 3);
    ck_assert_str_eq(profile_condition(profile, "cpu_quota"),
                     "3.5 of 8 CPUs; at most 3 workers at a time");
    ck_assert_uint_ge(node->memory.level_count, 1);
    for (size_t i = 0; i < node->memory.level_count; i++) {
        const struct profile_memory_level *level = &node->memory.levels[i];
        ck_assert_uint_le(level->scaling[level->scaling_count - 1].workers, 3);
    }
    ck_assert_uint_ge(node->communication.layer_count, 2);
}

TEST(what_needs_two_workers_is_absent_where_one_may_run)
{
    const struct servet_profile *profile = run_under(1.5, PROBE_ALL);
    const struct profile_class *node = &profile->classes[0];
    ck_assert_uint_eq(most_at_once, 1);
    ck_assert_str_eq(profile_condition(profile, "cpu_quota"),
                     "1.5 of 8 CPUs; at most 1 worker at a time; not measured: sharing message");
    ck_assert_double_gt(node->memory.reference_bytes_per_s, 0);
    for (size_t i = 0; i < node->memory.level_count; i++) { /* as declared, without a figure */
        ck_assert_int_eq(node->memory.levels[i].quality.origin, PROFILE_DECLARED);
        ck_assert(node->memory.levels[i].bytes_per_s <= 0 && !node->memory.levels[i].scaling);
    }
    for (size_t i = 0; i < node->communication.layer_count; i++) {
        ck_assert_int_ne(node->communication.layers[i].quality.origin, PROFILE_MEASURED);
        ck_assert_uint_eq(node->communication.layers[i].curve_count, 0);
    }
    ck_assert_uint_eq(node->cache_count, 3);
    for (size_t i = 0; i < node->cache_count; i++) {
        ck_assert_uint_gt(node->caches[i].size_bytes, 0);
        ck_assert_int_ne(node->caches[i].sharing_quality.origin, PROFILE_MEASURED);
    }
}

TESTS(.seconds = 120)
