/* What passes between rank 0 and the others, for the files that speak it: ranks.c (orders and
 * messages) and gather.c (texts of the nodes). */
#ifndef SERVET_PROBES_MPI_ORDERS_H
#define SERVET_PROBES_MPI_ORDERS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "probes/mpi/mpi.h"

enum tag {
    TAG_ORDER = 1,
    TAG_READY, /* to rank 0: sits and waits */
    TAG_GO,
    TAG_MESSAGE,
    TAG_RESULT,
    TAG_ENOUGH, /* from rank 0: all pairs have their figure */
    TAG_MORE,   /* within a pair: one more batch, or none */
    TAG_BEAT,
    TAG_TEXT
};
enum order_kind { ORDER_EXCHANGE = 1, ORDER_SUPERSTEP, ORDER_STAY, ORDER_END };
/* Between two looks of a rank that waits. */
enum { RANKS_SLEEP_US = 500 };

/* Limits of waits. Rank 0 speaks to everybody every few seconds, so silence of half a minute means
 * that it is gone; it hears of a missing answer before the others give up, and can name it. */
static const double ranks_answer_limit_s = 15, ranks_silence_limit_s = 25, ranks_speak_every_s = 5;
struct order {
    uint64_t kind;
    union {
        struct {
            uint64_t bytes, round_trips, batches, partner;
            uint64_t first;     /* this rank sends first */
            uint64_t together;  /* other pairs do the same at the same time */
            uint64_t unwritten; /* what is sent is never written (machine_exchange) */
        } exchange;
        struct {
            uint64_t processors, h, packing, supersteps, batches;
        } superstep;
        int64_t status; /* ORDER_END */
    };
};
enum { ORDER_WORDS = sizeof(struct order) / sizeof(uint64_t) };

/* Is there a message? Looks several times, so that the library gets on. */
bool probe_ranks_there_is(int source, int tag, MPI_Status *status);

/* From now on rank 0 may be silent for a while, and no longer. */
void probe_ranks_limit_silence(const struct ranks *ranks);

/* On rank 0: says something to all others when it has not for some time. */
void probe_ranks_speak(struct ranks *ranks);

#endif
