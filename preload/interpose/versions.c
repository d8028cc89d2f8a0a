/* Interposed: functions of which libc has two by one name.
 *
 * A program asks for the version that it was linked against. A name in the base version takes the
 * place of all of them, so the old function's callers would get ours, which behaves as the new one
 * (glibc, elf/dl-lookup.c, check_match(): a definition without a version fits every reference).
 * These names therefore have libc's own versions in the shim (shim.map). Each leads to the function
 * of libc that it would without us: posix_spawn() and posix_spawnp() to those of before 2.15, by
 * which a script without `#!` is run by /bin/sh; the others to the functions of today, which had
 * these versions before. What libc had until 2004 (to 2.3.4) is not here and goes to libc.
 *
 * The other architectures that the shim has a system call for came when glibc had the new functions
 * only. tests/preload/old_versions compares this list with libc's. */
#include <aio.h>
#include <signal.h>
#include <spawn.h>
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
        PIN_UNPINNED(type, failure, PIN_LIBC_OLD(name), arguments);                                \
    }

/* The function of today under a version that it had before. */
#define SAME(type, tag, name, version, parameters, arguments)                                      \
    AT_VERSION(type, tag, name, version, parameters)                                               \
    {                                                                                              \
        return name arguments;                                                                     \
    }

#ifdef PIN_LIBC_FIRST

#define CALLER __builtin_return_address(0)

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

OLD(int, ENOSYS, old, posix_spawn, PIN_LIBC_FIRST,
    (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
     const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]),
    (pid, path, actions, attributes, arguments, environment))
OLD(int, ENOSYS, old, posix_spawnp, PIN_LIBC_FIRST,
    (pid_t * pid, const char *file, const posix_spawn_file_actions_t *actions,
     const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]),
    (pid, file, actions, attributes, arguments, environment))

#define LISTIO(type)                                                                               \
    (int mode, struct type *const list[], int count, struct sigevent *restrict event)
SAME(int, checked, lio_listio, "GLIBC_2.4", LISTIO(aiocb), (mode, list, count, event))
SAME(int, checked, lio_listio64, "GLIBC_2.4", LISTIO(aiocb64), (mode, list, count, event))

#ifdef __x86_64__
SAME(int, pointer, timer_create, "GLIBC_2.3.3",
     (clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer),
     (clock, event, timer))
#else
SAME(int, extended, pthread_create, "GLIBC_2.1",
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument),
     (thread, attributes, start, argument))
#endif

#endif
