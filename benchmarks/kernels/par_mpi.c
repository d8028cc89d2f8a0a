/* par.h for a program of MPI ranks. Counts are kept below MPI's int by sending 8-byte or larger
 * items as bytes. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

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

double par_sum(double value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

double par_maximum(double value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
}

void par_gather_parts(void *all, const size_t *first)
{
    int *counts = malloc(2 * ranks * sizeof *counts), *places = counts + ranks;
    if (!counts) {
        MPI_Abort(MPI_COMM_WORLD, 1);
        abort();
    }
    for (size_t r = 0; r < ranks; r++) {
        counts[r] = as_count(first[r + 1] - first[r]);
        places[r] = as_count(first[r]);
    }
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, places, MPI_BYTE,
                   MPI_COMM_WORLD);
    free(counts);
}

void par_pass(int step, const void *send, void *receive, size_t bytes)
{
    const int size = (int)ranks, to = ((int)rank_here + size + step) % size,
              from = ((int)rank_here + size - step) % size;
    MPI_Sendrecv(send, as_count(bytes), MPI_BYTE, to, 0, receive, as_count(bytes), MPI_BYTE, from,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
