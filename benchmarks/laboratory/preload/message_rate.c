/* How many messages of 8 bytes a pair of ranks exchanges each second:
 *
 *     message_rate [SECONDS]        two ranks
 *     message_rate alone WINDOWS    one rank, which sends to itself: always the same instructions,
 *                                   to be counted
 *
 * As osu_mbw_mr does it: 64 non-blocking sends, then an answer. Prints messages per second, the
 * best of the bursts, which on a shared machine is the one that was disturbed least. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, BYTES = 8, BURST = 100 };
#define BURST_S 0.02 /* as long as an undisturbed stretch is likely to be where other work runs */

static char out[BYTES], in[WINDOW][BYTES];

static void exchange(int rank)
{
    MPI_Request request[WINDOW];
    for (int i = 0; i < WINDOW; i++) {
        if (rank == 0) {
            MPI_Isend(out, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request[i]);
        } else {
            MPI_Irecv(in[i], BYTES, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request[i]);
        }
    }
    MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
    if (rank == 0) {
        MPI_Recv(in[0], BYTES, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(out, BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
}

/* Two ranks in turn wait for each other by the number of instructions that chance wants; one alone
 * does not. */
__attribute__((noinline)) static void exchange_alone(long windows)
{
    MPI_Request request[2 * WINDOW];
    for (long w = 0; w < windows; w++) {
        for (int i = 0; i < WINDOW; i++) {
            MPI_Irecv(in[i], BYTES, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request[i]);
        }
        for (int i = 0; i < WINDOW; i++) {
            MPI_Isend(out, BYTES, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request[WINDOW + i]);
        }
        MPI_Waitall(2 * WINDOW, request, MPI_STATUSES_IGNORE);
    }
}

static double burst(int rank)
{
    double start = MPI_Wtime(), took = 0;
    long count = 0;
    for (int on = 1; on;) {
        for (int i = 0; i < BURST; i++) {
            exchange(rank);
        }
        count += BURST * WINDOW;
        took = MPI_Wtime() - start;
        on = took < BURST_S;
        MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return (double)count / took;
}

static void measure(double seconds, int rank)
{
    double best = 0;
    int on = 1;
    for (double end = MPI_Wtime() + seconds; on;) {
        double rate = burst(rank);
        best = rate > best ? rate : best;
        on = MPI_Wtime() < end;
        MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        printf("%.0f\n", best);
    }
}

int main(int argc, char **argv)
{
    int rank, ranks, alone = argc > 2 && strcmp(argv[1], "alone") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2 - alone) {
        fprintf(stderr, "message_rate: %d ranks, expected %d\n", ranks, 2 - alone);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (alone) {
        exchange_alone(atol(argv[2]));
    } else {
        measure(argc > 1 ? atof(argv[1]) : 1, rank);
    }
    MPI_Finalize();
    return 0;
}
