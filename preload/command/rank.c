/* servet-pin in front of a rank of a parallel program. */
#include "preload/command/rank.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/node/claims.h"
#include "preload/node/note.h"
#include "preload/place/launcher.h"
#include "preload/place/options.h"
#include "preload/place/plan.h"
#include "preload/trace/auto.h"
#include "profile/base/mask.h"

/* The registry's entry stays this process's when it has become the rank. */
static int make_plan(const struct pin_options *options, const struct pin_launcher *launcher,
                     const struct profile_mask *start, struct pin_plan *plan)
{
    static struct pin_claims claims;
    struct profile_mask allowed, taken;
    pin_launcher_allowed(launcher, start, &allowed);
    pin_claims_begin(&claims, options, launcher, &allowed, &taken);
    int code = pin_plan_make(options, launcher, pin_plan_threads(), &allowed, &taken, plan);
    pin_claims_commit(&claims, code < 0 ? NULL : &plan->held);
    return code;
}

static void hand_over(const struct pin_launcher *launcher, const struct profile_mask *start,
                      const struct pin_plan *plan)
{
    int code = profile_mask_set(0, &plan->own);
    code = code < 0 ? code : pin_handover_export(launcher, start, plan);
    if (code == 0) {
        return;
    }
    profile_mask_set(0, start);
    pin_failure("cannot export the rank's places: %s", strerrordesc_np(-code));
}

/* Where exec would find `command`: false, and nothing is known of it, when nowhere. */
static bool find_command(const char *command, char *path, size_t size)
{
    if (strchr(command, '/')) {
        return snprintf(path, size, "%s", command) < (int)size;
    }
    for (const char *at = getenv("PATH"); at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        int length = (int)strcspn(at, ":");
        if (snprintf(path, size, "%.*s%s%s", length, at, length ? "/" : "", command) < (int)size &&
            access(path, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* With SERVET_AUTO, the priority of a program behind another command (env, a script) is not known
 * here. */
static bool priority_is_known(struct pin_options *options, const char *command)
{
    char path[PATH_MAX];
    struct pin_auto recalled;
    if (!options->auto_priority || options->mem_prior || options->comm_prior) {
        return true;
    }
    return find_command(command, path, sizeof path) && pin_auto_apply(options, path, &recalled);
}

void pin_rank_hand_over(const char *command)
{
    static struct pin_options options;
    struct pin_launcher launcher;
    struct profile_mask start, before;
    struct pin_plan plan;
    pin_options_read(&options);
    if (options.disable) {
        return;
    }
    pin_launcher_read(options.rebind, &launcher);
    if (!launcher.name || pin_handover_read(&launcher, &before)) {
        return; /* no rank, or servet-pin in front of servet-pin */
    }
    if (pin_users_places_set() && !options.force) {
        return;
    }
    if (!priority_is_known(&options, command)) {
        return;
    }
    if (profile_mask_get(0, &start) < 0 || make_plan(&options, &launcher, &start, &plan) < 0) {
        return;
    }
    hand_over(&launcher, &start, &plan);
    pin_plan_free(&plan);
}
