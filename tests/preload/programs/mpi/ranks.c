/* An MPI program; compiled with OpenMP it is a hybrid one. */
#include <mpi.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "../report.h"

int main(int argc, char **argv)
{
    int rank, sum = 0, provided;
    if (argc > 1 && strcmp(argv[1], "plain") == 0) {
        MPI_Init(&argc, &argv);
    } else {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#ifdef _OPENMP
#pragma omp parallel
    {
        report_worker(rank, omp_get_thread_num());
        report_line("place %d %d %d\n", rank, omp_get_thread_num(), omp_get_place_num());
    }
    report_count(rank, omp_get_num_procs());
#else
    report_worker(rank, 0);
#endif
    report_masks(rank);
    int mine = rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    report_count(rank, sum);
    MPI_Finalize();
    return 0;
}
