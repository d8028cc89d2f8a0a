/* An extension module that uses MPI: five bytes from each of three ranks to the next. */
#include <mpi.h>
#include <stddef.h>

void run(void);
void run(void)
{
    char out[5] = "five", in[5];
    int rank, ranks;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Sendrecv(out, 5, MPI_CHAR, (rank + 1) % ranks, 0, in, 5, MPI_CHAR,
                 (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
}
