/* How many messages of 8 bytes a pair of ranks exchanges each second:  message_rate [SECONDS]
 *
 * As osu_mbw_mr does it: 64 non-blocking sends, then an answer. Prints messages per second, the best of the windows of
 * a tenth of a second each, which on a shared machine is the one that was disturbed least.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = 64, BYTES = 8, BURST = 100 };

static char out[BYTES], in[WINDOW][BYTES];

static void exchange(int rank)
{
    MPI_Request request[WINDOW];
    for (int i = 0; i < WINDOW; i++) {
        if (rank == 0)
            MPI_Isend(out, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request[i]);
        else
            MPI_Irecv(in[i], BYTES, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request[i]);
    }
    MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Recv(in[0], BYTES, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(out, BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1, best = 0;
    int rank, ranks, on = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) {
        fprintf(stderr, "message_rate: %d ranks, expected 2\n", ranks);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (double end = MPI_Wtime() + seconds; on;) {
        double start = MPI_Wtime(), took = 0;
        long count = 0;
        while (took < 0.1 && on) {
            for (int i = 0; i < BURST; i++)
                exchange(rank);
            count += BURST * WINDOW;
            took = MPI_Wtime() - start;
            on = took < 0.1;
            MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        best = (double)count / took > best ? (double)count / took : best;
        on = MPI_Wtime() < end;
        MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%.0f\n", best);
    MPI_Finalize();
    return 0;
}
