/* A threads program that makes children in every way from its main thread and from a worker, each of which prints the
 * mask it has:   child WHO HOW PUS   (the child is `sh`, which reads /proc by itself). Then "self WHO PUS". */
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

#include "report.h"

extern char **environ;

#define SCRIPT                                                                                                         \
    "while read -r name list; do [ $name = Cpus_allowed_list: ] && echo child %s %s $list; done < /proc/self/status"

static char *script_of(const char *who, const char *how)
{
    char *script;
    if (asprintf(&script, SCRIPT, who, how) < 0)
        exit(3);
    return script;
}

static void wait_for(pid_t pid)
{
    waitpid(pid, NULL, 0);
}

static void by_fork(const char *who)
{
    char pus[256], line[512];
    pid_t pid = fork();
    if (pid == 0) {
        report_allowed("/proc/thread-self/status", pus, sizeof pus);
        snprintf(line, sizeof line, "child %s fork %s\n", who, pus);
        report_line(line);
        _exit(0);
    }
    wait_for(pid);
}

static void by_vfork(const char *who)
{
    char *arguments[] = {"sh", "-c", script_of(who, "vfork"), NULL};
    pid_t pid = vfork();
    if (pid == 0) {
        execv("/bin/sh", arguments);
        _exit(1);
    }
    wait_for(pid);
}

static void by_failed_exec(const char *who)
{
    char pus[256], line[512];
    execl("/nonexistent", "x", NULL);
    report_allowed("/proc/thread-self/status", pus, sizeof pus);
    snprintf(line, sizeof line, "self %s failed-exec %s\n", who, pus);
    report_line(line);
}

static void by_execlp(const char *who)
{
    char *script = script_of(who, "execlp");
    pid_t pid = fork();
    if (pid == 0) {
        execlp("sh", "sh", "-c", script, NULL);
        _exit(1);
    }
    wait_for(pid);
}

static void by_spawn(const char *who)
{
    pid_t pid;
    char *arguments[] = {"sh", "-c", script_of(who, "posix_spawn"), NULL};
    if (posix_spawnp(&pid, "sh", NULL, NULL, arguments, environ) == 0)
        wait_for(pid);
}

static void by_popen(const char *who)
{
    char line[512];
    FILE *pipe = popen(script_of(who, "popen"), "r");
    if (pipe && fgets(line, sizeof line, pipe))
        report_line(line);
    if (pipe)
        pclose(pipe);
}

static void in_every_way(const char *who)
{
    char pus[256], line[512];
    by_fork(who);
    by_vfork(who);
    by_execlp(who);
    by_spawn(who);
    by_popen(who);
    if (system(script_of(who, "system")) != 0)
        report_line("system failed\n");
    by_failed_exec(who);
    report_allowed("/proc/thread-self/status", pus, sizeof pus);
    snprintf(line, sizeof line, "self %s after %s\n", who, pus);
    report_line(line);
}

static void *work(void *unused)
{
    (void)unused;
    in_every_way("worker");
    return NULL;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0)
        return 4;
    pthread_join(thread, NULL);
    in_every_way("main");
    return 0;
}
