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

/* Orders what was added, derives the memory overhead levels and the communication layers, names the
 * node after profile->host_name, and checks the whole. 0, -ENOMEM, -EINVAL. */
int profile_topology_finish(struct servet_profile *profile, struct servet_error *error);

#endif
