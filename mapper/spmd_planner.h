/* What the parts of servet-spmd share: the options, the machine, and how the times of exchanges are found. */
#ifndef SERVET_MAPPER_SPMD_PLANNER_H
#define SERVET_MAPPER_SPMD_PLANNER_H

#include "spmd_grid.h"
#include "spmd_options.h"

struct spmd_planner {
    struct spmd_options options;
    struct servet_profile *profile;
    const struct profile_set *allowed; /* NULL: all */
    uint64_t pus;                      /* of those */
    spmd_comm_function *comm;
    void *comm_context;
};

/* All of these end the program with one line when something is wrong: status 2 for bad input, 1 for the rest. */

/* By the options; planner->options is set already. */
void spmd_planner_open(struct spmd_planner *planner);
void spmd_planner_close(struct spmd_planner *planner);

/* The tile that the options and the characterised problem ask for. */
struct spmd_choice spmd_planner_distribute(const struct spmd_planner *planner);
/* Where its processes sit; spmd_grid_free(). */
struct spmd_grid spmd_planner_grid(const struct spmd_planner *planner, const struct spmd_tile *tile);
void spmd_planner_save(const struct spmd_planner *planner, const struct spmd_choice *choice,
                       const struct spmd_grid *grid, const char *path);

_Noreturn void spmd_give_up(int rc, const struct servet_error *error);

#endif
