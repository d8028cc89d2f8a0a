/* What placements are worth on the machines of the 2012 mapping paper, predicted from their
 * profiles: like its Figures 2 to 5, but predictions of the profile's model, not measurements.
 *
 * Memory: a worker that is one of k in a group of a memory overhead level gets at most the k-th
 * part of what that group gives together (its scaling curve; without one, what two colliding
 * workers get together), and never more than the reference bandwidth. The bandwidth of a placement
 * is the sum over its workers.
 * Messages: the one-way time of a message of the profile's message_bytes, from each worker to the
 * next (a ring), and between all pairs; both as means.
 */
#ifndef SERVET_BENCH_PREDICT_H
#define SERVET_BENCH_PREDICT_H

#include <jansson.h>
#include <stdio.h>

#include "profile/model.h"

struct prediction {
    double bytes_per_s;  /* of all workers together */
    double ring_seconds; /* mean over neighbours; 0 with one worker */
    double pair_seconds; /* mean over pairs */
    uint32_t nodes;      /* that have a worker */
};

/* The placement of workers[count] (PU numbers). 0, -EINVAL (a PU that the profile does not know),
 * -ENOMEM. */
int predict_placement(const struct servet_profile *profile, const uint32_t *workers, size_t count,
                      struct prediction *out);

/* The default of the paper's clusters: the fewest nodes, and in them the PUs by OS index. `out` has
 * room for count. 0 or -ERANGE (more workers than PUs). */
int predict_default(const struct servet_profile *profile, size_t count, uint32_t *out);

/* The profile of a cluster of one class with `nodes` nodes instead of its own, in one network
 * layer. 0, -EINVAL, -ENOMEM. */
int predict_enlarge(struct servet_profile *profile, uint32_t nodes);

/* All figures: a table on `out`, numbers into a new *json, and figure-2.svg … figure-5.svg into
 * `folder` unless NULL.
 */
void predict_figures(FILE *out, const char *folder, json_t **json);

#endif
