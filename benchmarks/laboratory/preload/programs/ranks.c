/* ranks: MPI ranks that meet often. In `taskset -c 0 mpirun -n 2 ranks` Open MPI binds the ranks
 * beyond its own mask, so that each has a PU. Prints the seconds, and where the ranks ended. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>

enum { MEETINGS = 500, STEPS = 20000 };

int main(int argc, char **argv)
{
    int rank;
    double x = 1, y;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double begun = MPI_Wtime();
    for (int i = 0; i < MEETINGS; i++) {
        for (int k = 0; k < STEPS; k++) {
            x += k * 1e-9;
        }
        MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        x = y * .5;
    }
    fprintf(stderr, "rank %d on PU %d\n", rank, sched_getcpu());
    if (rank == 0) {
        printf("%.4f\n", MPI_Wtime() - begun);
    }
    MPI_Finalize();
    return 0;
}
