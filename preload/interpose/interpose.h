/* Shared by the interposers: the mark that makes a function take the place of libc's or a library's
 * (shim.map and trace.map list the same names), and the ways to the function behind it. */
#ifndef SERVET_PRELOAD_INTERPOSE_INTERPOSE_H
#define SERVET_PRELOAD_INTERPOSE_INTERPOSE_H

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

#define PIN_EXPORT __attribute__((visibility("default")))

/* Makes `search` once and keeps its answer in `*real` (a function pointer, NULL at
 * first). Two threads that do so at once store the same value. NULL when no object has the
 * function. */
#define PIN_ONCE(real, search)                                                                     \
    ({                                                                                             \
        __typeof__(real) pin_found_ = __atomic_load_n(&(real), __ATOMIC_ACQUIRE);                  \
        if (!pin_found_) {                                                                         \
            pin_found_ = (__typeof__(real))(search);                                               \
            __atomic_store_n(&(real), pin_found_, __ATOMIC_RELEASE);                               \
        }                                                                                          \
        pin_found_;                                                                                \
    })

/* The next definition of `name` after ours, and the one of an old version. */
#define PIN_REAL(real, name) PIN_ONCE(real, dlsym(RTLD_NEXT, name))
#define PIN_REAL_OLD(real, name, version) PIN_ONCE(real, dlvsym(RTLD_NEXT, name, version))

/* The body of an interposed function that makes a process or a thread: runs `call` with the start
 * mask, and gives the place back: a successful exec does not return. `real` is as PIN_REAL()
 * answers. */
#define PIN_UNPINNED(type, failure, real, call)                                                    \
    do {                                                                                           \
        if (!(real)) {                                                                             \
            errno = ENOSYS;                                                                        \
            return failure;                                                                        \
        }                                                                                          \
        bool unpinned_ = pin_process_active() && pin_process_unpin_thread();                       \
        type result_ = call;                                                                       \
        if (unpinned_)                                                                             \
            pin_process_repin_thread();                                                            \
        return result_;                                                                            \
    } while (0)

/* The next definition of `name` after ours, for functions of an MPI library. One that was opened
 * with RTLD_LOCAL (an interpreter's extension module needs it) is in no scope but its users': then
 * the loaded objects are asked one by one. NULL: there is none. */
void *pin_next(const char *name);

/* The same for a variable. A program that names it holds the only copy that counts (a copy
 * relocation), so the search begins with the program. */
void *pin_next_variable(const char *name);

/* The interposed functions of the same names, for the code at `caller`. */
int pin_pthread_getaffinity(pthread_t thread, size_t size, cpu_set_t *set, const void *caller);
int pin_pthread_setaffinity(pthread_t thread, size_t size, const cpu_set_t *set,
                            const void *caller);

/* Finds the functions behind the exec family before they are needed. */
void pin_resolve_process_calls(void);

#endif
