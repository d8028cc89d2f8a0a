/* A filter of system calls (seccomp) that was there before the program.
 *
 * Those of containers (Docker, Podman) answer with an error, which the shim survives. Those of
 * systemd's services (SystemCallFilter) kill: sched_setaffinity is in its set @resources, fcntl in
 * @file-system, prctl in @process. The kernel does not say what a filter does, so a child makes the
 * calls first: its parent lives, and sees how far it has come. Most filters are containers', so the
 * child takes nothing that grows with the program: it shares the program's memory.
 *
 * A filter is known by a file, for the loader has opened and read files: no program that it has
 * started is killed for that. */
#include "preload/base/filter.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/base/syscall.h"

#define NO_FILTER "\nSeccomp:\t0\n"

/* The line stands behind one of the process's groups, of which there may be thousands. */
bool pin_filter_is_there(void)
{
    static char status[4096]; /* threads have small stacks */
    const size_t overlap = strlen(NO_FILTER) - 1;
    const int file = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
    size_t kept = 0;
    ssize_t got = 0;
    bool none = false;
    while (file >= 0 && !none && (got = read(file, status + kept, sizeof status - 1 - kept)) > 0) {
        const size_t length = kept + (size_t)got;
        status[length] = '\0';
        none = strstr(status, NO_FILTER);
        kept = length < overlap ? length : overlap;
        memmove(status, status + length - kept, kept);
    }
    if (file >= 0) {
        close(file);
    }
    return !none;
}

/* -- the child -- */

/* The shim's calls that neither the loader nor a thread's birth has made; first those that end the
 * trial, then a line's. The kernel asks the filter first and refuses these arguments after that. */
enum { CALL_WAIT, CALL_KILL, LAST_OF_LINE = 5 };
static const int calls[] = {
    [CALL_WAIT] = SYS_wait4,
    [CALL_KILL] = SYS_tgkill,
    SYS_write,
    SYS_ppoll,
    SYS_rt_sigpending,
    [LAST_OF_LINE] = SYS_rt_sigtimedwait,
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_sched_getaffinity,
    SYS_getcpu,
    SYS_sched_setaffinity,
    PROFILE_SYS_FCNTL,
    PROFILE_SYS_FSTATAT,
    SYS_getdents64,
    SYS_readlinkat,
    SYS_uname,
    SYS_getrandom,
    SYS_getrusage,
    SYS_clock_gettime,
    SYS_set_mempolicy,
    SYS_migrate_pages,
    SYS_madvise,
    SYS_prctl,
    SYS_close_range,
    SYS_unshare,
    SYS_chdir,
#ifdef SYS_readlink
    SYS_readlink,
#endif
};
#define CALLS (int)(sizeof calls / sizeof *calls)

/* Parent and child share it, whatever else they do. */
static struct trial {
    atomic_int survived; /* calls */
    atomic_int runs;     /* the kernel clears it at the end of a child that shares the memory */
} * trial;

/* A child that a filter kills dumps its core: here this would be all of the program's. A limit of 0
 * is none where a program takes the dump (core_pattern); 1 is less than any has (fs/coredump.c). It
 * is the child's alone, as are its signals, all blocked: a filter's (SIGSYS) ends it nevertheless.
 * It has libc's memory of the calling thread, and writes nothing there. */
__attribute__((noreturn, no_sanitize("thread"))) static void make_calls(void)
{
    static const uint64_t limit[] = {1, 1};
    profile_syscall(SYS_prlimit64, 0, RLIMIT_CORE, (long)limit, 0, 0, 0);
    for (int i = 0; i < CALLS; i++) {
        profile_syscall(calls[i], -1, -1, -1, -1, -1, -1);
        atomic_store(&trial->survived, i + 1);
    }
    for (;;) {
        profile_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    }
}

/* As profile_syscall() with a call that makes a child, which enters make_calls() at once, on
 * whatever stack it has. */
static long call_for_child(long number, long a, long b, long c, long d, long e)
{
    const long f = 0;
#if defined(__x86_64__)
    PROFILE_RAW("\n\ttest %%rax, %%rax\n\tjnz 1f\n\txor %%ebp, %%ebp\n\tcall *%[enter]\n1:",
                , [enter] "r"(make_calls));
#elif defined(__aarch64__)
    PROFILE_RAW("\n\tcbnz x0, 1f\n\tmov x29, xzr\n\tblr %[enter]\n1:", , [enter] "r"(make_calls));
#else
    const long result = profile_syscall(number, a, b, c, d, e, f);
    if (result == 0) {
        make_calls();
    }
    return result;
#endif
}

/* A core is dumped with all processes that share its memory before Linux 5.16: these are ended.
 * There the child has a copy. */
static bool may_share(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    char release[64];
    char *minor;
    (void)profile_first_line("/proc/sys/kernel/osrelease", release, sizeof release);
    const unsigned long major = strtoul(release, &minor, 10);
    return major > 5 || (major == 5 && *minor == '.' && strtoul(minor + 1, NULL, 10) >= 16);
#else
    return false;
#endif
}

/* By the call that libc makes threads with: a filter that kills for the other one lets programs of
 * threads be. It sees no argument of clone3(). */
static long begin_child(void)
{
    static _Alignas(16) char stack[4096]; /* outlives a child that does not end */
    const bool shares = may_share();
    const uint64_t flags = shares ? CLONE_VM | CLONE_CHILD_CLEARTID : 0;
    char *const lowest = shares ? stack : NULL;
    const size_t size = shares ? sizeof stack : 0;
    long child = -ENOSYS;
#ifdef __GLIBC__
    const uint64_t request[8] = {
        [0] = flags, [2] = (uintptr_t)&trial->runs, [5] = (uintptr_t)lowest, [6] = size};
    if (strtoul(gnu_get_libc_version() + strlen("2."), NULL, 10) >= 34) {
        child = call_for_child(SYS_clone3, (long)request, sizeof request, 0, 0, 0);
    }
#endif
    return child == -ENOSYS ? call_for_child(SYS_clone, (long)flags, (long)(lowest + size), 0,
                                             (long)&trial->runs, (long)&trial->runs)
                            : child;
}

/* -- its parent -- */

/* A filter may hand a call to another program, which does not answer (SECCOMP_RET_USER_NOTIF). */
#define LONGEST_NS 500000000u

static void await(long child)
{
    static const struct timespec nap = {.tv_nsec = 1000000};
    const uint64_t until_ns = profile_now_ns() + LONGEST_NS;
    bool ended = false;
    while (!ended && profile_now_ns() < until_ns && (trial->runs || trial->survived > CALL_WAIT)) {
        profile_syscall(SYS_futex, (long)&trial->runs, FUTEX_WAIT, 1, (long)&nap, 0, 0);
        ended = trial->survived > CALL_WAIT &&
                profile_syscall(SYS_wait4, child, 0, __WALL | WNOHANG, 0, 0, 0) == child;
    }
    if (!ended && trial->survived > CALL_KILL) {
        profile_syscall(SYS_tgkill, child, child, SIGKILL, 0, 0, 0);
        profile_syscall(SYS_wait4, child, 0, __WALL, 0, 0, 0);
    }
}

/* The child begins with all signals blocked, or handlers of the program would run in it. It has no
 * signal to send at its end, so that no wait of the program's finds it. */
static bool child_lives(bool *line)
{
    sigset_t all, before;
    trial = mmap(NULL, sizeof *trial, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (trial == MAP_FAILED) {
        return false;
    }
    trial->runs = 1;
    sigfillset(&all);
    profile_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, _NSIG / 8, 0, 0);
    const long child = begin_child();
    profile_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, _NSIG / 8, 0, 0);
    if (child > 0) {
        await(child);
    }
    const bool lives = trial->survived == CALLS;
    *line = trial->survived > LAST_OF_LINE;
    munmap(trial, sizeof *trial);
    return lives;
}

bool pin_filter_spares_us(bool *line)
{
    *line = !pin_filter_is_there();
    return *line || child_lives(line);
}
