/* Is a profile that of this machine? */
#include "model.h"

#include "hostlist.h"
#include "sysfs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int host_name(const char *root, char *name, size_t size)
{
    if (!*root) {
        int rc = gethostname(name, size) < 0 ? -errno : 0;
        name[size - 1] = '\0';
        return rc;
    }
    struct sysfs *fs = calloc(1, sizeof *fs);
    if (!fs) {
        return -ENOMEM;
    }
    fs->root = root;
    int rc = sysfs_read(fs, "/proc/sys/kernel/hostname");
    snprintf(name, size, "%.*s", (int)size - 1, fs->text);
    free(fs);
    return rc;
}

static const struct profile_class *class_by_name(const struct servet_profile *profile, const char *host)
{
    for (size_t i = 0; i < profile->node_range_count; i++) {
        if (profile_hostlist_find(profile->nodes[i].names, host) >= 0) {
            return &profile->classes[profile->nodes[i].class_index];
        }
    }
    return NULL;
}

const struct profile_class *profile_class_of_host(const struct servet_profile *profile, const char *host)
{
    const struct profile_class *found = class_by_name(profile, host);
    return !found && profile_node_count(profile) == 1 ? profile_node_class(profile, 0) : found;
}

static int match_signature(const struct servet_profile *profile, const char *root, struct servet_error *error)
{
    char here[PROFILE_SIGNATURE_SIZE];
    int rc = profile_signature(root, here);
    if (rc < 0) {
        return profile_error(error, rc, "topology of this machine: %s", strerrordesc_np(-rc));
    }
    if (strcmp(here, profile->topology_signature) != 0) {
        return profile_error(error, -ESTALE,
                             "the profile is of another machine (%s, topology signature %s; this one has %s)",
                             profile->host_name, profile->topology_signature, here);
    }
    return 0;
}

static int match_allowed(const struct profile_class *node_class, const struct profile_set *allowed,
                         struct servet_error *error)
{
    for (size_t i = 0; allowed && i < allowed->count; i++) {
        if (!profile_set_has(&node_class->pus, allowed->ids[i])) {
            return profile_error(error, -ESTALE, "the profile does not know PU %u, which this program may use",
                                 allowed->ids[i]);
        }
    }
    return 0;
}

int profile_matches(const struct servet_profile *profile, const char *root, const struct profile_set *allowed,
                    struct servet_error *error)
{
    bool cluster = profile_node_count(profile) != 1;
    if (!cluster && profile->topology_signature && *profile->topology_signature) {
        int rc = match_signature(profile, root, error);
        return rc < 0 ? rc : match_allowed(profile_node_class(profile, 0), allowed, error);
    }
    char host[HOST_NAME_MAX + 1];
    int rc = host_name(root, host, sizeof host);
    if (rc < 0) {
        return profile_error(error, rc, "name of this host: %s", strerrordesc_np(-rc));
    }
    const struct profile_class *node_class = class_by_name(profile, host);
    if (!node_class) {
        return profile_error(error, -ESTALE, "the profile is of %s, not of this host, %s",
                             cluster ? profile->nodes[0].names : profile->host_name, host);
    }
    return match_allowed(node_class, allowed, error);
}
