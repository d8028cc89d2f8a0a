/* Common to both sources of a topology profile (sysfs, hwloc): shared resources give the order of
 * layers, and nothing is measured. */
#include "profile/topology/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/codec/codec.h"
#include "profile/model.h"
#include "profile/query.h"
#include "profile/scope.h"

/* -- gathering -- */

/* Adds an item of zeros to *array. NULL: no memory. */
static void *grow(void *array, size_t *count, size_t size)
{
    void **member = array;
    void *more = reallocarray(*member, *count + 1, size);
    if (!more) {
        return NULL;
    }
    *member = more;
    ++*count;
    return memset((char *)more + (*count - 1) * size, 0, size);
}

struct servet_profile *profile_topology_new(void)
{
    struct servet_profile *profile = calloc(1, sizeof *profile);
    if (!profile) {
        return NULL;
    }
    profile->classes = calloc(1, sizeof *profile->classes);
    profile->nodes = calloc(1, sizeof *profile->nodes);
    if (!profile->classes || !profile->nodes) {
        profile_free(profile);
        return NULL;
    }
    profile->class_count = profile->node_range_count = 1;
    return profile;
}

/* Appends a copy of an item, which owns `set`. */
static int add_item(void *array, size_t *count, const void *item, size_t size,
                    struct profile_set *set)
{
    void *slot = grow(array, count, size);
    if (!slot) {
        profile_set_free(set);
        return -ENOMEM;
    }
    memcpy(slot, item, size);
    return 0;
}

int profile_topology_add_group(struct profile_relation *relation, struct profile_set group)
{
    if (group.count < 2) {
        profile_set_free(&group);
        return 0;
    }
    return add_item(&relation->groups, &relation->group_count, &group, sizeof group, &group);
}

int profile_topology_add_numa(struct profile_class *node_class, struct profile_numa numa)
{
    return add_item(&node_class->numa, &node_class->numa_count, &numa, sizeof numa, &numa.pus);
}

int profile_topology_add_kind(struct profile_class *node_class, struct profile_kind kind)
{
    return add_item(&node_class->kinds, &node_class->kind_count, &kind, sizeof kind, &kind.pus);
}

static struct profile_cache *cache_like(struct profile_class *node_class,
                                        const struct profile_cache *like)
{
    for (size_t i = 0; i < node_class->cache_count; i++) {
        struct profile_cache *known = &node_class->caches[i];
        if (known->level == like->level && known->size_bytes == like->size_bytes &&
            known->line_bytes == like->line_bytes && known->associativity == like->associativity) {
            return known;
        }
    }
    struct profile_cache *fresh =
        grow(&node_class->caches, &node_class->cache_count, sizeof *fresh);
    if (fresh) {
        *fresh = *like;
        fresh->declared_size_bytes = like->size_bytes;
        fresh->quality.spread = -1;
    }
    return fresh;
}

int profile_topology_add_cache(struct profile_class *node_class, const struct profile_cache *like,
                               struct profile_set group)
{
    struct profile_cache *entry = cache_like(node_class, like);
    struct profile_set holders;
    if (!entry || profile_set_union(&entry->pus, &group, &holders) < 0) {
        profile_set_free(&group);
        return -ENOMEM;
    }
    profile_set_free(&entry->pus);
    entry->pus = holders;
    return profile_topology_add_group(&entry->sharing, group);
}

/* -- ordering -- */

static int by_lowest_member(const void *a, const void *b)
{
    const struct profile_set *x = a, *y = b;
    return (x->ids[0] > y->ids[0]) - (x->ids[0] < y->ids[0]);
}

static void order_relation(struct profile_relation *relation)
{
    if (relation->group_count) {
        qsort(relation->groups, relation->group_count, sizeof *relation->groups, by_lowest_member);
    }
}

static int by_level_and_pu(const void *a, const void *b)
{
    const struct profile_cache *x = a, *y = b;
    int level = (x->level > y->level) - (x->level < y->level);
    return level ? level : by_lowest_member(&x->pus, &y->pus);
}

static int by_os_index(const void *a, const void *b)
{
    const struct profile_numa *x = a, *y = b;
    return (x->os_index > y->os_index) - (x->os_index < y->os_index);
}

static void report_order_class(struct profile_class *node_class)
{
    order_relation(&node_class->cores);
    order_relation(&node_class->packages);
    for (size_t i = 0; i < node_class->cache_count; i++) {
        order_relation(&node_class->caches[i].sharing);
    }
    if (node_class->cache_count) {
        qsort(node_class->caches, node_class->cache_count, sizeof *node_class->caches,
              by_level_and_pu);
    }
    for (size_t i = 0; i < node_class->cache_count; i++) {
        if (profile_set_equal(&node_class->caches[i].pus, &node_class->pus)) {
            profile_set_free(&node_class->caches[i].pus); /* empty stands for all */
        }
    }
    if (node_class->numa_count) {
        qsort(node_class->numa, node_class->numa_count, sizeof *node_class->numa, by_os_index);
    }
}

/* -- relations -- */

static int add_copy(struct profile_relation *relation, const struct profile_set *group)
{
    struct profile_set copy;
    TRY(profile_set_copy(group, &copy));
    return profile_topology_add_group(relation, copy);
}

static int copy_groups(const struct profile_relation *from, struct profile_relation *to)
{
    for (size_t i = 0; i < from->group_count; i++) {
        TRY(add_copy(to, &from->groups[i]));
    }
    return 0;
}

static bool disjoint_from(const struct profile_relation *relation, const struct profile_set *set)
{
    bool disjoint = true;
    for (size_t i = 0; i < relation->group_count; i++) {
        disjoint = disjoint && !profile_set_overlaps(&relation->groups[i], set);
    }
    return disjoint;
}

/* PUs of one NUMA node. Nodes may overlap (slow memory beside fast, a node for a whole package
 * beside those of its parts): the smallest set that holds a PU is where its first-touch pages go,
 * so smaller sets come first. */
static int numa_relation(const struct profile_class *node_class, struct profile_relation *out)
{
    for (size_t size = 1; size <= node_class->pus.count; size++) {
        for (size_t i = 0; i < node_class->numa_count; i++) {
            const struct profile_set *pus = &node_class->numa[i].pus;
            if (pus->count == size && disjoint_from(out, pus)) {
                TRY(add_copy(out, pus));
            }
        }
    }
    order_relation(out);
    return 0;
}

/* -- memory overhead levels -- */

static int add_memory_level(struct profile_class *node_class, const struct profile_relation *groups)
{
    if (!groups->group_count) {
        return 0;
    }
    struct profile_memory *memory = &node_class->memory;
    struct profile_memory_level *level = grow(&memory->levels, &memory->level_count, sizeof *level);
    if (!level) {
        return -ENOMEM;
    }
    level->quality.spread = -1;
    return copy_groups(groups, &level->collisions);
}

static uint64_t count_pairs(const struct profile_relation *relation)
{
    uint64_t pairs = 0;
    for (size_t i = 0; i < relation->group_count; i++) {
        pairs += (uint64_t)relation->groups[i].count * (relation->groups[i].count - 1) / 2;
    }
    return pairs;
}

/* Relations that nest, the innermost first. */
struct chain {
    const struct profile_relation *of[TOPOLOGY_MOST_GROUPINGS + 2];
    size_t count;
};

/* Puts a relation where it nests; leaves out one that is known already, or overlaps. */
static void add_nested(struct chain *chain, const struct profile_relation *relation)
{
    size_t at = 0;
    while (at < chain->count && count_pairs(chain->of[at]) <= count_pairs(relation)) {
        at++;
    }
    if (!relation->group_count ||
        (at > 0 && (profile_relation_equal(chain->of[at - 1], relation) ||
                    !profile_relation_within(chain->of[at - 1], relation))) ||
        (at < chain->count && !profile_relation_within(relation, chain->of[at]))) {
        return;
    }
    memmove(chain->of + at + 1, chain->of + at, (chain->count - at) * sizeof chain->of[0]);
    chain->of[at] = relation;
    chain->count++;
}

/* A NUMA node's memory, a package's bus, a die's or a cluster's link are each a place where
 * accesses meet; the inner of two is the narrower one. Levels cannot overlap: memory is what
 * matters, then the package. */
static int derive_memory(struct profile_class *node_class, const struct profile_relation *numa,
                         const struct topology_groupings *groupings)
{
    struct chain chain = {0};
    add_nested(&chain, numa);
    add_nested(&chain, &node_class->packages);
    for (size_t i = 0; i < groupings->count; i++) {
        add_nested(&chain, &groupings->of[i]);
    }
    node_class->memory.quality.spread = -1;
    for (size_t i = 0; i < chain.count; i++) {
        TRY(add_memory_level(node_class, chain.of[i]));
    }
    return 0;
}

/* -- groupings -- */

static bool has_equal_group(const struct profile_relation *relation,
                            const struct profile_set *group)
{
    for (size_t i = 0; i < relation->group_count; i++) {
        if (profile_set_equal(&relation->groups[i], group)) {
            return true;
        }
    }
    return false;
}

bool profile_topology_says(const struct profile_class *node_class, const struct profile_set *group)
{
    bool said = has_equal_group(&node_class->cores, group) ||
                has_equal_group(&node_class->packages, group) ||
                profile_set_equal(&node_class->pus, group);
    for (size_t i = 0; !said && i < node_class->cache_count; i++) {
        said = has_equal_group(&node_class->caches[i].sharing, group);
    }
    return said;
}

static void keep_news(const struct profile_class *node_class, const struct profile_relation *numa,
                      struct profile_relation *relation)
{
    size_t kept = 0;
    for (size_t i = 0; i < relation->group_count; i++) {
        if (profile_topology_says(node_class, &relation->groups[i]) ||
            has_equal_group(numa, &relation->groups[i])) {
            profile_set_free(&relation->groups[i]);
        } else {
            relation->groups[kept++] = relation->groups[i];
        }
    }
    relation->group_count = kept;
    order_relation(relation);
}

void profile_topology_groupings_free(struct topology_groupings *groupings)
{
    for (size_t i = 0; i < groupings->count; i++) {
        profile_relation_free(&groupings->of[i]);
    }
    groupings->count = 0;
}

/* -- communication layers -- */

/* Adds a layer where nesting puts it: a relation inside another one has fewer pairs. A known one
 * (no groups, or those of a layer that is there) is left out. */
static int add_layer(struct profile_communication *communication, const char *name,
                     const struct profile_relation *members)
{
    size_t place = 0;
    for (size_t i = 0; i < communication->layer_count; i++) {
        if (profile_relation_equal(&communication->layers[i].members, members)) {
            return 0;
        }
        place =
            count_pairs(&communication->layers[i].members) <= count_pairs(members) ? i + 1 : place;
    }
    if (!members->group_count) {
        return 0;
    }
    struct profile_layer layer = {.name = strdup(name), .quality = {.spread = -1}};
    int rc = layer.name ? copy_groups(members, &layer.members) : -ENOMEM;
    if (rc < 0 || !grow(&communication->layers, &communication->layer_count, sizeof layer)) {
        profile_layer_free(&layer);
        return -ENOMEM;
    }
    struct profile_layer *layers = communication->layers;
    memmove(layers + place + 1, layers + place,
            (communication->layer_count - 1 - place) * sizeof *layers);
    layers[place] = layer;
    return 0;
}

/* All caches of one level make one layer. */
static int add_cache_layer(struct profile_class *node_class, uint32_t level)
{
    FREED_BY(profile_relation_free) struct profile_relation all = {0};
    for (size_t i = 0; i < node_class->cache_count; i++) {
        if (node_class->caches[i].level == level) {
            TRY(copy_groups(&node_class->caches[i].sharing, &all));
        }
    }
    const char name[] = {'L', (char)('0' + level), '\0'};
    order_relation(&all);
    return add_layer(&node_class->communication, name, &all);
}

/* 0 or -ENOMEM. */
static int derive_layers(struct profile_class *node_class, const struct profile_relation *numa,
                         const struct topology_groupings *groupings)
{
    struct profile_communication *communication = &node_class->communication;
    const struct profile_relation everyone = {.groups = &node_class->pus,
                                              .group_count = node_class->pus.count > 1};
    if (node_class->cache_count && node_class->caches[0].level == 1) {
        communication->message_bytes = node_class->caches[0].size_bytes;
    }
    TRY(add_layer(communication, "core", &node_class->cores));
    for (uint32_t level = 1; level <= 5; level++) {
        TRY(add_cache_layer(node_class, level));
    }
    TRY(add_layer(communication, "NUMA node", numa));
    TRY(add_layer(communication, "package", &node_class->packages));
    for (size_t i = 0; i < groupings->count; i++) {
        TRY(add_layer(communication, "group", &groupings->of[i]));
    }
    return add_layer(communication, "node", &everyone);
}

/* -- the whole -- */

static int name_node(struct servet_profile *profile)
{
    uint32_t count;
    if (!profile->host_name || !*profile->host_name) {
        free(profile->host_name);
        profile->host_name = strdup("localhost");
    }
    if (!profile->host_name) {
        return -ENOMEM;
    }
    bool plain = profile_hostlist_count(profile->host_name, &count) == 0 && count == 1;
    profile->nodes[0].names = strdup(plain ? profile->host_name : "localhost");
    profile->nodes[0].count = 1;
    return profile->nodes[0].names ? 0 : -ENOMEM;
}

static int derive_all(struct servet_profile *profile, struct topology_groupings *groupings)
{
    struct profile_class *node_class = &profile->classes[0];
    FREED_BY(profile_relation_free) struct profile_relation numa = {0};
    report_order_class(node_class);
    profile->tool = strdup("servet " SERVET_VERSION);
    if (!profile->tool || name_node(profile) < 0 || numa_relation(node_class, &numa) < 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < groupings->count; i++) {
        keep_news(node_class, &numa, &groupings->of[i]);
    }
    TRY(derive_memory(node_class, &numa, groupings));
    return derive_layers(node_class, &numa, groupings);
}

int profile_topology_finish(struct servet_profile *profile, struct topology_groupings *groupings,
                            struct servet_error *error)
{
    const int rc = derive_all(profile, groupings);
    if (rc < 0) {
        return profile_error(error, rc, "topology: %s", strerrordesc_np(-rc));
    }
    return profile_check(profile, error);
}
