/* The MPI library of the program, as it is found at run time. */
#include "preload/trace/mpi.h"

#include <errno.h>
#include <string.h>

#include "preload/interpose/next.h"

struct trace_mpi trace_mpi;

/* -- whose library -- */

/* Open MPI: predefined objects are variables; the constants are those of its mpi.h, unchanged since
 * version 1. */
static bool is_open_mpi(void)
{
    void *world = pin_next_variable("ompi_mpi_comm_world"),
         *byte = pin_next_variable("ompi_mpi_byte");
    if (!world || !byte) {
        return false;
    }
    trace_mpi.wide = true;
    trace_mpi.comm_world = (trace_word)world;
    trace_mpi.byte_type = (trace_word)byte;
    trace_mpi.in_place = (const void *)1;
    trace_mpi.root = -4;
    trace_mpi.cart = 1;
    trace_mpi.graph = 2;
    trace_mpi.status_ignore = NULL;
    return true;
}

/* The binary interface that MPICH, Intel MPI, MVAPICH and Cray MPICH have agreed on (MPICH ABI
 * Compatibility Initiative). */
static bool is_mpich(void)
{
    static const char *const names[] = {"MPICH", "Intel", "MVAPICH", "CRAY MPICH"};
    static char version[8192]; /* MPI_MAX_LIBRARY_VERSION_STRING of MPICH */
    int length;
    int (*get)(char *, int *) = (int (*)(char *, int *))pin_next("PMPI_Get_library_version");
    if (!get || get(version, &length) != 0) {
        return false;
    }
    trace_mpi.wide = false;
    trace_mpi.comm_world = 0x44000000;
    trace_mpi.byte_type = 0x4c00010d;
    trace_mpi.in_place = (const void *)-1;
    trace_mpi.root = -3;
    trace_mpi.cart = 2;
    trace_mpi.graph = 1;
    trace_mpi.status_ignore = (void *)1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(version, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* -- its functions -- */

int trace_mpi_find(void)
{
    const struct {
        void *slot;
        const char *name;
        bool may_lack;
    } functions[] = {
        {&trace_mpi.initialized, "PMPI_Initialized", false},
        {&trace_mpi.query_thread, "PMPI_Query_thread", false},
        {&trace_mpi.comm_rank, "PMPI_Comm_rank", false},
        {&trace_mpi.comm_size, "PMPI_Comm_size", false},
        {&trace_mpi.comm_test_inter, "PMPI_Comm_test_inter", false},
        {&trace_mpi.comm_group, "PMPI_Comm_group", false},
        {&trace_mpi.comm_remote_group, "PMPI_Comm_remote_group", false},
        {&trace_mpi.comm_idup, "PMPI_Comm_idup", false},
        {&trace_mpi.comm_free, "PMPI_Comm_free", false},
        {&trace_mpi.win_get_group, "PMPI_Win_get_group", false},
        {&trace_mpi.group_size, "PMPI_Group_size", false},
        {&trace_mpi.group_rank, "PMPI_Group_rank", false},
        {&trace_mpi.group_translate_ranks, "PMPI_Group_translate_ranks", false},
        {&trace_mpi.group_free, "PMPI_Group_free", false},
        {&trace_mpi.type_size, "PMPI_Type_size", false},
        {&trace_mpi.type_size_x, "PMPI_Type_size_x", true},
        {&trace_mpi.type_get_envelope, "PMPI_Type_get_envelope", false},
        {&trace_mpi.topo_test, "PMPI_Topo_test", false},
        {&trace_mpi.cartdim_get, "PMPI_Cartdim_get", false},
        {&trace_mpi.cart_shift, "PMPI_Cart_shift", false},
        {&trace_mpi.graph_neighbors_count, "PMPI_Graph_neighbors_count", false},
        {&trace_mpi.graph_neighbors, "PMPI_Graph_neighbors", false},
        {&trace_mpi.dist_graph_neighbors_count, "PMPI_Dist_graph_neighbors_count", true},
        {&trace_mpi.dist_graph_neighbors, "PMPI_Dist_graph_neighbors", true},
        {&trace_mpi.test, "PMPI_Test", false},
        {&trace_mpi.ibcast, "PMPI_Ibcast", false},
        {&trace_mpi.isend, "PMPI_Isend", false},
        {&trace_mpi.irecv, "PMPI_Irecv", false},
    };
    if (!is_open_mpi() && !is_mpich()) {
        return -ENOTSUP;
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = pin_next(functions[i].name);
        if (!found && !functions[i].may_lack) {
            return -ENOTSUP;
        }
        memcpy(functions[i].slot, &found, sizeof found);
    }
    return 0;
}
