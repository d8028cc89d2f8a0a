/* Questions that a profile answers: who shares what, how much, how fast. PU numbers are those of
 * the whole machine (model.h). Nothing here allocates or fails: what is not known is 0, false or
 * -1. */
#ifndef SERVET_PROFILE_QUERY_H
#define SERVET_PROFILE_QUERY_H

#include "profile/model.h"

struct profile_place {
    const struct profile_class *node_class;
    uint32_t node;
    uint32_t os_index; /* the PU within the node */
};

/* Where PU number `pu` is; false when the profile does not know it. */
bool profile_locate(const struct servet_profile *profile, uint32_t pu, struct profile_place *place);

/* Group that `member` is in, or NULL. */
const struct profile_set *profile_group_of(const struct profile_relation *relation,
                                           uint32_t member);
/* Are both in one group or listed as a pair? False for a == b. */
bool profile_related(const struct profile_relation *relation, uint32_t a, uint32_t b);

/* The cache of `level` that the PU (OS index) has, or NULL. */
const struct profile_cache *profile_cache_of(const struct profile_class *node_class, uint32_t level,
                                             uint32_t os_index);

/* The layer of a message between two members, the index of it in *index (may be NULL); NULL: none
 * holds both. */
const struct profile_layer *profile_layer_of(const struct profile_communication *communication,
                                             uint32_t a, uint32_t b, size_t *index);

/* Seconds of one message, one way: linear between the points of the layer's curve, the first
 * point's below it, at the last segment's bandwidth above it; without a curve the layer's latency,
 * whatever the size. 0 of a layer that is only declared. */
double profile_message_seconds(const struct profile_layer *layer, uint64_t bytes);

/* Bytes per second that `workers` get together: linear between the points of the level's scaling
 * curve, the nearest point outside of it; 0 without a curve. */
double profile_scaled_bandwidth(const struct profile_memory_level *level, uint32_t workers);

/* Questions to the BSP parameters of a profile. */

/* The parameters for `processors`, of `backend` (NULL: of the first one that covers this number):
 * those measured, or between two measured numbers on a straight line. False outside what was
 * measured. An unknown l is T(0), its lower bound. out->backend and the note belong to the
 * profile. */
bool profile_bsp_at(const struct servet_profile *profile, const char *backend, uint32_t processors,
                    struct profile_bsp *out);

#endif
