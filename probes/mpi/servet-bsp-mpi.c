/* The ranks behind bsp_mpi.c: one per PU, each pinned by itself, told through rank 0's standard
 * input what to do.
 *
 *     mpirun -np N servet-bsp-mpi CPULIST            rank i sits on the i-th PU of CPULIST
 *     <- ready N
 *     -> PROCESSORS H PACKING SUPERSTEPS BATCHES     ranks below PROCESSORS; PACKING 0 words, 1
 *                                                    packets
 *     <- = SECONDS                                   of one superstep in the fastest batch, %a
 *     -> (end of file)                               all ranks end
 *
 * Trouble is one line "! …". A superstep is an all-to-all-v and a barrier, as in mpibench of
 * MPIedupack; without the barrier a 0-relation would cost nothing, because libraries leave out
 * empty messages. Single words are packed one by one into what the all-to-all-v sends, and unpacked
 * one by one into their places.
 */
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/bsp/machine.h"
#include "probes/mpi/rank.h"

enum { FIELDS = 5 };

struct order {
    uint64_t processors, h, packing, supersteps, batches;
};

struct team {
    MPI_Comm comm; /* ranks below `processors`; MPI_COMM_NULL for the others */
    uint64_t processors;
};

struct relation {
    uint32_t me, p, h;
    double *source, *packed, *arrived, *target;
    uint32_t *from_packed; /* packed[i] is source[from_packed[i]] */
    uint32_t *to_target;   /* arrived[i] belongs to target[to_target[i]] */
    int *send_count, *send_at, *receive_count, *receive_at;
};

static void *needed(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static int read_order(struct order *order, int ranks)
{
    char *line = NULL;
    size_t size = 0;
    uint64_t *fields = &order->processors;
    int ok = getline(&line, &size, stdin) > 0;
    char *at = line;
    for (int i = 0; ok && i < FIELDS; i++) {
        char *end;
        fields[i] = strtoull(at, &end, 10);
        ok = end != at;
        at = end;
    }
    free(line);
    return ok && order->processors >= 1 && order->processors <= (uint64_t)ranks &&
           order->h <= INT32_MAX / 8;
}

/* Ranks outside of the team stay asleep: awake they would disturb what it measures. */
static int share_order(struct order *order, int rank, int ranks, const struct team *team)
{
    MPI_Request request;
    if (rank == 0 && !read_order(order, ranks)) {
        order->processors = 0;
    }
    MPI_Ibcast(order, FIELDS, MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
    if (team->comm == MPI_COMM_NULL) {
        probe_rank_wait_asleep(&request);
    } else {
        probe_rank_wait_awake(&request);
    }
    return order->processors > 0;
}

static void form_team(struct team *team, uint64_t processors, int rank)
{
    if (team->processors == processors) {
        return;
    }
    if (team->comm != MPI_COMM_NULL) {
        MPI_Comm_free(&team->comm);
    }
    MPI_Comm_split(MPI_COMM_WORLD, (uint64_t)rank < processors ? 0 : MPI_UNDEFINED, rank,
                   &team->comm);
    team->processors = processors;
}

/* Words that `from` sends to `to`: the i with destination `to` are those of one remainder of p -
 * 1. */
static int count_between(uint32_t from, uint32_t to, uint32_t h, uint32_t p)
{
    if (p == 1) {
        return (int)h;
    }
    if (from == to) {
        return 0;
    }
    uint32_t remainder = (to + p - from - 1) % p;
    return (int)(h / (p - 1) + (remainder < h % (p - 1)));
}

static void make_relation(struct relation *r, const struct order *order, int rank)
{
    uint32_t p = (uint32_t)order->processors, h = (uint32_t)order->h, me = (uint32_t)rank;
    *r = (struct relation){.me = me, .p = p, .h = h};
    r->source = needed(h, sizeof *r->source);
    r->packed = needed(h, sizeof *r->packed);
    r->arrived = needed(h, sizeof *r->arrived);
    r->target = needed(bsp_target_words(h, p), sizeof *r->target);
    r->from_packed = needed(h, sizeof *r->from_packed);
    r->to_target = needed(h, sizeof *r->to_target);
    r->send_count = needed(p, sizeof(int));
    r->send_at = needed(p, sizeof(int));
    r->receive_count = needed(p, sizeof(int));
    r->receive_at = needed(p, sizeof(int));
    for (uint32_t i = 0; i < p; i++) {
        bool packet = order->packing == BSP_PACKETS;
        r->send_count[i] = packet ? (i == (me + 1) % p ? (int)h : 0) : count_between(me, i, h, p);
        r->receive_count[i] =
            packet ? (i == (me + p - 1) % p ? (int)h : 0) : count_between(i, me, h, p);
        r->send_at[i] = i ? r->send_at[i - 1] + r->send_count[i - 1] : 0;
        r->receive_at[i] = i ? r->receive_at[i - 1] + r->receive_count[i - 1] : 0;
    }
}

static void free_relation(struct relation *r)
{
    void *all[] = {r->source,    r->packed,     r->arrived, r->target,        r->from_packed,
                   r->to_target, r->send_count, r->send_at, r->receive_count, r->receive_at};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]);
    }
}

/* Where each word goes, word by word: source order is cyclic over the destinations, packed order is
 * by destination. */
static void make_pattern(struct relation *r)
{
    int *next = needed(r->p, sizeof *next);
    for (uint32_t i = 0; i < r->h; i++) {
        uint32_t to = bsp_destination(r->me, i, r->p);
        r->from_packed[r->send_at[to] + next[to]++] = i;
        r->source[i] = i;
    }
    for (uint32_t from = 0; from < r->p; from++) {
        int arrived = 0;
        for (uint32_t i = 0; i < r->h && arrived < r->receive_count[from]; i++) {
            if (bsp_destination(from, i, r->p) == r->me) {
                r->to_target[r->receive_at[from] + arrived++] =
                    bsp_destination_index(from, i, r->p);
            }
        }
    }
    free(next);
}

static void superstep(struct relation *r, bool single_words, MPI_Comm comm)
{
    for (uint32_t i = 0; single_words && i < r->h; i++) {
        r->packed[i] = r->source[r->from_packed[i]];
    }
    MPI_Alltoallv(r->packed, r->send_count, r->send_at, MPI_DOUBLE, r->arrived, r->receive_count,
                  r->receive_at, MPI_DOUBLE, comm);
    for (uint32_t i = 0; single_words && i < r->h; i++) {
        r->target[r->to_target[i]] = r->arrived[i];
    }
    MPI_Barrier(comm);
}

/* Every word was put where the sender meant it: checked once, so that no library is praised for
 * losing words. */
static bool delivered(const struct relation *r)
{
    for (uint32_t from = 0; from < r->p; from++) {
        for (uint32_t i = 0; i < r->h; i++) {
            bool mine = bsp_destination(from, i, r->p) == r->me;
            if (mine && r->target[bsp_destination_index(from, i, r->p)] < i) {
                return false;
            }
        }
    }
    return true;
}

static void obey(const struct order *order, const struct team *team, int rank)
{
    struct relation r;
    bool single_words = order->packing == BSP_WORDS;
    double best = INFINITY;
    make_relation(&r, order, rank);
    if (single_words) {
        make_pattern(&r);
    }
    superstep(&r, single_words, team->comm); /* untimed: connections and buffers are made now */
    int lost = single_words && !delivered(&r), any = 0;
    MPI_Allreduce(&lost, &any, 1, MPI_INT, MPI_MAX, team->comm);
    for (uint64_t b = 0; b < order->batches; b++) {
        MPI_Barrier(team->comm);
        double start = MPI_Wtime();
        for (uint64_t i = 0; i < order->supersteps; i++) {
            superstep(&r, single_words, team->comm);
        }
        double taken = MPI_Wtime() - start, slowest;
        MPI_Allreduce(&taken, &slowest, 1, MPI_DOUBLE, MPI_MAX, team->comm);
        best = fmin(best, slowest / (double)order->supersteps);
    }
    free_relation(&r);
    if (rank == 0) {
        char line[64];
        snprintf(line, sizeof line, any ? "! words were lost" : "= %a", best);
        probe_rank_say(line);
    }
}

int main(int argc, char **argv)
{
    struct order order = {0};
    struct rank_team world;
    struct team team = {.comm = MPI_COMM_NULL};
    int status = probe_rank_team_start(&argc, &argv, &world);
    while (status == 0 && share_order(&order, world.rank, world.ranks, &team)) {
        form_team(&team, order.processors, world.rank);
        if (team.comm != MPI_COMM_NULL) {
            obey(&order, &team, world.rank);
        }
    }
    if (team.comm != MPI_COMM_NULL) {
        MPI_Comm_free(&team.comm);
    }
    probe_rank_team_end(&world);
    return status;
}
