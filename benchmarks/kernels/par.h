/* The ranks and threads of a kernel: everything that it says to other processes. Work is dealt out
 * to threads by OpenMP pragmas in the kernels.
 *
 * One kernel source gives three programs:
 *   NAME_omp     par_one.c, compiled with OpenMP       1 process, many threads
 *   NAME_mpi     par_mpi.c, compiled without           many ranks of one thread
 *   NAME_hybrid  par_mpi.c, compiled with OpenMP       many ranks of many threads
 *
 * All ranks make the same calls in the same order. A failing MPI call ends the program
 * (MPI_ERRORS_ARE_FATAL). */
#pragma once

#include <stddef.h>

#ifdef _OPENMP
#include <omp.h>
#endif

void par_start(int *argc, char ***argv);
void par_finish(void);

size_t par_rank(void);
size_t par_size(void);
/* "OpenMP", "MPI", "MPI + OpenMP": of the program that this is. */
const char *par_form(void);

void par_barrier(void);

/* Sum, or maximum, over all ranks, on every rank. */
double par_sum(double value);
double par_maximum(double value);

/* Parts of different sizes of all ranks, in place: part r is bytes first[r] to first[r + 1] of
 * `all`. */
void par_gather_parts(void *all, const size_t *first);

/* Sends to the rank that is `step` (1 or -1) farther on the ring of ranks while receiving from the
 * other neighbour; on one rank a copy. */
void par_pass(int step, const void *send, void *receive, size_t bytes);

/* OpenMP threads that a parallel region gets: 1 without OpenMP. */
static inline size_t par_threads(void)
{
#ifdef _OPENMP
    return (size_t)omp_get_max_threads();
#else
    return 1;
#endif
}

/* Items of `total` that rank `rank` has when they are dealt out evenly: from *first on, *count of
 * them. */
static inline void par_share(size_t total, size_t rank, size_t *first, size_t *count)
{
    size_t each = total / par_size(), rest = total % par_size();
    *first = rank * each + (rank < rest ? rank : rest);
    *count = each + (rank < rest ? 1 : 0);
}
