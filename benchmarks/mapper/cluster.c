/* Synthetic clusters, racks of nodes of packages of L3 groups: as large as a figure needs. */
#include "benchmarks/mapper/cluster.h"

#include <stdlib.h>
#include <string.h>

/* One-way latencies of the size of those on the clusters of the 2010 and 2012 papers. */
static const uint64_t message_bytes = 8192;
static const double l3_seconds = 0.4e-6, package_seconds = 0.6e-6, node_seconds = 1.1e-6;
static const double rack_seconds = 2.0e-6, network_seconds = 3.5e-6;

static struct profile_set range_set(uint32_t first, uint32_t count)
{
    struct profile_set set = {malloc(count * sizeof(uint32_t)), count};
    for (uint32_t i = 0; set.ids && i < count; i++) {
        set.ids[i] = first + i;
    }
    return set.ids ? set : (struct profile_set){0};
}

/* `total` items in groups of `size`. */
static struct profile_relation blocks(uint32_t total, uint32_t size)
{
    struct profile_relation relation = {0};
    relation.groups = calloc((total + size - 1) / size, sizeof *relation.groups);
    for (uint32_t first = 0; relation.groups && first < total; first += size) {
        uint32_t count = total - first < size ? total - first : size;
        relation.groups[relation.group_count++] = range_set(first, count);
    }
    return relation;
}

static void add_layer(struct profile_communication *communication, const char *name, double seconds,
                      uint32_t total, uint32_t size)
{
    communication->layers[communication->layer_count++] = (struct profile_layer){
        .name = strdup(name), .seconds = seconds, .members = blocks(total, size)};
}

struct servet_profile *bench_cluster_make(const struct cluster_shape *shape)
{
    uint32_t package = shape->l3_groups * shape->cores, pus = shape->packages * package;
    struct servet_profile *profile = calloc(1, sizeof *profile);
    struct profile_class *node = calloc(1, sizeof *node);
    if (!profile || !node) {
        free(node);
        free(profile);
        return NULL;
    }
    profile->measured = true; /* its figures are meant as such */
    profile->network.message_bytes = node->communication.message_bytes = message_bytes;
    profile->classes = node;
    profile->class_count = 1;
    profile->nodes = calloc(1, sizeof *profile->nodes);
    profile->node_range_count = 1;
    profile->nodes[0].count = shape->nodes;
    node->pus = range_set(0, pus);
    node->packages = blocks(pus, package);
    node->caches = calloc(1, sizeof *node->caches);
    node->cache_count = 1;
    node->caches[0] = (struct profile_cache){.level = 3, .sharing = blocks(pus, shape->cores)};
    node->memory.levels = calloc(1, sizeof *node->memory.levels);
    node->memory.level_count = 1;
    node->memory.levels[0].collisions = blocks(pus, package);
    node->communication.layers = calloc(3, sizeof *node->communication.layers);
    add_layer(&node->communication, "L3", l3_seconds, pus, shape->cores);
    add_layer(&node->communication, "package", package_seconds, pus, package);
    add_layer(&node->communication, "node", node_seconds, pus, pus);
    profile->network.layers = calloc(2, sizeof *profile->network.layers);
    add_layer(&profile->network, "rack", rack_seconds, shape->nodes, shape->nodes_per_rack);
    add_layer(&profile->network, "network", network_seconds, shape->nodes, shape->nodes);
    return profile;
}
