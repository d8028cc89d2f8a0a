/* A machine of tests/fixtures/machines, opened in a test. */
#ifndef SERVET_TESTS_PROBES_OPEN_FIXTURE_H
#define SERVET_TESTS_PROBES_OPEN_FIXTURE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "probes/machine.h"

static inline void open_machine_of(const char *name, struct machine *machine)
{
    char path[4096];
    struct servet_error error;
    snprintf(path, sizeof path, "%s/%s.json", getenv("MACHINES"), name);
    ck_assert_msg(probe_machine_open_simulated(path, 1, machine, &error) == 0, "%s", error.text);
}

#endif
