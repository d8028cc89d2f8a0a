/* Early returns: TRY() passes an error on; FREED and FREED_BY() give a variable's memory back where
 * its scope ends, whichever return that is, unless TAKE() hands it on. */
#pragma once

#include <stdlib.h>
#include <string.h>

/* Returns -errno from the function if the call does; every other value is dropped. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const int tried_ = (call);                                                                 \
        if (tried_ < 0) {                                                                          \
            return tried_;                                                                         \
        }                                                                                          \
    } while (0)

/* The pointer's type is any: its value is copied, not read through a pointer of another type. */
static inline void profile_free_at(const void *pointer)
{
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    free(memory);
}

/* The variable's value; the variable is empty from then on: its scope gives nothing back. */
#define TAKE(variable)                                                                             \
    __extension__({                                                                                \
        const __typeof__(variable) taken_ = (variable);                                            \
        memset(&(variable), 0, sizeof(variable));                                                  \
        taken_;                                                                                    \
    })

/* Before a declaration of pointers to memory (NULL: none) … */
#define FREED FREED_BY(profile_free_at)
/* … or of a struct, with the function that gives back what it owns. */
#define FREED_BY(function) __attribute__((cleanup(function), unused)) /* its scope uses it */
