/* Is every kind of machine mapped completely: SMT, P and E cores, memory-only nodes, no L3, one PU,
 * gaps? */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/command/common_options.h"
#include "mapper/map.h"
#include "tests/base/runner.h"

#define MOST 256

static struct servet_profile *described(const char *source)
{
    struct servet_profile *profile;
    struct servet_error error;
    ck_assert_msg(profile_from_hwloc(source, &profile, &error) == 0, "%s", error.text);
    return profile;
}

static void assert_mapping(const struct servet_profile *profile, const struct map_request *request,
                           const uint32_t *expected)
{
    uint32_t out[MOST];
    struct servet_error error;
    ck_assert_msg(map_workers(profile, request, out, NULL, &error) == 0, "%s", error.text);
    for (size_t w = 0; w < request->workers; w++) {
        ck_assert_msg(out[w] == expected[w], "worker %zu: PU %u, expected %u", w, out[w],
                      expected[w]);
    }
}

#define PUS(...)                                                                                   \
    (const uint32_t[])                                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

START_TEST(every_core_has_a_worker_before_any_has_two)
{
    const char *machines[] = {"package:2 l3:2 l2:2 core:2 pu:2", "package:1 core:5 pu:4",
                              "package:3 l2:1 core:3 pu:2"};
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        struct servet_profile *profile = described(machines[m]);
        size_t pus = profile->classes[0].pus.count, smt = profile->classes[0].cores.groups[0].count;
        for (size_t workers = 1; workers <= pus; workers++) {
            for (int priority = MAP_MEMORY; priority <= MAP_COMMUNICATION; priority++) {
                struct map_request request = {.priority = (enum map_priority)priority,
                                              .workers = workers};
                uint32_t out[MOST], on_core[MOST] = {0};
                ck_assert_int_eq(map_workers(profile, &request, out, NULL, NULL), 0);
                for (size_t w = 0; w < workers;
                     w++) { /* hwloc numbers the PUs of a synthetic core in a row */
                    ck_assert_uint_eq(++on_core[out[w] / smt], w / (pus / smt) + 1);
                }
            }
        }
        profile_free(profile);
    }
}
END_TEST

START_TEST(kinds_of_cores_are_not_mixed_while_one_suffices)
{
    struct servet_profile *profile =
        described(FIXTURES "/topologies/Intel-ArrowLake-CoreUltra5-225U.xml");
    const struct profile_class *node = &profile->classes[0];
    ck_assert_uint_ge(node->kind_count, 2);
    for (size_t workers = 1; workers <= node->pus.count; workers++) {
        struct map_request request = {.workers = workers};
        uint32_t out[MOST];
        ck_assert_int_eq(map_workers(profile, &request, out, NULL, NULL), 0);
        size_t most = 0,
               kinds = 0; /* cores of the largest kind (its PUs without siblings), kinds in use */
        for (size_t k = 0; k < node->kind_count; k++) {
            size_t cores = node->kinds[k].pus.count, used = 0;
            for (size_t g = 0; g < node->cores.group_count; g++) {
                cores -= profile_set_subset(&node->cores.groups[g], &node->kinds[k].pus)
                             ? node->cores.groups[g].count - 1
                             : 0;
            }
            for (size_t w = 0; w < workers; w++) {
                used += profile_set_has(&node->kinds[k].pus, out[w]);
            }
            most = cores > most ? cores : most;
            kinds += used > 0;
        }
        ck_assert_msg(workers > most || kinds == 1, "%zu workers use %zu kinds, one has %zu cores",
                      workers, kinds, most);
    }
    profile_free(profile);
}
END_TEST

START_TEST(most_capable_cores_come_first)
{
    struct servet_profile *profile =
        described(FIXTURES "/topologies/Intel-ArrowLake-CoreUltra5-225U.xml");
    const struct profile_class *node = &profile->classes[0];
    const struct profile_kind *best = &node->kinds[0];
    for (size_t k = 1; k < node->kind_count; k++) {
        best = node->kinds[k].efficiency > best->efficiency ? &node->kinds[k] : best;
    }
    struct map_request request = {.workers = 2};
    uint32_t out[2];
    ck_assert_int_eq(map_workers(profile, &request, out, NULL, NULL), 0);
    ck_assert(profile_set_has(&best->pus, out[0]) && profile_set_has(&best->pus, out[1]));
    profile_free(profile);
}
END_TEST

START_TEST(limits_leave_what_was_asked_for)
{
    struct servet_profile *profile = described("package:2 core:2 pu:4");
    struct profile_set list, left;
    struct servet_error error;
    ck_assert_int_eq(profile_set_parse("1-7,12", &list), 0);
    const struct {
        struct map_limits limits;
        const char *expected;
    } cases[] = {
        {{NULL, 0, MAP_KIND_ANY}, "0-15"},
        {{NULL, 1, MAP_KIND_ANY}, "0,4,8,12"},
        {{NULL, 2, MAP_KIND_ANY}, "0-1,4-5,8-9,12-13"},
        {{&list, 1, MAP_KIND_ANY}, "1,4,12"},
        {{&list, 0, 0}, "1-7,12"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(map_restrict(profile, &cases[i].limits, &left, &error), 0);
        char *text = profile_set_text(&left);
        ck_assert_str_eq(text, cases[i].expected);
        free(text);
        profile_set_free(&left);
    }
    struct map_limits none = {NULL, 0, 1};
    ck_assert_int_lt(map_restrict(profile, &none, &left, &error), 0);
    profile_set_free(&list);
    profile_free(profile);
}
END_TEST

START_TEST(memory_only_nodes_and_odd_machines_are_mapped_completely)
{
    const char *files[] = {"fakeheteromemtiers.xml", "nvidiagpunumanodes.xml",
                           "fakeheterocpunuma.xml",  "2ps3-2t.xml",
                           "4fake-4gr1nu1pu.xml",    "16amd64-4n4c-cgroup-distance-merge.xml"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        char path[512];
        snprintf(path, sizeof path, "%s/topologies/%s", FIXTURES, files[f]);
        struct servet_profile *profile = described(path);
        const struct profile_set *pus = &profile->classes[0].pus;
        struct map_request request = {.workers = pus->count};
        uint32_t *out = calloc(pus->count, sizeof *out);
        ck_assert_int_eq(map_workers(profile, &request, out, NULL, NULL), 0);
        struct profile_set used;
        ck_assert_int_eq(profile_set_from_array(out, pus->count, &used), 0);
        ck_assert_msg(profile_set_equal(&used, pus), "%s: some PU has two workers and another none",
                      files[f]);
        profile_set_free(&used);
        free(out);
        profile_free(profile);
    }
}
END_TEST

START_TEST(one_pu_takes_all)
{
    struct servet_profile *profile = described("pu:1");
    assert_mapping(profile, &(struct map_request){.workers = 3}, PUS(0, 0, 0));
    profile_free(profile);
}
END_TEST

START_TEST(taken_pus_count_as_chosen)
{
    struct servet_profile *profile;
    ck_assert_int_eq(profile_load(FIXTURES "/nehalem-2-nodes.json", &profile, NULL), 0);
    struct profile_set taken, allowed;
    ck_assert_int_eq(profile_set_parse("0-1", &taken), 0);
    ck_assert_int_eq(profile_set_parse("0-3", &allowed), 0);
    /* Goes on where Table 1 of the paper is after two choices. */
    assert_mapping(profile, &(struct map_request){.workers = 2, .taken = &taken}, PUS(8, 9));
    assert_mapping(profile,
                   &(struct map_request){.workers = 5, .taken = &taken, .allowed = &allowed},
                   PUS(2, 3, 0, 1, 2));
    profile_set_free(&taken);
    profile_set_free(&allowed);
    profile_free(profile);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("machines");
    tcase_add_test(tcase, every_core_has_a_worker_before_any_has_two);
    tcase_add_test(tcase, kinds_of_cores_are_not_mixed_while_one_suffices);
    tcase_add_test(tcase, most_capable_cores_come_first);
    tcase_add_test(tcase, limits_leave_what_was_asked_for);
    tcase_add_test(tcase, memory_only_nodes_and_odd_machines_are_mapped_completely);
    tcase_add_test(tcase, one_pu_takes_all);
    tcase_add_test(tcase, taken_pus_count_as_chosen);
    return run_tests(tcase);
}
