/* What this rank has sent to whom, in bytes and messages.
 *
 * A message is what one call hands over, whatever the library makes of it. The bytes of a
 * collective are laid to pairs by what has to get from one rank's memory into another's, not by the
 * algorithm that the library happens to choose:
 *
 *   Bcast, Scatter(v)        from the root to each other rank, what that rank receives
 *   Gather(v), Reduce        from each other rank to the root, what it contributes
 *   Allgather(v)             from each rank to each other one, what it contributes
 *   Alltoall(v,w)            from each rank to each other one, what is meant for it
 *   Reduce_scatter(_block)   from each rank to each other one, the part that the other keeps
 *   Allreduce of n bytes     from each rank of P to each other one 2n/P: a reduce-scatter and an
 *                            allgather, which is the least that can be sent; summed up over all
 *                            calls and then divided
 *   Scan, Exscan             from each rank to the next
 *   Neighbor_*               from each rank to its neighbours
 *   Barrier                  nothing
 *
 * A rank's own part of a collective is left out. Calls that send the same to every other rank cost
 * one addition; they are spread over the ranks when the communicator ends or at MPI_Finalize.
 */
#ifndef SERVET_PRELOAD_TRACE_COUNT_H
#define SERVET_PRELOAD_TRACE_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/trace/mpi.h"

struct trace_peer {
    uint64_t bytes, messages;
};

/* Whom the ranks of a communicator (of an intercommunicator: of the other side) or of a window
 * are. */
struct trace_group {
    trace_word handle; /* 0: freed */
    int32_t size;
    int32_t me;     /* this process's rank among them, -1: it is not one */
    bool inter;     /* an intercommunicator */
    int32_t *world; /* rank in MPI_COMM_WORLD by rank here, -1: outside of it; NULL: the same */
    int32_t *neighbours;
    int32_t neighbour_count;   /* -1: not asked yet */
    struct trace_peer each;    /* sent to every other one */
    struct trace_peer reduced; /* bytes and calls of Allreduce */
};

/* One rank's side of the counts: `sent` and `got` by rank in MPI_COMM_WORLD; entry `ranks` is all
 * others. */
struct trace_counts {
    int32_t ranks, rank;
    bool multiple; /* threads may count at the same time */
    struct trace_peer *sent;
    struct trace_peer *got; /* fetched by MPI_Get and the like: sent by the other one */
    uint64_t largest;       /* bytes of the largest single message */
    uint64_t lost;          /* calls on communicators that could not be resolved */
};

extern struct trace_counts pin_trace_counts;

/* The communicator and type of the latest message, which most often are those of the next one: what
 * is needed to count that without a search or a call. Only for programs in which no two threads are
 * in MPI at the same time. */
struct trace_recent {
    trace_word comm, type; /* as trace_handle() gives them */
    trace_word mask;       /* the part of a handle that counts */
    uint32_t size;         /* ranks of the communicator; 0: nothing is counted by this */
    uint64_t type_size;
    const int32_t *world; /* of the communicator's struct trace_group */
};

extern struct trace_recent pin_trace_recent;

/* Remembers them, if they may be: the type is predefined, one thread at a time is in MPI. */
void pin_trace_recent_set(const struct trace_group *group, trace_word type);

/* Counts a message if its communicator and type are the recent ones. False: it did not. */
static inline bool trace_recent_count(trace_word comm, int32_t peer, int64_t count, trace_word type)
{
    if ((((comm ^ pin_trace_recent.comm) | (type ^ pin_trace_recent.type)) &
         pin_trace_recent.mask) ||
        (uint32_t)peer >= pin_trace_recent.size || count < 0) {
        return false;
    }
    int32_t rank = pin_trace_recent.world[peer];
    if (__builtin_expect(rank < 0, 0)) {
        return false;
    }
    uint64_t bytes = (uint64_t)count * pin_trace_recent.type_size;
    pin_trace_counts.sent[rank].bytes += bytes;
    pin_trace_counts.sent[rank].messages++;
    if (__builtin_expect(bytes > pin_trace_counts.largest, 0)) {
        pin_trace_counts.largest = bytes;
    }
    return true;
}

/* Room for the counts of `ranks` ranks. 0, -ENOMEM. */
int pin_trace_count_begin(int32_t rank, int32_t ranks, bool multiple);

/* Bytes of `count` elements; 0 for a type that the library refuses. */
uint64_t pin_trace_bytes(int64_t count, trace_word type);

void pin_trace_count_to(const struct trace_group *group, int32_t peer, uint64_t bytes);
void pin_trace_count_from(const struct trace_group *group, int32_t peer, uint64_t bytes);
void pin_trace_count_each(struct trace_group *group, uint64_t bytes);
void pin_trace_count_reduced(struct trace_group *group, uint64_t bytes);

/* Lays what went to every other one to the single ranks, once. */
void pin_trace_count_spread(struct trace_group *group);

/* The communicators and windows that the program sends on, by handle. */

/* The communicator's or window's ranks, asked of the library at its first use and kept until it is
 * freed. NULL: it cannot be resolved (counted as lost). */
struct trace_group *pin_trace_group_of_comm(trace_word comm);
struct trace_group *pin_trace_group_of_window(trace_word window);

/* Neighbours in the communicator's topology are filled in; 0 of them without one. */
void pin_trace_group_find_neighbours(struct trace_group *group);

/* The handle is about to be freed: it may stand for another one soon. */
void pin_trace_group_forget(trace_word handle);

/* pin_trace_count_spread() for all. */
void pin_trace_groups_spread(void);

/* How many threads may be inside at once is unknown: the first call makes MPI_COMM_WORLD's. 0,
 * -ENOMEM. */
int pin_trace_groups_begin(void);

#endif
