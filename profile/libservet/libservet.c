/* The public functions of servet.h that open a profile, and say what it is of and how it was
 * measured. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "profile/query.h"
#include "profile/scope.h"
#include "profile/servet.h"

const char *servet_version(void)
{
    return SERVET_VERSION;
}

/* Where the profile would go. */
static int refuse_null(struct servet_error *error)
{
    return profile_error(error, -EINVAL, "profile: expected a place for it, got NULL");
}

int servet_topology_open(servet_profile **profile, struct servet_error *error)
{
    if (!profile) {
        return refuse_null(error);
    }
    return profile_from_hwloc(NULL, profile, error);
}

static int open_mine(servet_profile **profile, struct servet_error *error)
{
    char path[PATH_MAX];
    struct servet_profile *found;
    struct servet_error why;
    int rc = profile_find(path, sizeof path);
    if (rc == -ENOENT) {
        return servet_topology_open(profile, error);
    }
    if (rc < 0) {
        return profile_error(error, rc, "SERVET_PROFILE: %s", strerrordesc_np(-rc));
    }
    TRY(profile_load(path, &found, error));
    rc = profile_matches(found, "", NULL, &why);
    if (rc < 0) {
        profile_free(found);
        return profile_error(error, rc, "%s: %s", path, why.text);
    }
    *profile = found;
    return 0;
}

int servet_profile_open(const char *path, servet_profile **profile, struct servet_error *error)
{
    if (error) {
        error->text[0] = '\0';
    }
    if (!profile) {
        return refuse_null(error);
    }
    return path ? profile_load(path, profile, error) : open_mine(profile, error);
}

void servet_profile_close(servet_profile *profile)
{
    profile_free(profile);
}

int servet_measured(const servet_profile *profile)
{
    return profile && profile->measured;
}

uint32_t servet_node_count(const servet_profile *profile)
{
    return profile ? profile_node_count(profile) : 0;
}

uint32_t servet_pu_count(const servet_profile *profile)
{
    return (uint32_t)servet_pus(profile, NULL, 0);
}

size_t servet_pus(const servet_profile *profile, uint32_t *pus, size_t room)
{
    size_t count = 0;
    const uint32_t nodes = servet_node_count(profile);
    for (uint32_t node = 0; node < nodes; node++) {
        const struct profile_class *node_class = profile_node_class(profile, node);
        uint32_t first = profile_node_first_pu(profile, node);
        for (size_t i = 0; i < node_class->pus.count && count + i < room; i++) {
            pus[count + i] = first + node_class->pus.ids[i];
        }
        count += node_class->pus.count;
    }
    return count;
}

const char *servet_condition(const servet_profile *profile, const char *name)
{
    return profile && name ? profile_condition(profile, name) : NULL;
}

/* -- supersteps -- */

int servet_bsp_parameters(const servet_profile *profile, const char *backend, uint32_t processors,
                          struct servet_bsp *out)
{
    struct profile_bsp found;
    if (!profile || !profile_bsp_at(profile, backend, processors, &found)) {
        return -ENOENT;
    }
    *out = (struct servet_bsp){.processors = processors,
                               .r_flop_per_s = found.r_flop_per_s,
                               .g_flops = found.g_flops,
                               .g_packets_flops = found.g_packets_flops,
                               .l_flops = found.l_flops,
                               .t0_flops = found.t0_flops};
    return 0;
}

double servet_bsp_cost(const servet_profile *profile, uint32_t processors, double work_flops,
                       double h_words)
{
    struct profile_bsp found;
    if (!profile || !(work_flops >= 0) || !(h_words >= 0) ||
        !profile_bsp_at(profile, NULL, processors, &found)) {
        return 0;
    }
    return work_flops + h_words * found.g_flops + found.l_flops;
}
