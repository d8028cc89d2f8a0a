/* Interposed: functions of which libc has two by one name.
 *
 * A program asks for the version that it was linked against. A name in the base version takes the
 * place of all of them, so the old function's callers would get ours, which behaves as the new one
 * (glibc, elf/dl-lookup.c, check_match(): a definition without a version fits every reference).
 * These names therefore have libc's own versions in the shim (shim.map), and each of them leads to
 * the function of libc that it would without us:
 *
 *   sched_getaffinity, sched_setaffinity,
 *   pthread_getaffinity_np, -setaffinity_np   2.3.3: no size, a mask has 1,024 bits
 *   posix_spawn, posix_spawnp                 to 2.14: a script without `#!` is run by /bin/sh
 *   lio_listio, lio_listio64                  to 2.3.4: the single requests of a list do not notify
 *   timer_create                              to 2.3.2 with 64 bits: a timer is an int
 *   popen                                     2.0 (i386): a FILE of the old layout
 *   pthread_create                            2.0 (i386): attributes of the old layout
 *
 * The other architectures that the shim has a system call for came when glibc had the new functions
 * only. tests/preload/old_versions compares this list with libc's. */
#include <aio.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <time.h>

#include "preload/interpose/interpose.h"
#include "preload/place/process.h"

/* `name`@`version` with the body that follows. */
#define AT_VERSION(type, tag, name, version, parameters)                                           \
    __asm__(".symver pin_" #name "_" #tag ", " #name "@" version);                                 \
    PIN_EXPORT type pin_##name##_##tag parameters;                                                 \
    PIN_EXPORT type pin_##name##_##tag parameters

#define OLD(type, failure, tag, name, version, parameters, arguments)                              \
    AT_VERSION(type, tag, name, version, parameters)                                               \
    {                                                                                              \
        static type(*real) parameters;                                                             \
        PIN_UNPINNED(type, failure, PIN_REAL_OLD(real, #name, version), real arguments);           \
    }

/* The function of today under a version that it had before. */
#define SAME(type, tag, name, version, parameters, arguments)                                      \
    AT_VERSION(type, tag, name, version, parameters)                                               \
    {                                                                                              \
        return name arguments;                                                                     \
    }

#if defined(__GLIBC__) && (defined(__i386__) || (defined(__x86_64__) && !defined(__ILP32__)))

#ifdef __i386__
#define FIRST_SPAWN "GLIBC_2.2"
#define FIRST_LISTIO "GLIBC_2.1"
#else
#define FIRST_SPAWN "GLIBC_2.2.5"
#define FIRST_LISTIO "GLIBC_2.2.5"
#endif

/* The new functions' answer for a mask of the old ones' size, as glibc makes theirs. */
#define OLD_MASK_BYTES 128
#define CALLER __builtin_return_address(0)

AT_VERSION(int, old, sched_getaffinity, "GLIBC_2.3.3", (pid_t tid, cpu_set_t *set))
{
    return pin_sched_getaffinity(tid, OLD_MASK_BYTES, set, CALLER);
}

AT_VERSION(int, old, sched_setaffinity, "GLIBC_2.3.3", (pid_t tid, const cpu_set_t *set))
{
    return pin_sched_setaffinity(tid, OLD_MASK_BYTES, set, CALLER);
}

AT_VERSION(int, old, pthread_getaffinity_np, "GLIBC_2.3.3", (pthread_t thread, cpu_set_t *set))
{
    return pin_pthread_getaffinity(thread, OLD_MASK_BYTES, set, CALLER);
}

AT_VERSION(int, old, pthread_setaffinity_np, "GLIBC_2.3.3",
           (pthread_t thread, const cpu_set_t *set))
{
    return pin_pthread_setaffinity(thread, OLD_MASK_BYTES, set, CALLER);
}

AT_VERSION(int, sized, pthread_getaffinity_np, "GLIBC_2.3.4",
           (pthread_t thread, size_t size, cpu_set_t *set))
{
    return pin_pthread_getaffinity(thread, size, set, CALLER);
}

AT_VERSION(int, sized, pthread_setaffinity_np, "GLIBC_2.3.4",
           (pthread_t thread, size_t size, const cpu_set_t *set))
{
    return pin_pthread_setaffinity(thread, size, set, CALLER);
}

OLD(int, ENOSYS, old, posix_spawn, FIRST_SPAWN,
    (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
     const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]),
    (pid, path, actions, attributes, arguments, environment))
OLD(int, ENOSYS, old, posix_spawnp, FIRST_SPAWN,
    (pid_t * pid, const char *file, const posix_spawn_file_actions_t *actions,
     const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]),
    (pid, file, actions, attributes, arguments, environment))

#define LISTIO(type)                                                                               \
    (int mode, struct type *const list[], int count, struct sigevent *restrict event)
OLD(int, -1, old, lio_listio, FIRST_LISTIO, LISTIO(aiocb), (mode, list, count, event))
OLD(int, -1, old, lio_listio64, FIRST_LISTIO, LISTIO(aiocb64), (mode, list, count, event))
SAME(int, checked, lio_listio, "GLIBC_2.4", LISTIO(aiocb), (mode, list, count, event))
SAME(int, checked, lio_listio64, "GLIBC_2.4", LISTIO(aiocb64), (mode, list, count, event))

#ifdef __x86_64__
#define TIMER (clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer)
OLD(int, -1, old, timer_create, "GLIBC_2.2.5", TIMER, (clock, event, timer))
SAME(int, pointer, timer_create, "GLIBC_2.3.3", TIMER, (clock, event, timer))
#else
#define CREATE                                                                                     \
    (pthread_t * thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
OLD(FILE *, NULL, old, popen, "GLIBC_2.0", (const char *command, const char *mode), (command, mode))
OLD(int, EAGAIN, old, pthread_create, "GLIBC_2.0", CREATE, (thread, attributes, start, argument))
SAME(int, extended, pthread_create, "GLIBC_2.1", CREATE, (thread, attributes, start, argument))
#endif

#endif
