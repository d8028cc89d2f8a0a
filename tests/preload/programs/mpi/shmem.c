/* An OpenSHMEM program: processing elements report as ranks. It leaves without shmem_finalize(),
 * which crashes in Debian 12's Open MPI with or without the shim. */
#include <shmem.h>

#include "../report.h"

int main(void)
{
    shmem_init();
    report_worker(shmem_my_pe(), 0);
    shmem_barrier_all();
    _exit(0);
}
