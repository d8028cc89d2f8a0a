/* The counts of all ranks, brought together on rank 0. */
#ifndef SERVET_PRELOAD_TRACE_GATHER_H
#define SERVET_PRELOAD_TRACE_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "preload/trace/mpi.h"
#include "preload/trace/time.h"

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
 * without the tracer never comes, and cannot be told from one that still computes; so the wait
 * grows with the run: TRACE_MEET_LEAST_S and a tenth of the time since MPI_Init, at most
 * TRACE_MEET_MOST_S. 0; -ETIMEDOUT; -EIO. */
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

/* MPI is initialised: the run begins. */
void pin_trace_gather_begin(void);
void pin_trace_sum_free(struct trace_sum *sum);

/* The calling rank's own totals, with the times that pin_trace_time_stop() took. */
void pin_trace_own_totals(struct trace_rank *out);

/* The file that SERVET_TRACE names: a matrix in Matrix Market's form, which servet-map --matrix
 * reads. */

/* Entry (i, j), counted from 1, is the bytes that rank i - 1 sent to rank j - 1. Comments before
 * the size line hold the rest, numbered in the same way: "% messages I J N", "% rank I …". 0,
 * -ENOMEM, -EINVAL (not a regular file), -errno.
 */
int pin_trace_file_write(const char *path, const struct trace_sum *sum);

#endif
