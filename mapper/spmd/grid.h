/* A Cartesian grid of processes on PUs, so that as few messages as possible go over the slowest
 * links, and what the exchanges of all of them at once then take.
 */
#ifndef SERVET_MAPPER_SPMD_GRID_H
#define SERVET_MAPPER_SPMD_GRID_H

#include "mapper/map.h"
#include "mapper/spmd/model.h"
#include "profile/query.h"

/* More layers than any machine has, the network's included. */
#define SPMD_LAYERS 16

struct spmd_grid {
    uint64_t n, m; /* processes along x and y; rank = j * n + i for the process at (i, j) */
    uint32_t *pus; /* by rank: PU number of the whole machine */
    uint64_t
        messages[SPMD_LAYERS]; /* of one iteration, by layer as servet_message_layer() counts */
};

void spmd_grid_free(struct spmd_grid *grid);

/* Neighbour of a rank in a direction, or -1 at the border of the problem. */
int64_t spmd_neighbour(const struct spmd_grid *grid, uint64_t rank,
                       struct spmd_direction direction);

/* Layer of a message between two PUs (SPMD_LAYERS - 1 where the profile lists none), and its
 * link (may be NULL; its layer is NULL where there is none). */
size_t spmd_layer(const struct servet_profile *profile, uint32_t a, uint32_t b,
                  struct profile_link *out);

/* The mapper chooses n m PUs (communication priority, out of `allowed` or all); the grid is cut
 * into blocks along the groups they lie in, and exchanges of two processes are made as long as they
 * take messages off the slowest layers. 0; -EINVAL (as map_workers()), -ENOMEM. */
int spmd_grid_map(const struct servet_profile *profile, const struct profile_set *allowed,
                  const struct spmd_stencil *stencil, uint64_t n, uint64_t m, struct spmd_grid *out,
                  struct servet_error *error);

/* Seconds until the last process has what its neighbours sent it, when all send at once: per
 * message the curve of its layer, made slower as the layer's concurrency curve says for so many
 * messages. 0 where the profile has no times. */
double spmd_grid_comm(const struct servet_profile *profile, const struct spmd_problem *problem,
                      const struct spmd_tile *tile, const struct spmd_grid *grid);

/* -- simulation -- */

/* Runs an SPMD application on a machine that is only a profile: every process has its own clock,
 * every message takes what its layer says, and those that leave or enter a node go through its one
 * network interface one after the other.
 *
 * The plain application computes its tile, then exchanges with one neighbour after the other,
 * blocking. The planned one computes its edges, sends, computes the inside, waits. A model is
 * checked against what does not know of it: here processes wait for each other, which equations (1)
 * to (5) leave out.
 */
struct spmd_simulation {
    bool planned;
    double comm_s; /* seconds of one edge task's communication instead of the profile's; 0: the
                      profile's */
    double noise;  /* relative deviation of every computation, one-sided */
    uint32_t iterations;
    uint64_t seed;
};

/* Seconds of one iteration, mean. 0 or -ENOMEM. */
int spmd_simulate(const struct servet_profile *profile, const struct spmd_problem *problem,
                  const struct spmd_tile *tile, const struct spmd_grid *grid,
                  const struct spmd_simulation *simulation, double *iteration_s);

#endif
