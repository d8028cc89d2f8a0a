/* The way of one cache line between two PUs: the latency between cores without a library and
 * without the data of a message. */
#ifndef SERVET_PROBES_PAIRS_LINES_H
#define SERVET_PROBES_PAIRS_LINES_H

#include "probes/probe.h"
#include "profile/model.h"

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

#endif
