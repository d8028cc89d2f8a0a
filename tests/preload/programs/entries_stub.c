/* Every entry in which a process becomes a rank, of a library that does nothing. Says that it was
 * reached, and with which mask its own threads would start. */
#include "report.h"

#define STUB(name)                                                                                 \
    int name(void *a, void *b, void *c, void *d);                                                  \
    int name(void *a, void *b, void *c, void *d)                                                   \
    {                                                                                              \
        (void)a, (void)b, (void)c, (void)d;                                                        \
        report_line("reached " #name "\n");                                                        \
        return 42;                                                                                 \
    }

STUB(MPI_Init)
STUB(PMPI_Init)
STUB(MPI_Init_thread)
STUB(PMPI_Init_thread)
STUB(mpi_init)
STUB(mpi_init_)
STUB(mpi_init__)
STUB(MPI_INIT)
STUB(mpi_init_thread)
STUB(mpi_init_thread_)
STUB(mpi_init_thread__)
STUB(MPI_INIT_THREAD)
STUB(MPI_Session_init)
STUB(PMPI_Session_init)
STUB(shmem_init)
STUB(shmem_init_thread)
STUB(start_pes)
