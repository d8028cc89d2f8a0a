/* clang-format off */
/* Runs the plan of servet-spmd inside an MPI application: edge tasks first, internal tasks while
 * the edges travel.
 *
 *     servet_spmd *plan;
 *     if (servet_spmd_open(NULL, MPI_COMM_WORLD, sizeof(double), &plan, line, sizeof line) < 0) {
 *         fprintf(stderr, "%s\n", line);
 *         exit(2);
 *     }
 *     const struct servet_spmd_layout *t = servet_spmd_layout(plan);
 *     double *now = calloc(t->stride * t->rows, sizeof *now);
 *     double *next = calloc(t->stride * t->rows, sizeof *next);
 *     ...
 *     servet_spmd_exchange(plan, now);                       the halo of the first array
 *     for (k = 0; k < iterations; k++) {
 *         servet_spmd_step(plan, next, compute, &fields);    calls compute() box by box, exchanges
 *                                                            next's edges
 *         swap(now, next);
 *     }
 *     servet_spmd_close(plan);
 *
 *     mpicc app.c $(pkg-config --cflags --libs servet-spmd)  of the MPI that Servet was built with
 *
 * An array has `rows` rows of `stride` tasks: the tile with its halo around it. Task (x, y) of the
 * tile, both counted from 0, is at ((y + down) * stride + x + left). Where there is no neighbour
 * the halo is the application's (border values), and is never written to.
 *
 * Communication is non-blocking; between slices of the internal tasks the library gives MPI a
 * chance to go on. The paper has a second thread in every process for it; that would take a core
 * from the computation, or share one with it, and asks MPI_THREAD_MULTIPLE of every application.
 *
 * Source: the scheduling phase of the SPMD execution tool (Section 3.4 and Figure 4). */
/* clang-format on */
#ifndef SERVET_MAPPER_SPMD_LIBRARY_SERVET_SPMD_H
#define SERVET_MAPPER_SPMD_LIBRARY_SERVET_SPMD_H

#include <mpi.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct servet_spmd servet_spmd;

struct servet_spmd_layout {
    size_t problem_x, problem_y;  /* tasks of the whole problem */
    size_t n, m;                  /* processes along x and along y */
    size_t i, j;                  /* this one */
    size_t x, y;                  /* tasks of its tile */
    size_t left, right, down, up; /* halo */
    size_t stride, rows;          /* x + left + right, y + down + up */
};

/* Tasks x0 <= x < x1, y0 <= y < y1 of the tile. */
struct servet_spmd_box {
    size_t x0, x1, y0, y1;
    int priority; /* 1: two neighbours wait for them, 2: one does, 3: none */
};

/* Computes the tasks of the box. It writes the `next` of servet_spmd_step(); what it reads
 * must not be. */
typedef void servet_spmd_compute(void *context, const struct servet_spmd_box *box);

/* Reads the plan in the file `path` (NULL: $SERVET_SPMD_PLAN) on every rank of `comm`; `bytes` is
 * the size of one task's value. Collective. 0; -1 on all ranks when it cannot be read, is no plan,
 * or is one for another number of processes: `error` (size bytes) then says which and what was
 * expected, in one line. */
int servet_spmd_open(const char *path, MPI_Comm comm, size_t bytes, servet_spmd **plan, char *error,
                     size_t size);
void servet_spmd_close(servet_spmd *plan);

const struct servet_spmd_layout *servet_spmd_layout(const servet_spmd *plan);

/* Fills the halo of `array` from the neighbours. Blocks. MPI_SUCCESS or MPI's error. */
int servet_spmd_exchange(servet_spmd *plan, void *array);

/* One iteration: computes the edge tasks of `next`, sends them, computes the internal tasks while
 * they travel, and fills the halo of `next`. MPI_SUCCESS or MPI's error.
 *
 * Edges apart from the rest cost something (in tiles of 200 x 200 doubles 7 %), and where they
 * travel in no time nothing is gained for it. So the first 30 steps compute the edges first and the
 * whole tile (one box, priority 1) by turns, and from then on all ranks keep the order that was
 * faster. Every rank must make as many steps. */
int servet_spmd_step(servet_spmd *plan, void *next, servet_spmd_compute *compute, void *context);

#ifdef __cplusplus
}
#endif

#endif
