/* Places by node and OS index, and the numbers that hwloc counts PUs by. */
#include "mapper/formats/formats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile/model.h"

static int place_of(const struct servet_profile *profile, uint32_t pu, struct map_place *out)
{
    uint32_t first_pu = 0, first_node = 0;
    for (size_t r = 0; r < profile->node_range_count; r++) {
        const struct profile_node_range *range = &profile->nodes[r];
        uint32_t span = profile_class_span(&profile->classes[range->class_index]);
        uint64_t pus = (uint64_t)span * range->count;
        if (span && pu - first_pu < pus) {
            uint32_t node = (pu - first_pu) / span;
            *out = (struct map_place){pu, first_node + node, (pu - first_pu) % span};
            return 0;
        }
        first_pu += (uint32_t)pus;
        first_node += range->count;
    }
    return -EINVAL;
}

int map_mapping_make(const struct servet_profile *profile, const uint32_t *pus, size_t ranks,
                     const uint32_t *threads, struct map_mapping *out)
{
    struct map_mapping mapping = {
        .profile = profile, .rank_count = ranks, .hybrid = threads != NULL};
    mapping.first = calloc(ranks + 1, sizeof *mapping.first);
    if (!mapping.first) {
        return -ENOMEM;
    }
    for (size_t r = 0; r < ranks; r++) {
        mapping.first[r + 1] = mapping.first[r] + (threads ? threads[r] : 1);
    }
    mapping.place_count = mapping.first[ranks];
    mapping.places = calloc(mapping.place_count ? mapping.place_count : 1, sizeof *mapping.places);
    int rc = mapping.places ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < mapping.place_count; i++) {
        rc = place_of(profile, pus[i], &mapping.places[i]);
    }
    if (rc < 0) {
        map_mapping_free(&mapping);
        return rc;
    }
    *out = mapping;
    return 0;
}

void map_mapping_free(struct map_mapping *mapping)
{
    free(mapping->places);
    free(mapping->first);
    *mapping = (struct map_mapping){0};
}

bool map_mapping_one_node(const struct map_mapping *mapping, size_t begin, size_t end)
{
    for (size_t i = begin + 1; i < end; i++) {
        if (mapping->places[i].node != mapping->places[begin].node) {
            return false;
        }
    }
    return true;
}

void map_mapping_node_name(const struct map_mapping *mapping, uint32_t node, char *name,
                           size_t size)
{
    uint32_t first = 0;
    for (size_t r = 0; r < mapping->profile->node_range_count; r++) {
        const struct profile_node_range *range = &mapping->profile->nodes[r];
        if (node - first < range->count) {
            if (range->names &&
                profile_hostlist_name(range->names, node - first, name, size) == 0) {
                return;
            }
            break;
        }
        first += range->count;
    }
    snprintf(name, size, "node%u", node);
}

/* -- hwloc's numbers -- */

/* Deepest trees of today have package, die, NUMA node, L3, L2, L1 and core. */
#define MOST_DEPTHS 16
#define NO_GROUP UINT32_MAX

/* A PU, and for each depth of the tree the lowest PU of the group that it is in. */
struct leaf {
    uint32_t lowest[MOST_DEPTHS + 1];
    size_t at; /* in the class's PUs */
};

static void enter_group(struct leaf *leaves, const struct profile_class *class,
                        const struct profile_set *group, size_t depth)
{
    for (size_t i = 0; group->count && i < class->pus.count; i++) {
        if (profile_set_has(group, class->pus.ids[i])) {
            leaves[i].lowest[depth] = group->ids[0];
        }
    }
}

static void enter_relation(struct leaf *leaves, const struct profile_class *class,
                           const struct profile_relation *relation, size_t depth)
{
    for (size_t g = 0; g < relation->group_count; g++) {
        enter_group(leaves, class, &relation->groups[g], depth);
    }
}

/* Who is in no group of some depth (caches of two sizes are two relations, and some cores have no
 * last-level cache) stands there with the group of the next depth, as in hwloc's tree. */
static void name_missing_groups(struct leaf *leaf)
{
    for (size_t d = MOST_DEPTHS; d-- > 0;) {
        if (leaf->lowest[d] == NO_GROUP) {
            leaf->lowest[d] = leaf->lowest[d + 1];
        }
    }
}

static int by_tree(const void *a, const void *b)
{
    const struct leaf *x = a, *y = b;
    for (size_t d = 0; d <= MOST_DEPTHS; d++) {
        if (x->lowest[d] != y->lowest[d]) {
            return x->lowest[d] < y->lowest[d] ? -1 : 1;
        }
    }
    return 0;
}

int map_logical_indices(const struct profile_class *class, uint32_t **out)
{
    struct leaf *leaves = calloc(class->pus.count, sizeof *leaves);
    uint32_t *logical = calloc(class->pus.count, sizeof *logical);
    if (!leaves || !logical) {
        free(leaves);
        free(logical);
        return -ENOMEM;
    }
    for (size_t i = 0; i < class->pus.count; i++) {
        for (size_t d = 0; d < MOST_DEPTHS; d++) {
            leaves[i].lowest[d] = NO_GROUP;
        }
        leaves[i].lowest[MOST_DEPTHS] = class->pus.ids[i];
        leaves[i].at = i;
    }
    size_t depth = 0;
    enter_relation(leaves, class, &class->packages, depth++);
    for (size_t n = 0; n < class->numa_count; n++) {
        enter_group(leaves, class, &class->numa[n].pus, depth);
    }
    depth++;
    for (size_t c = class->cache_count; c-- > 0 && depth + 1 < MOST_DEPTHS; depth++) {
        enter_relation(leaves, class, &class->caches[c].sharing, depth);
    }
    enter_relation(leaves, class, &class->cores, depth);
    for (size_t i = 0; i < class->pus.count; i++) {
        name_missing_groups(&leaves[i]);
    }
    qsort(leaves, class->pus.count, sizeof *leaves, by_tree);
    for (size_t i = 0; i < class->pus.count; i++) {
        logical[leaves[i].at] = (uint32_t)i;
    }
    free(leaves);
    *out = logical;
    return 0;
}
