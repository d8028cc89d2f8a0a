/* Interposed: the entries of MPI and OpenSHMEM in which a process becomes a rank.
 *
 *   MPI_Init, MPI_Init_thread     C programs; MPICH's Fortran entries call these through the symbol
 *   PMPI_Init, PMPI_Init_thread   Open MPI's Fortran entries (all of them, mpi_f08 too) call these
 *   mpi_init_ … MPI_INIT          Fortran entries of libraries that have C and Fortran in one
 *                                 object and call inside it
 *   MPI_Session_init              MPI 4: a program may never call MPI_Init
 *   shmem_init, start_pes …       OpenSHMEM; Open MPI's goes to the inside of libmpi directly
 *
 * Fortran coarrays (OpenCoarrays) come through MPI_Init_thread. One of these entries usually calls
 * another, so only the outermost does the work. No MPI header is used: what is passed on are
 * pointers and integers of the same shape in every MPI library.
 *
 * Programs ask dlsym() whether MPI is there, and must not find these. The names therefore have a
 * version that is not the default one (shim.map). The loader binds what a program or a library
 * refers to without a version, as all refer to MPI, to the first version of an object, hidden or
 * not; dlsym() takes default versions only (glibc, elf/dl-lookup.c, check_match()). */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>

#include "preload/interpose/interpose.h"
#include "preload/node/log.h"
#include "preload/place/process.h"
#include "preload/place/report.h"

/* MPI_ERR_OTHER is not the same number everywhere; what matters is that it is not MPI_SUCCESS
 * (0). */
#define NO_MPI 1

static __thread int depth __attribute__((tls_model("initial-exec")));

/* The tracer has to be there before the program is: what is loaded later comes behind the MPI
 * library. */
static void look_for_tracer(void)
{
    const struct pin_options *options = &pin_here.options;
    if ((!options->trace && !options->auto_priority) || pin_here.launcher.node_rank > 0 ||
        dlsym(RTLD_DEFAULT, "servet_trace_version")) {
        return;
    }
    pin_failure("%s: libservet_trace.so is not preloaded, nothing is traced; use servet-pin, or "
                "name both in LD_PRELOAD",
                options->trace ? "SERVET_TRACE" : "SERVET_AUTO");
}

/* The outermost entry makes the plan first; the library's own threads are kept from its PUs. Has it
 * pinned the main thread to the whole plan? */
static bool enter(void)
{
    if (depth++ > 0 || !pin_process_active() ||
        (!pin_here.options.force && pin_owner_program_is_managed())) {
        return false;
    }
    int saved = errno;
    pin_libc_find_all();
    const bool planned = pin_process_plan(PIN_RANK_COMES);
    pin_process_lock();
    const bool widened = planned && pin_process_widen_main();
    pin_process_unlock();
    look_for_tracer();
    errno = saved;
    return widened;
}

static void leave(const bool *widened)
{
    depth--;
    if (!*widened) {
        return;
    }
    int saved = errno;
    pin_process_lock();
    pin_process_narrow_main();
    pin_process_unlock();
    pin_check_laid(atomic_load(&pin_life.main_pu));
    errno = saved;
}

/* One entry. `missing` is what it answers where no library has it. */
#define ENTRY(type, name, parameters, arguments, missing)                                          \
    __asm__(".symver pin_entry_" #name ", " #name "@SERVET_MPI");                                  \
    PIN_EXPORT type pin_entry_##name parameters;                                                   \
    PIN_EXPORT type pin_entry_##name parameters                                                    \
    {                                                                                              \
        static type(*real) parameters;                                                             \
        if (!PIN_ONCE(real, pin_next(#name)))                                                      \
            return (type)(missing);                                                                \
        const bool widened __attribute__((cleanup(leave), unused)) = enter();                      \
        return real arguments;                                                                     \
    }

#define INIT(name) ENTRY(int, name, (int *count, char ***values), (count, values), NO_MPI)
#define INIT_THREAD(name)                                                                          \
    ENTRY(int, name, (int *count, char ***values, int required, int *provided),                    \
          (count, values, required, provided), NO_MPI)
#define FORTRAN_INIT(name) ENTRY(void, name, (int *error), (error), *error = NO_MPI)
#define FORTRAN_INIT_THREAD(name)                                                                  \
    ENTRY(void, name, (int *required, int *provided, int *error), (required, provided, error),     \
          *error = NO_MPI)
/* Handles are integers in MPICH and pointers in Open MPI: both pass unchanged through a
 * pointer-sized argument. */
#define SESSION_INIT(name)                                                                         \
    ENTRY(int, name, (uintptr_t info, uintptr_t handler, void *session), (info, handler, session), \
          NO_MPI)

INIT(MPI_Init)
INIT(PMPI_Init)
INIT_THREAD(MPI_Init_thread)
INIT_THREAD(PMPI_Init_thread)

/* gfortran, Intel, Cray: mpi_init_; g77 style: mpi_init__; IBM: mpi_init; upper case: NAG and old
 * Cray. */
FORTRAN_INIT(mpi_init)
FORTRAN_INIT(mpi_init_)
FORTRAN_INIT(mpi_init__)
FORTRAN_INIT(MPI_INIT)
FORTRAN_INIT_THREAD(mpi_init_thread)
FORTRAN_INIT_THREAD(mpi_init_thread_)
FORTRAN_INIT_THREAD(mpi_init_thread__)
FORTRAN_INIT_THREAD(MPI_INIT_THREAD)

SESSION_INIT(MPI_Session_init)
SESSION_INIT(PMPI_Session_init)

ENTRY(void, shmem_init, (void), (), 0)
ENTRY(int, shmem_init_thread, (int requested, int *provided), (requested, provided), NO_MPI)
ENTRY(void, start_pes, (int ignored), (ignored), 0)
