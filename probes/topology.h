/* What the operating system declares of the machine that is measured. */
#ifndef SERVET_PROBES_TOPOLOGY_H
#define SERVET_PROBES_TOPOLOGY_H

#include "profile/model.h"

/* As profile_from_hwloc(NULL, …), but of this machine: HWLOC_XMLFILE, HWLOC_SYNTHETIC and
 * HWLOC_FSROOT, which put another one in its place, are taken out of the environment unless
 * HWLOC_THISSYSTEM says that they speak of this one. Not while other threads read the
 * environment. */
int probe_topology_own(struct servet_profile **out, struct servet_error *error);

/* A class narrowed to some of its PUs: what a run inside a cpuset may speak of. */

/* Drops every other PU from all sets, groups and pairs, and what is left without any. 0 or
 * -ENOMEM. */
int probe_topology_restrict(struct profile_class *node_class, const struct profile_set *pus);

/* Kinds of cores (performance and efficiency cores) have caches and a share of the memory of their
 * own: each is measured on its own first PU. */

enum { KINDS_MAX = 8 };

/* Of the measured PUs, by lowest PU. */
struct kinds {
    struct profile_set pus[KINDS_MAX]; /* disjoint, never empty, all PUs together. Owned */
    size_t count;                      /* 1: all are alike, or nobody says that they are not */
};

/* 0 or -ENOMEM. PUs in no declared kind are one more; more than KINDS_MAX kinds are none. */
int probe_kinds_of(const struct profile_class *declared, const struct profile_set *pus,
                   struct kinds *out);
void probe_kinds_free(struct kinds *kinds);

/* Which declared kind a PU is of; their number: none. */
size_t probe_kinds_declared(const struct profile_class *declared, uint32_t pu);

/* Which kind a PU is of. */
size_t probe_kinds_find(const struct kinds *kinds, uint32_t pu);

/* Numbers of levels, neither of the two among them. */
struct probe_levels_between {
    uint32_t above, below;
};
#define PROBE_ANY_LEVEL ((struct probe_levels_between){0, UINT32_MAX})

/* The declared cache (of that PU; NULL: of any), of one of these levels, that a measured size is
 * taken for, or NULL. */
const struct profile_cache *probe_topology_find_cache(const struct profile_class *node_class,
                                                      const uint32_t *pu, uint64_t bytes,
                                                      struct probe_levels_between allowed);

/* Leaves what it says of these PUs. 0 or -ENOMEM. */
int probe_relation_narrow(struct profile_relation *relation, const struct profile_set *pus);

/* Frees what it holds, and leaves an empty one. */
void probe_relation_free(struct profile_relation *relation);

#endif
