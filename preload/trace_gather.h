/* The counts of all ranks, brought together on rank 0. */
#ifndef SERVET_PRELOAD_TRACE_GATHER_H
#define SERVET_PRELOAD_TRACE_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "trace_mpi.h"
#include "trace_time.h"

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

/* Waits until all ranks of MPI_COMM_WORLD are here, which some never are where not all of them are traced, and makes a
 * communicator for the rest. 0; -ETIMEDOUT; -EIO. */
int trace_gather_meet(trace_word *comm);

/* Fills in `out` on rank 0, frees nothing on failure of another rank. 0, -ENOMEM, -EIO. */
int trace_gather(trace_word comm, struct trace_sum *out);
void trace_sum_free(struct trace_sum *sum);

/* The calling rank's own totals, with the times that trace_time_stop() took. */
void trace_own_totals(struct trace_rank *out);

#endif
