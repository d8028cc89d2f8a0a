/* What the two sources of a topology profile (sysfs, hwloc) have in common: they say which PUs
 * share a core, a package, a cache, a NUMA node; what follows from that for memory and messages is
 * the same. */
#ifndef SERVET_PROFILE_TOPOLOGY_TOPOLOGY_H
#define SERVET_PROFILE_TOPOLOGY_TOPOLOGY_H

#include "profile/model.h"

struct topology_cache {
    uint32_t level;
    uint64_t size_bytes;
    uint32_t line_bytes, associativity;
};

/* An empty profile of one node with one class, or NULL. */
struct servet_profile *profile_topology_new(void);

/* Appends a group; the relation owns it, also on failure. Groups of one and empty ones are dropped.
 * 0 or -ENOMEM. */
int profile_topology_add_group(struct profile_relation *relation, struct profile_set group);

/* One cache that the PUs of `group` share (or one PU has); owns the group as above. */
int profile_topology_add_cache(struct profile_class *node_class, const struct topology_cache *cache,
                               struct profile_set group);

int profile_topology_add_numa(struct profile_class *node_class, uint32_t os_index,
                              uint64_t memory_bytes, struct profile_set pus);
int profile_topology_add_kind(struct profile_class *node_class, uint32_t efficiency,
                              struct profile_set pus);

/* Groups of PUs that something joins which is no core, cache, package or NUMA node: clusters of
 * cores, dies, groups of nodes that are near one another. One relation for each kind and depth. */
#define TOPOLOGY_MOST_GROUPINGS 16

struct topology_groupings {
    struct profile_relation of[TOPOLOGY_MOST_GROUPINGS]; /* owned, see ..._free() */
    size_t count;
};

void profile_topology_groupings_free(struct topology_groupings *groupings);

/* Orders what was added, derives the memory overhead levels and the communication layers, names the
 * node after profile->host_name, and checks the whole. What `groupings` (may be NULL) tell besides
 * is a layer, and a memory overhead level where it nests with the others; they are ordered, and
 * groups that a core, cache, package or NUMA node says already are taken out. 0, -ENOMEM,
 * -EINVAL. */
int profile_topology_finish(struct servet_profile *profile, struct topology_groupings *groupings,
                            struct servet_error *error);

#endif
