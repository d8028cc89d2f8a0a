/* profile_check(): what a profile promises beyond the types of its fields. */
#include "model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_class.h"
#include "check_fields.h"
#include "check_relation.h"
#include "hostlist.h"
#include "json_path.h"

static int check_node_range(const struct json_path *at, const struct servet_profile *profile, size_t index,
                            struct servet_error *error)
{
    const struct profile_node_range *range = &profile->nodes[index];
    uint32_t names;
    if (!range->names || profile_hostlist_count(range->names, &names) < 0) {
        return profile_refuse(error, at, "names", "expected host names such as \"node[001-128,200]\"");
    }
    int rc = profile_check_integer(at, "count", range->count, names, names, error);
    return rc < 0 ? rc
                  : profile_check_integer(at, "class_index", range->class_index, 0, profile->class_count - 1, error);
}

static int check_nodes(const struct json_path *root, const struct servet_profile *profile, struct servet_error *error)
{
    struct json_path here = JSON_PATH_KEY(root, "nodes");
    uint64_t pus = 0;
    if (!profile->node_range_count) {
        return profile_refuse(error, &here, NULL, "found none, expected at least one node");
    }
    for (size_t i = 0; i < profile->node_range_count; i++) {
        struct json_path item = JSON_PATH_ITEM(&here, i);
        int rc = check_node_range(&item, profile, i, error);
        if (rc < 0) {
            return rc;
        }
        const struct profile_node_range *range = &profile->nodes[i];
        pus += (uint64_t)range->count * profile_class_span(&profile->classes[range->class_index]);
        if (pus > PROFILE_SET_LIMIT) {
            return profile_refuse(error, &item, "count",
                                  "expected no more than 16777216 PU numbers in the whole machine");
        }
    }
    return 0;
}

/* The nodes' numbers, 0 to count - 1: what the network's relations speak of. */
static int check_network(const struct json_path *root, const struct servet_profile *profile, struct servet_error *error)
{
    struct profile_set nodes = {.count = profile_node_count(profile)};
    nodes.ids = malloc((nodes.count + 1) * sizeof *nodes.ids);
    if (!nodes.ids) {
        return profile_error(error, -ENOMEM, "%s", strerrordesc_np(ENOMEM));
    }
    for (uint32_t i = 0; i < nodes.count; i++) {
        nodes.ids[i] = i;
    }
    int rc = profile_check_communication(&JSON_PATH_KEY(root, "network"), &profile->network, &nodes, error);
    profile_set_free(&nodes);
    return rc;
}

static int check_bsp(const struct json_path *root, const struct servet_profile *profile, struct servet_error *error)
{
    struct json_path here = JSON_PATH_KEY(root, "bsp");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < profile->bsp_count; i++) {
        struct json_path item = JSON_PATH_ITEM(&here, i);
        const struct profile_bsp *bsp = &profile->bsp[i];
        const struct {
            const char *key;
            double value;
        } figures[] = {{"g_flops", bsp->g_flops},
                       {"g_packets_flops", bsp->g_packets_flops},
                       {"l_flops", bsp->l_flops < 0 ? 0 : bsp->l_flops},
                       {"t0_flops", bsp->t0_flops}};
        rc = profile_check_integer(&item, "processors", bsp->processors, 1, UINT32_MAX, error);
        if (rc == 0) {
            rc = profile_check_number(&item, "r_flop_per_s", bsp->r_flop_per_s, false, error);
        }
        if (rc == 0) {
            rc = profile_check_integer(&item, "h_high", bsp->h_high, bsp->h_low, UINT32_MAX, error);
        }
        for (size_t k = 0; rc == 0 && k < sizeof figures / sizeof *figures; k++) {
            rc = profile_check_number(&item, figures[k].key, figures[k].value, true, error);
        }
        if (rc == 0) {
            rc = profile_check_quality(&item, &bsp->quality, error);
        }
    }
    return rc;
}

int profile_check(const struct servet_profile *profile, struct servet_error *error)
{
    struct json_path root = JSON_PATH_ROOT, classes = JSON_PATH_KEY(&root, "node_classes");
    struct json_path host = JSON_PATH_KEY(&root, "host"), measurement = JSON_PATH_KEY(&root, "measurement");
    if (!profile->host_name) {
        return profile_refuse(error, &host, "name", "missing, expected the name of the host");
    }
    int rc = profile_check_number(&measurement, "seconds", profile->seconds, true, error);
    if (rc == 0 && !profile->class_count) {
        rc = profile_refuse(error, &classes, NULL, "found none, expected at least one node class");
    }
    for (size_t i = 0; rc == 0 && i < profile->class_count; i++) {
        rc = profile_check_class(&JSON_PATH_ITEM(&classes, i), &profile->classes[i], error);
    }
    if (rc == 0) {
        rc = check_nodes(&root, profile, error);
    }
    if (rc == 0) {
        rc = check_network(&root, profile, error);
    }
    return rc < 0 ? rc : check_bsp(&root, profile, error);
}
