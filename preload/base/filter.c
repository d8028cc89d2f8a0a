/* A filter of system calls (seccomp) that was there before the program.
 *
 * Those of containers (Docker, Podman) answer with an error, which the shim survives. Those of
 * systemd's services (SystemCallFilter) kill: sched_setaffinity is in its set @resources, fcntl in
 * @file-system, prctl in @process. The kernel does not say what a filter does, so a child makes the
 * calls first: its parent lives, and sees how it ended.
 *
 * It is known by a file, for the loader has opened and read files: no program that it has started
 * is killed for that. */
#include "preload/base/filter.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "profile/base/file.h"
#include "profile/base/syscall.h"

bool pin_filter_is_there(void)
{
    static char status[4096]; /* threads have small stacks */
    return !profile_read_small("/proc/thread-self/status", status, sizeof status) ||
           !strstr(status, "\nSeccomp:\t0\n");
}

/* The shim's calls that neither the loader nor a thread's birth has made. The kernel asks the
 * filter first and refuses these arguments after that. A child that is killed leaves no core. */
static void try_calls(void)
{
    static const int calls[] = {
        SYS_sched_getaffinity, SYS_sched_setaffinity, PROFILE_SYS_FCNTL, PROFILE_SYS_FSTATAT,
        SYS_getdents64,        SYS_readlinkat,        SYS_uname,         SYS_tgkill,
        SYS_set_mempolicy,     SYS_migrate_pages,     SYS_madvise,
    };
    profile_syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        profile_syscall(calls[i], -1, -1, -1, -1, -1, -1);
    }
}

/* It has no signal to send at its end, so that no wait of the program's finds it. Its memory is its
 * own: of processes that share theirs, kernels before 5.16 end all where one dumps its core.
 * Signals are blocked, or handlers of the program would run in it; a filter's (SIGSYS) ends it all
 * the same. */
static bool child_lives(void)
{
    sigset_t all, before;
    int status = -1;
    sigfillset(&all);
    profile_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, _NSIG / 8, 0, 0);
    const long child = profile_syscall(SYS_clone, 0, 0, 0, 0, 0, 0);
    if (child == 0) {
        try_calls();
        profile_syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    }
    const bool has_ended =
        child > 0 && profile_syscall(SYS_wait4, child, (long)&status, __WALL, 0, 0, 0) == child;
    profile_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, _NSIG / 8, 0, 0);
    return has_ended && status == 0;
}

bool pin_filter_spares_us(void)
{
    return !pin_filter_is_there() || child_lives();
}
