/* One cache, set by set, of the simulated backend. Lines are physical (or virtual) line numbers +
 * 1; 0 is empty.
 *
 * A traversal visits a few of a large cache's rows only, and millions of traversals are simulated:
 * rows are kept together in slots, given out when a traversal is prepared, and the next traversal
 * begins with none. */
#ifndef SERVET_PROBES_SIMULATED_CACHE_H
#define SERVET_PROBES_SIMULATED_CACHE_H

#include "probes/simulated/sim.h"

#define SIM_NO_SLOT UINT32_MAX

struct sim_ways {
    const struct sim_cache *kind;
    uint32_t *slot_of; /* by row (sets * slices), + 1; 0: none */
    uint32_t *row_of;  /* by slot, as all below */
    uint64_t *lines;   /* `ways` of each; LRU: most recent first */
    uint8_t *marks;    /* by line: reference bit or re-reference prediction */
    uint64_t *trees;   /* the bits of tree-PLRU */
    size_t used, room; /* slots */
    int32_t duel;      /* which of the two policies of SIM_ADAPTIVE loses less */
    uint32_t seed;
};

/* An empty cache without slots; the first call for zeroed memory allocates. 0 or -ENOMEM. */
int probe_sim_ways_clear(struct sim_ways *ways, const struct sim_cache *kind, uint32_t seed);
void probe_sim_ways_free(struct sim_ways *ways);

/* The slot of the line's row, given out if it has none; SIM_NO_SLOT: no memory. */
uint32_t probe_sim_ways_reserve(struct sim_ways *ways, uint64_t line);
/* SIM_NO_SLOT: the row is none of this traversal's. */
uint32_t probe_sim_ways_slot(const struct sim_ways *ways, uint64_t line);

/* True when the line is there; then it is also marked as used. */
bool probe_sim_ways_hit(struct sim_ways *ways, uint32_t slot, uint64_t line);
/* Brings the line in; the line it evicts, or 0. */
uint64_t probe_sim_ways_fill(struct sim_ways *ways, uint32_t slot, uint64_t line);
void probe_sim_ways_remove(struct sim_ways *ways, uint32_t slot, uint64_t line);

#endif
