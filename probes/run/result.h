/* From what the probes found to a profile. The declared topology gives the names of things
 * (packages, cores, NUMA nodes) and the declared sizes; every figure that was measured replaces the
 * declared one and says so. */
#ifndef SERVET_PROBES_RUN_RESULT_H
#define SERVET_PROBES_RUN_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/cache/probe.h"
#include "probes/memory/memory.h"
#include "probes/pairs/sharing.h"
#include "profile/model.h"

/* Results of one kind of cores. */
struct kind_results {
    struct probe_cache caches;
    struct probe_sharing sharing; /* empty: the declared groups are kept */
};

/* Where the caches were measured, for the notes. */
struct measured_on {
    uint32_t pu;
    bool guest; /* a virtual machine */
    bool busy;  /* other programs ran before or while it was measured */
};

/* Puts the measured levels of each kind in the place of the declared caches. A declared level that
 * was not seen in the measurement stays, marked as declared. A cache that kinds have in common is
 * the one found by the first. Where a size is not the declared one, the level's note says so.
 * where->pu is each kind's first. 0 or -ENOMEM. */
int probe_result_set_caches(struct profile_class *node_class, const struct kinds *kinds,
                            struct kind_results *results, const struct measured_on *where);

int probe_result_copy_relation(const struct profile_relation *from, struct profile_relation *out);

/* Keeps the latency curve that the sizes came from. 0 or -ENOMEM. */
int probe_result_set_cache_curve(struct profile_class *node_class, const struct cache_curve *curve);
/* The reaches of the TLB's levels: on ordinary pages, and on huge ones if the caches were measured
 * in those. */
int probe_result_set_tlb(struct profile_class *node_class, const struct probe_cache *caches,
                         size_t ordinary_page_bytes);

/* After an unfinished search for levels of memory, declared levels that do not cross those found
 * stay. 0 or -ENOMEM. */
int probe_result_keep_levels(const struct profile_memory *declared, struct profile_memory *found);
/* Move what was found into the class; `found` is empty afterwards. */
void probe_result_set_memory(struct profile_class *node_class, struct probe_memory *found);
void probe_result_set_numa(struct profile_class *node_class, struct probe_numa *found);
void probe_result_set_devices(struct profile_class *node_class, struct probe_devices *found);
int probe_result_set_layers(struct profile_class *node_class, struct profile_communication *found);

/* Every layer was measured between threads. 0 or -ENOMEM. */
int probe_result_through_threads(struct profile_class *node_class);
/* The figures of these probes (enum probe_run_probes) were cut short by the budget. */
void probe_result_cut_short(struct profile_class *node_class, unsigned probes);

/* holders[i]: the PUs that may share measured level i of the first kind. NULL stands for all PUs:
 * the operating system declares the cache for other kinds, too; or it does not declare the last
 * one, and another kind's last one may be as large. */
void probe_result_holders(const struct profile_class *node_class, const struct kinds *kinds,
                          const struct kind_results *results, const struct profile_set **holders);

#endif
