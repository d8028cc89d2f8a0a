/* The MPI library of the program, as it is found at run time. */
#include "preload/trace/trace.h"

#include <errno.h>
#include <string.h>

#include "preload/base/next.h"

struct trace_mpi pin_trace_mpi;

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
    pin_trace_mpi.wide = true;
    pin_trace_mpi.comm_world = (trace_word)world;
    pin_trace_mpi.byte_type = (trace_word)byte;
    pin_trace_mpi.in_place = (const void *)1;
    pin_trace_mpi.root = -4;
    pin_trace_mpi.cart = 1;
    pin_trace_mpi.graph = 2;
    pin_trace_mpi.status_ignore = NULL;
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
    pin_trace_mpi.wide = false;
    pin_trace_mpi.comm_world = 0x44000000;
    pin_trace_mpi.byte_type = 0x4c00010d;
    pin_trace_mpi.in_place = (const void *)-1;
    pin_trace_mpi.root = -3;
    pin_trace_mpi.cart = 2;
    pin_trace_mpi.graph = 1;
    pin_trace_mpi.status_ignore = (void *)1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(version, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* -- its functions -- */

int pin_trace_mpi_find(void)
{
    const struct {
        void *slot;
        const char *name;
    } functions[] = {
#define ENTRY(slot, name, parameters) {&pin_trace_mpi.slot, #name},
        TRACE_MPI_FUNCTIONS(ENTRY)};
    if (!is_open_mpi() && !is_mpich()) {
        return -ENOTSUP;
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = pin_next(functions[i].name);
        if (!found) {
            return -ENOTSUP;
        }
        memcpy(functions[i].slot, &found, sizeof found);
    }
    return 0;
}
