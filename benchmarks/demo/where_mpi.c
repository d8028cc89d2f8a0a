/* An ordinary MPI program, not linked with anything of ours: each rank runs a triad, then a message
 * goes round the ring of ranks, then who ran where. It is what ./quickstart puts behind
 * servet-pin. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "benchmarks/demo/where.h"

#define ROUNDS 1000

/* Seconds per hop of an 8-byte message that goes round the ring. */
static double ring(int rank, int size)
{
    double token = 0.0;
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < ROUNDS && size > 1; i++) {
        if (rank == 0) {
            MPI_Send(&token, 1, MPI_DOUBLE, next, 0, MPI_COMM_WORLD);
        }
        MPI_Recv(&token, 1, MPI_DOUBLE, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank != 0) {
            MPI_Send(&token, 1, MPI_DOUBLE, next, 0, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) / ((double)ROUNDS * size);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *arrays = where_arrays();
    MPI_Barrier(MPI_COMM_WORLD);
    struct where mine = where_triad(arrays);
    free(arrays);
    double hop = ring(rank, size);
    struct where *all = rank == 0 ? calloc((size_t)size, sizeof *all) : NULL;
    MPI_Gather(&mine, (int)sizeof mine, MPI_BYTE, all, (int)sizeof mine, MPI_BYTE, 0,
               MPI_COMM_WORLD);
    if (all) {
        printf("%-8s %-10s %-5s %s\n", "rank", "allowed", "ran", "triad");
        for (int i = 0; i < size; i++) {
            printf("%-8d %-10s %-5d %.1f GB/s\n", i, all[i].allowed, all[i].cpu,
                   all[i].bytes_per_s / 1e9);
        }
        printf("ring of 8-byte messages: %.2f us a hop\n", hop * 1e6);
        free(all);
    }
    MPI_Finalize();
    return 0;
}
