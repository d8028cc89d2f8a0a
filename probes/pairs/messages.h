/* Latency of messages between PUs: layers, the point-to-point curve and concurrency (2010 paper,
 * Section III-D).
 *
 * Messages of the size of the L1 cache, every pair, two sweeps apart in time of which the smaller
 * figure counts, and more of them for a pair until its two smallest figures agree (repeat.h).
 * Latencies are clustered (cluster.h) to layers, fastest first; a layer's groups are of PUs that
 * are that near or nearer where that is transitive, single pairs otherwise. The curve by message
 * size and the concurrency curve are measured on one representative of each layer.
 */
#ifndef SERVET_PROBES_PAIRS_MESSAGES_H
#define SERVET_PROBES_PAIRS_MESSAGES_H

#include "probes/pairs/relation.h"
#include "probes/probe.h"

/* Layers from the latency of every pair (by probe_pair_index()), of which one figure deviates by
 * `spread` (cluster.h); without curves and names. 0 or -ENOMEM, -EINVAL. */
int probe_message_layers(const struct profile_set *pus, const double *pair_seconds, double spread,
                         struct profile_communication *out);

/* On `probe->machine`, which need only exchange. Result in the profile's own form. */
int probe_message(struct probe *probe, size_t message_bytes, struct profile_communication *out,
                  struct servet_error *error);
/* One pair, once, one way. 0 or the machine's -errno. */
int probe_message_pair(struct probe *probe, size_t bytes, const struct profile_pair *pair,
                       double *seconds);
void probe_message_free(struct profile_communication *result);

#endif
