/* The tracer: counts of messages between ranks, the files that they are written to, and the
 * verdict. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/base/next.h"
#include "preload/base/order.h"
#include "preload/place/launcher.h"
#include "preload/place/options.h"
#include "preload/place/priority_cache.h"

/* -- mpi -- */

/* The MPI library of the program, as it is found at run time: its functions by name, its constants
 * by whose it is.
 *
 * Nothing of MPI is known when this is compiled. A handle (communicator, data type, request,
 * window) is an integer in MPICH and everything derived from it (Intel MPI, MVAPICH, Cray) and a
 * pointer in Open MPI. Both pass unchanged through a register or stack slot of the size of a
 * pointer (x86-64, AArch64, POWER, RISC-V); of an integer only the low half counts, see
 * trace_handle(). */

typedef uintptr_t trace_word; /* a handle, as the program passed it */

/* Slot, name, parameters. */
#define TRACE_MPI_FUNCTIONS(ROW)                                                                   \
    ROW(query_thread, PMPI_Query_thread, (int *))                                                  \
    ROW(comm_rank, PMPI_Comm_rank, (trace_word, int *))                                            \
    ROW(comm_size, PMPI_Comm_size, (trace_word, int *))                                            \
    ROW(comm_test_inter, PMPI_Comm_test_inter, (trace_word, int *))                                \
    ROW(comm_group, PMPI_Comm_group, (trace_word, trace_word *))                                   \
    ROW(comm_remote_group, PMPI_Comm_remote_group, (trace_word, trace_word *))                     \
    ROW(comm_idup, PMPI_Comm_idup, (trace_word, trace_word *, trace_word *))                       \
    ROW(comm_free, PMPI_Comm_free, (trace_word *))                                                 \
    ROW(win_get_group, PMPI_Win_get_group, (trace_word, trace_word *))                             \
    ROW(group_size, PMPI_Group_size, (trace_word, int *))                                          \
    ROW(group_rank, PMPI_Group_rank, (trace_word, int *))                                          \
    ROW(group_translate_ranks, PMPI_Group_translate_ranks,                                         \
        (trace_word, int, const int *, trace_word, int *))                                         \
    ROW(group_free, PMPI_Group_free, (trace_word *))                                               \
    ROW(type_size_x, PMPI_Type_size_x, (trace_word, int64_t *))                                    \
    ROW(topo_test, PMPI_Topo_test, (trace_word, int *))                                            \
    ROW(cartdim_get, PMPI_Cartdim_get, (trace_word, int *))                                        \
    ROW(cart_shift, PMPI_Cart_shift, (trace_word, int, int, int *, int *))                         \
    ROW(graph_neighbors_count, PMPI_Graph_neighbors_count, (trace_word, int, int *))               \
    ROW(graph_neighbors, PMPI_Graph_neighbors, (trace_word, int, int, int *))                      \
    ROW(dist_graph_neighbors_count, PMPI_Dist_graph_neighbors_count,                               \
        (trace_word, int *, int *, int *))                                                         \
    ROW(dist_graph_neighbors, PMPI_Dist_graph_neighbors,                                           \
        (trace_word, int, int *, int *, int, int *, int *))                                        \
    ROW(test, PMPI_Test, (trace_word *, int *, void *))                                            \
    ROW(ibcast, PMPI_Ibcast, (void *, int, trace_word, int, trace_word, trace_word *))             \
    ROW(isend, PMPI_Isend, (const void *, int, trace_word, int, int, trace_word, trace_word *))    \
    ROW(irecv, PMPI_Irecv, (void *, int, trace_word, int, int, trace_word, trace_word *))

struct trace_mpi {
    bool wide; /* handles are pointers */
    trace_word comm_world, byte_type;
    const void *in_place;
    int root;        /* MPI_ROOT */
    int cart, graph; /* what PMPI_Topo_test answers; anything else above 0 is a distributed graph */
    void *status_ignore; /* MPI_STATUS_IGNORE */
#define TRACE_MPI_SLOT(slot, name, parameters) int(*slot) parameters;
    TRACE_MPI_FUNCTIONS(TRACE_MPI_SLOT)
};

extern struct trace_mpi pin_trace_mpi;
/* Finds the functions and constants. 0; -ENOTSUP: a library that is not known, or one without these
 * functions. */
int pin_trace_mpi_find(void);

/* The level of thread support at which calls come from several threads at once; the same in every
 * MPI library. */
#define TRACE_THREAD_MULTIPLE 3

static inline trace_word trace_handle(trace_word passed)
{
    return pin_trace_mpi.wide ? passed : (uint32_t)passed;
}

/* Handle number `i` of an array of them. */
static inline trace_word trace_handle_at(const void *handles, size_t i)
{
    return pin_trace_mpi.wide ? ((const trace_word *)handles)[i] : ((const uint32_t *)handles)[i];
}

/* Handles spread over a table. */
static inline uint32_t trace_slot(trace_word handle)
{
    return (uint32_t)((handle * 0x9e3779b97f4a7c15u) >> 40);
}

/* -- count -- */

/* Bytes and messages that this rank has sent to each other rank.
 *
 * A message is what one call hands over, whatever the library makes of it. The bytes of a
 * collective are laid to pairs by what has to get from one rank's memory into another's, not by the
 * algorithm that the library happens to choose: servet_pin(7) has the table. Those of Allreduce are
 * summed up over all calls and then divided.
 *
 * A rank's own part of a collective is left out. Calls that send the same to every other rank cost
 * one addition; they are spread over the ranks when the communicator ends or at MPI_Finalize. */

struct trace_peer {
    uint64_t bytes, messages;
};

/* Ranks of MPI_COMM_WORLD behind those of a communicator (an intercommunicator: of its other side)
 * or of a window. */
struct trace_group {
    struct trace_group *next;
    trace_word handle;
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
    double begun_s; /* the time at which MPI was initialised */
    bool multiple;  /* threads may count at the same time */
    struct trace_peer *sent;
    struct trace_peer *got; /* fetched by MPI_Get and the like: sent by the other one */
    uint64_t largest;       /* bytes of the largest single message */
    uint64_t lost;          /* calls on communicators that could not be resolved */
};

extern struct trace_counts pin_trace_counts;

/* Room for the counts of `ranks` ranks. 0, -ENOMEM. */
int pin_trace_count_begin(int32_t rank, int32_t ranks, bool multiple);

/* Bytes of `count` elements; 0 for a type that the library refuses. */
uint64_t pin_trace_bytes(int64_t count, trace_word type);

/* One message more. */
void pin_trace_count(struct trace_peer *peer, uint64_t bytes);
void pin_trace_count_to(const struct trace_group *group, int32_t peer, uint64_t bytes);
void pin_trace_count_from(const struct trace_group *group, int32_t peer, uint64_t bytes);

/* The communicators and windows that the program sends on, by handle. */

/* The communicator's or window's ranks, asked of the library at its first use and kept until it is
 * freed. NULL: it cannot be resolved (counted as lost). */
struct trace_group *pin_trace_group_of(trace_word handle, bool window);

/* Neighbours in the communicator's topology are filled in; 0 of them without one. */
void pin_trace_group_find_neighbours(struct trace_group *group);

/* The handle is about to be freed: it may stand for another one soon. */
void pin_trace_group_forget(trace_word handle);

/* Lays what went to every other rank of each to the single ones. */
void pin_trace_groups_spread(void);

/* -- time -- */

/* How long a rank is in MPI, and how long it computes between its exchanges: for SERVET_TRACE_TIMES
 * and SERVET_AUTO.
 *
 * The thread that called MPI_Init is timed; a program whose other threads communicate has their
 * time outside of MPI. An iteration lies between two messages to the rank's first peer. */

struct trace_times {
    double seconds;      /* from MPI_Init to MPI_Finalize */
    double inside;       /* of these in MPI calls */
    double iteration;    /* median, 0: fewer than two iterations */
    double compute;      /* of it outside of MPI, median */
    uint64_t iterations; /* messages to the first peer */
};

/* The calling thread is the one to time, from now on. 0, -ENOMEM. */
int pin_trace_time_begin(void);
void pin_trace_time_enter(void);
void pin_trace_time_leave(void);
/* This rank sends a message to `peer` (rank in MPI_COMM_WORLD). */
void pin_trace_time_message(int32_t peer);
/* The time ends now. */
void pin_trace_time_stop(void);
extern struct trace_times pin_trace_times; /* until then */

/* -- gather -- */

/* The counts of all ranks, brought together on rank 0. */

struct trace_entry {
    int32_t from, to; /* ranks in MPI_COMM_WORLD */
    uint64_t bytes, messages;
};

/* One rank's totals. */
struct trace_rank {
    struct trace_times times; /* all 0 without times */
    uint64_t messages, bytes; /* sent, to anybody */
    uint64_t outside;         /* of the bytes: to or from processes outside of MPI_COMM_WORLD */
    uint64_t largest, lost;
    uint64_t entries;
};

struct trace_sum {
    int32_t ranks;
    struct trace_rank *rank;
    struct trace_entry *entries; /* ordered by from, to; each pair once */
    size_t count;
};

/* Waits until all ranks of MPI_COMM_WORLD are here and makes a communicator for the rest. A rank
 * without the tracer never comes, and looks like one that still computes; so the wait grows with
 * the run: TRACE_MEET_LEAST_S and a tenth of the time since MPI_Init, at most TRACE_MEET_MOST_S. 0;
 * -ETIMEDOUT; -EIO. */
int pin_trace_gather_meet(trace_word *comm);
#define TRACE_MEET_LEAST_S 10.0
#define TRACE_MEET_PART 0.1
#define TRACE_MEET_MOST_S 60.0

/* Fills in `out` on rank 0. A rank may have given up just before the last one came to
 * pin_trace_gather_meet(); then the others wait for it for TRACE_MEET_MOST_S. 0, -ENOMEM, -EIO,
 * -ETIMEDOUT. */
int pin_trace_gather(trace_word comm, struct trace_sum *out);

/* Rank 0's `bytes` of `data` for all. 0, -EIO, -ETIMEDOUT: then `data` may still be written to. */
int pin_trace_gather_tell(trace_word comm, void *data, size_t bytes);

void pin_trace_sum_free(struct trace_sum *sum);

/* The calling rank's own totals, with the times that pin_trace_time_stop() took. */
void pin_trace_own_totals(struct trace_rank *out);

/* As profile_save_file(), without the signals that a write can raise. */
int pin_trace_put(const char *path, const char *text, size_t length);

/* The file that SERVET_TRACE names: a matrix in Matrix Market's form, which servet-map --matrix
 * reads. */

/* Entry (i, j), counted from 1, is the bytes that rank i - 1 sent to rank j - 1. Comments before
 * the size line hold the rest, numbered in the same way: "% messages I J N", "% rank I …". 0,
 * -ENOMEM, -EINVAL (not a regular file), -errno. */
int pin_trace_file_write(const char *path, const struct trace_sum *sum);

/* -- trace -- */

/* The tracer (libservet_trace.so): preloaded beside the shim when SERVET_TRACE or SERVET_AUTO asks
 * for it.
 *
 * It takes the place of the MPI calls that send, wait or make and free what they work on, counts
 * (count.c), and passes each call on. An object of its own because every MPI call of a traced
 * program goes through it: programs that are not traced have nothing of it in the way.
 *
 * Both MPI_X and PMPI_X are taken. C programs call MPI_X; the Fortran entries of Open MPI, all
 * three interfaces, call PMPI_X, those of MPICH call MPI_X, from libraries of their own. One entry
 * may call another, so only the outermost call of a thread counts. */

enum trace_state { TRACE_UNKNOWN, TRACE_ON, TRACE_OFF };

extern int pin_trace_state;
extern bool pin_trace_timing; /* the time of every call is taken */
extern struct pin_options pin_trace_options;

/* Set while this thread is inside an MPI call that is counted already. */
extern __thread bool pin_trace_inside __attribute__((tls_model("initial-exec")));

/* Begins to count if MPI is initialised. False: not (yet), or nothing to do. */
bool pin_trace_begin(void);

/* Not MPI_SUCCESS (0) in any library. */
#define TRACE_NO_MPI 1

/* -- verdict -- */

/* Was the run communication intensive? The evidence for SERVET_AUTO.
 *
 * The time in MPI holds the messages' time and the waiting for ranks that compute longer, which no
 * placement of the ranks' messages mends. The rank that is in MPI for the least part of its time
 * waits least, so its share is taken. The verdict is "communication intensive" when this share is
 * at least half: then messages cost more than everything else, and what the two priorities can win
 * is of the same order (the time of a message, or of an access to memory, differs between the
 * levels of a machine by factors of two to four). Any other run is taken for memory bound.
 * Computing without memory is not recognised, for no hardware counter is read, and gains from
 * neither. A program that has run under communication priority must fall clearly below one half
 * before it loses it, or the priority would change from run to run. */

/* Share of the time in MPI from which communication priority is chosen, and below which it is given
 * up again. */
#define TRACE_AUTO_LIMIT 0.5
#define TRACE_AUTO_GIVEN_UP 0.35
/* A shorter run is mostly start-up: nothing is remembered of it. */
#define TRACE_AUTO_LEAST_S 0.1

enum trace_judged {
    TRACE_JUDGED,
    TRACE_NOT_GATHERED,
    TRACE_TOO_FEW_RANKS,
    TRACE_TOO_SHORT,
    TRACE_OVERSUBSCRIBED
};

struct trace_verdict {
    enum trace_judged judged;
    double seconds, limit;
    struct pin_priority_cache what;
};

/* `before`: what was remembered, NULL: nothing. `oversubscribed`: more ranks than PUs on a node. */
void pin_trace_verdict_judge(const struct trace_sum *sum, const struct pin_priority_cache *before,
                             bool oversubscribed, struct trace_verdict *out);

/* Remembers the verdict for this executable; says in SERVET_REPORT what it is and what it rests
 * on. `node_rank`: which of its node's ranks this one is. */
void pin_trace_verdict_conclude(const struct trace_verdict *verdict, uint32_t node_rank);

/* The calling rank's line of SERVET_REPORT. */
void pin_trace_report_rank(void);
