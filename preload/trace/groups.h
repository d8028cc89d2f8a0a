/* The communicators and windows that the program sends on, by handle. */
#ifndef SERVET_PRELOAD_TRACE_GROUPS_H
#define SERVET_PRELOAD_TRACE_GROUPS_H

#include "preload/trace/count.h"

/* The communicator's or window's ranks, asked of the library at its first use and kept until it is
 * freed. NULL: it cannot be resolved (counted as lost). */
struct trace_group *trace_group_of_comm(trace_word comm);
struct trace_group *trace_group_of_window(trace_word window);

/* Neighbours in the communicator's topology are filled in; 0 of them without one. */
void trace_group_find_neighbours(struct trace_group *group);

/* The handle is about to be freed: it may stand for another one soon. */
void trace_group_forget(trace_word handle);

/* trace_count_spread() for all. */
void trace_groups_spread(void);

/* How many threads may be inside at once is unknown: the first call makes MPI_COMM_WORLD's. 0,
 * -ENOMEM. */
int trace_groups_begin(void);

#endif
