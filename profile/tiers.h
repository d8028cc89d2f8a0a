/* Tiers of memory: NUMA nodes whose memory does equally much are one. The shim, the report and
 * servet-show ask here, so that they name the same nodes. */
#pragma once

#include "profile/base/mask.h"
#include "profile/model.h"

/* The tier of a node without memory. */
#define PROFILE_NO_TIER UINT32_MAX

struct profile_tier_node {
    uint32_t tier; /* 0: the fastest; PROFILE_NO_TIER */
    /* bytes per second that nodes are weighted by, all of one origin; 0: not known of all nodes */
    double weight;
};

struct profile_tiers {
    uint32_t count;    /* 1: all memory is alike; 0: no node has any */
    uint32_t capacity; /* the largest tier but the fastest; 0 where there is one tier */
    struct profile_tier_node *nodes; /* in the order of profile_class.numa; owned */
};

/* Tells nodes apart by the first of these figures that differs, group by group: the bandwidth of
 * the PUs near it together, the bandwidth and the latency of one worker on its nearest PUs, the
 * bandwidth that the firmware declares, the number of the kernel's tier. Weights are bandwidths
 * together; of one worker where these are missing, or the declared ones where they differ more. 0,
 * -ENOMEM. */
int profile_tiers_make(const struct profile_class *node_class, struct profile_tiers *out);
void profile_tiers_free(struct profile_tiers *tiers);

/* Bytes of a tier. */
uint64_t profile_tier_bytes(const struct profile_class *node_class,
                            const struct profile_tiers *tiers, uint32_t tier);

/* Positions of the nodes of a tier (PROFILE_NO_TIER: of any) that are next to `pus`; where it has
 * none there, all of the tier's. `out` has room for all nodes. Returns how many. */
size_t profile_tiers_near(const struct profile_class *node_class, const struct profile_tiers *tiers,
                          uint32_t tier, const struct profile_mask *pus, uint32_t *out);

/* Do the kernel's weights, by position, NULL: 1 for each, deal pages out over the nodes at these
 * positions as their bandwidths do? False where these are not known. */
bool profile_tiers_dealt(const struct profile_tiers *tiers, const uint32_t *weights,
                         const uint32_t *positions, size_t count);

/* "fast", "capacity", or "" of a tier between, and where there is one tier. */
const char *profile_tier_word(const struct profile_tiers *tiers, uint32_t tier);
