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
 * What the paper leaves to its reader:
 *   time of one iteration   TcpEdge + max(TcpInt, Tcomm): edges first, internal tasks while they
 *                           travel (Figure 4)
 *   efficiency              Tcp over that time; (4) makes it 1 / (2 - Effic) or better, which is at
 *                           least Effic
 *   Tcomm                   that of the slowest of the exchanges with the neighbours, which go on
 *                           at the same time
 */
#ifndef SERVET_MAPPER_SPMD_MODEL_H
#define SERVET_MAPPER_SPMD_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/base/error.h"

/* Who needs a task's value: up to eight processes around one. */
struct spmd_direction {
    int dx, dy; /* -1, 0, 1; not both 0 */
};

struct spmd_stencil {
    uint32_t left, right, down,
        up;        /* how far the stencil reaches: width of the halo on each side */
    bool diagonal; /* some offset has both dx and dy: corner neighbours too */
    bool one_dimension;
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
    double serial_s; /* the whole problem on one core */
    double speedup, efficiency;
    bool kept; /* constraint (4) */
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

/* Tcomm of a tile: from a figure for one edge task, or from the profile and a placement. Negative:
 * -errno. */
typedef double spmd_comm_function(void *context, const struct spmd_problem *problem,
                                  const struct spmd_tile *tile);

/* comm times the edge tasks of the longest edge; `context` is a double, seconds for one edge
 * task. */
double spmd_comm_per_task(void *context, const struct spmd_problem *problem,
                          const struct spmd_tile *tile);

struct spmd_choice {
    struct spmd_tile tile;
    struct spmd_times times;
};

/* The tile that keeps the efficiency with the most cores (the highest speed-up), out of those that
 * divide the problem and need at most `cores_max`; among tiles for the same number of cores the
 * fastest. With `exactly` only tiles for cores_max cores count, whether they keep (4) or not. 0;
 * -ERANGE: none keeps it (or none divides); -errno. */
int spmd_choose(const struct spmd_problem *problem, uint64_t cores_max, bool exactly,
                spmd_comm_function *comm, void *context, struct spmd_choice *out);

/* The fastest tile for each number of cores up to cores_max that divides the problem, ascending.
 * *out is to be freed. 0, -ENOMEM, -errno. */
int spmd_curve(const struct spmd_problem *problem, uint64_t cores_max, spmd_comm_function *comm,
               void *context, struct spmd_choice **out, size_t *count);

#endif
