/* profile_check(): promises between fields of the whole, beyond the range that the table gives to
 * each. Readers rely on it. */
#include "profile/codec/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/model.h"
#include "profile/scope.h"

static int check_node_range(const struct json_path *at, const struct servet_profile *profile,
                            size_t index, struct servet_error *error)
{
    const struct profile_node_range *range = &profile->nodes[index];
    uint32_t names;
    if (profile_hostlist_count(range->names, &names) < 0) {
        return profile_refuse(error, at, "names",
                              "expected host names such as \"node[001-128,200]\"");
    }
    TRY(profile_check_integer(at, "count", range->count, names, names, error));
    return profile_check_integer(at, "class_index", range->class_index, 0, profile->class_count - 1,
                                 error);
}

static int check_nodes(const struct json_path *root, const struct servet_profile *profile,
                       struct servet_error *error)
{
    struct json_path here = JSON_PATH_KEY(root, "nodes");
    uint64_t pus = 0;
    for (size_t i = 0; i < profile->node_range_count; i++) {
        struct json_path item = JSON_PATH_ITEM(&here, i);
        TRY(check_node_range(&item, profile, i, error));
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
static int check_network(const struct json_path *root, const struct servet_profile *profile,
                         struct servet_error *error)
{
    FREED_BY(profile_set_free)
    struct profile_set nodes = {.count = profile_node_count(profile)};
    nodes.ids = malloc((nodes.count + 1) * sizeof *nodes.ids);
    if (!nodes.ids) {
        return profile_error(error, -ENOMEM, "%s", strerrordesc_np(ENOMEM));
    }
    for (uint32_t i = 0; i < nodes.count; i++) {
        nodes.ids[i] = i;
    }
    struct json_path here = JSON_PATH_KEY(root, "network");
    TRY(profile_check_members(&here, &profile_communication_object, &profile->network, &nodes,
                              error));
    return profile_check_communication(&here, &profile->network, &nodes, error);
}

static int check_bsp(const struct json_path *root, const struct servet_profile *profile,
                     struct servet_error *error)
{
    struct json_path here = JSON_PATH_KEY(root, "bsp");
    for (size_t i = 0; i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        TRY(profile_check_integer(&JSON_PATH_ITEM(&here, i), "h_high", bsp->h_high, bsp->h_low,
                                  UINT32_MAX, error));
    }
    return 0;
}

int profile_check(const struct servet_profile *profile, struct servet_error *error)
{
    struct json_path root = JSON_PATH_ROOT, classes = JSON_PATH_KEY(&root, "node_classes");
    int rc = profile_check_members(&root, &profile_document, profile, NULL, error);
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
