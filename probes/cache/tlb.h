/* How much memory the TLB levels reach.
 *
 * One line in each page is visited in random order, the line within the page moving on so that the
 * lines fill the caches evenly; the same number of lines side by side is the reference. What the
 * first takes longer is address translation. The reach is given in bytes: it is what bends a
 * latency curve on memory of the same kind, whatever the size of the pages behind it (in a guest,
 * huge pages may be backed by small ones).
 */
#ifndef SERVET_PROBES_CACHE_TLB_H
#define SERVET_PROBES_CACHE_TLB_H

#include "probes/probe.h"

#define TLB_LEVELS_MAX 2

struct probe_tlb {
    struct {
        uint64_t reach_bytes;
        double seconds; /* that a miss adds */
        double spread; /* of the reach between passes, each looked at alone; < 0: seen in fewer than
                          two */
    } levels[TLB_LEVELS_MAX]; /* smallest reach first */
    size_t count;
    uint32_t repetitions; /* passes of which the least times were taken */
};

/* Knees of the extra time by number of pages: reaches as numbers of pages, smallest first. Returns
 * how many. */
size_t probe_tlb_infer(const double *pages, const double *extra_s, const double *reference_s,
                       size_t count, double reach_pages[TLB_LEVELS_MAX],
                       double seconds[TLB_LEVELS_MAX]);

#define TLB_POINTS_MAX 64
#define TLB_PASSES_MAX 8

/* Times of all passes so far, by pass and number of pages. All zero before the first pass. */
struct probe_tlb_times {
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

/* Out of the least times of all passes. */
void probe_tlb_conclude(const struct probe *probe, const struct probe_tlb_times *times,
                        struct probe_tlb *out);

#endif
