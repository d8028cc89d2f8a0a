/* This process's side of the registry. */
#include "preload/node/claims.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "preload/node/note.h"

/* A job of one process: no launcher's number has the highest bit and the pid's place at once. */
static uint64_t job_of_this_process(void)
{
    return (uint64_t)1 << 63 | (uint64_t)(uint32_t)getpid();
}

static bool open_registry(const char *path, bool verbose, struct pin_registry *registry)
{
    int code = pin_registry_open(path, registry);
    if (code < 0 && verbose) {
        pin_note("%s: %s; other programs on this node are not seen", path, strerrordesc_np(-code));
    }
    return code == 0;
}

void pin_claims_begin(struct pin_claims *claims, const struct pin_options *options,
                      const struct pin_launcher *launcher, const struct profile_mask *allowed,
                      struct profile_mask *taken)
{
    *taken = (struct profile_mask){0};
    *claims = (struct pin_claims){.job = launcher->job ? launcher->job : job_of_this_process()};
    if (options->no_registry) {
        return;
    }
    if (options->registry[0]) {
        snprintf(claims->path, sizeof claims->path, "%s", options->registry);
    } else {
        pin_registry_default_path(claims->path, sizeof claims->path);
    }
    claims->on = open_registry(claims->path, options->verbose, &claims->registry);
    if (!claims->on) {
        return;
    }
    pin_registry_taken(&claims->registry, claims->job, allowed, taken);
    claims->taken = *taken;
}

void pin_claims_commit(struct pin_claims *claims, const struct profile_mask *held)
{
    if (!claims->on) {
        return;
    }
    claims->on =
        held && pin_registry_enter(&claims->registry, claims->job, &claims->taken, held) == 0;
    pin_registry_close(&claims->registry);
}

bool pin_claims_try(struct pin_claims *claims, uint32_t pu)
{
    struct pin_registry registry;
    if (!claims->on || !open_registry(claims->path, false, &registry)) {
        return true;
    }
    bool claimed = pin_registry_claim(&registry, claims->job, pu);
    pin_registry_close(&registry);
    return claimed;
}

void pin_claims_end(struct pin_claims *claims)
{
    struct pin_registry registry;
    if (!claims->on || !open_registry(claims->path, false, &registry)) {
        return;
    }
    pin_registry_leave(&registry);
    pin_registry_close(&registry);
    claims->on = false;
}
