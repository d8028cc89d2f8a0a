/* Shared by the interposers. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "preload/base/libc.h"
#include "preload/base/next.h"

/* The body of an interposed function that makes a process or a thread: calls `function` of libc's
 * with the start mask, and gives the place back: a successful exec does not return. */
#define PIN_UNPINNED(type, failure, function, arguments)                                           \
    do {                                                                                           \
        __typeof__(function) real_ = function;                                                     \
        if (!real_) {                                                                              \
            errno = ENOSYS;                                                                        \
            return failure;                                                                        \
        }                                                                                          \
        bool unpinned_ = pin_process_active() && pin_process_unpin_thread();                       \
        type result_ = real_ arguments;                                                            \
        if (unpinned_)                                                                             \
            pin_process_repin_thread();                                                            \
        return result_;                                                                            \
    } while (0)

/* The interposed functions of the same names, for the code at `caller`. */
int pin_pthread_getaffinity(pthread_t thread, size_t size, cpu_set_t *set, const void *caller);
int pin_pthread_setaffinity(pthread_t thread, size_t size, const cpu_set_t *set,
                            const void *caller);
