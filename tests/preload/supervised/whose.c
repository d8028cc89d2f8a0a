/* An OpenMP program that asks the kernel, not /proc, for the masks of its threads, which all live
 * at one moment. Appends "thread RANK NUMBER PUS" for each to the file $WHOSE, since a launcher
 * that passes output on may cut a line in two: RANK is the argument, or the launcher's word. */
#include <fcntl.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *rank_of_launcher(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                        "SLURM_LOCALID", "LOCAL_RANK", "SERVET_LOCAL_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (getenv(names[i])) {
            return getenv(names[i]);
        }
    }
    return "?";
}

int main(int argc, char **argv)
{
    const char *rank = argc > 1 ? argv[1] : rank_of_launcher();
    const int out = open(getenv("WHOSE"), O_WRONLY | O_APPEND | O_CREAT, 0666);
#pragma omp parallel
    {
        char line[1024];
        cpu_set_t pus;
        CPU_ZERO(&pus);
        usleep(100000); /* no thread that lives briefly */
#pragma omp barrier
        sched_getaffinity(0, sizeof pus, &pus);
        int used = snprintf(line, sizeof line, "thread %s %d", rank, omp_get_thread_num());
        for (int pu = 0; pu < 64; pu++) {
            used += CPU_ISSET(pu, &pus) ? snprintf(line + used, 8, " %d", pu) : 0;
        }
        snprintf(line + used, 2, "\n");
        if (write(out, line, strlen(line)) < 0) {
            exit(3);
        }
#pragma omp barrier
        usleep(200000); /* and none that is gone when another rank begins */
    }
    return 0;
}
