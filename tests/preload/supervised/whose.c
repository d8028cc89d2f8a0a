/* An OpenMP program that asks the kernel, not /proc, for the masks of its threads, which all live
 * at one moment: until the file $WHOSE has $WHOSE_LINES. Appends "thread JOB.RANK NUMBER PUS" for
 * each, since a launcher that passes output on may cut a line in two: JOB is $JOB, RANK the
 * argument, or the launcher's word. */
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

/* All have written theirs; after a while it is not waited for longer. */
static void wait_for_all(void)
{
    for (int i = 0, lines = 0; i < 2000 && lines < atoi(getenv("WHOSE_LINES")); i++) {
        char text[4096];
        const int in = open(getenv("WHOSE"), O_RDONLY);
        lines = 0;
        for (ssize_t got; (got = read(in, text, sizeof text)) > 0;) {
            for (ssize_t k = 0; k < got; k++) {
                lines += text[k] == '\n';
            }
        }
        close(in);
        usleep(10000);
    }
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
#pragma omp barrier
        sched_getaffinity(0, sizeof pus, &pus);
        int used = snprintf(line, sizeof line, "thread %s.%s %d", getenv("JOB"), rank,
                            omp_get_thread_num());
        for (int pu = 0; pu < 64; pu++) {
            used += CPU_ISSET(pu, &pus) ? snprintf(line + used, 8, " %d", pu) : 0;
        }
        snprintf(line + used, 2, "\n");
        if (write(out, line, strlen(line)) < 0) {
            exit(3);
        }
#pragma omp master
        wait_for_all();
#pragma omp barrier
    }
    return 0;
}
