/* The interface of mapper/spmd/ to its own files and to the rest of the room. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapper/command/command.h"
#include "mapper/formats/formats.h"
#include "mapper/map.h"
#include "profile/base/error.h"
#include "profile/base/statistics.h"
#include "profile/query.h"

typedef unsigned long long ull; /* as printf() takes it */

/* -- model -- */

/* The task distribution model of the SPMD execution tool: how many tasks a core needs so that its
 * internal computation hides its communication, hence how many cores keep a wanted efficiency.
 *
 * Source: equations (1) to (5) and Table 1 of the paper on an efficient execution tool for SPMD
 * applications on multicore clusters. A *task* is one cell of the problem of X x Y tasks (1-D: Y =
 * 1); every process has a *tile* of X(i) x Y(i) of them and sits on a core of its own. Edge tasks
 * are those whose values a neighbouring process needs.
 *
 *   (1) TcpEdge = (X(i) Y(i) - (X(i) - Nbx) (Y(i) - Nby)) comp      (2) TcpInt = (X(i) - Nbx) (Y(i)
 *                                                                   - Nby) comp
 *   (3) Tcp = TcpEdge + TcpInt                                      (4) Tcomm - TcpInt <= TcpInt (1
 *                                                                   - Effic)
 *   (5) cores = (X / X(i)) (Y / Y(i))
 *
 * The paper leaves to its reader:
 *   time of one iteration   TcpEdge + max(TcpInt, Tcomm): edges first, internal tasks while they
 *                           travel (Figure 4)
 *   efficiency              Tcp over that time; (4) makes it 1 / (2 - Effic) or better, which is at
 *                           least Effic
 *   Tcomm                   that of the slowest of the exchanges with the neighbours, which go on
 *                           at the same time
 */

/* A process that needs a task's value: up to eight are around one. */
struct spmd_direction {
    int dx, dy; /* -1, 0, 1; not both 0 */
};

struct spmd_stencil {
    uint32_t left, right, down,
        up;        /* how far the stencil reaches: width of the halo on each side */
    bool diagonal; /* some offset has both dx and dy: corner neighbours too */
};

#define SPMD_DIRECTIONS 8

struct spmd_problem {
    uint64_t x, y; /* tasks; y = 1 in one dimension */
    struct spmd_stencil stencil;
    double comp_s;     /* of one task; > 0 */
    double bytes;      /* of one edge task's value */
    double efficiency; /* wanted, in (0, 1) */
};

struct spmd_tile {
    uint64_t x, y;     /* X(i), Y(i) */
    uint64_t n, m;     /* processes along x and along y; 0: does not divide */
    uint64_t nbx, nby; /* edge columns and rows: 0 along an axis with one process only */
};

struct spmd_times {
    double edge_s, internal_s, compute_s; /* equations (1), (2), (3) */
    double comm_s;                        /* Tcomm */
    double iteration_s;
    double speedup, efficiency; /* against the whole problem on one core */
    bool kept;                  /* constraint (4) */
    uint64_t cores;
};

/* "1d3", "2d5", "2d9", or offsets "1:0,-1:0,0:1,0:-1" (any number, dx:dy). 0; -EINVAL with what was
 * expected. */
int spmd_stencil_parse(const char *text, struct spmd_stencil *out, struct servet_error *error);

/* The directions of the neighbours that the stencil needs; returns how many. */
size_t spmd_directions(const struct spmd_stencil *stencil,
                       struct spmd_direction out[SPMD_DIRECTIONS]);

/* Tasks whose values go to the neighbour in that direction. */
uint64_t spmd_edge_tasks(const struct spmd_stencil *stencil, const struct spmd_tile *tile,
                         struct spmd_direction direction);

/* The tile of a grid of n x m processes. 0; -EINVAL where n or m do not divide the problem, or the
 * tile is so thin that a neighbour's neighbour would be needed. */
int spmd_tile_of_grid(const struct spmd_problem *problem, uint64_t n, uint64_t m,
                      struct spmd_tile *out);

/* Equations (1) to (5) for one tile and the time of its exchanges. */
struct spmd_times spmd_predict(const struct spmd_problem *problem, const struct spmd_tile *tile,
                               double comm_s);

/* Tasks of the tile's longest edge that has a neighbour. */
uint64_t spmd_longest_edge(const struct spmd_stencil *stencil, const struct spmd_tile *tile);

/* -- options -- */

/* The command line of servet-spmd, checked. */

#define SPMD_ROUNDS                                                                                \
    7 /* the fewest whose smallest and largest value hold the median with 95 % and one to spare */
#define SPMD_ROUNDS_MAX 1000

struct spmd_options {
    struct spmd_problem problem;
    double comm_s;           /* of one edge task; 0: from the profile */
    uint64_t cores;          /* 0: as the efficiency wants it */
    uint64_t tile_x, tile_y; /* 0: as the efficiency wants it */
    struct common_machine machine;
    const struct map_format *format; /* NULL: no mapping is printed */
    const char *plan;                /* file, or NULL */
    bool curve;
    const char *characterise; /* command, or NULL */
    uint64_t iterations;
    uint32_t rounds; /* of characterisation */
};

/* The options, the machine, and what was measured: the parts of servet-spmd share it. They end the
 * program with one line when something is wrong: status 2 for bad input, 1 for the rest. */
struct spmd_planner {
    struct spmd_options options;
    struct servet_profile *profile;
    struct profile_set allowed;
    struct profile_median measured; /* of an iteration */
    struct spmd_tile measured_tile; /* in tiles like this one; n 0: not measured */
};

static inline bool spmd_is_measured(const struct spmd_planner *planner,
                                    const struct spmd_tile *tile)
{
    return planner->measured_tile.n == tile->n && planner->measured_tile.m == tile->m;
}

/* -- choice -- */

struct spmd_choice {
    struct spmd_tile tile;
    struct spmd_times times;
};

/* The fastest tile for each number of cores up to cores_max that divides the problem, ascending: an
 * array to be freed. */
struct spmd_choice *spmd_curve(const struct spmd_planner *planner, uint64_t cores_max,
                               size_t *count);

/* The tile that the options ask for; else the one that keeps the efficiency with the most cores
 * (the highest speed-up); with --cores the fastest for exactly so many, whether it keeps (4) or
 * not. */
struct spmd_choice spmd_choose(const struct spmd_planner *planner);

/* -- grid -- */

/* A Cartesian grid of processes on PUs, so that as few messages as possible go over the slowest
 * links, and what the exchanges of all of them at once then take. */

/* More layers than any machine has, the network's included. */
#define SPMD_LAYERS 16

struct spmd_grid {
    struct spmd_tile tile; /* of each of tile.n x tile.m processes: rank j * n + i is at (i, j) */
    uint32_t *pus;         /* by rank: PU number of the whole machine */
    /* of one iteration, by layer as servet_message_layer() counts */
    uint64_t messages[SPMD_LAYERS];
};

/* The mapper chooses as many PUs (communication priority); they are cut into blocks along the
 * groups they lie in, and exchanges of two processes are made as long as they take messages off the
 * slowest layers. */
struct spmd_grid spmd_grid_map(const struct spmd_planner *planner, const struct spmd_tile *tile);
void spmd_grid_free(struct spmd_grid *grid);

/* Neighbour of a rank in a direction, or -1 at the border of the problem. */
int64_t spmd_neighbour(const struct spmd_grid *grid, uint64_t rank,
                       struct spmd_direction direction);

/* Layer of a message between two PUs (SPMD_LAYERS - 1 where the profile lists none), and its
 * link (may be NULL; its layer is NULL where there is none). */
size_t spmd_layer(const struct servet_profile *profile, uint32_t a, uint32_t b,
                  struct profile_link *out);

/* Seconds until the last process has what its neighbours sent it, when all send at once: per
 * message the curve of its layer, made slower as the layer's concurrency curve says for so many
 * messages. 0 where the profile has no times. */
double spmd_grid_comm(const struct spmd_planner *planner, const struct spmd_grid *grid);

/* Tcomm of a tile: --comm for each task of its longest edge; else that of its grid. */
double spmd_comm(const struct spmd_planner *planner, const struct spmd_tile *tile);

/* The grid as a mapping; map_mapping_free(). */
struct map_mapping spmd_mapping(const struct spmd_planner *planner, const struct spmd_grid *grid);

/* -- plan -- */

/* The plan of an SPMD execution as a file: grid, tile, who sits where, which tasks first, which
 * message first.
 *
 * JSON, because programs other than servet_spmd.h may want to read it:
 *   { "servet_spmd_plan": 1, "problem": [X, Y], "grid": [n, m], "tile": [x, y],
 *     "halo": {"left":, "right":, "down":, "up":}, "bytes_per_task":, "efficiency":,
 *     "predicted": {…},
 *     "ranks": [ {"rank":, "at": [i, j], "node":, "pu":, "os_index":,
 *                 "tasks": [ {"priority":, "x": [from, to], "y": [from, to]}, … ],
 *                 "messages": [ {"to":, "direction": [dx, dy], "layer":, "bytes":}, … ] } ] }
 * Tasks are in the order of computation: those that two neighbours wait for (priority 1), one
 * neighbour (2), and the inside (3). Messages are in the order of posting: the slowest layer first,
 * so that it travels longest; equal ones in turns, starting with another direction on every other
 * process, so that not all load one link at once. Ranges of tasks count within the tile and do not
 * hold `to`. */

void spmd_plan_save(const struct spmd_planner *planner, const struct spmd_times *times,
                    const struct spmd_grid *grid, const char *path);

/* -- measure -- */

/* Sets comp_s and bytes of the planner's problem and says them on stdout: medians of --rounds runs
 * of the application, in which all processes compute at once. It is cut into tiles as large and as
 * many as those that are chosen, on the PUs where they will be, and finds their plan in
 * SERVET_SPMD_PLAN: measured, chosen by what was measured, and measured again until the choice
 * stays. The cost of a task depends on both: heat transfer took 1.7 ns in tiles of 200 x 200 on two
 * PUs, which their caches hold, and 6.7 ns in tiles of 1000 x 1000.
 * Ends the program with one line when the application does not run; no file is left. */
void spmd_characterise(struct spmd_planner *planner);
