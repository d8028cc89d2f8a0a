/* Persistent requests that send: what each start of them sends to whom. */
#ifndef SERVET_PRELOAD_TRACE_REQUESTS_H
#define SERVET_PRELOAD_TRACE_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/trace/mpi.h"

/* `peer`: rank in MPI_COMM_WORLD, -1: outside of it. Without memory nothing is kept. */
void pin_trace_request_keep(trace_word request, int32_t peer, uint64_t bytes);
bool pin_trace_request_find(trace_word request, int32_t *peer, uint64_t *bytes);
void pin_trace_request_forget(trace_word request);

#endif
