/* The rank server: orders between ranks, gathered texts, deadlines. */
#pragma once

#include <mpi.h>

#include "probes/bsp/bsp.h"
#include "probes/machine.h"
#include "probes/network/network.h"

/* -- deadline -- */

/* Every wait of a rank has a limit: when it is over, the prepared line goes to stderr and the
 * process ends with status 1. A rank that ends so makes the launcher end the others; a launcher
 * that does not manage that within a few seconds (it waits for a node that has vanished) is
 * killed. */

/* From now on at most `seconds`, counted anew with every call. */
void probe_deadline_set(double seconds, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void probe_deadline_clear(void);
/* When the limit is over, the process ends with `status` and without a word. */
void probe_deadline_set_silently(double seconds, int status);

/* -- ranks -- */

/* The ranks of one MPI job as a machine: PU numbers of this machine are ranks, of which rank 0
 * tells the others what to do. One protocol for the ranks of one node that servet-probe starts
 * itself and for those of a cluster (servet-ranks.c). Collective calls say so.
 *
 * Rank 0 sends an order to each rank that it concerns, and to no other; the rest sleep, because a
 * library that spins on a PU that is not its own would be measured as a slow machine. */

struct rank_info {
    char version[24];
    char host[72];
    int32_t leader;   /* lowest rank on the same node */
    uint32_t allowed; /* PUs that the node lets us use */
    int32_t pu;       /* the one that this rank sits on; -1: on any */
};

struct ranks {
    int rank, size;             /* size > 0 */
    bool patient;               /* rank 0 may be silent for ever */
    struct profile_set allowed; /* PUs of this node */
    struct rank_info *info;     /* by rank */
    int node_count;
    int *leaders;    /* of the nodes, by node name */
    double spoke;    /* when rank 0 last said something to everybody */
    double waited_s; /* on rank 0: ranks with messages to send were ready, without their PU */
};

/* How the ranks sit. */
enum rank_places {
    RANKS_ON_EACH_PU, /* the i-th of a node on its i-th PU */
    RANKS_ONE_A_NODE, /* not pinned */
};

/* Collective: MPI_Init, who is where, and each rank pins itself. 0; -EINVAL with the reason on
 * every rank (other versions, more ranks on a node than PUs, …). */
int probe_ranks_open(struct ranks *ranks, enum rank_places places, struct servet_error *error);
/* The same for the ranks of one node: rank i on pus->ids[i]. */
int probe_ranks_open_on(struct ranks *ranks, const struct profile_set *pus,
                        struct servet_error *error);

/* Does rank i of the node of `leader` sit on its i-th PU, for all its PUs? */
bool probe_ranks_cover_node(const struct ranks *ranks, int leader);

/* Collective: on the leader of each node `run` is that node's own run; rank 0 gets the answers of
 * all in the order of ranks->leaders (others NULL). A leader is asked again and again until its
 * run has ended. A node that falls silent ends the job. */
char **probe_ranks_gather(struct ranks *ranks, struct node_run *run);

/* On rank 0: the machine. On the others: obey until the order to end; returns the exit status. A
 * message's figure is the smallest batch of its pair. A pair that is done goes on until all are, so
 * that interference is the same. -ENODEV: a rank was moved off its PU. */
void probe_ranks_machine(struct ranks *ranks, struct machine *out);
int probe_ranks_obey(struct ranks *ranks);

/* On rank 0: seconds of one superstep of the first `processors` ranks, in the fastest batch. 0,
 * -EIO when words were lost. */
int probe_ranks_superstep(uint32_t processors, const struct bsp_superstep *what, double *seconds);

/* On rank 0: tells the others to end with `status`. */
void probe_ranks_dismiss(struct ranks *ranks, int status);

/* Collective: MPI_Finalize, as long as that takes no more than a few seconds. Does not return. */
_Noreturn void probe_ranks_end(int status);

/* "Open MPI v4.1.4", "MPICH Version: 4.0.2". Static. */
const char *probe_ranks_library(void);

/* Takes part in `batches` of `supersteps` supersteps of an h-relation of the first `processors`
 * ranks (all of them call it). Gives the seconds of one in the fastest batch; 0 when words were
 * lost. */
double probe_superstep_play(uint32_t processors, const struct bsp_superstep *what, int rank);

/* -- orders: what passes between rank 0 and the others, for ranks.c and gather.c -- */

enum tag {
    TAG_ORDER,
    TAG_READY, /* to rank 0: sits and waits */
    TAG_GO,
    TAG_MESSAGE,
    TAG_RESULT,
    TAG_ENOUGH, /* from rank 0: all pairs have their figure */
    TAG_MORE,   /* within a pair: one more batch, or none */
    TAG_BEAT,
    TAG_TEXT,
    TAG_CONNECT, /* to everybody, before anything else */
};
enum order_kind { ORDER_EXCHANGE = 1, ORDER_SUPERSTEP, ORDER_STAY, ORDER_END };
/* Between two looks of a rank that waits. */
enum { RANKS_SLEEP_US = 500 };

/* Limits of waits. Rank 0 speaks to everybody every few seconds, so silence of half a minute means
 * that it is gone; it hears of a missing answer before the others give up, and can name it. */
static const double ranks_answer_limit_s = 15, ranks_silence_limit_s = 25, ranks_speak_every_s = 5;
struct order {
    enum order_kind kind;
    union {
        struct {
            struct machine_exchange what;
            int partner;
            bool first;    /* this rank sends first */
            bool together; /* other pairs do the same at the same time */
        } exchange;
        struct {
            struct bsp_superstep what;
            uint32_t processors;
        } superstep;
        int status; /* ORDER_END */
    };
};
enum { ORDER_BYTES = sizeof(struct order) };

/* Is there a message? Looks several times, so that the library gets on. */
bool probe_ranks_there_is(int source, int tag, MPI_Status *status);

/* From now on rank 0 may be silent for a while, and no longer. */
void probe_ranks_limit_silence(const struct ranks *ranks);

/* On rank 0: says something to all others when it has not for some time. */
void probe_ranks_speak(struct ranks *ranks);
