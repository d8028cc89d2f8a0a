/* The ranks behind machine_mpi.c: one per PU, each pinned by itself, told through rank 0's standard
 * input what to do.
 *
 *     mpirun -np N servet-probe-mpi CPULIST          rank i sits on the i-th PU of CPULIST
 *     <- ready N
 *     -> BYTES ROUND_TRIPS BATCHES PAIRS a b a b …   (ranks; pairs are disjoint)
 *     <- = SECONDS … WAITED                          one way, per pair, or -1: a rank was moved off
 *                                                    its PU; then how long the ranks of the pairs
 *                                                    together were ready to run and had no PU; %a
 *     -> (end of file)                               all ranks end
 *
 * Trouble is one line "! …". Ranks that have nothing to do sleep between looks: an MPI library that
 * spins in a barrier on a PU that is not its own would be measured as a slow layer.
 */
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/mpi/rank.h"

enum { HEADER = 4, TAG_MESSAGE = 1, TAG_RESULT = 2, TAG_MORE = 3, SLEEP_US = 200 };

struct order {
    uint64_t bytes, round_trips, batches, pairs;
    uint32_t *ranks; /* 2 * pairs */
};

/* Rank 0: reads one order. False at the end of input. */
static int read_order(struct order *order, int ranks)
{
    char *line = NULL;
    size_t size = 0;
    int ok = getline(&line, &size, stdin) > 0;
    char *at = line;
    uint64_t *fields[HEADER] = {&order->bytes, &order->round_trips, &order->batches, &order->pairs};
    for (int i = 0; ok && i < HEADER; i++) {
        char *end;
        *fields[i] = strtoull(at, &end, 10);
        ok = end != at;
        at = end;
    }
    ok = ok && order->pairs > 0 && order->pairs <= (uint64_t)ranks / 2;
    for (uint64_t i = 0; ok && i < 2 * order->pairs; i++) {
        char *end;
        unsigned long rank = strtoul(at, &end, 10);
        ok = end != at && rank < (unsigned long)ranks;
        order->ranks[i] = (uint32_t)rank;
        at = end;
    }
    free(line);
    return ok;
}

static int share_order(struct order *order, int rank, int ranks)
{
    uint64_t header[HEADER] = {0};
    MPI_Request request;
    if (rank == 0 && read_order(order, ranks)) {
        memcpy(header, (uint64_t[]){order->bytes, order->round_trips, order->batches, order->pairs},
               sizeof header);
    }
    MPI_Ibcast(header, HEADER, MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
    probe_rank_wait_asleep(&request);
    order->bytes = header[0];
    order->round_trips = header[1];
    order->batches = header[2];
    order->pairs = header[3];
    if (order->pairs == 0) {
        return 0;
    }
    MPI_Ibcast(order->ranks, (int)(2 * order->pairs), MPI_UINT32_T, 0, MPI_COMM_WORLD, &request);
    probe_rank_wait_asleep(&request);
    return 1;
}

static double batch(char *buffer, int bytes, uint64_t round_trips, int partner, int first)
{
    double start = MPI_Wtime();
    for (uint64_t i = 0; i < round_trips; i++) {
        if (first) {
            MPI_Send(buffer, bytes, MPI_CHAR, partner, TAG_MESSAGE, MPI_COMM_WORLD);
        }
        MPI_Recv(buffer, bytes, MPI_CHAR, partner, TAG_MESSAGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!first) {
            MPI_Send(buffer, bytes, MPI_CHAR, partner, TAG_MESSAGE, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) / (2.0 * (double)round_trips);
}

/* Beside other pairs a pair goes on until all have their figure, so that no batch of another one is
 * measured with fewer messages on the way: then the smallest batch is as good a figure as alone.
 * The first rank sees when all are done and tells the second. */
static void keep_busy(const struct order *order, char *buffer, int partner, int first)
{
    MPI_Request all;
    char more = 1;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    while (more) {
        int done = 0;
        MPI_Test(&all, &done, MPI_STATUS_IGNORE);
        more = !done;
        if (first) {
            MPI_Send(&more, 1, MPI_CHAR, partner, TAG_MORE, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&more, 1, MPI_CHAR, partner, TAG_MORE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (more) {
            batch(buffer, (int)order->bytes, order->round_trips, partner, first);
        }
    }
    MPI_Wait(&all, MPI_STATUS_IGNORE);
}

/* The smallest batch: disturbance only lengthens. */
static double exchange(const struct order *order, int partner, int first)
{
    char *buffer = calloc(1, order->bytes);
    double least = INFINITY;
    if (!buffer) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    batch(buffer, (int)order->bytes, order->round_trips, partner, first);
    for (uint64_t i = 0; i < order->batches; i++) {
        least = fmin(least, batch(buffer, (int)order->bytes, order->round_trips, partner, first));
    }
    if (order->pairs > 1) {
        keep_busy(order, buffer, partner, first);
    }
    free(buffer);
    return least;
}

/* A rank without messages takes part in the end of those of others, asleep. */
static void stand_by(const struct order *order)
{
    MPI_Request all;
    if (order->pairs > 1) {
        MPI_Ibarrier(MPI_COMM_WORLD, &all);
        probe_rank_wait_asleep(&all);
    }
}

static void answer(const struct order *order)
{
    double all_waited = 0, seconds = 0;
    printf("=");
    for (uint64_t i = 0; i < 2 * order->pairs; i++) {
        double theirs[2];
        MPI_Request request;
        MPI_Irecv(theirs, 2, MPI_DOUBLE, (int)order->ranks[i], TAG_RESULT, MPI_COMM_WORLD,
                  &request);
        probe_rank_wait_asleep(&request);
        all_waited += theirs[1];
        if (i % 2 == 0) {
            seconds = theirs[0];
        } else {
            printf(" %a", theirs[0] < 0 ? theirs[0] : seconds);
        }
    }
    printf(" %a", all_waited);
    probe_rank_say("");
}

/* The kernel moves the processes of a PU that goes offline. */
static int is_displaced(const struct rank_team *team)
{
    return sched_getcpu() != (int)team->pus.ids[team->rank];
}

static void obey(const struct order *order, const struct rank_team *team)
{
    int rank = team->rank;
    int position = -1, done = 0;
    MPI_Request start, sent = MPI_REQUEST_NULL;
    double mine[2] = {0}; /* seconds of a message, seconds waited for the PU */
    for (uint64_t i = 0; i < 2 * order->pairs; i++) {
        position = (int)order->ranks[i] == rank ? (int)i : position;
    }
    MPI_Ibarrier(MPI_COMM_WORLD, &start);
    while (MPI_Test(&start, &done, MPI_STATUS_IGNORE), !done) {
        if (position < 0) {
            usleep(SLEEP_US); /* the others spin, so that all pairs start together */
        }
    }
    if (position >= 0) {
        mine[1] = probe_rank_waited_s();
        mine[0] = exchange(order, (int)order->ranks[position ^ 1], position % 2 == 0);
        mine[1] = probe_rank_waited_s() - mine[1];
        mine[0] = is_displaced(team) ? -1 : mine[0];
        MPI_Isend(mine, 2, MPI_DOUBLE, 0, TAG_RESULT, MPI_COMM_WORLD, &sent);
    } else {
        stand_by(order);
    }
    if (rank == 0) {
        answer(order);
    }
    probe_rank_wait_asleep(&sent);
}

int main(int argc, char **argv)
{
    struct order order = {0};
    struct rank_team team;
    int status = probe_rank_team_start(&argc, &argv, &team);
    order.ranks = calloc((size_t)team.ranks + 1, sizeof *order.ranks);
    if (!order.ranks) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    while (status == 0 && share_order(&order, team.rank, team.ranks)) {
        obey(&order, &team);
    }
    free(order.ranks);
    probe_rank_team_end(&team);
    return status;
}
