/* Programs that bind their own threads, ask where they are, or shut themselves in:
 *
 *   stranger outside PU     taskset from outside binds the process before its first thread
 *   stranger defaults PU    the default attributes bind new threads
 *   stranger system PU      taskset from outside binds the main thread while system() runs
 *   stranger rebind PU      a worker binds itself, asks ("count 1 N"), makes thread 2
 *   stranger cancelled      the main thread is to be cancelled when it makes a thread: "made"
 *   stranger probe          asks whether there are filters, by prctl and by seccomp
 *   stranger worker         thread 2 shuts itself in where what places threads kills; makes thread
 *                           3
 *   stranger everybody      the main thread shuts in all, with two workers that wait; makes thread
 *                           3
 *   stranger vfork          a vfork child shuts itself in and becomes true
 *
 * All report where their main thread (0) and worker (1) are at the end. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "report.h"

static cpu_set_t chosen;
static pthread_barrier_t shut;

static void must(int failed)
{
    if (failed) {
        fprintf(stderr, "stranger: %s\n", strerror(errno));
        exit(4);
    }
}

static void *reports(void *argument)
{
    report_worker(0, (int)(long)argument);
    return NULL;
}

static void one_thread(void *(*work)(void *), long number)
{
    pthread_t thread;
    must(pthread_create(&thread, NULL, work, (void *)number));
    pthread_join(thread, NULL);
}

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
    one_thread(reports, 2);
    return argument;
}

static void made(void *yes)
{
    report_line(*(volatile int *)yes ? "made\n" : "not made\n");
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
static int shut_in(unsigned flags, int asking)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, asking ? SYS_sched_getaffinity : SYS_sched_setaffinity,
                 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    return flags ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program)
                 : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void *shuts_itself_in(void *argument)
{
    must(shut_in(0, 1));
    one_thread(reports, 3);
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
        must(pthread_create(&thread[i], NULL, waits, (void *)(i + 1)));
    }
    pthread_barrier_wait(&shut);
    must(shut_in(SECCOMP_FILTER_FLAG_TSYNC, 1));
    pthread_barrier_wait(&shut);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    one_thread(reports, 3);
    report_worker(0, 0);
    return 0;
}

static void by_vfork(void)
{
    int status;
    one_thread(reports, 2);
    pid_t pid = vfork();
    if (pid == 0) {
        (void)!shut_in(0, 0);
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
    CPU_ZERO(&chosen);
    CPU_SET((size_t)atoi(pu), &chosen);
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
        one_thread(reports, 2);
        taskset(pu);
    } else if (strcmp(what, "rebind") == 0) {
        one_thread(rebinds, 1);
        return 0;
    } else if (strcmp(what, "probe") == 0) {
        probe();
    } else if (strcmp(what, "worker") == 0) {
        one_thread(shuts_itself_in, 2);
    } else if (strcmp(what, "vfork") == 0) {
        by_vfork();
    } else {
        return 2;
    }
    one_thread(reports, 1);
    report_worker(0, 0);
    return 0;
}
