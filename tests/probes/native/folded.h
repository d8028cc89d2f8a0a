/* This machine as if it had `count` PUs, 0 to count - 1, whose workers share the allowed ones: as
 * many pairs at a time as a large machine has, run on a small one. Its figures mean nothing. */
#pragma once

#include <stdlib.h>

#include "probes/native/native.h"
#include "profile/topology/topology.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"

static inline void open_folded(uint32_t count, const volatile sig_atomic_t *cancel,
                               struct machine *out)
{
    struct servet_error error;
    ck_assert_msg(probe_machine_open_native(NULL, cancel, out, &error) == 0, "%s", error.text);
    struct native *native = out->state;
    native->folded = out->pus;
    out->pus = set_of(formatted("0-%u", count - 1));
    free(native->workers);
    native->workers = calloc(count, sizeof(struct native_worker *));
    profile_free(out->declared);
    out->declared = profile_topology_new();
    ck_assert_int_eq(profile_set_copy(&out->pus, &out->declared->classes[0].pus), 0);
    ck_assert_int_eq(
        profile_topology_finish(out->declared, &(struct topology_groupings){0}, &error), 0);
}
