/* From what the probes found to a profile. The declared topology gives the names of things (packages, cores, NUMA
 * nodes) and the declared sizes; every figure that was measured replaces the declared one and says so. */
#ifndef SERVET_PROBES_RESULT_H
#define SERVET_PROBES_RESULT_H

#include "disagreement.h"
#include "probe_cache.h"
#include "probe_memory.h"
#include "probe_message.h"
#include "probe_numa.h"
#include "probe_sharing.h"

/* Puts the measured levels in the place of the declared caches. A declared level that was not seen in the measurement
 * stays, marked as declared. `sharing` (may be NULL): else the declared groups are kept. Where a size is not the
 * declared one, the level's note says so, and why as far as that is known (disagreement.h). 0 or -ENOMEM. */
int result_set_caches(struct profile_class *node_class, const struct probe_cache *caches, struct probe_sharing *sharing,
                      const struct disagreement_machine *machine);

/* The declared cache (of that PU; NULL: of any), of a higher level than that, that a measured size is taken for, or
 * NULL. */
const struct profile_cache *result_find_declared(const struct profile_class *node_class, const uint32_t *pu,
                                                 uint64_t bytes, uint32_t above_level);
int result_copy_relation(const struct profile_relation *from, struct profile_relation *out);
void result_free_cache(struct profile_cache *cache);

/* Keeps the latency curve that the sizes came from. 0 or -ENOMEM. */
int result_set_cache_curve(struct profile_class *node_class, const struct cache_curve *curve);
/* The reaches of the TLB's levels: on ordinary pages, and on huge ones if the caches were measured in those. */
int result_set_tlb(struct profile_class *node_class, const struct probe_cache *caches, size_t ordinary_page_bytes);

/* Move what was found into the class; `found` is empty afterwards. */
void result_set_memory(struct profile_class *node_class, struct probe_memory *found);
void result_set_numa(struct profile_class *node_class, struct probe_numa *found);
int result_set_layers(struct profile_class *node_class, struct profile_communication *found);

/* A note on every layer ("through threads, not through MPI"). 0 or -ENOMEM. */
int result_note_layers(struct profile_class *node_class, const char *note);

#endif
