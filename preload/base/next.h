/* The next definition of a name after ours, for what takes the place of a function of libc's or of
 * an MPI library's (shim.map and trace.map list the same names). */
#pragma once

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

/* Functions of an MPI library. One that was opened with RTLD_LOCAL (an interpreter's extension
 * module needs it) is in no scope but its users': then the loaded objects are asked one by one.
 * NULL: there is none. */
void *pin_next(const char *name);

/* The same for a variable. A program that names it holds the only copy that counts (a copy
 * relocation), so the search begins with the program. */
void *pin_next_variable(const char *name);
