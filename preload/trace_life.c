/* Interposed: where a rank begins and ends, and where communicators end. */
#include "trace.h"

#define INIT(name, parameters, arguments)                                                                              \
    PIN_EXPORT int name parameters;                                                                                    \
    PIN_EXPORT int name parameters                                                                                     \
    {                                                                                                                  \
        static int(*real) parameters;                                                                                  \
        if (!TRACE_REAL(real, #name))                                                                                  \
            return TRACE_NO_MPI;                                                                                       \
        int code = real arguments;                                                                                     \
        if (code == 0 && !trace_inside && trace_state == TRACE_UNKNOWN)                                                \
            trace_begin();                                                                                             \
        return code;                                                                                                   \
    }

INIT(MPI_Init, (int *count, char ***values), (count, values))
INIT(PMPI_Init, (int *count, char ***values), (count, values))
INIT(MPI_Init_thread, (int *count, char ***values, int required, int *provided), (count, values, required, provided))
INIT(PMPI_Init_thread, (int *count, char ***values, int required, int *provided), (count, values, required, provided))

#define FINALIZE(name)                                                                                                 \
    PIN_EXPORT int name(void);                                                                                         \
    PIN_EXPORT int name(void)                                                                                          \
    {                                                                                                                  \
        static int (*real)(void);                                                                                      \
        if (!TRACE_REAL(real, #name))                                                                                  \
            return TRACE_NO_MPI;                                                                                       \
        if (!trace_inside)                                                                                             \
            trace_end();                                                                                               \
        return real();                                                                                                 \
    }

FINALIZE(MPI_Finalize)
FINALIZE(PMPI_Finalize)

TRACE_CALL(Comm_free, (void *comm), (comm), trace_group_forget(trace_handle_at(comm, 0)))
TRACE_CALL(Comm_disconnect, (void *comm), (comm), trace_group_forget(trace_handle_at(comm, 0)))
