/* Cache levels of one PU: sizes, latencies, the first level's line, and TLB reaches (2010 paper,
 * Section III-A; the method is ours, see fit.h).
 *
 * The latency of a random cycle is measured on a grid of eight sizes an octave, from 4 KiB until
 * well beyond the last knee, in several sweeps that lie apart in time and visit the same places in
 * memory. Around the knees of a first fit further samples are taken, at other places and at sizes
 * in between; then levels are fitted once more. Interference (a neighbour in the L3, a busy
 * sibling) only makes caches look smaller and slower: curve.h says which samples count.
 *
 * With a deadline every other size is measured first, then as many sweeps of all as there is time
 * for. The least that a curve takes is that first look. */
#pragma once

#include "probes/cache/curve.h"
#include "probes/cache/fit.h"
#include "probes/probe.h"

/* -- TLBs -- */

/* How much memory the TLB levels reach.
 *
 * One line in each page is visited in random order, the line within the page moving on so that the
 * lines fill the caches evenly; the same number of lines side by side is the reference. What the
 * first takes longer is address translation. The reach is given in bytes: it is what bends a
 * latency curve on memory of the same kind, whatever the size of the pages behind it (in a guest,
 * huge pages may be backed by small ones). */

struct probe_tlb {
    /* smallest reach first */
    struct {
        uint64_t reach_bytes;
        /* that a miss adds */
        double seconds;
        /* of the reach between passes, each by itself; < 0: seen in fewer than two */
        double spread;
    } levels[CACHE_TLBS_MAX];
    size_t count;
    /* passes of which the least times were taken */
    uint32_t repetitions;
};

#define TLB_POINTS_MAX (CACHE_STEPS_PER_OCTAVE * 11 + 1) /* octaves */
#define TLB_PASSES_MAX (CACHE_SWEEPS + 1)

/* Times of all passes so far, by pass and number of pages. All but the line zero before the first
 * pass. */
struct probe_tlb_times {
    uint32_t line_bytes; /* of the first level; 0: not known, then it is the usual one */
    double pages[TLB_POINTS_MAX];
    double spread_s[TLB_PASSES_MAX][TLB_POINTS_MAX], reference_s[TLB_PASSES_MAX][TLB_POINTS_MAX];
    size_t count; /* of points that every pass has */
    uint32_t passes;
};

/* Goes once through all numbers of pages. A busy neighbour only ever makes a TLB look smaller, for
 * a second or so at a time: call it several times, with other measurements between. 0 or what
 * probe_machine_traverse() returns; -ENOSPC after TLB_PASSES_MAX. */
int probe_tlb_pass(struct probe *probe, uint32_t pu, enum machine_pages pages,
                   struct probe_tlb_times *times, struct servet_error *error);

/* What a load takes longer where so many bytes are visited a line in each page, on pages as the
 * curve's. */
int probe_tlb_extra(struct probe *probe, uint32_t pu, size_t bytes, uint32_t line_bytes,
                    double *seconds);

/* Out of the least times of all passes. */
void probe_tlb_conclude(const struct probe *probe, const struct probe_tlb_times *times,
                        struct probe_tlb *out);

/* -- caches -- */

struct probe_cache_level {
    /* effective, and the interval; both ends 0: the paper's method has none */
    uint64_t size_bytes, low_bytes, high_bytes;
    /* of the likeliest shape */
    enum cache_policy policy;
    /* of the first level; 0: not known */
    uint32_t line_bytes;
    /* of a load that hits in this level */
    double seconds;
    uint32_t repetitions;
    /* of the latency around the knee between sweeps; < 0: not known */
    double spread;
};

struct probe_cache {
    /* L1 first */
    struct probe_cache_level levels[CACHE_LEVELS_MAX];
    size_t count;
    /* of the memory of the curve and of `tlb`: huge pages where there are any */
    size_t page_bytes;
    struct probe_tlb tlb;
    /* on ordinary pages, if `tlb` is not */
    struct probe_tlb ordinary_tlb;
    /* latency beyond the last level */
    double memory_seconds;
    /* working set that was measured */
    uint64_t largest_bytes;
    /* by the memory limit */
    bool cut_short;
    /* by the budget: fewer sweeps than usual, or something left out */
    bool shortened;
    /* levels left out, as a quota ran out or others ran in it */
    size_t unconfirmed;
    /* how often all sizes were measured, and every other size alone */
    uint32_t sweeps, coarse;
    /* of the even grid. Owned */
    struct cache_curve curve;
};

int probe_cache(struct probe *probe, uint32_t pu, struct probe_cache *out,
                struct servet_error *error);
/* The same as the 2010 paper has it (paper.c). */
int probe_cache_paper(struct probe *probe, uint32_t pu, struct probe_cache *out,
                      struct servet_error *error);
/* Figure 4 on a curve that is there already: sizes of the levels found. Returns how many. */
size_t probe_cache_paper_infer(const struct cache_curve *curve, uint64_t sizes[CACHE_LEVELS_MAX]);
/* Seconds of a load, once, in memory of its own and after the usual passes; of seed 0: at a place
 * of its own. 0 or the machine's -errno. */
int probe_cache_load(struct probe *probe, uint32_t pu, struct machine_traversal what,
                     double *seconds);
/* One point of the curve: the same of a working set. */
int probe_cache_point(struct probe *probe, uint32_t pu, size_t bytes, uint64_t seed,
                      double *seconds);
void probe_cache_free(struct probe_cache *result);

/* What the system declares; NULL: nothing. */
const struct profile_class *probe_cache_declared(const struct machine *machine);

/* Bytes of the largest of these; 0: of nothing (NULL too). */
size_t probe_cache_declared_largest(const struct profile_class *declared);

/* Which declared cache each level is taken for, and which number the profile gives it. */
struct probe_cache_pairing {
    const struct profile_cache *declared[CACHE_LEVELS_MAX]; /* NULL: none */
    bool equal[CACHE_LEVELS_MAX];       /* the level's interval holds what is declared */
    uint32_t numbers[CACHE_LEVELS_MAX]; /* ascending; the declared one's where that is free */
};

/* A level is taken for the declared cache (of that PU; NULL: of any) that it equals, whatever lies
 * before it, and otherwise for the next in size of those that are left between. `declared` may be
 * NULL. */
void probe_cache_pair(const struct probe_cache *caches, const struct profile_class *declared,
                      const uint32_t *pu, struct probe_cache_pairing *out);

/* Line size of the first level, whose size is known. 0 or the machine's -errno. */
int probe_cache_line(struct probe *probe, uint32_t pu, struct probe_cache *out,
                     struct servet_error *error);

/* The line size that is declared of the first of the PU's caches that has one; 0: of none. */
uint32_t probe_line_first(const struct machine *machine, uint32_t pu);
