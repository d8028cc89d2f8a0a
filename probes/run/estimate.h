/* How long the probes will take, before anything is measured: from what is planned to be measured
 * (pairs of each class, sizes of working sets by the declared caches) and what that takes on usual
 * machines. For the time left that is shown, and for what each probe may have of a budget; good to
 * a factor of two.
 */
#ifndef SERVET_PROBES_RUN_ESTIMATE_H
#define SERVET_PROBES_RUN_ESTIMATE_H

#include "probes/probe.h"

/* Seconds. */
struct probe_estimate {
    double cache_s, sharing_s, memory_s, message_s;
};

/* `mpi`: messages go through MPI, which has to be started. 0 or -ENOMEM. */
int probe_estimate_make(const struct probe *probe, bool mpi, struct probe_estimate *out);

#endif
