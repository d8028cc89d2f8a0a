/* Promises between fields, beyond the range that the table gives to each: groups are disjoint and
 * ordered, indices in range. Readers rely on it. */
#include "profile/codec/codec.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/model.h"

#define ERROR_WORDS 256 /* of what is wrong, besides the path */

static size_t append_path(const struct json_path *path, char *buffer, size_t size)
{
    if (!path->parent) {
        return (size_t)snprintf(buffer, size, "$");
    }
    size_t used = append_path(path->parent, buffer, size);
    if (used >= size) {
        return used;
    }
    int n = path->key ? snprintf(buffer + used, size - used, ".%s", path->key)
                      : snprintf(buffer + used, size - used, "[%zu]", path->index);
    return used + (size_t)n;
}

const char *profile_json_path_text(const struct json_path *path, char *buffer, size_t size)
{
    append_path(path, buffer, size);
    return buffer;
}

int profile_refuse(struct servet_error *error, const struct json_path *at, const char *key,
                   const char *format, ...)
{
    char path[JSON_PATH_SIZE], what[ERROR_WORDS];
    struct json_path here = JSON_PATH_KEY(at, key);
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return profile_error(error, -EINVAL, "%s: %s",
                         profile_json_path_text(key ? &here : at, path, sizeof path), what);
}

int profile_check_number(const struct json_path *at, const char *key, double value,
                         bool zero_allowed, struct servet_error *error)
{
    return isfinite(value) && (value > 0 || (zero_allowed && value >= 0))
               ? 0
               : profile_refuse(error, at, key, "found %g, expected a %s number", value,
                                zero_allowed ? "finite, not negative" : "finite, positive");
}

int profile_check_integer(const struct json_path *at, const char *key, uint64_t value, uint64_t low,
                          uint64_t high, struct servet_error *error)
{
    return value >= low && value <= high
               ? 0
               : profile_refuse(error, at, key, "found %llu, expected an integer from %llu to %llu",
                                (unsigned long long)value, (unsigned long long)low,
                                (unsigned long long)high);
}

static int check_group(const struct json_path *at, const struct profile_relation *relation,
                       size_t group, const struct profile_set *members, uint32_t *owner,
                       struct servet_error *error)
{
    const struct profile_set *set = &relation->groups[group];
    if (!set->count) {
        return profile_refuse(error, at, NULL,
                              "found an empty group, expected at least one member");
    }
    if (group && set->ids[0] < relation->groups[group - 1].ids[0]) {
        return profile_refuse(error, at, NULL,
                              "expected groups in the order of their lowest members");
    }
    for (size_t i = 0; i < set->count; i++) {
        size_t place = profile_set_position(members, set->ids[i]);
        if (place == members->count) {
            return profile_refuse(error, at, NULL,
                                  "found %u, expected only numbers that the profile speaks of",
                                  set->ids[i]);
        }
        if (owner[place]) {
            return profile_refuse(error, at, NULL,
                                  "found %u, which is in group %u too; expected disjoint groups",
                                  set->ids[i], owner[place] - 1);
        }
        owner[place] = (uint32_t)group + 1;
    }
    return 0;
}

int profile_check_pairs(const struct json_path *at, const void *items, size_t size, size_t count,
                        const struct profile_set *members, struct servet_error *error)
{
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        const struct profile_pair *pair = (const void *)((const char *)items + i * size);
        const uint64_t place = (uint64_t)pair->a << 32 | pair->b;
        struct json_path item = JSON_PATH_ITEM(at, i);
        if (pair->a >= pair->b) {
            return profile_refuse(error, &item, NULL,
                                  "found [%u, %u], expected the lower number first", pair->a,
                                  pair->b);
        }
        if (!profile_set_has(members, pair->a) || !profile_set_has(members, pair->b)) {
            return profile_refuse(
                error, &item, NULL,
                "found [%u, %u], expected only numbers that the profile speaks of", pair->a,
                pair->b);
        }
        if (place <= before) {
            return profile_refuse(error, &item, NULL,
                                  "expected pairs in ascending order, each once");
        }
        before = place;
    }
    return 0;
}

int profile_check_relation(const struct json_path *at, const struct profile_relation *relation,
                           const struct profile_set *members, struct servet_error *error)
{
    struct json_path groups = JSON_PATH_KEY(at, "groups"), pairs = JSON_PATH_KEY(at, "pairs");
    uint32_t *owner = calloc(members->count + 1, sizeof *owner);
    if (!owner) {
        return profile_error(error, -ENOMEM, "%s", strerrordesc_np(ENOMEM));
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < relation->group_count; i++) {
        rc = check_group(&JSON_PATH_ITEM(&groups, i), relation, i, members, owner, error);
    }
    free(owner);
    return rc < 0 ? rc
                  : profile_check_pairs(&pairs, relation->pairs, sizeof *relation->pairs,
                                        relation->pair_count, members, error);
}

/* -- the whole -- */

static int check_node_range(const struct json_path *at, const struct servet_profile *profile,
                            size_t index, struct servet_error *error)
{
    const struct profile_node_range *range = &profile->nodes[index];
    uint32_t names;
    if (profile_hostlist_count(range->names, &names) < 0) {
        return profile_refuse(error, at, "names",
                              "expected host names such as \"node[001-128,200]\"");
    }
    int rc = profile_check_integer(at, "count", range->count, names, names, error);
    return rc < 0 ? rc
                  : profile_check_integer(at, "class_index", range->class_index, 0,
                                          profile->class_count - 1, error);
}

static int check_nodes(const struct json_path *root, const struct servet_profile *profile,
                       struct servet_error *error)
{
    struct json_path here = JSON_PATH_KEY(root, "nodes");
    uint64_t pus = 0;
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
static int check_network(const struct json_path *root, const struct servet_profile *profile,
                         struct servet_error *error)
{
    struct profile_set nodes = {.count = profile_node_count(profile)};
    nodes.ids = malloc((nodes.count + 1) * sizeof *nodes.ids);
    if (!nodes.ids) {
        return profile_error(error, -ENOMEM, "%s", strerrordesc_np(ENOMEM));
    }
    for (uint32_t i = 0; i < nodes.count; i++) {
        nodes.ids[i] = i;
    }
    struct json_path here = JSON_PATH_KEY(root, "network");
    int rc = profile_check_members(&here, &profile_communication_object, &profile->network, &nodes,
                                   error);
    if (rc == 0) {
        rc = profile_check_communication(&here, &profile->network, &nodes, error);
    }
    profile_set_free(&nodes);
    return rc;
}

static int check_bsp(const struct json_path *root, const struct servet_profile *profile,
                     struct servet_error *error)
{
    struct json_path here = JSON_PATH_KEY(root, "bsp");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < profile->bsp_count; i++) {
        const struct profile_bsp *bsp = &profile->bsp[i];
        rc = profile_check_integer(&JSON_PATH_ITEM(&here, i), "h_high", bsp->h_high, bsp->h_low,
                                   UINT32_MAX, error);
    }
    return rc;
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
