/* The MPI library of the program, as it is found at run time: its functions by name, its constants
 * by whose it is.
 *
 * Nothing of MPI is known when this is compiled. A handle (communicator, data type, request,
 * window) is an integer in MPICH and everything derived from it (Intel MPI, MVAPICH, Cray) and a
 * pointer in Open MPI. Both pass unchanged through a register or stack slot of the size of a
 * pointer (x86-64, AArch64, POWER, RISC-V); of an integer only the low half counts, see
 * trace_handle().
 */
#ifndef SERVET_PRELOAD_TRACE_MPI_H
#define SERVET_PRELOAD_TRACE_MPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uintptr_t trace_word; /* a handle, as the program passed it */

struct trace_mpi {
    bool wide; /* handles are pointers */
    trace_word comm_world, byte_type;
    const void *in_place;
    int root;        /* MPI_ROOT */
    int cart, graph; /* what PMPI_Topo_test answers; anything else above 0 is a distributed graph */
    void *status_ignore; /* MPI_STATUS_IGNORE */
    int (*initialized)(int *);
    int (*query_thread)(int *);
    int (*comm_rank)(trace_word, int *);
    int (*comm_size)(trace_word, int *);
    int (*comm_test_inter)(trace_word, int *);
    int (*comm_group)(trace_word, trace_word *);
    int (*comm_remote_group)(trace_word, trace_word *);
    int (*comm_idup)(trace_word, trace_word *, trace_word *);
    int (*comm_free)(trace_word *);
    int (*win_get_group)(trace_word, trace_word *);
    int (*group_size)(trace_word, int *);
    int (*group_rank)(trace_word, int *);
    int (*group_translate_ranks)(trace_word, int, const int *, trace_word, int *);
    int (*group_free)(trace_word *);
    int (*type_size)(trace_word, int *);
    int (*type_size_x)(trace_word, int64_t *);
    int (*type_get_envelope)(trace_word, int *, int *, int *, int *);
    int (*topo_test)(trace_word, int *);
    int (*cartdim_get)(trace_word, int *);
    int (*cart_shift)(trace_word, int, int, int *, int *);
    int (*graph_neighbors_count)(trace_word, int, int *);
    int (*graph_neighbors)(trace_word, int, int, int *);
    int (*dist_graph_neighbors_count)(trace_word, int *, int *, int *);
    int (*dist_graph_neighbors)(trace_word, int, int *, int *, int, int *, int *);
    int (*test)(trace_word *, int *, void *);
    int (*ibcast)(void *, int, trace_word, int, trace_word, trace_word *);
    int (*isend)(const void *, int, trace_word, int, int, trace_word, trace_word *);
    int (*irecv)(void *, int, trace_word, int, int, trace_word, trace_word *);
};

extern struct trace_mpi pin_trace_mpi;

/* The level of thread support at which calls come from several threads at once; the same in every
 * MPI library. */
#define TRACE_THREAD_MULTIPLE 3

/* Finds the functions and constants. 0; -ENOTSUP: a library that is not known, or one without these
 * functions. */
int pin_trace_mpi_find(void);

static inline trace_word trace_handle(trace_word passed)
{
    return pin_trace_mpi.wide ? passed : (uint32_t)passed;
}

/* Handle number `i` of an array of them. */
static inline trace_word trace_handle_at(const void *handles, size_t i)
{
    return pin_trace_mpi.wide ? ((const trace_word *)handles)[i] : ((const uint32_t *)handles)[i];
}

#endif
