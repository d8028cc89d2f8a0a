/* The functions behind the interposed ones: the next definition of the name after ours. */
#ifndef SERVET_PRELOAD_INTERPOSE_REAL_H
#define SERVET_PRELOAD_INTERPOSE_REAL_H

#include <dlfcn.h>

/* Looks `name` up once and keeps the answer in `*slot` (a function pointer of the right type, NULL
 * at first). Two threads that do so at once store the same value. NULL when no object has the
 * function. */
#define PIN_REAL(slot, name)                                                                       \
    ({                                                                                             \
        __typeof__(slot) pin_found_ = __atomic_load_n(&(slot), __ATOMIC_ACQUIRE);                  \
        if (!pin_found_) {                                                                         \
            pin_found_ = (__typeof__(slot))dlsym(RTLD_NEXT, name);                                 \
            __atomic_store_n(&(slot), pin_found_, __ATOMIC_RELEASE);                               \
        }                                                                                          \
        pin_found_;                                                                                \
    })

#endif
