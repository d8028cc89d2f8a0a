/* This process's side of the registry: what others hold when the plan is made, and what it takes
 * itself. Without a registry that can be used every call does nothing and every PU is free. */
#ifndef SERVET_PRELOAD_NODE_CLAIMS_H
#define SERVET_PRELOAD_NODE_CLAIMS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/node/registry.h"
#include "preload/place/launcher.h"
#include "preload/place/options.h"
#include "profile/base/mask.h"

struct pin_claims {
    bool on;
    uint64_t job;
    char path[PATH_MAX];
    struct pin_registry registry; /* open between begin and commit: two programs that start at once
                                     plan one after the other */
    struct profile_mask taken;
};

/* Looks what of `allowed` is taken. */
void pin_claims_begin(struct pin_claims *claims, const struct pin_options *options,
                      const struct pin_launcher *launcher, const struct profile_mask *allowed,
                      struct profile_mask *taken);

/* Enters what the plan is sure to use; NULL: there is no plan. */
void pin_claims_commit(struct pin_claims *claims, const struct profile_mask *held);

/* Takes one PU more; false when another program holds it. */
bool pin_claims_try(struct pin_claims *claims, uint32_t pu);

/* Gives everything back. */
void pin_claims_end(struct pin_claims *claims);

#endif
