/* A rate of memory: the bytes per second that PUs get, copying arrays far larger than every cache.
 * How large the arrays are, how long a copy is and on which pages is the same for all figures. */
#pragma once

#include "probes/pairs/partition.h"
#include "probes/probe.h"

/* A share of the rate alone; less is a collision: "b < ref" of the 2010 paper needs a margin.
 * Rounds differ by 4 to 7 % on a shared machine. */
#define PROBE_MEMORY_COLLISION 0.9

bool probe_memory_collides(double bytes_per_s, double alone_bytes_per_s);
/* At least the middle between a collision and all that is had alone: noise of 5 % is none. */
bool probe_memory_is_clear(double bytes_per_s, double alone_bytes_per_s);

/* Has the machine too many PUs for long copies, which would take minutes? */
bool probe_memory_is_large(const struct probe *probe);

/* The bytes of an array that is copied; `last_level_bytes`: the largest cache, declared or
 * measured. */
size_t probe_memory_bytes(const struct probe *probe, size_t last_level_bytes);
/* The same, were there no limit of memory. */
size_t probe_memory_wanted_bytes(const struct probe *probe, size_t last_level_bytes);

/* "AVX2 non-temporal stores, pages of 2 MiB asked for, arrays of 128 MiB": a new string, or
 * NULL. */
char *probe_memory_method(const struct machine *machine, size_t array_bytes);

/* A copy between arrays of so many bytes, on a NUMA node or (< 0) on each PU's own. */
struct machine_copy probe_memory_what(const struct probe *probe, size_t bytes, int32_t numa);
/* Copies, once, on one PU alone; the best of them is probe->alone_bytes_per_s. */
int probe_memory_copy(struct probe *probe, size_t bytes, uint32_t pu, double *bytes_per_s);
/* What so many workers have room for, of arrays of so many bytes. */
size_t probe_memory_room(const struct probe *probe, size_t bytes, size_t workers);
/* The total of all `pus` at the same time, once. 0, -ENOMEM, or as
 * probe_machine_copy_together(). */
int probe_memory_total(struct probe *probe, const struct machine_copy *what, const uint32_t *pus,
                       size_t count, double *bytes_per_s);
/* The median of such totals of the first point->workers, of as many as it takes; fewer where it is
 * late, at least one. 0, or as above. */
int probe_memory_settled(struct probe *probe, const struct machine_copy *what, const uint32_t *pus,
                         struct profile_scaling_point *point);

/* -- a scaling curve is the bandwidth of a group by the number of its workers (2010 paper, Section
 * III-C, Figure 9b) -- */

/* Measures the curve of `level` on one of its groups: one worker in each inner domain before a
 * second one in any, slower cores last, or the curve would fall with the first of them. One worker
 * gets the reference of `memory`. The curve ends where the workers never ran at the same time;
 * -EAGAIN: before there were two. 0, -ENOMEM or the machine's -errno. */
int probe_scaling_measure(struct probe *probe, size_t bytes, const struct profile_set *group,
                          const struct partitions *inner, const struct profile_memory *memory,
                          struct profile_memory_level *level);

/* Working sets that a pair has room for: two arrays of two PUs, and chase pools beside. */
enum { MEMORY_SHARES = 6 };
