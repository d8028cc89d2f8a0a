/* Libc's functions behind ours. */
#include "preload/base/libc.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* One text, and no pointers, which the loader would have to relocate at each program's start. */
#define ROW(name) #name "\0"
static const char names[] = PIN_LIBC_FUNCTIONS(ROW) PIN_LIBC_OLD_FUNCTIONS(ROW);

static _Atomic(void *) found[PIN_LIBC_COUNT];
static atomic_bool all_found;

static void *look_up(enum pin_libc number)
{
    const char *name = names;
    for (unsigned i = 0; i < number; i++) {
        name += strlen(name) + 1;
    }
    if (number < PIN_LIBC_old_posix_spawn) {
        return dlsym(RTLD_NEXT, name);
    }
#ifdef PIN_LIBC_FIRST
    return dlvsym(RTLD_NEXT, name, PIN_LIBC_FIRST);
#else
    return NULL;
#endif
}

void *pin_libc_function(enum pin_libc number)
{
    void *function = atomic_load_explicit(&found[number], memory_order_acquire);
    if (!function) {
        function = look_up(number); /* two threads at once store the same */
        atomic_store_explicit(&found[number], function, memory_order_release);
    }
    return function;
}

void pin_libc_find_all(void)
{
    if (!atomic_load_explicit(&all_found, memory_order_acquire)) {
        for (unsigned number = 0; number < PIN_LIBC_COUNT; number++) {
            (void)pin_libc_function((enum pin_libc)number);
        }
        atomic_store_explicit(&all_found, true, memory_order_release);
    }
}
