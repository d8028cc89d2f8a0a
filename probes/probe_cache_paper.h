/* The cache benchmark as the 2010 paper gives it (Section III-A, Figures 1, 3 and 4), for --method paper.
 *
 * mcalibrator's loads, 1 KiB apart, on sizes that double up to 2 MiB and grow by 1 MiB from there; the L1 is the first
 * peak of the gradients; a later peak of a single size is a level of that size (page colouring); a wider one is a level
 * whose size the binomial model of random pages gives. Kept as a comparison: where a prefetcher follows the stride, or
 * sizes lie between powers of two, it is wrong, and the paper says so itself of the latter. What the paper leaves open:
 * a gradient counts as larger than 1 from 1.05 on, as a peak from 1.2 on; hit time and miss overhead are the cycles at
 * both ends of the range; tentative sizes are the multiples of 1 MiB and the powers of two from 64 KiB on.
 */
#ifndef SERVET_PROBES_PROBE_CACHE_PAPER_H
#define SERVET_PROBES_PROBE_CACHE_PAPER_H

#include "probe_cache.h"

int probe_cache_paper(struct probe *probe, uint32_t pu, struct probe_cache *out, struct servet_error *error);

/* Figure 4 on a curve that is there already: sizes of the levels found. Returns how many. */
size_t probe_cache_paper_infer(const struct cache_curve *curve, uint64_t sizes[CACHE_LEVELS_MAX]);

#endif
