/* The profile that a plan is made from. */
#include "preload/place/profile.h"

#include <limits.h>
#include <stdio.h>

#include "preload/node/log.h"
#include "profile/scope.h"

/* Figures of single NUMA nodes are left aside unless memory goes by them. */
static int load_matching(const char *path, bool all, const struct profile_set *allowed,
                         struct servet_profile **out, struct servet_error *error)
{
    struct servet_profile *profile;
    TRY(all ? profile_load(path, &profile, error) : profile_load_node(path, &profile, error));
    const int rc = profile_matches(profile, "", allowed, error);
    if (rc < 0) {
        profile_free(profile);
        return rc;
    }
    *out = profile;
    return 0;
}

int pin_profile_read(const struct pin_options *options, const struct pin_launcher *launcher,
                     const struct profile_set *allowed, struct servet_profile **out,
                     char source[PIN_SOURCE_SIZE])
{
    struct servet_error error = {0};
    char found[PATH_MAX];
    const char *path = options->profile, *why = "no profile found";
    if (!path && profile_find(found, sizeof found) == 0) {
        path = found;
    }
    if (path) {
        if (load_matching(path, options->membind >= PIN_MEMBIND_FAST, allowed, out, &error) == 0) {
            snprintf(source, PIN_SOURCE_SIZE, "%.200s", path);
            return 0;
        }
        if (launcher->node_rank == 0) { /* else said once for all */
            pin_failure("%s; using the declared topology instead%s", error.text,
                        launcher->node_ranks > 1 ? " (as all ranks of the job here)" : "");
        }
        why = "profile not usable";
    }
    snprintf(source, PIN_SOURCE_SIZE, "declared topology, %s", why);
    const int rc = profile_from_sysfs("", out, &error);
    pin_log(rc < 0 && launcher->node_rank == 0 && options->verbose, "threads are not pinned: %s",
            error.text);
    return rc;
}
