/* Pairs that collide on memory, as overhead levels (2010 paper, Section III-C, Figure 6).
 *
 * A pair collides when one of them, both copying, gets less than 90 % of what it gets alone. Every
 * PU is measured alone first, then pairs (sampling.c). One pass verifies: all pairs that collide
 * and 16 others are measured once more. Then colliding bandwidths are clustered (layers.h) to
 * overhead levels, worst first; a level's groups are of PUs that collide so or worse, so that
 * groups nest. */
#ifndef SERVET_PROBES_MEMORY_PAIRS_H
#define SERVET_PROBES_MEMORY_PAIRS_H

#include "probes/probe.h"
#include "profile/model.h"

/* The result in the profile's own form, to be moved into a class. `array_bytes`: of an array that
 * was copied. */
struct probe_memory {
    struct profile_memory memory;
    size_t array_bytes;
    bool cut_short; /* by the memory limit: arrays so small that a cache may hold a part of them */
    bool outliers;  /* a few pairs collide of a class whose others do not */
    bool not_concurrent; /* some pairs or sets have no figure: their PUs never ran together */
    bool searched;       /* pairs and sets to the end: there are no more levels */
};

/* `last_level_bytes`: the largest cache, declared or measured. */
int probe_memory(struct probe *probe, size_t last_level_bytes, struct probe_memory *out,
                 struct servet_error *error);
/* Adds the levels that sets show to those of pairs, with their groups and curves (domains.c;
 * model.h: worst first, each within the next). `candidates`: partitions of the PUs that may be
 * domains; what they say is tried, never taken over. Stops early, with what it has, when the probe
 * is late, and where copies that are to meet never do: those that did not say that nothing is lost.
 * 0, or -errno of the machine with one line in `error`; `found` is as it was then. */
int probe_memory_sets(struct probe *probe, const struct profile_relation *const *candidates,
                      size_t count, struct probe_memory *found, struct servet_error *error);
void probe_memory_free(struct probe_memory *result);

/* A loop reads and writes memory as programs do: reads, a triad, an ordinary copy. The rate of each
 * of enum profile_kernel, on the first PU alone and on all PUs of its NUMA node together, into
 * found->memory; nothing where it is late or memory has become scarce. 0, or the machine's -errno
 * with one line in `error`; `found` is then as it was. */
int probe_memory_kernels(struct probe *probe, struct probe_memory *found,
                         struct servet_error *error);

#endif
