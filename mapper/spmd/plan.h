/* How mpirun is told to put the ranks of a grid where the mapping wants them. */
#ifndef SERVET_MAPPER_SPMD_PLAN_H
#define SERVET_MAPPER_SPMD_PLAN_H

#include "mapper/formats/mapping.h"
#include "mapper/spmd/grid.h"
#include "mapper/spmd/options.h"

struct spmd_binding {
    const char *arguments[6]; /* of mpirun, ending with NULL */
    char *list;               /* PUs of one node */
    char rankfile[32];        /* several nodes: a temporary file, else "" */
};

/* Ends the program when memory or the temporary file is not to be had. */
void spmd_bind(const struct servet_profile *profile, const struct spmd_grid *grid,
               struct spmd_binding *out);
/* Removes the file. */
void spmd_unbind(struct spmd_binding *binding);

/* The plan of an SPMD execution as a file: grid, tile, who sits where, which tasks first, which
 * message first.
 *
 * JSON, because programs other than servet_spmd.h may want to read it:
 *   { "servet_spmd_plan": 1, "problem": [X, Y], "grid": [n, m], "tile": [x, y],
 *     "halo": {"left":, "right":, "down":, "up":}, "bytes_per_task":, "efficiency":, "predicted":
 *     {...},
 *     "ranks": [ {"rank":, "at": [i, j], "node":, "pu":, "os_index":,
 *                 "tasks": [ {"priority":, "x": [from, to], "y": [from, to]}, … ],     in the order
 *                                                                                      of
 *                                                                                      computation
 *                 "messages": [ {"to":, "direction": [dx, dy], "layer":, "bytes":}, … ] in the
 *                 order of posting } ] }
 * Ranges of tasks count within the tile and do not hold `to`.
 */

/* Tasks of one priority: 1 those with two external communications, 2 those with one, 3 internal
 * ones. */
struct spmd_box {
    uint64_t x0, x1, y0, y1; /* within the tile; half open */
    int priority;
};

/* At most: 4 corners, 4 sides, the inside. */
#define SPMD_BOXES 9

/* The tile of a rank cut into boxes, by priority: a side without a neighbour is internal. Returns
 * how many. */
size_t spmd_boxes(const struct spmd_problem *problem, const struct spmd_tile *tile,
                  const struct spmd_grid *grid, uint64_t rank, struct spmd_box out[SPMD_BOXES]);

struct spmd_message {
    uint64_t to;
    struct spmd_direction direction;
    size_t layer;
    double bytes;
};

/* Messages of a rank in the order in which they are to be posted: the slowest layer first, so that
 * it travels longest; equal ones in turns, starting with another direction on every other process,
 * so that not all load one link at once. Returns how many. */
size_t spmd_messages(const struct servet_profile *profile, const struct spmd_problem *problem,
                     const struct spmd_tile *tile, const struct spmd_grid *grid, uint64_t rank,
                     struct spmd_message out[SPMD_DIRECTIONS]);

/* The plan as JSON, a new string, or NULL when memory is short. */
char *spmd_plan_json(const struct servet_profile *profile, const struct spmd_problem *problem,
                     const struct spmd_choice *choice, const struct spmd_grid *grid);

/* What the parts of servet-spmd share: the options, the machine, and how the times of exchanges are
 * found. */

struct spmd_planner {
    struct spmd_options options;
    struct servet_profile *profile;
    const struct profile_set *allowed; /* NULL: all */
    uint64_t pus;                      /* of those */
    spmd_comm_function *comm;
    void *comm_context;
};

/* All of these end the program with one line when something is wrong: status 2 for bad input, 1 for
 * the rest. */

/* By the options; planner->options is set already. */
void spmd_planner_open(struct spmd_planner *planner);
void spmd_planner_close(struct spmd_planner *planner);

/* The tile that the options and the characterised problem ask for. */
struct spmd_choice spmd_planner_distribute(const struct spmd_planner *planner);
/* Where its processes sit; spmd_grid_free(). */
struct spmd_grid spmd_planner_grid(const struct spmd_planner *planner,
                                   const struct spmd_tile *tile);
void spmd_planner_save(const struct spmd_planner *planner, const struct spmd_choice *choice,
                       const struct spmd_grid *grid, const char *path);

_Noreturn void spmd_give_up(int rc, const struct servet_error *error);

#endif
