/* Places ranks by who talks to whom: which rank on which of the PUs that the weights have chosen.
 *
 * The predicted time of a pair is that of one message with all its bytes, by the curve of the layer between the two
 * PUs; the total is the sum over pairs. It says how much communication a placement costs, not how long the program
 * waits.
 */
#ifndef SERVET_MAPPER_TRAFFIC_H
#define SERVET_MAPPER_TRAFFIC_H

#include "matrix.h"
#include "view.h"

enum map_placer { MAP_RANK_ORDER, MAP_GREEDY, MAP_SCOTCH, MAP_PLACERS };
extern const char *const map_placer_names[MAP_PLACERS];

/* Some placer of this build (Scotch is optional)? */
bool map_placer_built(enum map_placer placer);

/* Places by one placer: out[r] is one of `leaves` (matrix->ranks of them) for rank r, each used once. `seconds` (may be
 * NULL) gets the predicted total. 0; -ENOTSUP (not in this build); -ENOMEM. */
int map_place_ranks(struct map_view *view, enum map_placer placer, const struct map_matrix *matrix,
                    const uint32_t *leaves, uint32_t *out, double *seconds);

/* One way, seconds (of a topology profile: layers times bytes). */
double map_message_seconds(const struct map_view *view, uint32_t a, uint32_t b, double bytes);

#endif
