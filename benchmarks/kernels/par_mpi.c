/* par.h for a program of MPI ranks. Counts are kept below MPI's int by sending 8-byte or larger
 * items as bytes. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/kernels/par.h"

static size_t rank_here, ranks;

void par_start(int *argc, char ***argv)
{
    int level, rank, size;
    /* Only the thread that runs main() talks to MPI. */
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rank_here = (size_t)rank;
    ranks = (size_t)size;
}

void par_finish(void)
{
    MPI_Finalize();
}

size_t par_rank(void)
{
    return rank_here;
}

size_t par_size(void)
{
    return ranks;
}

const char *par_form(void)
{
#ifdef _OPENMP
    return "MPI + OpenMP";
#else
    return "MPI";
#endif
}

void par_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static int as_count(size_t count)
{
    if (count > INT_MAX) {
        fprintf(stderr, "a message of %zu items is more than MPI counts to: use more ranks\n",
                count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return (int)count;
}

void par_sum(double *values, size_t count)
{
    MPI_Allreduce(MPI_IN_PLACE, values, as_count(count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

void par_sum_integers(int64_t *values, size_t count)
{
    MPI_Allreduce(MPI_IN_PLACE, values, as_count(count), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}

void par_maximum(double *values, size_t count)
{
    MPI_Allreduce(MPI_IN_PLACE, values, as_count(count), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

/* Counts and places of parts as MPI wants them: one array of 2 x ranks. */
static int *parts_of(const size_t *first)
{
    int *parts = malloc(2 * ranks * sizeof *parts);
    if (!parts) {
        MPI_Abort(MPI_COMM_WORLD, 1);
        abort();
    }
    for (size_t r = 0; r < ranks; r++) {
        parts[r] = as_count(first[r + 1] - first[r]);
        parts[ranks + r] = as_count(first[r]);
    }
    return parts;
}

void par_gather_parts(void *all, const size_t *first)
{
    int *parts = parts_of(first);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, parts, parts + ranks, MPI_BYTE,
                   MPI_COMM_WORLD);
    free(parts);
}

static void to_neighbour(const void *send, void *receive, size_t bytes, size_t to, size_t from)
{
    MPI_Sendrecv(send, as_count(bytes), MPI_BYTE, (int)to, 0, receive, as_count(bytes), MPI_BYTE,
                 (int)from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void par_to_next(const void *send, void *receive, size_t bytes)
{
    to_neighbour(send, receive, bytes, (rank_here + 1) % ranks, (rank_here + ranks - 1) % ranks);
}

void par_to_previous(const void *send, void *receive, size_t bytes)
{
    to_neighbour(send, receive, bytes, (rank_here + ranks - 1) % ranks, (rank_here + 1) % ranks);
}
