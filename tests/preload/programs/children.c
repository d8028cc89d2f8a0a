/* A threads program that makes children in every way from its main thread and from a worker, each
 * of which prints the
 * mask it has:   child WHO HOW PUS   (the child is `sh`, which reads /proc by itself). Then "self
 * WHO PUS". */
#include <aio.h>
#include <fcntl.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <wordexp.h>

#include "threads.h"

extern char **environ;

#define SCRIPT                                                                                     \
    "while read -r name list; do [ $name = Cpus_allowed_list: ] && echo child %s %s $list; done "  \
    "< /proc/self/status"

static char *script_of(const char *who, const char *how)
{
    char *script;
    if (asprintf(&script, SCRIPT, who, how) < 0) {
        exit(3);
    }
    return script;
}

static void wait_for(pid_t pid)
{
    waitpid(pid, NULL, 0);
}

static void show(const char *kind, const char *who, const char *how)
{
    char pus[256];
    report_allowed("/proc/thread-self/status", pus, sizeof pus);
    report_line("%s %s %s %s\n", kind, who, how, pus);
}

static void *show_thread(void *who)
{
    show("child", who, "thread");
    return NULL;
}

/* In glibc from 2.34 on; it calls no handlers. */
pid_t _Fork(void) __attribute__((weak));

static void by_fork(const char *who, const char *how)
{
    const bool calls_handlers = strcmp(how, "fork") == 0;
    pid_t pid = calls_handlers || !_Fork ? fork() : _Fork();
    if (pid == 0) {
        show("child", who, how);
        if (calls_handlers) {
            run_thread(show_thread, who);
        }
        _exit(0);
    }
    wait_for(pid);
}

static int show_clone(void *who)
{
    show("child", who, "clone");
    return 0;
}

static void by_clone(const char *who)
{
    static char stack[64 * 1024] __attribute__((aligned(64)));
    wait_for(clone(show_clone, stack + sizeof stack, SIGCHLD, (void *)(uintptr_t)who));
}

static sem_t notified;

static void show_notified(union sigval who)
{
    show("child", who.sival_ptr, "aio");
    sem_post(&notified);
}

/* The file is read in one thread that libc makes, which makes another one to say so. */
static void by_asynchronous_read(const char *who)
{
    char byte;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct aiocb block = {.aio_fildes = file,
                          .aio_buf = &byte,
                          .aio_nbytes = 1,
                          .aio_sigevent = {.sigev_notify = SIGEV_THREAD,
                                           .sigev_notify_function = show_notified,
                                           .sigev_value.sival_ptr = (void *)(uintptr_t)who}};
    if (aio_read(&block) == 0) {
        sem_wait(&notified);
    }
    close(file);
}

static void by_failed_exec(const char *who)
{
    execl("/nonexistent", "x", NULL);
    show("self", who, "failed-exec");
}

/* One of the exec family in a child of vfork(), which has the maker's mask until then. */
static void by_exec(const char *who, const char *how)
{
    char *script = script_of(who, how);
    char *arguments[] = {"sh", "-c", script, NULL};
    int shell = open("/bin/sh", O_RDONLY | O_CLOEXEC);
    pid_t pid = vfork();
    if (pid == 0) {
        if (strcmp(how, "execl") == 0) {
            execl("/bin/sh", "sh", "-c", script, NULL);
        } else if (strcmp(how, "execlp") == 0) {
            execlp("sh", "sh", "-c", script, NULL);
        } else if (strcmp(how, "execle") == 0) {
            execle("/bin/sh", "sh", "-c", script, NULL, environ);
        } else if (strcmp(how, "execv") == 0) {
            execv("/bin/sh", arguments);
        } else if (strcmp(how, "execvp") == 0) {
            execvp("sh", arguments);
        } else if (strcmp(how, "execve") == 0) {
            execve("/bin/sh", arguments, environ);
        } else if (strcmp(how, "execvpe") == 0) {
            execvpe("sh", arguments, environ);
        } else if (strcmp(how, "fexecve") == 0) {
            fexecve(shell, arguments, environ);
        } else {
            execveat(AT_FDCWD, "/bin/sh", arguments, environ, 0);
        }
        _exit(1);
    }
    wait_for(pid);
    close(shell);
}

static void by_spawn(const char *who)
{
    pid_t pid;
    char *arguments[] = {"sh", "-c", script_of(who, "posix_spawnp"), NULL};
    if (posix_spawnp(&pid, "sh", NULL, NULL, arguments, environ) == 0) {
        wait_for(pid);
    }
    arguments[2] = script_of(who, "posix_spawn");
    if (posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ) == 0) {
        wait_for(pid);
    }
}

static void by_popen(const char *who)
{
    char line[512];
    FILE *pipe = popen(script_of(who, "popen"), "r");
    if (pipe && fgets(line, sizeof line, pipe)) {
        report_line("%s", line);
    }
    if (pipe) {
        pclose(pipe);
    }
}

/* The shell's output are the words. */
static void by_words(const char *who)
{
    char *command;
    wordexp_t words;
    if (asprintf(&command, "$(%s)", script_of(who, "wordexp")) > 0 &&
        wordexp(command, &words, 0) == 0) {
        for (size_t i = 0; i < words.we_wordc; i++) {
            report_line("%s%s", words.we_wordv[i], i + 1 < words.we_wordc ? " " : "\n");
        }
    }
}

static void in_every_way(const char *who)
{
    static const char *const family[] = {"execl",  "execlp",  "execle",  "execv",   "execvp",
                                         "execve", "execvpe", "fexecve", "execveat"};
    by_fork(who, "fork");
    by_fork(who, "_Fork");
    by_clone(who);
    by_asynchronous_read(who);
    by_words(who);
    for (size_t i = 0; i < sizeof family / sizeof family[0]; i++) {
        by_exec(who, family[i]);
    }
    by_spawn(who);
    by_popen(who);
    if (system(script_of(who, "system")) != 0) {
        report_line("system failed\n");
    }
    by_failed_exec(who);
    show("self", who, "after");
}

static void *work(void *unused)
{
    (void)unused;
    in_every_way("worker");
    return NULL;
}

int main(void)
{
    must(sem_init(&notified, 0, 0));
    run_thread(work, NULL);
    in_every_way("main");
    return 0;
}
