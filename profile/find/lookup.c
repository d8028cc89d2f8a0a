/* Where profiles lie. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/base/format_safe.h"
#include "profile/model.h"
#include "profile/scope.h"
#include "profile/topology/topology.h"

/* Host name up to the first dot: what stays the same whether a system is configured with a domain
 * or without. */
static int short_host_name(char *name, size_t size)
{
    if (gethostname(name, size) < 0) {
        return -errno;
    }
    name[size - 1] = '\0';
    name[strcspn(name, ".")] = '\0';
    return *name && !strchr(name, '/') ? 0 : -ENOENT;
}

/* Behind a folder that ends at `at`; NULL: it did not fit. */
static int put_name(char *at, const char *end, const char *name)
{
    at = profile_format_text(profile_format_text(at, end, "/servet/"), end, name);
    return profile_format_text(at, end, ".json") ? 0 : -ENAMETOOLONG;
}

static int put_path(char *path, size_t size, const char *folder, const char *name)
{
    const char *end = path + size;
    return put_name(profile_format_text(path, end, folder), end, name);
}

/* A host's profile in $XDG_CONFIG_HOME, which counts only when absolute (XDG base directory
 * specification), else in ~/.config. No look-up in the user database: that loads modules into
 * whatever program we are in. */
static int put_user_path(char *path, size_t size, const char *host)
{
    const char *xdg = secure_getenv("XDG_CONFIG_HOME"), *home = secure_getenv("HOME");
    const char *end = path + size;
    const bool is_xdg = xdg && *xdg == '/';
    if (!is_xdg && (!home || !*home)) {
        return -ENOENT;
    }
    char *at = profile_format_text(path, end, is_xdg ? xdg : home);
    return put_name(profile_format_text(at, end, is_xdg ? "" : "/.config"), end, host);
}

/* Is the folder of the folder servet/ another user's, or not readable? su and services keep the
 * $HOME of the user who started them. */
static bool is_anothers(char *path)
{
    struct stat about;
    char *name = strrchr(path, '/');
    *name = '\0';
    char *end = strrchr(path, '/');
    *end = '\0';
    const bool is_own = stat(path, &about) == 0 && about.st_uid == geteuid();
    *name = *end = '/';
    return !is_own;
}

/* $SERVET_PROFILE; empty counts as unset. */
static const char *chosen_by_user(void)
{
    const char *path = secure_getenv("SERVET_PROFILE");
    return path && *path ? path : NULL;
}

static int copy_path(char *path, size_t size, const char *from)
{
    return profile_format_text(path, path + size, from) ? 0 : -ENAMETOOLONG;
}

/* A file that is there but cannot be read is found: reading it will say why. */
static bool exists(const char *path)
{
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

int profile_find_under(const char *sysconfdir, char *path, size_t size)
{
    const char *chosen = chosen_by_user();
    if (chosen) {
        return copy_path(path, size, chosen);
    }
    char host[HOST_NAME_MAX + 1];
    bool named = short_host_name(host, sizeof host) == 0;
    if (named && put_user_path(path, size, host) == 0 &&
        (access(path, R_OK) == 0 || (exists(path) && !is_anothers(path)))) {
        return 0;
    }
    if (named && put_path(path, size, sysconfdir, host) == 0 && exists(path)) {
        return 0;
    }
    if (put_path(path, size, sysconfdir, "profile") < 0) {
        return -ENAMETOOLONG;
    }
    return exists(path) ? 0 : -ENOENT;
}

int profile_find(char *path, size_t size)
{
    return profile_find_under(SERVET_SYSCONFDIR, path, size);
}

int profile_default_path(char *path, size_t size, struct servet_error *error)
{
    const char *chosen = chosen_by_user();
    char host[HOST_NAME_MAX + 1];
    int rc = chosen ? copy_path(path, size, chosen) : short_host_name(host, sizeof host);
    if (rc == 0 && !chosen) {
        rc = put_user_path(path, size, host);
    }
    if (rc == -ENOENT) {
        return profile_error(
            error, rc,
            "no place for the profile: expected SERVET_PROFILE, XDG_CONFIG_HOME or HOME "
            "to be set, and the host to have a name");
    }
    return rc < 0 ? profile_error(error, rc, "place for the profile: %s", strerrordesc_np(-rc)) : 0;
}

/* Is a profile that of this machine? */

static int host_name(const char *root, char *name, size_t size)
{
    if (!*root) {
        int rc = gethostname(name, size) < 0 ? -errno : 0;
        name[size - 1] = '\0';
        return rc;
    }
    FREED struct sysfs *fs = calloc(1, sizeof *fs);
    if (!fs) {
        return -ENOMEM;
    }
    fs->root = root;
    int rc = profile_sysfs_read(fs, "/proc/sys/kernel/hostname");
    snprintf(name, size, "%.*s", (int)size - 1, fs->text);
    return rc;
}

static const struct profile_class *class_by_name(const struct servet_profile *profile,
                                                 const char *host)
{
    for (size_t i = 0; i < profile->node_range_count; i++) {
        if (profile_hostlist_find(profile->nodes[i].names, host) >= 0) {
            return &profile->classes[profile->nodes[i].class_index];
        }
    }
    return NULL;
}

const struct profile_class *profile_class_of_host(const struct servet_profile *profile,
                                                  const char *host)
{
    const struct profile_class *found = class_by_name(profile, host);
    return !found && profile_node_count(profile) == 1 ? profile_node_class(profile, 0) : found;
}

const struct profile_class *profile_class_here(const struct servet_profile *profile)
{
    char host[HOST_NAME_MAX + 1] = "";
    (void)gethostname(host, sizeof host - 1);
    const struct profile_class *found = profile_class_of_host(profile, host);
    return found ? found : &profile->classes[0];
}

static int match_signature(const struct servet_profile *profile, const char *root,
                           struct servet_error *error)
{
    char here[PROFILE_SIGNATURE_SIZE];
    int rc = profile_signature(root, here);
    if (rc < 0) {
        return profile_error(error, rc, "topology of this machine: %s", strerrordesc_np(-rc));
    }
    if (strcmp(here, profile->topology_signature) != 0) {
        return profile_error(
            error, -ESTALE,
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
            return profile_error(error, -ESTALE,
                                 "the profile does not know PU %u, which this program may use",
                                 allowed->ids[i]);
        }
    }
    return 0;
}

int profile_matches(const struct servet_profile *profile, const char *root,
                    const struct profile_set *allowed, struct servet_error *error)
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
