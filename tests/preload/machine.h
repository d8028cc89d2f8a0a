/* Machines that are not here, as profiles that the shim believes. */
#pragma once

#include "profile/base/mask.h"
#include "profile/model.h"

struct machine {
    char path[64]; /* of its profile */
    struct servet_profile *profile;
    struct profile_mask all; /* its PUs */
};

/* `source`: a profile of one node, or what hwloc reads. It gets the name of this host: so the shim
 * believes it here. */
void open_machine(const char *source, struct machine *out);
void close_machine(struct machine *machine);

/* In the environment. */
void set_number(const char *name, uint32_t value);
