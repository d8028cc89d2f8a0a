/* Libc's functions behind ours, found by name.
 *
 * dlsym() takes the loader's lock, which a thread has throughout a dlopen(): also while the
 * constructors of the library run, which may wait for a thread of the program. So all are found
 * before the first thread is made, and later calls look nothing up. Functions that we call where a
 * thread may have little stack are among them: the loader takes 2 KiB and more to find one at its
 * first call. */
#pragma once

#include <features.h>

/* The first version of libc on these architectures. Functions that have changed since are asked for
 * by it, too (interpose/versions.c). */
#if defined(__GLIBC__) && defined(__i386__)
#define PIN_LIBC_FIRST "GLIBC_2.2"
#elif defined(__GLIBC__) && defined(__x86_64__) && !defined(__ILP32__)
#define PIN_LIBC_FIRST "GLIBC_2.2.5"
#endif

// clang-format off
#define PIN_LIBC_FUNCTIONS(ROW)                                                                    \
    ROW(pthread_create) ROW(pthread_join) ROW(thrd_create)                                         \
    ROW(pthread_getaffinity_np) ROW(pthread_setaffinity_np)                                        \
    ROW(pthread_getattr_default_np) ROW(pthread_attr_init) ROW(pthread_attr_destroy)               \
    ROW(pthread_attr_getaffinity_np) ROW(pthread_attr_setaffinity_np)                              \
    ROW(sched_getaffinity) ROW(sched_setaffinity) ROW(prctl)                                       \
    ROW(execve) ROW(execv) ROW(execvp) ROW(execvpe) ROW(fexecve) ROW(execveat)                     \
    ROW(posix_spawn) ROW(posix_spawnp) ROW(system) ROW(popen) ROW(wordexp) ROW(_Fork) ROW(clone)   \
    ROW(timer_create) ROW(mq_notify) ROW(getaddrinfo_a)                                            \
    ROW(aio_read) ROW(aio_write) ROW(aio_fsync) ROW(lio_listio)                                    \
    ROW(aio_read64) ROW(aio_write64) ROW(aio_fsync64) ROW(lio_listio64)
#define PIN_LIBC_OLD_FUNCTIONS(ROW) ROW(posix_spawn) ROW(posix_spawnp)
// clang-format on

enum pin_libc {
#define PIN_LIBC_ROW(name) PIN_LIBC_##name,
    PIN_LIBC_FUNCTIONS(PIN_LIBC_ROW)
#undef PIN_LIBC_ROW
#define PIN_LIBC_ROW(name) PIN_LIBC_old_##name,
        PIN_LIBC_OLD_FUNCTIONS(PIN_LIBC_ROW)
#undef PIN_LIBC_ROW
            PIN_LIBC_COUNT
};

/* NULL: this libc has no such function. */
#define PIN_LIBC(name) ((__typeof__(&(name)))pin_libc_function(PIN_LIBC_##name))
/* The one that programs got which were linked long ago (interpose/versions.c). */
#define PIN_LIBC_OLD(name) ((__typeof__(&(name)))pin_libc_function(PIN_LIBC_old_##name))
void *pin_libc_function(enum pin_libc number);

/* Finds all of them, once; called where a thread is about to be made, without a lock of ours. */
void pin_libc_find_all(void);
