/* Cache levels and effective sizes of one PU (2010 paper, Section III-A; the method is ours, see
 * fit.h).
 *
 * The latency of a random cycle is measured on a grid of eight sizes an octave, from 4 KiB until
 * well beyond the last knee, in several sweeps that lie apart in time. Around the knees that a
 * first fit gives, all but the first, further samples are taken within a few seconds, and around
 * the last of three levels or more at sizes in between as well; then the levels are fitted again.
 * What disturbs a measurement (a neighbour in the L3, a busy sibling) only ever makes caches look
 * smaller and slower, so the slowest samples of a point are dropped (model.h).
 *
 * Where there is a deadline, every other size is measured first, and then as many sweeps of all as
 * there is time for; what comes after them is left out when it is past. The least that a curve
 * takes is that first look.
 */
#ifndef SERVET_PROBES_CACHE_PROBE_H
#define SERVET_PROBES_CACHE_PROBE_H

#include "probes/cache/fit.h"
#include "probes/cache/tlb.h"
#include "probes/probe.h"

struct probe_cache_level {
    uint64_t size_bytes;            /* effective */
    uint64_t low_bytes, high_bytes; /* sizes that explain the measurement about as well */
    uint32_t ways;                  /* measured; 0: not known */
    uint64_t way_bytes;             /* sets * line, measured; 0: not known */
    const char *ways_unknown; /* why they are not known, if it was tried; static text or NULL */
    uint32_t line_bytes;      /* measured; 0: not known */
    double seconds;           /* latency of a load that hits in this level */
    uint32_t repetitions;
    double spread; /* of the latency around the knee between sweeps; < 0: not known */
};

struct probe_cache {
    struct probe_cache_level levels[CACHE_LEVELS_MAX]; /* L1 first */
    size_t count;
    size_t page_bytes; /* of the memory that the sizes and `tlb` were measured in: huge pages where
                          they are to be had */
    struct probe_tlb tlb;          /* part of the fit: reaches bend the curve */
    struct probe_tlb ordinary_tlb; /* on ordinary pages, if `tlb` is not */
    double memory_seconds;         /* latency beyond the last level */
    uint64_t largest_bytes;        /* working set that was measured */
    bool cut_short;                /* by the memory limit */
    bool shortened;           /* by the budget: fewer sweeps than usual, or something left out */
    uint32_t sweeps, coarse;  /* how often all sizes were measured, and every other size alone */
    struct cache_curve curve; /* what was measured (mean of the undisturbed samples). Owned */
};

/* What probe_cache() will take on one PU, about, by the declared caches alone. */
double probe_cache_seconds(const struct probe *probe);
int probe_cache(struct probe *probe, uint32_t pu, struct probe_cache *out,
                struct servet_error *error);
/* One point of the curve: a working set in memory of its own, once. 0 or the machine's -errno. */
int probe_cache_point(struct probe *probe, uint32_t pu, size_t bytes, double *seconds);
void probe_cache_free(struct probe_cache *result);

/* What belongs to cache levels whose sizes and latencies are known: line size, ways, and the TLB of
 * ordinary pages. */

/* Line size of the first level, ways of the first two; what is not told has its reason. 0 or the
 * machine's -errno. */
int probe_cache_geometry(struct probe *probe, uint32_t pu, struct probe_cache *out,
                         struct servet_error *error);

/* What the cache sizes were measured in has its TLB measured already; where that was huge pages,
 * programs may not have them. So many passes, or fewer when late. 0 or the machine's -errno. */
int probe_cache_ordinary_tlb(struct probe *probe, uint32_t pu, int passes, struct probe_cache *out,
                             struct servet_error *error);

#endif
