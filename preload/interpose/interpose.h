/* What the interposers share: the mark that makes a function take the place of libc's or a
 * library's (shim.map and trace.map list the same names), and the ways to the function behind
 * it. */
#ifndef SERVET_PRELOAD_INTERPOSE_INTERPOSE_H
#define SERVET_PRELOAD_INTERPOSE_INTERPOSE_H

#include <dlfcn.h>

#define PIN_EXPORT __attribute__((visibility("default")))

/* Looks `name` up once, as the next definition after ours, and keeps the answer in `*real` (a
 * function pointer of the right type, NULL at first). Two threads that do so at once store the same
 * value. NULL when no object has the function. */
#define PIN_REAL(real, name)                                                                       \
    ({                                                                                             \
        __typeof__(real) pin_found_ = __atomic_load_n(&(real), __ATOMIC_ACQUIRE);                  \
        if (!pin_found_) {                                                                         \
            pin_found_ = (__typeof__(real))dlsym(RTLD_NEXT, name);                                 \
            __atomic_store_n(&(real), pin_found_, __ATOMIC_RELEASE);                               \
        }                                                                                          \
        pin_found_;                                                                                \
    })

/* The next definition of `name` after ours, for functions of an MPI library. One that was opened
 * with RTLD_LOCAL (an interpreter's extension module needs it) is in no scope but its users': then
 * the loaded objects are asked one by one. NULL: there is none. */
void *pin_next(const char *name);

/* The same for a variable. A program that names it holds the only copy that counts (a copy
 * relocation), so the search begins with the program. */
void *pin_next_variable(const char *name);

/* Finds the functions behind the exec family before they are needed. */
void pin_resolve_process_calls(void);

#endif
