#include "mpi_rank.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

enum { SLEEP_US = 200 };

void rank_say(const char *line)
{
    printf("%s\n", line);
    fflush(stdout);
}

void rank_wait_asleep(MPI_Request *request)
{
    int done = 0;
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done) {
        usleep(SLEEP_US);
    }
}

double rank_waited_s(void)
{
    FILE *file = fopen("/proc/thread-self/schedstat", "re");
    unsigned long long ran, waited;
    int fields = file ? fscanf(file, "%llu %llu", &ran, &waited) : 0;
    if (file) {
        fclose(file);
    }
    return fields == 2 ? (double)waited * 1e-9 : 0;
}

int rank_pin(uint32_t pu)
{
    size_t size = CPU_ALLOC_SIZE(pu + 1);
    cpu_set_t *mask = CPU_ALLOC(pu + 1);
    if (!mask) {
        return -ENOMEM;
    }
    CPU_ZERO_S(size, mask);
    CPU_SET_S(pu, size, mask);
    int rc = sched_setaffinity(0, size, mask) < 0 ? -errno : 0;
    CPU_FREE(mask);
    return rc;
}
