/* The ways of the second level cache, without knowing where its memory lies physically and without
 * looking at a declared figure.
 *
 * Lines at the same place of many pages share one set of the first level, and as many sets of the
 * second as its ways are pages large; which pages meet in a set is not known (random page frames,
 * guests, hashes). So it is found out: of more lines than the cache holds at that place, piece by
 * piece is taken away as long as some still miss (group testing for minimal eviction sets: Vila,
 * Koepf, Morales, "Theory and Practice of Finding Eviction Sets", IEEE S&P 2019). What is left are
 * the lines of one set, one more than it has ways, or, where the first level has as many ways,
 * those of them that cannot be replaced by another line.
 *
 * A figure is given only where most of several tries, each in other memory, agree and the size of
 * the cache is that many ways of a power of two each.
 */
#ifndef SERVET_PROBES_CACHE_WAYS_H
#define SERVET_PROBES_CACHE_WAYS_H

#include "probes/probe.h"

/* What is known of the level from the latency curve, and of the first level. */
struct probe_ways_level {
    uint64_t bytes;
    double first_seconds, seconds,
        miss_seconds;         /* of a hit in the first level, in this one, in the one behind it */
    uint32_t first_ways;      /* of the first level; 0: not known */
    uint64_t first_way_bytes; /* sets * line; 0: not known */
};

struct probe_ways {
    uint32_t ways;      /* 0: not to be told; then way_bytes is 0, too, and `reason` says why */
    uint64_t way_bytes; /* size / ways */
    const char *reason; /* static text or NULL */
};

/* A figure that cannot be told is 0; that is no error. */
int probe_ways(struct probe *probe, uint32_t pu, const struct probe_ways_level *level,
               struct probe_ways *out, struct servet_error *error);

/* The number of ways that `conflicting` lines stand for, which conflict while one less does not:
 * one less, or somewhat fewer where a policy keeps a line too many for a while; the size must be
 * ways of a power of two bytes. 0: none. */
uint32_t probe_ways_of(size_t conflicting, uint64_t bytes);

#endif
