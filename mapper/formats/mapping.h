/* A finished mapping, for printing: who sits where, by node and OS index. */
#ifndef SERVET_MAPPER_FORMATS_MAPPING_H
#define SERVET_MAPPER_FORMATS_MAPPING_H

#include "mapper/map.h"

struct map_place {
    uint32_t pu; /* in the whole machine */
    uint32_t node, os_index;
};

/* Ranks own consecutive places: rank r those from first[r] to first[r + 1] - 1, its threads in
 * order. A mapping of plain workers (servet-map -n) has one place for each rank, and is not
 * `hybrid`. */
struct map_mapping {
    const struct servet_profile *profile;
    enum map_priority priority;
    bool hybrid;
    struct map_place *places;
    size_t place_count;
    size_t *first; /* rank_count + 1 */
    size_t rank_count;
};

/* From what map_workers() (`threads` NULL: one each) or map_domains() gave. 0, -EINVAL (a PU number
 * that the profile does not have), -ENOMEM. */
int map_mapping_make(const struct servet_profile *profile, const uint32_t *pus, size_t ranks,
                     const uint32_t *threads, struct map_mapping *out);
void map_mapping_free(struct map_mapping *mapping);

/* Do all places from `begin` to `end` - 1 lie on one node? */
bool map_mapping_one_node(const struct map_mapping *mapping, size_t begin, size_t end);

/* Name of a node as the profile has it, "node17" where it has none. */
void map_mapping_node_name(const struct map_mapping *mapping, uint32_t node, char *name,
                           size_t size);

/* hwloc's logical number of every PU of the class, in the order of class->pus: their rank in the
 * tree of packages, NUMA nodes, caches and cores, siblings by their lowest PU. Owned: free(). 0 or
 * -ENOMEM. */
int map_logical_indices(const struct profile_class *node_class, uint32_t **out);

#endif
