/* What one layer between nodes can do: the latency by message size, and how it slows down when many
 * messages cross it at once (2010 paper, Section III-D, Figure 10). */
#ifndef SERVET_PROBES_NETWORK_CURVES_H
#define SERVET_PROBES_NETWORK_CURVES_H

#include "probes/network/layers.h"

/* Adds to every layer of `network` the curve of a representative pair from 1 B to 4 MiB, the
 * concurrency curve over 1, 2, 4 … of its pairs (PUs of the representative pair of nodes first,
 * since these share their network cards; then other nodes), and a note: where the MPI library
 * changes its protocol, how it scales, and what follows from that for many small messages. What
 * there is no time for is left out. 0 or -errno. */
int probe_survey_curves(struct survey *survey, struct profile_communication *network);

/* Sizes at which the time jumps: the curve is straight between protocols. Returns how many (at most
 * `room`). */
size_t probe_curve_switches(const struct profile_message_point *curve, size_t count,
                            uint64_t *bytes, size_t room);

/* The note on a measured layer, a new string, or NULL. */
char *probe_curve_note(const struct profile_layer *layer, uint64_t message_bytes);

#endif
