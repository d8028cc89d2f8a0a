/* Limits of waits (mpi.h), by the alarm of the process: a rank that hangs does so inside the
 * MPI library, where nothing but a signal reaches it. The handler therefore only does what is
 * allowed in one: it writes a line that was prepared before, and ends the process. */
#include "probes/mpi/mpi.h"
#include "profile/processes/process.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <unistd.h>

/* The last line of the alarm; written while no alarm is set. */
static char last_words[512];
static volatile int end_status;
static int launcher = -1; /* process file descriptor of mpirun or of its daemon on this node */

/* Calls newer than the oldest headers (Linux 4.18); their numbers are the same everywhere. */
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static void close_from(int first)
{
    if (syscall(SYS_close_range, first, ~0u, 0) == 0) {
        return;
    }
    /* Before Linux 5.9. */
    for (int file = first, end = (int)sysconf(_SC_OPEN_MAX); file < end; file++) {
        close(file);
    }
}

/* mpirun waits for ever for the daemon of a node that has vanished: it is given a few seconds to
 * end by itself. */
static void end_launcher(void)
{
    const int patience_ms[] = {4000, 3000}, signals[] = {SIGTERM, SIGKILL};
    if (launcher < 0 || fork() != 0) {
        return;
    }
    setsid(); /* or it is killed with the rank */
    dup2(launcher, 0);
    close_from(1); /* the launcher waits until all writers have closed it */
    for (int i = 0; i < 2; i++) {
        struct pollfd ended = {.fd = 0, .events = POLLIN};
        if (poll(&ended, 1, patience_ms[i]) != 0) {
            break;
        }
        syscall(SYS_pidfd_send_signal, 0, signals[i], NULL, 0);
    }
    _exit(0);
}

static void end_late(int number)
{
    (void)number;
    if (end_status != 0) {
        end_launcher();
    }
    if (last_words[0] != '\0' && write(STDERR_FILENO, last_words, strlen(last_words)) < 0) {
        /* the reader has gone */
    }
    _exit(end_status);
}

static bool is_launcher(pid_t pid)
{
    static const char *const names[] = {"mpirun",  "mpiexec", "orterun",        "orted",
                                        "prterun", "prted",   "hydra_pmi_proxy"};
    struct profile_stat it = {0};
    (void)profile_stat_read(pid, pid, &it);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncmp(it.name, names[i], strlen(names[i])) == 0) { /* also mpirun.openmpi */
            return true;
        }
    }
    return false;
}

static void set_timer(double seconds)
{
    static bool ready;
    if (!ready) {
        launcher = is_launcher(getppid()) ? (int)syscall(SYS_pidfd_open, getppid(), 0) : -1;
        struct sigaction action = {.sa_handler = end_late};
        sigaction(SIGALRM, &action, NULL);
        ready = true;
    }
    const struct itimerval limit = {
        .it_value = {(time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)}};
    setitimer(ITIMER_REAL, &limit, NULL);
}

void probe_deadline_set(double seconds, const char *format, ...)
{
    char prepared[sizeof last_words - 16]; /* the alarm of the call before may still come */
    va_list args;
    va_start(args, format);
    vsnprintf(prepared, sizeof prepared, format, args);
    va_end(args);
    probe_deadline_clear();
    snprintf(last_words, sizeof last_words, "servet-probe: %s\n", prepared);
    end_status = 1;
    set_timer(seconds);
}

void probe_deadline_set_silently(double seconds, int code)
{
    probe_deadline_clear();
    last_words[0] = '\0';
    end_status = code;
    set_timer(seconds);
}

void probe_deadline_clear(void)
{
    set_timer(0);
}
