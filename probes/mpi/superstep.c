/* Supersteps between ranks: an all-to-all-v and a barrier, as in mpibench of MPIedupack. Without
 * the barrier a 0-relation would cost nothing, because libraries leave out empty messages. Single
 * words are packed one by one into what the all-to-all-v sends, and unpacked one by one into their
 * places. */
#include <math.h>
#include <mpi.h>
#include <stdlib.h>

#include "probes/mpi/mpi.h"

struct relation {
    uint32_t me, p, h;
    double *source, *packed, *arrived, *target;
    uint32_t *from_packed; /* packed[i] is source[from_packed[i]] */
    uint32_t *to_target;   /* arrived[i] belongs to target[to_target[i]] */
    int *send_count, *send_at, *receive_count, *receive_at;
};

static void *needed_memory(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

/* The first `processors` ranks, made when they are asked for the first time and then kept: all of
 * them are asked the same questions, so they make the same teams. */
static MPI_Comm team_of(uint32_t processors)
{
    enum { TAG_TEAM = 100 };
    static MPI_Comm *teams;
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!teams) {
        teams = needed_memory((size_t)size, sizeof *teams);
        for (int i = 0; i <= size; i++) {
            teams[i] = MPI_COMM_NULL;
        }
    }
    if (teams[processors] == MPI_COMM_NULL) {
        int range[1][3] = {{0, (int)processors - 1, 1}};
        MPI_Group world, members;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_range_incl(world, 1, range, &members);
        MPI_Comm_create_group(MPI_COMM_WORLD, members, TAG_TEAM, &teams[processors]);
        MPI_Group_free(&members);
        MPI_Group_free(&world);
    }
    return teams[processors];
}

/* Words that `from` sends to `to`: all in a packet to the next; else the i with destination `to`
 * are those of one remainder of p - 1. */
static int count_between(uint32_t from, uint32_t to, const struct bsp_superstep *what, uint32_t p)
{
    const uint32_t h = what->h, ahead = (to + p - from - 1) % p;
    if (p == 1 || what->packing == BSP_PACKETS) {
        return ahead == 0 ? (int)h : 0;
    }
    return from == to ? 0 : (int)(h / (p - 1) + (ahead < h % (p - 1)));
}

static void make_relation(struct relation *r, uint32_t p, const struct bsp_superstep *what,
                          int rank)
{
    uint32_t h = what->h, me = (uint32_t)rank;
    *r = (struct relation){.me = me, .p = p, .h = h};
    r->source = needed_memory(h, sizeof *r->source);
    r->packed = needed_memory(h, sizeof *r->packed);
    r->arrived = needed_memory(h, sizeof *r->arrived);
    r->target = needed_memory(bsp_target_words(h, p), sizeof *r->target);
    r->from_packed = needed_memory(h, sizeof *r->from_packed);
    r->to_target = needed_memory(h, sizeof *r->to_target);
    r->send_count = needed_memory(p, sizeof(int));
    r->send_at = needed_memory(p, sizeof(int));
    r->receive_count = needed_memory(p, sizeof(int));
    r->receive_at = needed_memory(p, sizeof(int));
    for (uint32_t i = 0; i < p; i++) {
        r->send_count[i] = count_between(me, i, what, p);
        r->receive_count[i] = count_between(i, me, what, p);
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
    int *next = needed_memory(r->p, sizeof *next);
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

double probe_superstep_play(uint32_t processors, const struct bsp_superstep *what, int rank)
{
    struct relation r;
    MPI_Comm team = team_of(processors);
    bool single_words = what->packing == BSP_WORDS;
    double best = INFINITY;
    make_relation(&r, processors, what, rank);
    if (single_words) {
        make_pattern(&r);
    }
    superstep(&r, single_words, team); /* untimed: connections and buffers are made now */
    int lost = single_words && !delivered(&r), any = 0;
    MPI_Allreduce(&lost, &any, 1, MPI_INT, MPI_MAX, team);
    for (uint32_t b = 0; b < what->batches; b++) {
        MPI_Barrier(team);
        double start = MPI_Wtime();
        for (uint32_t i = 0; i < what->supersteps; i++) {
            superstep(&r, single_words, team);
        }
        double taken = MPI_Wtime() - start, slowest;
        MPI_Allreduce(&taken, &slowest, 1, MPI_DOUBLE, MPI_MAX, team);
        best = fmin(best, slowest / (double)what->supersteps);
    }
    free_relation(&r);
    return any ? 0 : best;
}
