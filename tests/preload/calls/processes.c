/* Calls that make processes, and what a child sees. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/preload/calls/calls.h"

extern pid_t _Fork(void) __attribute__((weak));

static void end_child(pid_t child)
{
    int status = -1;
    if (child > 0) {
        const pid_t ended = waitpid(child, &status, 0);
        say(" ended=%d status=%x", ended == child, status);
    } else {
        say(" fork=%d errno=%d", (int)child, errno);
    }
    const int none = (int)waitpid(-1, &status, WNOHANG);
    say(" none=%d/%d", none, errno);
}

/* A child says all that it sees, and may make a thread. */
int child_life(const char *kind, bool makes_threads)
{
    say(" {%s errno=%d", kind, errno);
    say_mask("mask", 0);
    say_status("Cpus_allowed_list:");
    say_self();
    say_files(true);
    if (makes_threads) {
        start_and_finish(RETURN);
    }
    say_alive(1);
    say("}");
    return 40;
}

static int cloned_life(void *makes_threads)
{
    return child_life("clone", makes_threads != NULL);
}

void forked(void)
{
    static char stack[STACK_BYTES] __attribute__((aligned(64)));
    const bool makes_threads = draw(2);
    pid_t child = -1;
    errno = KEPT_ERRNO;
    switch (draw(5)) {
    case 0:
        child = fork();
        if (child == 0) {
            exit(child_life("fork", makes_threads));
        }
        break;
    case 1:
        child = vfork();
        if (child == 0) {
            _exit(41);
        }
        break;
    case 2:
        child = _Fork ? _Fork() : fork();
        if (child == 0) {
            _exit(child_life("_Fork", false));
        }
        break;
    case 3:
        child = clone(cloned_life, stack + sizeof stack, SIGCHLD, NULL);
        break;
    default:
        child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (child == 0) {
            _exit(child_life("raw", false));
        }
    }
    end_child(child);
}

static void *body_of(void *what)
{
    (*(void (**)(void))what)();
    return NULL;
}

/* From a thread that may have a PU of its own. */
static void by_a_thread(void (*what)(void))
{
    struct task task = {0};
    if (pthread_create(&task.thread, NULL, body_of, &what) == 0) {
        finish(&task);
    }
}

void forked_by_a_thread(void)
{
    by_a_thread(forked);
}

void executed(void)
{
    char *const words[] = {"calls", "child", NULL};
    const bool by_vfork = draw(2);
    const pid_t child = by_vfork ? vfork() : fork();
    if (child == 0) {
        execv("/proc/self/exe", words);
        _exit(1);
    }
    end_child(child);
}

void executed_by_a_thread(void)
{
    by_a_thread(executed);
}

void limited(void)
{
    const rlim_t files = 4 + draw(12);
    const bool makes_first = draw(2);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {files, files};
        if (makes_first) {
            start_and_finish(RETURN);
        }
        say(" limit=%d", setrlimit(RLIMIT_NOFILE, &limit));
        if (!makes_first) {
            start_and_finish(RETURN);
        }
        int opened = 0;
        while (open("/dev/null", O_RDONLY) >= 0) {
            opened++;
        }
        say(" opened=%d errno=%d", opened, errno);
        _exit(0);
    }
    end_child(child);
}
