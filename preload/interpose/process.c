/* Interposed: the ways to make a process, so that no child is jailed on the one PU of the thread
 * that made it. It gets the mask the process was started with; if it loads the shim too, it starts
 * afresh from there.
 *
 *   execve and its family   after fork, vfork or in place; a vfork child shares our memory but not
 *                           our mask
 *   posix_spawn, -spawnp    glibc makes and starts the child inside itself: the calling thread,
 *                           which sleeps
 *   system, popen           until the child has started, lends it the mask
 *   wordexp                 lends the shell that it starts the mask
 *   clone, _Fork            pthread_atfork() does not see them
 *   timer_create, mq_notify, aio_read and its family, getaddrinfo_a
 *                           glibc makes the thread that does it inside itself, in the caller
 *
 * fork() itself needs no interposer: pthread_atfork() sees it, and daemon() and forkpty() with it.
 * Not seen: system calls by number (SYS_clone, SYS_fork) without an exec. */
/* aio_read and aio_read64 are two functions here, and not one by two names. */
#undef _FILE_OFFSET_BITS
#include <aio.h>
#include <alloca.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <netdb.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include <wordexp.h>

#include "preload/interpose/interpose.h"
#include "preload/place/process.h"

/* A function that runs with the process's own mask; `failure`: its answer where libc lacks it. */
#define UNPINNED(type, failure, name, parameters, arguments)                                       \
    PIN_EXPORT type name parameters                                                                \
    {                                                                                              \
        PIN_UNPINNED(type, failure, PIN_LIBC(name), arguments);                                    \
    }

/* One by which the process becomes another program. */
#define BECOMES(name, parameters, arguments)                                                       \
    PIN_EXPORT int name parameters                                                                 \
    {                                                                                              \
        pin_process_ends_here();                                                                   \
        PIN_UNPINNED(int, -1, PIN_LIBC(name), arguments);                                          \
    }

/* Declared by glibc from 2.34 on. */
PIN_EXPORT pid_t _Fork(void);
PIN_EXPORT int execveat(int folder, const char *path, char *const arguments[],
                        char *const environment[], int flags);

BECOMES(execve, (const char *path, char *const arguments[], char *const environment[]),
        (path, arguments, environment))
BECOMES(execv, (const char *path, char *const arguments[]), (path, arguments))
BECOMES(execvp, (const char *file, char *const arguments[]), (file, arguments))
BECOMES(execvpe, (const char *file, char *const arguments[], char *const environment[]),
        (file, arguments, environment))
BECOMES(fexecve, (int file, char *const arguments[], char *const environment[]),
        (file, arguments, environment))
BECOMES(execveat,
        (int folder, const char *path, char *const arguments[], char *const environment[],
         int flags),
        (folder, path, arguments, environment, flags))
UNPINNED(int, ENOSYS, posix_spawn,
         (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
          const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]),
         (pid, path, actions, attributes, arguments, environment))
UNPINNED(int, ENOSYS, posix_spawnp,
         (pid_t * pid, const char *file, const posix_spawn_file_actions_t *actions,
          const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]),
         (pid, file, actions, attributes, arguments, environment))
UNPINNED(int, -1, system, (const char *command), (command))
UNPINNED(FILE *, NULL, popen, (const char *command, const char *mode), (command, mode))
UNPINNED(int, WRDE_NOSPACE, wordexp,
         (const char *restrict words, wordexp_t *restrict out, int flags), (words, out, flags))
UNPINNED(int, -1, mq_notify, (mqd_t queue, const struct sigevent *event), (queue, event))
UNPINNED(int, -1, aio_read, (struct aiocb * block), (block))
UNPINNED(int, -1, aio_write, (struct aiocb * block), (block))
UNPINNED(int, -1, aio_fsync, (int operation, struct aiocb *block), (operation, block))

/* musl has no getaddrinfo_a(), one name for each function, and another type for the list. */
#ifdef __GLIBC__
UNPINNED(int, -1, lio_listio,
         (int mode, struct aiocb *const list[], int count, struct sigevent *restrict event),
         (mode, list, count, event))
UNPINNED(int, -1, aio_read64, (struct aiocb64 * block), (block))
UNPINNED(int, -1, aio_write64, (struct aiocb64 * block), (block))
UNPINNED(int, -1, aio_fsync64, (int operation, struct aiocb64 *block), (operation, block))
UNPINNED(int, -1, lio_listio64,
         (int mode, struct aiocb64 *const list[], int count, struct sigevent *restrict event),
         (mode, list, count, event))
UNPINNED(int, EAI_SYSTEM, getaddrinfo_a,
         (int mode, struct gaicb *list[], int count, struct sigevent *event),
         (mode, list, count, event))
#endif

static size_t count_arguments(va_list list)
{
    size_t count = 1;
    while (va_arg(list, char *)) {
        count++;
    }
    return count;
}

/* The argument list of execl and its like as an array on the stack; NULL ends it. `environment`
 * gets what follows. */
#define COLLECT(first, array, list, after)                                                         \
    do {                                                                                           \
        va_start(list, first);                                                                     \
        size_t count_ = count_arguments(list);                                                     \
        va_end(list);                                                                              \
        array = alloca((count_ + 1) * sizeof *array);                                              \
        va_start(list, first);                                                                     \
        array[0] = (char *)(uintptr_t)first;                                                       \
        for (size_t i_ = 1; i_ <= count_; i_++)                                                    \
            array[i_] = va_arg(list, char *);                                                      \
        after;                                                                                     \
        va_end(list);                                                                              \
    } while (0)

PIN_EXPORT int execl(const char *path, const char *first, ...)
{
    va_list list;
    char **arguments;
    COLLECT(first, arguments, list, (void)0);
    return execv(path, arguments);
}

PIN_EXPORT int execlp(const char *file, const char *first, ...)
{
    va_list list;
    char **arguments;
    COLLECT(first, arguments, list, (void)0);
    return execvp(file, arguments);
}

PIN_EXPORT int execle(const char *path, const char *first, ...)
{
    va_list list;
    char **arguments, **environment;
    COLLECT(first, arguments, list, environment = va_arg(list, char **));
    return execve(path, arguments, environment);
}

/* The child comes back too, and keeps the mask that it got. To a program that asks whether there is
 * such a function, ours is there where libc has none: then it is fork(). */
PIN_EXPORT pid_t _Fork(void)
{
    pid_t (*real)(void) = PIN_LIBC(_Fork);
    bool unpinned = pin_process_active() && pin_process_unpin_thread();
    pid_t child = real ? real() : fork();
    if (child == 0) {
        (void)pin_process_active(); /* its copy of ours begins anew */
    }
    if (unpinned && child != 0) {
        pin_process_repin_thread();
    }
    return child;
}

/* Which of the last three arguments there are is in `flags`; libc's own function takes all, too. */
PIN_EXPORT int clone(int (*start)(void *), void *stack, int flags, void *argument, ...)
{
    va_list list;
    va_start(list, argument);
    pid_t *parent_tid = va_arg(list, pid_t *);
    void *tls = va_arg(list, void *);
    pid_t *child_tid = va_arg(list, pid_t *);
    va_end(list);
    PIN_UNPINNED(int, -1, PIN_LIBC(clone),
                 (start, stack, flags, argument, parent_tid, tls, child_tid));
}

PIN_EXPORT int timer_create(clockid_t clock, struct sigevent *restrict event,
                            timer_t *restrict timer)
{
    if (!event || event->sigev_notify != SIGEV_THREAD) {
        return PIN_LIBC(timer_create)(clock, event, timer);
    }
    PIN_UNPINNED(int, -1, PIN_LIBC(timer_create), (clock, event, timer));
}

/* Interposed: prctl, by which a program shuts itself in a sandbox (seccomp); libseccomp and others
 * use syscall(2) with its number, which is in affinity.c.
 *
 * A sandbox kills the program for a system call that is not on its list, and ours are on none. So
 * the threads that are in it make none from then on, and what they make runs where it likes. By
 * prctl only the calling thread goes in. A sandbox that was there when the program started, as in
 * every container, is another thing (base/filter.c). A filter that is NULL
 * is a question whether the kernel has filters, and no sandbox. */

PIN_EXPORT int prctl(int option, ...)
{
    int (*real)(int, ...) = PIN_LIBC(prctl);
    unsigned long argument[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++) {
        argument[i] = va_arg(list, unsigned long);
    }
    va_end(list);
    if (option == PR_SET_SECCOMP && (argument[0] != SECCOMP_MODE_FILTER || argument[1] != 0)) {
        pin_process_shut(false);
    }
    return real(option, argument[0], argument[1], argument[2], argument[3]);
}
