/* Four ranks and a clock that is right in a quarter of the batches: the figure of a message is the
 * same alone and beside others, or the noise of a machine alone would look like messages that
 * disturb one another. The clock is ours because the linker finds this MPI_Wtime() first. And
 * messages are sent from where a page begins, written data or not. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

#include "probes/mpi/mpi.h"

enum { RANKS = 4, BATCHES = 60, ROUND_TRIPS = 5 };
static const double tick_s = 1e-6, disturbed_tick_s = 1e-4;

double MPI_Wtime(void)
{
    static double now;
    static unsigned state = 1;
    state = state * 1103515245 + 12345;
    now += state >> 16 & 3 ? disturbed_tick_s : tick_s;
    return now;
}

enum { MESSAGE_BYTES = 64 };
static int sent, sent_inside_a_page;

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm of)
{
    sent += count == MESSAGE_BYTES;
    sent_inside_a_page += count == MESSAGE_BYTES && (uintptr_t)buffer % 4096 != 0;
    return PMPI_Send(buffer, count, type, to, tag, of);
}

static int check(const char *what, double seconds)
{
    double expected = tick_s / (2.0 * ROUND_TRIPS);
    if (fabs(seconds - expected) <= 1e-6 * expected) {
        return 0;
    }
    fprintf(stderr, "test_ranks: a message %s takes %g s, expected %g\n", what, seconds, expected);
    return 1;
}

static int lead(struct ranks *ranks)
{
    const struct profile_pair pairs[] = {{1, 2}, {3, 0}};
    struct machine machine;
    double seconds[2];
    int status = 0;
    probe_ranks_machine(ranks, &machine);
    for (size_t i = 0; i < 4; i++) {
        const size_t count = 1 + i % 2;
        const struct machine_exchange what = {MESSAGE_BYTES, ROUND_TRIPS, BATCHES, i >= 2};
        int rc = machine.ops->exchange(&machine, &what, pairs, count, seconds);
        status |= rc < 0;
        for (size_t k = 0; k < count && rc == 0; k++) {
            status |= check(count == 1 ? "alone" : "beside another", seconds[k]);
        }
    }
    probe_ranks_dismiss(ranks, status);
    profile_set_free(&machine.pus);
    return status;
}

int main(int argc, char **argv)
{
    static struct rank_info info[RANKS];
    struct ranks ranks = {.size = RANKS, .patient = true, .info = info};
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < RANKS; i++) {
        info[i].pu = -1;
    }
    int status = size != RANKS ? 2 : ranks.rank ? probe_ranks_obey(&ranks) : lead(&ranks);
    if (!sent || sent_inside_a_page) {
        fprintf(stderr,
                "test_ranks: %d of %d messages were not sent from the beginning of a page\n",
                sent_inside_a_page, sent);
        status = 1;
    }
    MPI_Finalize();
    return status;
}
