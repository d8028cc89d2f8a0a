/* Messages between PUs have a latency and a bandwidth by their size. Pairs of one latency are a
 * layer; each layer has a curve by message size and one by messages at the same time, measured on a
 * representative (2010 paper, Section III-D).
 *
 * Every pair that is sampled (sampling.c) exchanges messages of the size of the L1 cache. The
 * smaller figure of two sweeps counts; more sweeps follow until the two smallest figures agree.
 * Latencies are clustered (layers.h) to layers, fastest first; a layer's groups are of PUs that are
 * that near or nearer where that is transitive, single pairs otherwise. */
#pragma once

#include "probes/probe.h"
#include "profile/codec/codec.h"
#include "profile/model.h"

/* The size of messages where none is asked for: that of the class' first level. */
size_t probe_message_usual_bytes(const struct profile_class *node_class);

/* On `probe->machine`, which need only exchange. Result in the profile's own form. */
int probe_message(struct probe *probe, size_t message_bytes, struct profile_communication *out,
                  struct servet_error *error);
/* Looks at each layer, the first one among them: nine runs of ten are then covered
 * (tests/probes/test_looks.c). */
enum { PROBE_MESSAGE_LOOKS = 4 };
/* Looks once more, later, at the representative of each layer and its curve
 * (probe_repeat_look_again()): within one burst, or one start of an MPI library, figures agree that
 * differ twofold from run to run. 0, or the machine's -errno with one line in `error`. */
int probe_message_look_again(struct probe *probe, struct profile_communication *result,
                             struct servet_error *error);
/* Batches of one exchange, of which the fastest counts. */
enum { PROBE_MESSAGE_BATCHES = 5 };
/* What is as long as a time slice of the scheduler is more often disturbed, not more exact: a batch
 * takes at most about so long. */
#define PROBE_MESSAGE_BATCH_S 0.002

/* Into `layer`: its curve by message size, on the pair, and that of so many bytes by messages at a
 * time, on the first 1, 2, 4 ... of the pairs. They end where the probe is late. 0 or -errno. */
int probe_message_curves(struct probe *probe, size_t bytes, const struct profile_pair *pair,
                         const struct profile_pair *pairs, size_t count,
                         struct profile_layer *layer);
/* One pair, once, one way. 0 or the machine's -errno. */
int probe_message_pair(struct probe *probe, size_t bytes, const struct profile_pair *pair,
                       double *seconds);

/* -- the way of one cache line between two PUs: the latency between cores without a library and
 * without the data of a message (lines.c) -- */

/* One way of one cache line between PUs: of up to eight pairs of each layer of `communication`,
 * and with probe->exhaustive of all. Sets line_seconds and line_quality of the layers, and
 * line_times. Called once more, later, it looks again at the same pairs
 * (probe_repeat_look_again()). On `probe->machine`, which hands over lines and not messages of a
 * library. 0, or the machine's -errno with one line in `error`. */
int probe_lines(struct probe *probe, struct profile_communication *communication,
                struct servet_error *error);
/* Moves the lines of pairs to other layers of the same PUs, found by other messages: a layer of
 * `to` gets the median of its own pairs, with the least repetitions and the widest spread of the
 * layers that they were measured for; a layer without a measured pair gets none. 0 or -ENOMEM. */
int probe_lines_move(struct profile_communication *from, struct profile_communication *to);
