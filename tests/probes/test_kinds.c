/* On a machine with performance and efficiency cores: are caches and bandwidth of both kinds measured, each on its own
 * cores, and are slow cores not taken for disturbed ones? */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "campaign.h"
#include "machine.h"
#include "model.h"
#include "query.h"
#include "topology.h"

enum { PUS = 8, FIRST_EFFICIENT = 4 };

/* PUs 0-3: 48 KiB and 1 MiB each, and two of them copy less each than one alone. PUs 4-7: 32 KiB each, 2 MiB of all
 * four together, half the bandwidth. All eight: 16 MiB. A simulated machine has one kind: here are two, each of which
 * answers for its own PUs. */
static const char performance[] =
    "{\"servet_machine\": 1, \"pus\": \"0-7\", \"caches\": ["
    "{\"level\": 1, \"size_bytes\": 49152, \"ways\": 12, \"seconds\": 1.2e-9, \"indexing\": \"virtual\"},"
    "{\"level\": 2, \"size_bytes\": 1048576, \"ways\": 16, \"seconds\": 4e-9},"
    "{\"level\": 3, \"size_bytes\": 16777216, \"ways\": 16, \"seconds\": 2e-8, \"groups\": [\"0-7\"]}],"
    "\"memory\": {\"seconds\": 1e-7, \"pu_bytes_per_s\": 1e10, \"domains\": [{\"pus\": \"0-3\", \"bytes_per_s\": "
    "1.3e10}]},"
    "\"layers\": [{\"groups\": [\"0-7\"], \"seconds\": 4e-7, \"bytes_per_s\": 9e9}]}";
static const char efficiency[] =
    "{\"servet_machine\": 1, \"pus\": \"0-7\", \"caches\": ["
    "{\"level\": 1, \"size_bytes\": 32768, \"ways\": 8, \"seconds\": 1.6e-9, \"indexing\": \"virtual\"},"
    "{\"level\": 2, \"size_bytes\": 2097152, \"ways\": 16, \"seconds\": 6e-9, \"groups\": [\"4-7\"]},"
    "{\"level\": 3, \"size_bytes\": 16777216, \"ways\": 16, \"seconds\": 2.4e-8, \"groups\": [\"0-7\"]}],"
    "\"memory\": {\"seconds\": 1.2e-7, \"pu_bytes_per_s\": 5e9},"
    "\"layers\": [{\"groups\": [\"0-7\"], \"seconds\": 4e-7, \"bytes_per_s\": 9e9}]}";

static struct machine kinds[2];

static size_t kind_of(uint32_t pu)
{
    return pu >= FIRST_EFFICIENT;
}

static int traverse(struct machine *machine, const struct machine_traversal *what, const uint32_t *pus, size_t count,
                    double *seconds)
{
    (void)machine;
    for (size_t kind = 0; kind < 2; kind++) {
        double all[PUS];
        int rc = machine_traverse(&kinds[kind], what, pus, count, all);
        if (rc < 0) {
            return rc;
        }
        for (size_t i = 0; i < count; i++) {
            seconds[i] = kind_of(pus[i]) == kind ? all[i] : seconds[i];
        }
    }
    return 0;
}

static int copy(struct machine *machine, const struct machine_copy *what, const uint32_t *pus, size_t count,
                double *rates)
{
    (void)machine;
    for (size_t kind = 0; kind < 2; kind++) {
        double all[PUS];
        int rc = machine_copy(&kinds[kind], what, pus, count, all);
        if (rc < 0) {
            return rc;
        }
        for (size_t i = 0; i < count; i++) {
            rates[i] = kind_of(pus[i]) == kind ? all[i] : rates[i];
        }
    }
    return 0;
}

static int exchange(struct machine *machine, const struct machine_exchange *what, const struct profile_pair *pairs,
                    size_t count, double *seconds)
{
    (void)machine;
    return machine_exchange(&kinds[0], what, pairs, count, seconds);
}

static const struct machine_ops ops = {.traverse = traverse, .copy = copy, .exchange = exchange};

static void open_kind(const char *text, struct machine *out)
{
    struct servet_error error;
    char path[] = "/tmp/servet-kinds-XXXXXX";
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_eq(write(descriptor, text, strlen(text)), (int)strlen(text));
    close(descriptor);
    int rc = machine_open_simulated(path, 1, out, &error);
    remove(path);
    ck_assert_msg(rc == 0, "%s", error.text);
}

static struct profile_set set(const char *text)
{
    struct profile_set out;
    ck_assert_int_eq(profile_set_parse(text, &out), 0);
    return out;
}

static struct servet_profile *declare(void)
{
    static const struct topology_cache first[] = {{1, 49152, 64, 12}, {1, 32768, 64, 8}},
                                       second[] = {{2, 1048576, 64, 16}, {2, 2097152, 64, 16}},
                                       third = {3, 16777216, 64, 16};
    struct servet_error error;
    struct servet_profile *profile = topology_new();
    struct profile_class *node_class = &profile->classes[0];
    node_class->pus = set("0-7");
    for (uint32_t pu = 0; pu < PUS; pu++) {
        char number[16];
        snprintf(number, sizeof number, "%u", pu);
        ck_assert_int_eq(topology_add_cache(node_class, &first[kind_of(pu)], set(number)), 0);
        if (!kind_of(pu)) {
            ck_assert_int_eq(topology_add_cache(node_class, &second[0], set(number)), 0);
        }
    }
    ck_assert_int_eq(topology_add_cache(node_class, &second[1], set("4-7")), 0);
    ck_assert_int_eq(topology_add_cache(node_class, &third, set("0-7")), 0);
    ck_assert_int_eq(topology_add_numa(node_class, 0, 0, set("0-7")), 0);
    ck_assert_int_eq(topology_add_kind(node_class, 0, set("4-7")), 0);
    ck_assert_int_eq(topology_add_kind(node_class, 1, set("0-3")), 0);
    ck_assert_int_eq(topology_finish(profile, &error), 0);
    return profile;
}

static struct servet_profile *measure(void)
{
    struct servet_error error;
    struct servet_profile *profile = NULL;
    struct progress progress;
    struct machine machine = {.ops = &ops, .name = "two kinds", .page_bytes = 4096, .memory_limit_bytes = 4ull << 30};
    open_kind(performance, &kinds[0]);
    open_kind(efficiency, &kinds[1]);
    machine.pus = set("0-7");
    machine.declared = declare();
    progress_start(&progress, false, -1);
    struct campaign campaign = {.probes = CAMPAIGN_ALL, .seed = 1, .machine = &machine, .progress = &progress};
    int rc = campaign_run(&campaign, &profile, &error);
    ck_assert_msg(rc == 0, "%s", error.text);
    machine_close(&machine);
    machine_close(&kinds[0]);
    machine_close(&kinds[1]);
    return profile;
}

static struct servet_profile *profile;

static void measure_once(void)
{
    profile = measure();
}

static void forget(void)
{
    profile_free(profile);
}

static void assert_cache(uint32_t level, uint32_t pu, uint64_t bytes, const char *pus, const char *group)
{
    const struct profile_class *node_class = &profile->classes[0];
    const struct profile_cache *cache = profile_cache_of(node_class, level, pu);
    ck_assert_ptr_nonnull(cache);
    ck_assert_uint_eq(cache->size_bytes, bytes);
    ck_assert_int_eq(cache->quality.origin, PROFILE_MEASURED);
    char *text = profile_set_text(&cache->pus);
    ck_assert_str_eq(text, pus);
    free(text);
    ck_assert_uint_eq(cache->sharing.group_count, group ? 1 : 0);
    if (group) {
        text = profile_set_text(&cache->sharing.groups[0]);
        ck_assert_str_eq(text, group);
        free(text);
    }
}

START_TEST(caches_are_those_of_the_core)
{
    assert_cache(1, 0, 49152, "0-3", NULL);
    assert_cache(1, 5, 32768, "4-7", NULL);
    assert_cache(2, 3, 1 << 20, "0-3", NULL);
    assert_cache(2, 4, 2 << 20, "4-7", "4-7");
    assert_cache(3, 0, 16 << 20, "", "0-7"); /* one of all PUs */
    ck_assert_ptr_eq(profile_cache_of(&profile->classes[0], 3, 0), profile_cache_of(&profile->classes[0], 3, 7));
    ck_assert_uint_eq(profile->classes[0].cache_count, 5);
}
END_TEST

START_TEST(slow_cores_do_not_pass_for_disturbed_ones)
{
    const struct profile_memory *memory = &profile->classes[0].memory;
    ck_assert_double_eq_tol(memory->reference_bytes_per_s, 1e10, 1e8);
    ck_assert_uint_eq(memory->level_count, 1);
    ck_assert_uint_eq(memory->levels[0].collisions.group_count, 1);
    char *text = profile_set_text(&memory->levels[0].collisions.groups[0]);
    ck_assert_str_eq(text, "0-3");
    free(text);
}
END_TEST

START_TEST(memory_is_measured_from_both_kinds)
{
    const struct profile_class *node_class = &profile->classes[0];
    static const char *const pus[] = {"0-3", "4-7"};
    static const double rate[] = {1e10, 5e9};
    ck_assert_uint_eq(node_class->numa_access_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct profile_numa_access *row = &node_class->numa_access[i];
        char *text = profile_set_text(&row->pus);
        ck_assert_str_eq(text, pus[i]);
        ck_assert_double_eq_tol(row->bytes_per_s, rate[i], 0.02 * rate[i]);
        free(text);
    }
}
END_TEST

/* What the other rooms say of it. */
START_TEST(the_profile_is_read_back_as_it_was_written)
{
    struct servet_error error;
    struct servet_profile *again;
    char path[] = "/tmp/servet-kinds-XXXXXX";
    close(mkstemp(path));
    ck_assert_msg(profile_save(profile, path, &error) == 0, "%s", error.text);
    ck_assert_msg(profile_load(path, &again, &error) == 0, "%s", error.text);
    remove(path);
    ck_assert_uint_eq(profile_cache_of(&again->classes[0], 1, 0)->size_bytes, 49152);
    ck_assert_uint_eq(profile_cache_of(&again->classes[0], 1, 7)->size_bytes, 32768);
    profile_free(again);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("kinds");
    tcase_set_timeout(tests, 60);
    tcase_add_unchecked_fixture(tests, measure_once, forget);
    tcase_add_test(tests, caches_are_those_of_the_core);
    tcase_add_test(tests, slow_cores_do_not_pass_for_disturbed_ones);
    tcase_add_test(tests, memory_is_measured_from_both_kinds);
    tcase_add_test(tests, the_profile_is_read_back_as_it_was_written);
    Suite *suite = suite_create("kinds");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
