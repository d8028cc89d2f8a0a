/* The cache benchmark as the 2010 paper gives it (Section III-A, Figures 1, 3 and 4), for --method
 * paper.
 *
 * mcalibrator's loads, 1 KiB apart, on sizes that double up to 2 MiB and grow by 1 MiB from there;
 * the L1 is the first peak of the gradients; a later peak of a single size is a level of that size
 * (page colouring); a wider one, and a rise up to the largest size, is a level whose size the
 * binomial model of random pages gives. Kept as a comparison: where a prefetcher follows the
 * stride, or sizes lie between powers of two, it is wrong, and the paper says so itself of the
 * latter.
 *
 * What the paper leaves open: MIN_CACHE is 4 KiB, MAX_CACHE 64 MiB or twice the largest declared
 * cache; one pass warms up what the paper's filling of the array does. A gradient counts as larger
 * than 1 from 1.05 on; the first peak is the first local maximum from 1.2 on, and ends where the
 * gradients rise again; from there on gradients larger than 1 side by side are one peak if one of
 * them is 1.2 or more. Hit time and miss overhead are of the points around the peak, the one before
 * it included. Tentative sizes are the powers of two from 64 KiB and the multiples of 1 MiB up to
 * twice the last of those points, with 1, 2, 4, 6, 8, 10, 11, 12, 16, 18, 20 and 24 ways; of
 * several modes that of the least divergence counts. */
#ifndef SERVET_PROBES_CACHE_PAPER_H
#define SERVET_PROBES_CACHE_PAPER_H

#include "probes/cache/probe.h"

int probe_cache_paper(struct probe *probe, uint32_t pu, struct probe_cache *out,
                      struct servet_error *error);

/* Figure 4 on a curve that is there already: sizes of the levels found. Returns how many. */
size_t probe_cache_paper_infer(const struct cache_curve *curve, uint64_t sizes[CACHE_LEVELS_MAX]);

#endif
