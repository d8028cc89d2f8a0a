/* One cache, set by set, of the simulated backend. Lines are physical (or virtual) line numbers + 1; 0 is empty. */
#ifndef SERVET_PROBES_SIM_CACHE_H
#define SERVET_PROBES_SIM_CACHE_H

#include "sim.h"

struct sim_ways {
    const struct sim_cache *kind;
    uint64_t *lines; /* sets * slices rows of `ways`; LRU: most recent first */
    uint8_t *marks;  /* by line: reference bit or re-reference prediction */
    uint64_t *trees; /* by row: the bits of tree-PLRU */
    int32_t duel;    /* which of the two policies of SIM_ADAPTIVE loses less */
    uint32_t seed;
};

int sim_ways_init(struct sim_ways *ways, const struct sim_cache *kind, uint32_t seed); /* 0 or -ENOMEM */
void sim_ways_free(struct sim_ways *ways);

/* True when the line is there; then it is also marked as used. */
bool sim_ways_hit(struct sim_ways *ways, uint64_t line);
/* Brings the line in; the line it evicts, or 0. */
uint64_t sim_ways_fill(struct sim_ways *ways, uint64_t line);
void sim_ways_remove(struct sim_ways *ways, uint64_t line);

#endif
