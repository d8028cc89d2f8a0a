/* Does a stored profile still describe this machine? A sample of its figures is measured again: the
 * latency in each cache level and beyond the last one, the bandwidth of one worker, the latency of
 * the fastest layer. */
#ifndef SERVET_PROBES_PAIRS_VERIFY_H
#define SERVET_PROBES_PAIRS_VERIFY_H

#include <stdio.h>

#include "probes/machine.h"

/* No new figure is begun after so long; the longest one takes less than one second. */
#define RECHECK_SECONDS 4.0

/* One line per figure on `out`, the verdict on the last one. `mpi`: messages may be measured
 * through MPI.
 * 1: it still does; 0: it does not (other machine, other figures, or nothing in it was measured);
 * -errno with the reason. */
int probe_verify_pairs(struct machine *machine, const struct servet_profile *profile, bool mpi,
                       FILE *out, struct servet_error *error);

#endif
