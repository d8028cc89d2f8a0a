/* Is what is said to be left at the start what it takes, on the machine's own clock? */
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
