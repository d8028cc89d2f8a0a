/* The geometry of the first level cache: line size, ways and size of a way, without looking at a
 * declared figure.
 *
 * ways  A cycle of k lines that lie s bytes apart stays in the cache as long as no set gets more
 * lines than it has ways. The largest such k halves from stride to stride until s is the size of a
 * way (sets * line); from there on it is the number of ways. Whatever disturbs takes ways away, so
 * the largest of several trials counts, and ways that do not make up the size are not told.
 *
 * line  In a working set 4/3 as large as the cache lines miss. Nodes closer together than a line
 * share one, so the latency rises with their distance until that is the line size.
 */
#ifndef SERVET_PROBES_CACHE_LINE_H
#define SERVET_PROBES_CACHE_LINE_H

#include "probes/probe.h"

/* What is known of the first level from its latency curve. */
struct probe_line_level {
    uint64_t bytes;
    double seconds;      /* of a hit */
    double miss_seconds; /* of a hit in the level behind it */
};

struct probe_line {
    uint32_t line_bytes; /* 0: not to be told */
    uint32_t ways;       /* 0: not to be told; then way_bytes is 0, too */
    uint64_t way_bytes;
};

/* A figure that cannot be told is 0; that is no error. */
int probe_line(struct probe *probe, uint32_t pu, const struct probe_line_level *level,
               struct probe_line *out, struct servet_error *error);

/* Line size out of latencies by distance of the nodes (ascending); 0 where they reach no plateau
 * before the last two.
 */
uint32_t probe_line_infer(const uint32_t *distances, const double *seconds, size_t count,
                          double hit_s);

/* Ways and size of a way out of the largest k by stride (ascending, doubling); both 0 where k goes
 * on halving. */
void probe_line_ways(const uint64_t *strides, const uint32_t *largest, size_t count, uint32_t *ways,
                     uint64_t *way_bytes);

#endif
