/* How long a rank is in MPI, and how long it computes between its exchanges: for SERVET_TRACE_TIMES
 * and SERVET_AUTO.
 *
 * The thread that called MPI_Init is timed; a program whose other threads communicate has their
 * time outside of MPI. An iteration lies between two messages to the rank's first peer.
 */
#ifndef SERVET_PRELOAD_TRACE_TIME_H
#define SERVET_PRELOAD_TRACE_TIME_H

#include <stdint.h>

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
/* The times until then. */
void pin_trace_time_read(struct trace_times *out);

#endif
