/* The ways to place ranks by their traffic. */
#ifndef SERVET_MAPPER_TRAFFIC_TRAFFIC_H
#define SERVET_MAPPER_TRAFFIC_TRAFFIC_H

#include "mapper/traffic/matrix.h"
#include "mapper/weights/view.h"

struct map_traffic {
    struct map_view *view;
    const struct map_matrix *matrix;
    const uint32_t *leaves; /* to be used, one each */
    uint32_t *place;        /* by rank: its leaf; MAP_NONE: not placed yet */
};

/* Predicted time of what the rank exchanges with ranks that are placed, if it were on `leaf`. */
double map_traffic_of_rank(const struct map_traffic *traffic, uint32_t rank, uint32_t leaf);

/* Predicted time of all messages of a complete placement. */
double map_traffic_total(const struct map_traffic *traffic);

/* Next is always the rank with the most bytes to those placed, on the free PU where that takes
 * least time; then ranks change places while that saves time. Or rank order after such changes,
 * where that is better. 0 or -ENOMEM. */
int map_place_greedily(struct map_traffic *traffic);

/* Exchanges ranks of a complete placement while it saves time. */
void map_improve_by_swaps(struct map_traffic *traffic);

extern const bool map_scotch_built;
/* By descent, each level cut by Scotch. 0, -ENOTSUP, -ENOMEM. */
int map_place_by_scotch(struct map_traffic *traffic);

/* Places ranks by who talks to whom: which rank on which of the PUs that the weights have chosen.
 *
 * The predicted time of a pair is that of one message with all its bytes, by the curve of the layer
 * between the two PUs; the total is the sum over pairs. It says how much communication a placement
 * costs, not how long the program waits.
 */

enum map_placer { MAP_RANK_ORDER, MAP_GREEDY, MAP_SCOTCH, MAP_PLACERS };
extern const char *const map_placer_names[MAP_PLACERS];

/* Some placer of this build (Scotch is optional)? */
bool map_placer_built(enum map_placer placer);

/* Places by one placer: out[r] is one of `leaves` (matrix->ranks of them) for rank r, each used
 * once. `seconds` (may be NULL) gets the predicted total. 0; -ENOTSUP (not in this build);
 * -ENOMEM. */
int map_place_ranks(struct map_view *view, enum map_placer placer, const struct map_matrix *matrix,
                    const uint32_t *leaves, uint32_t *out, double *seconds);

/* One way, seconds; where latencies are not known, layers times bytes: a weight, no time. */
double map_message_seconds(const struct map_view *view, uint32_t a, uint32_t b, double bytes);

#endif
