/* Where nothing is declared, do messages come before sharing, and say which pairs are similar? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/run/run.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

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
    ck_assert_uint_gt(tried_together, 0);
    ck_assert_uint_lt(tried_together, pairs);
    ck_assert_uint_lt(position_of(events, "\"probe\": \"message\""),
                      position_of(events, "\"probe\": \"sharing\""));
    const struct profile_relation *sharing = &profile->classes[0].caches[1].sharing;
    ck_assert_ptr_nonnull(
        strstr(profile->classes[0].caches[1].quality.note, "pairs with similar messages"));
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
