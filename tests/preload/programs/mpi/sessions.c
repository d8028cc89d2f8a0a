/* An MPI program that never calls MPI_Init. */
#include <mpi.h>

#include "../report.h"

int main(void)
{
    MPI_Session session;
    const char *rank = getenv("PMI_RANK");
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) {
        return 4;
    }
    report_worker(rank ? atoi(rank) : 0, 0);
    MPI_Session_finalize(&session);
    return 0;
}
