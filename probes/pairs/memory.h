/* Memory bandwidth alone, in pairs and by the number of workers (2010 paper, Section III-C, Figure
 * 6).
 *
 * Copies of arrays far larger than every cache. A pair collides when one of them, both copying,
 * gets less than 90 % of what it gets alone ("b < ref" of the paper needs a margin). Colliding
 * bandwidths are clustered (cluster.h) to overhead levels, worst first; what a second look at a
 * pair of each level contradicts is measured again; a level's groups are of PUs that collide so or
 * worse, so that groups nest.
 */
#ifndef SERVET_PROBES_PAIRS_MEMORY_H
#define SERVET_PROBES_PAIRS_MEMORY_H

#include "probes/pairs/relation.h"
#include "probes/probe.h"

/* Of the bandwidth alone; what is less collides. Rounds differ by 4 to 7 % on a shared machine. */
#define PROBE_MEMORY_COLLISION 0.9

/* The result in the profile's own form, to be moved into a class. `array_bytes`: what was copied,
 * per PU. */
struct probe_memory {
    struct profile_memory memory;
    size_t array_bytes;
    bool cut_short; /* by the memory limit: arrays so small that a cache may hold a part of them */
};

/* Overhead levels from the bandwidth of every pair (by probe_pair_index(), of the slower one);
 * `reference` is that of one PU alone, `spread` the relative deviation of one figure (cluster.h).
 * Levels come without scaling. 0 or -ENOMEM. */
int probe_memory_levels(const struct profile_set *pus, double reference,
                        const double *pair_bytes_per_s, double spread, struct profile_memory *out);

/* The pages that memory is measured with: huge ones where they are to be had, as what is allocated
 * in large pieces gets; the TLB then adds nothing to what memory takes. */
enum machine_pages probe_memory_pages(const struct machine *machine);

/* "AVX2 non-temporal stores, pages of 2 MiB asked for, arrays of 128 MiB": a new string, or
 * NULL. */
char *probe_memory_method(const struct machine *machine, size_t array_bytes);

/* Of an array that is copied. */
size_t probe_memory_bytes(const struct probe *probe, size_t last_level_bytes);

/* `last_level_bytes`: the largest cache, declared or measured. */
int probe_memory(struct probe *probe, size_t last_level_bytes, struct probe_memory *out,
                 struct servet_error *error);
/* One worker alone, once. 0 or the machine's -errno. */
int probe_memory_alone(struct probe *probe, size_t last_level_bytes, uint32_t pu,
                       double *bytes_per_s);
void probe_memory_free(struct probe_memory *result);

#endif
