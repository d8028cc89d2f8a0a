/* What chosen lines of one set of the first level take, and how many of them miss the second, told
 * by latencies alone. What is found out by it: ways.c. */
#ifndef SERVET_PROBES_CACHE_MISSES_H
#define SERVET_PROBES_CACHE_MISSES_H

#include <stddef.h>
#include <stdint.h>

#include "probes/cache/cache.h"

struct cache_lines {
    struct probe *probe;
    uint32_t pu;
    const struct probe_ways_level *level;
    size_t stride; /* of lines that share a set of the first level */
    uint32_t pool; /* lines, a stride apart; behind them as many others */
    uint64_t seed; /* of the memory */
    double base_s; /* of a hit in the level over one in the first, measured here */
    uint32_t kept; /* lines of a set that a first level of random replacement has; 0: of others */
    uint32_t *visited; /* `pool` of each */
    uint32_t *quiet; /* visited with all others: they crowd the first level and miss not this one */
    size_t quiet_count;
};

/* Lines that a set of the first level keeps none of, whatever it evicts but at random. */
double probe_misses_crowd(const struct cache_lines *of);

/* Chooses quiet lines, the last of those of the pool; none where they conflict. Returns what
 * probe_misses() does. */
int probe_misses_choose_quiet(struct cache_lines *of, const uint32_t *pool);

/* How many of these and the quiet lines miss in a turn. 0, the machine's -errno, or -ETIME: there
 * is no time left to ask. */
int probe_misses(struct cache_lines *of, const uint32_t *lines, size_t count, double *missing);
/* By few looks, for many lines. */
int probe_misses_soon(struct cache_lines *of, const uint32_t *lines, size_t count, double *missing);
/* By many, for what others are compared with. */
int probe_misses_surely(struct cache_lines *of, const uint32_t *lines, size_t count,
                        double *missing);

#endif
