/* Is what is said to be left at the start what it takes, on the machine's own clock? And is it
 * little where nothing is declared? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/run/run.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

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

/* What was said to be left at the start, seconds. */
static double said_at_the_start(FILE *events)
{
    char line[512];
    const char *left = NULL;
    rewind(events);
    while (!left && fgets(line, sizeof line, events)) {
        left = strstr(line, "\"seconds_left\": ");
    }
    ck_assert_ptr_nonnull(left);
    return strtod(left + strlen("\"seconds_left\": "), NULL);
}

/* Memory of 2 GB/s a PU, where 10 are expected, is known by the first copy; that some pairs of
 * Superdome are not alike is not. */
TEST(what_is_said_to_be_left_at_the_start_is_what_it_takes, .loops = 8)
{
    static const size_t sizes[] = {64, 128, 256};
    static const char *const fixtures[] = {"xeon-snc4", "epyc-2-sockets", "dunnington",
                                           "finis-terrae", "superdome"};
    const double limit = _i < 5 ? 1.5 : _i < 7 ? 2 : 2.5;
    struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    FILE *events = tmpfile();
    struct progress progress;
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
    const double said_s = said_at_the_start(events);
    ck_assert_msg(said_s > took_s / limit && said_s < limit * took_s, "said %g, took %g", said_s,
                  took_s);
    fclose(events);
    profile_free(profile);
    probe_machine_close(&machine);
}

/* -- what says which pairs are alike -- */

enum { HIDDEN = 64, HIDDEN_GROUP = 4 }; /* PUs, of which so many share the second level */

static const struct machine_ops *whole;
static size_t tried_together; /* how often working sets of several PUs at the same time were */

static int traverse_noting(struct machine *machine, const struct machine_traversal *what,
                           const uint32_t *pus, size_t count, double *seconds)
{
    tried_together += count > 1;
    return whole->traverse(machine, what, pus, count, seconds);
}

static size_t position_of(FILE *events, const char *event)
{
    char line[512];
    size_t found = 0;
    rewind(events);
    for (size_t at = 1; fgets(line, sizeof line, events); at++) {
        found = strstr(line, event) && !found ? at : found;
    }
    return found;
}

/* All pairs of hundreds of PUs take minutes. */
TEST(who_shares_caches_is_asked_by_messages_layers_where_nothing_is_declared)
{
    struct machine machine;
    struct servet_profile *profile;
    struct servet_error error;
    FILE *events = tmpfile();
    struct progress progress;
    open_machine_with(
        &machine, 1,
        "{'servet_machine': 1, 'name': 'hidden', 'pus': '0-%d', 'page_bytes': 4096, 'caches': "
        "[{'level': 1, 'size_bytes': 32768, 'ways': 8, 'seconds': 1e-9, 'declared_size_bytes': 0}, "
        "{'level': 2, 'size_bytes': 1048576, 'ways': 16, 'seconds': 5e-9, 'groups': [%s], "
        "'declared_size_bytes': 0}], 'memory': {'seconds': 1e-7, 'pu_bytes_per_s': 1e10}, "
        "'layers': "
        "[{'name': 'L2', 'groups': [%s], 'seconds': 3e-7, 'bytes_per_s': 9e9}, {'name': 'node', "
        "'groups': ['0-%d'], 'seconds': 1e-6, 'bytes_per_s': 4e9}], 'noise': {'relative': 0.02}}",
        HIDDEN - 1, groups_of(HIDDEN, HIDDEN_GROUP), groups_of(HIDDEN, HIDDEN_GROUP), HIDDEN - 1);
    whole = machine.ops;
    struct machine_ops ops = *whole;
    ops.traverse = traverse_noting;
    machine.ops = &ops;
    tried_together = 0;
    probe_progress_start(&progress, false, fileno(events));
    struct probe_run run = {
        .probes = PROBE_ALL, .seed = 1, .machine = &machine, .progress = &progress};
    ck_assert_msg(probe_run_run(&run, &profile, &error) == 0, "%s", error.text);
    const size_t pairs = HIDDEN * (HIDDEN - 1) / 2;
    const double took_s = probe_machine_elapsed(&machine), said_s = said_at_the_start(events);
    ck_assert_msg(said_s > took_s / 2 && said_s < 2 * took_s, "said %g, took %g", said_s, took_s);
    ck_assert_uint_gt(tried_together, 0);
    ck_assert_uint_lt(tried_together, pairs);
    ck_assert_uint_lt(position_of(events, "\"probe\": \"message\""),
                      position_of(events, "\"probe\": \"sharing\""));
    const struct profile_relation *sharing = &profile->classes[0].caches[1].sharing;
    ck_assert_ptr_nonnull(
        strstr(profile->classes[0].caches[1].quality.note, "pairs alike by messages"));
    ck_assert_uint_eq(sharing->group_count, HIDDEN / HIDDEN_GROUP);
    ck_assert_uint_eq(sharing->pair_count, 0);
    for (size_t i = 0; i < sharing->group_count; i++) {
        ck_assert_uint_eq(sharing->groups[i].count, HIDDEN_GROUP);
        ck_assert_uint_eq(sharing->groups[i].ids[0] / HIDDEN_GROUP,
                          sharing->groups[i].ids[HIDDEN_GROUP - 1] / HIDDEN_GROUP);
    }
    fclose(events);
    profile_free(profile);
    probe_machine_close(&machine);
}

TESTS(.seconds = 400)
