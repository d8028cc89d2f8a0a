#include "probes/mpi/rank.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SLEEP_US = 200 };
/* Who is soon told more stays awake for so long: an order comes some 0.3 ms after the last
 * answer. */
static const double awake_s = 1e-3;

void probe_rank_say(const char *line)
{
    printf("%s\n", line);
    fflush(stdout);
}

void probe_rank_wait_asleep(MPI_Request *request)
{
    int done = 0;
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done) {
        usleep(SLEEP_US);
    }
}

void probe_rank_wait_awake(MPI_Request *request)
{
    int done = 0;
    double start = MPI_Wtime();
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done) {
        if (MPI_Wtime() - start > awake_s) {
            probe_rank_wait_asleep(request);
            return;
        }
    }
}

double probe_rank_waited_s(void)
{
    FILE *file = fopen("/proc/thread-self/schedstat", "re");
    unsigned long long ran, waited;
    int fields = file ? fscanf(file, "%llu %llu", &ran, &waited) : 0;
    if (file) {
        fclose(file);
    }
    return fields == 2 ? (double)waited * 1e-9 : 0;
}

int probe_rank_pin(uint32_t pu)
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

static bool read_team(int argc, char **argv, struct rank_team *team)
{
    return argc == 2 && profile_set_parse(argv[1], &team->pus) == 0 &&
           team->pus.count == (size_t)team->ranks;
}

int probe_rank_team_start(int *argc, char ***argv, struct rank_team *out)
{
    memset(out, 0, sizeof *out);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* mpirun may be killed without a chance to clean up */
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &out->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &out->ranks);
    if (!read_team(*argc, *argv, out)) {
        if (out->rank == 0) {
            probe_rank_say(
                "! expected one rank per PU and the list of PUs; this program is started by "
                "servet-probe");
        }
        return 2;
    }
    int failed = probe_rank_pin(out->pus.ids[out->rank]) < 0, any = 0;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (out->rank == 0) {
        char line[64];
        snprintf(line, sizeof line, any ? "! a rank cannot be pinned to its PU" : "ready %d",
                 out->ranks);
        probe_rank_say(line);
    }
    return any ? 1 : 0;
}

void probe_rank_team_end(struct rank_team *team)
{
    profile_set_free(&team->pus);
    MPI_Finalize();
}
