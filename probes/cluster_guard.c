#include "cluster_guard.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "first_line.h"

static char text[512];
static volatile int status;
static int launcher = -1; /* process file descriptor of mpirun or of its daemon on this node */

/* mpirun waits for ever for the daemon of a node that has vanished: it is given a few seconds to end by itself. */
static void end_launcher(void)
{
    const int patience_ms[] = {4000, 3000}, signals[] = {SIGTERM, SIGKILL};
    if (launcher < 0 || fork() != 0) {
        return;
    }
    setsid(); /* or it is killed with the rank */
    dup2(launcher, 0);
    close_range(1, ~0u, 0); /* the launcher waits until nobody can write to it */
    for (int i = 0; i < 2; i++) {
        struct pollfd ended = {.fd = 0, .events = POLLIN};
        if (poll(&ended, 1, patience_ms[i]) != 0) {
            break;
        }
        syscall(SYS_pidfd_send_signal, 0, signals[i], NULL, 0);
    }
    _exit(0);
}

static void over(int number)
{
    (void)number;
    if (status != 0) {
        end_launcher();
    }
    if (text[0] != '\0' && write(STDERR_FILENO, text, strlen(text)) < 0) {
        /* nobody reads any more */
    }
    _exit(status);
}

static bool is_launcher(pid_t pid)
{
    static const char *const names[] = {"mpirun", "mpiexec", "orterun", "orted", "prterun", "prted", "hydra_pmi_proxy"};
    char path[32], name[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    first_line(path, name, sizeof name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0) { /* also mpirun.openmpi */
            return true;
        }
    }
    return false;
}

static void start(double seconds)
{
    static bool ready;
    if (!ready) {
        launcher = is_launcher(getppid()) ? (int)syscall(SYS_pidfd_open, getppid(), 0) : -1;
        struct sigaction action = {.sa_handler = over};
        sigaction(SIGALRM, &action, NULL);
        ready = true;
    }
    const struct itimerval limit = {
        .it_value = {(time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)}};
    setitimer(ITIMER_REAL, &limit, NULL);
}

void guard(double seconds, const char *format, ...)
{
    char prepared[sizeof text - 16]; /* the alarm of the call before may still come */
    va_list args;
    va_start(args, format);
    vsnprintf(prepared, sizeof prepared, format, args);
    va_end(args);
    guard_off();
    snprintf(text, sizeof text, "servet-probe: %s\n", prepared);
    status = 1;
    start(seconds);
}

void guard_silently(double seconds, int code)
{
    guard_off();
    text[0] = '\0';
    status = code;
    start(seconds);
}

void guard_off(void)
{
    start(0);
}
