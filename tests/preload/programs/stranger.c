/* Programs that bind their own threads, ask where they are, or shut themselves in:
 *
 *   stranger outside PU     taskset from outside binds the process before its first thread
 *   stranger defaults PU    the default attributes bind new threads
 *   stranger system PU      taskset from outside binds the main thread while system() runs
 *   stranger rebind PU      a worker binds itself, asks ("count 1 N"), makes thread 2
 *   stranger cancelled      the main thread is to be cancelled when it makes a thread: "made"
 *   stranger probe          asks whether there are filters, by prctl and by seccomp
 *   stranger worker [0]     thread 2 shuts itself in where what places threads kills; makes thread
 *                           3
 *   stranger everybody      the main thread shuts in all, with two workers that wait; makes thread
 *                           3
 *   stranger vfork [0]      a vfork child shuts itself in and becomes true
 *
 * All report where their main thread (0) and worker (1) are at the end. */
#include <stdbool.h>
#include <sys/wait.h>

#include "filter.h"
#include "threads.h"

static cpu_set_t chosen;
static pthread_barrier_t shut;

static void taskset(const char *pu)
{
    char command[64];
    snprintf(command, sizeof command, "taskset -pc %s %d >/dev/null", pu, (int)getpid());
    must(system(command));
}

static void *rebinds(void *argument)
{
    cpu_set_t set;
    must(sched_setaffinity(0, sizeof chosen, &chosen));
    must(sched_getaffinity(0, sizeof set, &set));
    report_count(1, CPU_COUNT(&set));
    report_worker(0, 1);
    run_reporter(2);
    return argument;
}

static void made(void *yes)
{
    report_line("%smade\n", *(volatile int *)yes ? "" : "not ");
}

static int cancelled(void)
{
    pthread_t thread;
    static volatile int yes;
    pthread_cleanup_push(made, (void *)(uintptr_t)&yes);
    pthread_cancel(pthread_self());
    yes = pthread_create(&thread, NULL, reports, (void *)1) == 0;
    pthread_join(thread, NULL);
    pthread_cleanup_pop(0);
    return 5;
}

/* Kills for what places threads, with `asking` also for looking where they are; the rest is
 * free. */
static int shut_in(int flags, bool asking)
{
    return REFUSE(SECCOMP_RET_KILL_PROCESS, flags, SYS_sched_setaffinity,
                  asking ? SYS_sched_getaffinity : SYS_sched_setaffinity);
}

static void *shuts_itself_in(void *argument)
{
    must(shut_in(argument ? 0 : BY_PRCTL, true));
    run_reporter(3);
    return argument;
}

static void *waits(void *argument)
{
    pthread_barrier_wait(&shut);
    pthread_barrier_wait(&shut);
    report_worker(0, (int)(long)argument);
    return NULL;
}

static int everybody(void)
{
    pthread_t thread[2];
    pthread_barrier_init(&shut, NULL, 3);
    for (long i = 0; i < 2; i++) {
        thread[i] = begin_thread(waits, (void *)(i + 1));
    }
    pthread_barrier_wait(&shut);
    must(shut_in(SECCOMP_FILTER_FLAG_TSYNC, true));
    pthread_barrier_wait(&shut);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    run_reporter(3);
    report_worker(0, 0);
    return 0;
}

static void by_vfork(bool by_prctl)
{
    int status;
    run_reporter(2);
    pid_t pid = vfork();
    if (pid == 0) {
        (void)!shut_in(by_prctl ? BY_PRCTL : 0, false);
        execl("/bin/true", "true", NULL);
        _exit(9);
    }
    must(waitpid(pid, &status, 0) != pid);
    report_count(2, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void probe(void)
{
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == 0);
    must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, -1, NULL) == 0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *pu = argc > 2 ? argv[2] : "0";
    pthread_attr_t attributes;
    chosen = only_pu(pu);
    if (strcmp(what, "cancelled") == 0) {
        return cancelled();
    }
    if (strcmp(what, "everybody") == 0) {
        return everybody();
    }
    if (strcmp(what, "outside") == 0) {
        taskset(pu);
    } else if (strcmp(what, "defaults") == 0) {
        pthread_attr_init(&attributes);
        pthread_attr_setaffinity_np(&attributes, sizeof chosen, &chosen);
        must(pthread_setattr_default_np(&attributes));
    } else if (strcmp(what, "system") == 0) {
        run_reporter(2);
        taskset(pu);
    } else if (strcmp(what, "rebind") == 0) {
        run_thread(rebinds, NULL);
        return 0;
    } else if (strcmp(what, "probe") == 0) {
        probe();
    } else if (strcmp(what, "worker") == 0) {
        run_thread(shuts_itself_in, argc > 2 ? pu : NULL);
    } else if (strcmp(what, "vfork") == 0) {
        by_vfork(argc > 2);
    } else {
        return 2;
    }
    run_reporter(1);
    report_worker(0, 0);
    return 0;
}
