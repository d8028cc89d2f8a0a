/* How much memory the TLB levels reach.
 *
 * One line in each page is visited in random order, the line within the page moving on so that the
 * lines fill the caches evenly; the same number of lines side by side is the reference. What the
 * first takes longer is address translation. The reach is given in bytes: it is what bends a
 * latency curve on memory of the same kind, whatever the size of the pages behind it (in a guest,
 * huge pages may be backed by small ones). */
#ifndef SERVET_PROBES_CACHE_TLB_H
#define SERVET_PROBES_CACHE_TLB_H

#include "probes/cache/curve.h"
#include "probes/probe.h"

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

#endif
