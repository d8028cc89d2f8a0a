/* The tracer (libservet_trace.so): preloaded beside the shim when SERVET_TRACE or SERVET_AUTO asks
 * for it.
 *
 * It takes the place of the MPI calls that send, wait or make and free what they work on, counts
 * (trace_count.h), and passes each call on. An object of its own because every MPI call of a traced
 * program goes through it: programs that are not traced have nothing of it in the way.
 *
 * Both MPI_X and PMPI_X are taken. C programs call MPI_X; the Fortran entries of Open MPI, all
 * three interfaces, call PMPI_X, those of MPICH call MPI_X, from libraries of their own. One entry
 * may call another, so only the outermost call of a thread counts.
 */
#ifndef SERVET_PRELOAD_TRACE_TRACE_H
#define SERVET_PRELOAD_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/interpose/interpose.h"
#include "preload/place/options.h"
#include "preload/trace/count.h"
#include "preload/trace/mpi.h"
#include "preload/trace/time.h"

enum trace_state { TRACE_UNKNOWN, TRACE_ON, TRACE_OFF };

extern int pin_trace_state;
extern bool pin_trace_timing; /* the time of every call is taken */
extern struct pin_options pin_trace_options;

/* Set while this thread is inside an MPI call that is counted already. */
extern __thread bool pin_trace_inside __attribute__((tls_model("initial-exec")));

/* Begins to count if MPI is initialised. False: not (yet), or nothing to do. */
bool pin_trace_begin(void);

/* Will the time of calls be taken once MPI is initialised? The same answer at all times. */
bool pin_trace_times_wanted(void);

/* Rank 0 gets the counts of all ranks and writes what was asked for. At MPI_Finalize, before the
 * library's. */
void pin_trace_end(void);

/* False: the call is passed on as it is, without trace_leave(). */
static inline bool trace_enter(void)
{
    int state = __atomic_load_n(&pin_trace_state, __ATOMIC_RELAXED);
    if (pin_trace_inside || (state != TRACE_ON && (state == TRACE_OFF || !pin_trace_begin()))) {
        return false;
    }
    pin_trace_inside = true;
    if (pin_trace_timing) {
        pin_trace_time_enter();
    }
    return true;
}

static inline void trace_leave(void)
{
    if (pin_trace_timing) {
        pin_trace_time_leave();
    }
    pin_trace_inside = false;
}

/* Not MPI_SUCCESS (0) in any library. */
#define TRACE_NO_MPI 1

/* The function behind an interposed one, looked up at the first call. */
#define TRACE_REAL(slot, name)                                                                     \
    ({                                                                                             \
        __typeof__(slot) trace_found_ = __atomic_load_n(&(slot), __ATOMIC_RELAXED);                \
        if (__builtin_expect(!trace_found_, 0)) {                                                  \
            trace_found_ = (__typeof__(slot))pin_next(name);                                       \
            __atomic_store_n(&(slot), trace_found_, __ATOMIC_RELAXED);                             \
        }                                                                                          \
        trace_found_;                                                                              \
    })

/* One name: counts `before` the library's call and `after` it. */
#define TRACE_NAME(name, parameters, arguments, before, after)                                     \
    PIN_EXPORT int name parameters;                                                                \
    PIN_EXPORT int name parameters                                                                 \
    {                                                                                              \
        static int(*real) parameters;                                                              \
        if (!TRACE_REAL(real, #name))                                                              \
            return TRACE_NO_MPI;                                                                   \
        if (!trace_enter())                                                                        \
            return real arguments;                                                                 \
        before;                                                                                    \
        int trace_code_ = real arguments;                                                          \
        after;                                                                                     \
        trace_leave();                                                                             \
        return trace_code_;                                                                        \
    }

#define TRACE_BOTH(name, parameters, arguments, before, after)                                     \
    TRACE_NAME(MPI_##name, parameters, arguments, before, after)                                   \
    TRACE_NAME(PMPI_##name, parameters, arguments, before, after)

#define TRACE_CALL(name, parameters, arguments, before)                                            \
    TRACE_BOTH(name, parameters, arguments, before, (void)0)

/* A call that is only timed. Without times it is passed on at once: `pass_` is then the library's
 * function from the first call on. */
#define TRACE_TIMED_NAME(name, parameters, arguments)                                              \
    PIN_EXPORT int name parameters;                                                                \
    static int first_##name parameters;                                                            \
    static int(*pass_##name) parameters = first_##name;                                            \
    static int(*real_##name) parameters;                                                           \
    static int timed_##name parameters                                                             \
    {                                                                                              \
        if (!pin_trace_timing || !trace_enter())                                                   \
            return real_##name arguments;                                                          \
        int trace_code_ = real_##name arguments;                                                   \
        trace_leave();                                                                             \
        return trace_code_;                                                                        \
    }                                                                                              \
    __attribute__((noinline, cold)) static int first_##name parameters                             \
    {                                                                                              \
        if (!TRACE_REAL(real_##name, #name))                                                       \
            return TRACE_NO_MPI;                                                                   \
        __typeof__(pass_##name) pass = pin_trace_times_wanted() ? timed_##name : real_##name;      \
        __atomic_store_n(&pass_##name, pass, __ATOMIC_RELEASE);                                    \
        return pass arguments;                                                                     \
    }                                                                                              \
    PIN_EXPORT int name parameters                                                                 \
    {                                                                                              \
        return __atomic_load_n(&pass_##name, __ATOMIC_ACQUIRE) arguments;                          \
    }

#define TRACE_TIMED(name, parameters, arguments)                                                   \
    TRACE_TIMED_NAME(MPI_##name, parameters, arguments)                                            \
    TRACE_TIMED_NAME(PMPI_##name, parameters, arguments)

#endif
