/* The ranks of a kernel: everything that it says to other processes. Threads are OpenMP pragmas in
 * the kernels.
 *
 * One kernel source gives three programs:
 *   NAME_omp     par_one.c, compiled with OpenMP       1 process, many threads
 *   NAME_mpi     par_mpi.c, compiled without           many ranks of one thread
 *   NAME_hybrid  par_mpi.c, compiled with OpenMP       many ranks of many threads
 *
 * All ranks make the same calls in the same order. A failing MPI call ends the program
 * (MPI_ERRORS_ARE_FATAL).
 */
#ifndef SERVET_BENCHMARKS_PAR_H
#define SERVET_BENCHMARKS_PAR_H

#include <stddef.h>
#include <stdint.h>

void par_start(int *argc, char ***argv);
void par_finish(void);

size_t par_rank(void);
size_t par_size(void);
/* "OpenMP", "MPI", "MPI + OpenMP": of the program that this is. */
const char *par_form(void);
/* OpenMP threads that a parallel region gets: 1 without OpenMP. */
size_t par_threads(void);

void par_barrier(void);
double par_seconds(void);

/* Sum, or maximum, over all ranks, on every rank, in place. */
void par_sum(double *values, size_t count);
void par_sum_integers(int64_t *values, size_t count);
void par_maximum(double *values, size_t count);

/* Parts of different sizes of all ranks, in place: part r is bytes first[r] to first[r + 1] of
 * `all`. */
void par_gather_parts(void *all, const size_t *first);

/* Sends to one neighbour on the ring of ranks while receiving from the other; on one rank a
 * copy. */
void par_to_next(const void *send, void *receive, size_t bytes);
void par_to_previous(const void *send, void *receive, size_t bytes);

/* Items of `total` that rank `rank` has when they are dealt out evenly: from *first on, *count of
 * them. */
void par_share(size_t total, size_t rank, size_t *first, size_t *count);

#endif
