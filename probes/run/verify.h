/* Does a stored profile still hold? The latency in each cache level and beyond the last one, the
 * bandwidth of one worker and the latency of the fastest layer are measured again. */
#ifndef SERVET_PROBES_RUN_VERIFY_H
#define SERVET_PROBES_RUN_VERIFY_H

#include <stdio.h>

#include "probes/machine.h"

/* No new figure is begun after so long; the longest one takes less than one second. */
#define RECHECK_SECONDS 4.0
/* Figures are the same if they differ by no more (profile_same()): a short look on a machine at
 * work is coarser than two profiles side by side (DIFF_TOLERANCE). Another machine, or a neighbour
 * that takes half of a cache or of the bandwidth, is beyond them; what one idle machine shows from
 * run to run is not. Messages were seen in two states a factor of 1.8 apart on one machine. */
#define RECHECK_SAME 0.5
#define RECHECK_SAME_MESSAGE 1.0

/* One line per figure on `out`, the verdict on the last one. `mpi`: messages may be measured
 * through MPI.
 * 1: it still does, or other programs ran and nothing can be said; 0: it does not (other machine,
 * other figures, or nothing in it was measured); -errno with the reason. */
int probe_verify_pairs(struct machine *machine, const struct servet_profile *profile, bool mpi,
                       FILE *out, struct servet_error *error);

#endif
