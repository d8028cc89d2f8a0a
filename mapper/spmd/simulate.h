/* Runs an SPMD application on a machine that is only a profile: every process has its own clock,
 * every message takes what its layer says, and those that leave or enter a node go through its one
 * network interface one after the other.
 *
 * The plain application computes its tile, then exchanges with one neighbour after the other,
 * blocking. The planned one computes its edges, sends, computes the inside, waits. A model is
 * checked against what does not know of it: here processes wait for each other, which equations (1)
 * to (5) leave out.
 */
#ifndef SERVET_MAPPER_SPMD_SIMULATE_H
#define SERVET_MAPPER_SPMD_SIMULATE_H

#include "mapper/spmd/grid.h"

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
