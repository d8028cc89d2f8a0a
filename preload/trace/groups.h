/* The communicators and windows that the program sends on, by handle. */
#ifndef SERVET_PRELOAD_TRACE_GROUPS_H
#define SERVET_PRELOAD_TRACE_GROUPS_H

#include "preload/trace/count.h"

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
