/* profile_check(): promises between fields, beyond the range that the table gives to each one
 * (table.c). Readers rely on it. */
#include "profile/codec/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/model.h"
#include "profile/query.h"
#include "profile/scope.h"

/* -- caches, kinds, NUMA nodes -- */

/* Both ends or neither, with the size between them. */
static int check_interval(const struct json_path *at, const struct profile_cache *cache,
                          struct servet_error *error)
{
    const uint64_t low = cache->size_low_bytes, high = cache->size_high_bytes;
    if (low == 0 && high == 0) {
        return 0;
    }
    TRY(profile_check_integer(at, "size_low_bytes", low, 1, cache->size_bytes, error));
    return profile_check_integer(at, "size_high_bytes", high, cache->size_bytes, INT64_MAX, error);
}

static bool share_pu(const struct profile_class *node_class, const struct profile_cache *a,
                     const struct profile_cache *b)
{
    bool shared = false;
    for (size_t i = 0; !shared && i < node_class->pus.count; i++) {
        const uint32_t pu = node_class->pus.ids[i];
        shared = profile_cache_holds(a, pu) && profile_cache_holds(b, pu);
    }
    return shared;
}

/* Levels ascend, and caches of one level (P and E cores) never hold the same PU. */
static int check_cache(const struct json_path *at, const struct profile_class *node_class,
                       size_t index, struct servet_error *error)
{
    const struct profile_cache *cache = &node_class->caches[index];
    if (index && cache->level < node_class->caches[index - 1].level) {
        return profile_refuse(error, at, "level",
                              "expected caches in ascending order of their levels");
    }
    for (size_t i = 0; i < index; i++) {
        if (node_class->caches[i].level == cache->level &&
            share_pu(node_class, &node_class->caches[i], cache)) {
            return profile_refuse(error, at, NULL,
                                  "found a PU that another cache of this level holds, expected one "
                                  "cache per PU and level");
        }
    }
    uint64_t least = cache->quality.origin == PROFILE_DECLARED ? 0 : 1; /* systems may not say it */
    TRY(profile_check_integer(at, "size_bytes", cache->size_bytes, least, INT64_MAX, error));
    return check_interval(at, cache, error);
}

static int check_tlb(const struct json_path *at, const struct profile_class *node_class,
                     size_t index, struct servet_error *error)
{
    if (index == 0) {
        return 0;
    }
    const struct profile_tlb *level = &node_class->tlb[index], *before = level - 1;
    uint64_t least = before->page_bytes == level->page_bytes ? before->reach_bytes + 1 : 1;
    TRY(profile_check_integer(at, "page_bytes", level->page_bytes, before->page_bytes, INT64_MAX,
                              error));
    return profile_check_integer(at, "reach_bytes", level->reach_bytes, least, INT64_MAX, error);
}

/* -- memory -- */

/* Every pair of a worse level collides in a milder one as well. */
static int check_nesting(const struct json_path *at, const struct profile_relation *worse,
                         const struct profile_relation *milder, struct servet_error *error)
{
    static const char expected[] = "expected members that collide in every milder level too";
    struct json_path groups = JSON_PATH_KEY(at, "groups"), pairs = JSON_PATH_KEY(at, "pairs");
    for (size_t i = 0; i < worse->group_count; i++) {
        struct profile_relation group = {.groups = &worse->groups[i], .group_count = 1};
        if (!profile_relation_within(&group, milder)) {
            return profile_refuse(error, &JSON_PATH_ITEM(&groups, i), NULL, "%s", expected);
        }
    }
    for (size_t i = 0; i < worse->pair_count; i++) {
        if (!profile_related(milder, worse->pairs[i].a, worse->pairs[i].b)) {
            return profile_refuse(error, &JSON_PATH_ITEM(&pairs, i), NULL, "%s", expected);
        }
    }
    return 0;
}

static int check_memory_level(const struct json_path *at, const struct profile_class *node_class,
                              size_t index, struct servet_error *error)
{
    const struct profile_memory_level *level = &node_class->memory.levels[index];
    const struct profile_memory_level *worse = index ? level - 1 : NULL;
    if (worse && level->bytes_per_s > 0 && level->bytes_per_s < worse->bytes_per_s) {
        return profile_refuse(error, at, "bytes_per_s",
                              "expected levels from the lowest bandwidth to the highest");
    }
    struct json_path worse_at = JSON_PATH_ITEM(at->parent, index - 1);
    return worse ? check_nesting(&JSON_PATH_KEY(&worse_at, "collisions"), &worse->collisions,
                                 &level->collisions, error)
                 : 0;
}

static int check_kernel(const struct json_path *at, const struct profile_class *node_class,
                        size_t index, struct servet_error *error)
{
    const struct profile_kernel_rate *rate = &node_class->memory.kernels[index];
    return index == 0 || rate->kernel > (rate - 1)->kernel
               ? 0
               : profile_refuse(error, at, "kernel",
                                "expected nt_copy, copy, read, triad in this order, each once");
}

/* Does `b` come after `a`? By lowest PU, then by node. */
static bool access_follows(const struct profile_numa_access *a, const struct profile_numa_access *b)
{
    return a->pus.ids[0] < b->pus.ids[0] || (a->pus.ids[0] == b->pus.ids[0] && a->node < b->node);
}

static int check_numa_access(const struct json_path *at, const struct profile_class *node_class,
                             size_t index, struct servet_error *error)
{
    const struct profile_numa_access *row = &node_class->numa_access[index];
    if (!profile_numa_of(node_class, row->node)) {
        return profile_refuse(error, at, "node",
                              "expected the number of one of the class's NUMA nodes");
    }
    return index == 0 || access_follows(row - 1, row)
               ? 0
               : profile_refuse(error, at, NULL,
                                "expected an order by lowest PU, then by node, without repetition");
}

static int check_device(const struct json_path *at, const struct profile_class *node_class,
                        size_t index, struct servet_error *error)
{
    const struct profile_device *device = &node_class->devices[index];
    struct json_path rows = JSON_PATH_KEY(at, "transfers");
    for (size_t k = 0; k < device->transfer_count; k++) {
        if (!profile_numa_of(node_class, device->transfers[k].node)) {
            return profile_refuse(error, &JSON_PATH_ITEM(&rows, k), "node",
                                  "expected the number of one of the class's NUMA nodes");
        }
    }
    return 0;
}

/* -- communication -- */

static double highest_before(const struct profile_communication *communication, size_t index)
{
    double highest = 0;
    for (size_t i = 0; i < index; i++) {
        double seconds = communication->layers[i].seconds;
        highest = seconds > highest ? seconds : highest;
    }
    return highest;
}

static int check_layer(const struct json_path *at,
                       const struct profile_communication *communication, size_t index,
                       struct servet_error *error)
{
    const struct profile_layer *layer = &communication->layers[index];
    bool declared = layer->quality.origin == PROFILE_DECLARED;
    TRY(profile_check_number(at, "seconds", layer->seconds, declared, error));
    return layer->seconds > 0 && layer->seconds < highest_before(communication, index)
               ? profile_refuse(error, at, "seconds",
                                "expected layers from the lowest latency to the highest")
               : 0;
}

/* Groups of measured pairs may overlap. */
static int check_measured(const struct json_path *at, const struct profile_relation *measured,
                          const struct profile_set *members, struct servet_error *error)
{
    struct json_path here = JSON_PATH_KEY(at, "measured");
    for (size_t i = 0; i < measured->group_count; i++) {
        if (!measured->groups[i].count || !profile_set_subset(&measured->groups[i], members)) {
            return profile_refuse(error, &here, "groups",
                                  "found an unknown member, expected those of the layers");
        }
    }
    return profile_check_pairs(&JSON_PATH_KEY(&here, "pairs"), measured->pairs,
                               sizeof *measured->pairs, measured->pair_count, members, error);
}

/* Layers between `members`: PUs of a class, or the nodes of a cluster. */
static int check_communication(const struct json_path *at,
                               const struct profile_communication *communication,
                               const struct profile_set *members, struct servet_error *error)
{
    struct json_path layers = JSON_PATH_KEY(at, "layers");
    for (size_t i = 0; i < communication->layer_count; i++) {
        TRY(check_layer(&JSON_PATH_ITEM(&layers, i), communication, i, error));
    }
    return check_measured(at, &communication->measured, members, error);
}

/* -- classes, nodes, the whole -- */

static int check_class(const struct json_path *at, const struct profile_class *node_class,
                       struct servet_error *error)
{
    const struct json_path memory = JSON_PATH_KEY(at, "memory");
    const struct {
        const struct json_path *above;
        const char *key;
        size_t count;
        int (*check)(const struct json_path *at, const struct profile_class *node_class,
                     size_t index, struct servet_error *error);
    } lists[] = {
        {at, "caches", node_class->cache_count, check_cache},
        {at, "tlb", node_class->tlb_count, check_tlb},
        {&memory, "levels", node_class->memory.level_count, check_memory_level},
        {&memory, "kernels", node_class->memory.kernel_count, check_kernel},
        {at, "numa_access", node_class->numa_access_count, check_numa_access},
        {at, "devices", node_class->device_count, check_device},
    };
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        struct json_path list = JSON_PATH_KEY(lists[l].above, lists[l].key);
        for (size_t i = 0; i < lists[l].count; i++) {
            TRY(lists[l].check(&JSON_PATH_ITEM(&list, i), node_class, i, error));
        }
    }
    return check_communication(&JSON_PATH_KEY(at, "communication"), &node_class->communication,
                               &node_class->pus, error);
}

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
    return check_communication(&here, &profile->network, &nodes, error);
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
        rc = check_class(&JSON_PATH_ITEM(&classes, i), &profile->classes[i], error);
    }
    if (rc == 0) {
        rc = check_nodes(&root, profile, error);
    }
    if (rc == 0) {
        rc = check_network(&root, profile, error);
    }
    return rc < 0 ? rc : check_bsp(&root, profile, error);
}
