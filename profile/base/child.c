/* Other programs. fork() and exec(), not posix_spawn(): a child of ours may have a process group,
 * a folder, a signal at our end and a mask of its own. Whether exec() worked comes back through a
 * pipe that exec() closes, so that "not installed" is an error of starting it and no exit status.
 * Outputs go to files in memory: neither side can wait for the other. */
#include "profile/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANNOT_START 127 /* as shells say it */

int profile_child_find(const char *const *places, const char *name, int mode, char path[PATH_MAX])
{
    char self[PATH_MAX], candidate[3 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(self, '/');
    self[slash ? slash - self : 0] = '\0';
    for (; *places; places++) {
        snprintf(candidate, sizeof candidate, "%s/%s/%s", **places == '/' ? "" : self, *places,
                 name);
        if (realpath(candidate, path) && access(path, mode) == 0) {
            return 0;
        }
    }
    return -ENOENT;
}

static int set_environment(const char *const *environment)
{
    for (; environment && *environment; environment++) {
        if (!strchr(*environment, '=')) {
            unsetenv(*environment);
            continue;
        }
        char *copy = strdup(*environment);
        if (!copy) {
            return -ENOMEM;
        }
        putenv(copy);
    }
    return 0;
}

/* The three streams, the folder and the environment. Streams first get out of the way of one
 * another: one that is meant for 2 may be 1. */
static int set_up_child(const struct profile_child *child)
{
    int fds[] = {child->in, child->out, child->errors};
    for (int i = 0; i < 3; i++) {
        fds[i] = fds[i] < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : fds[i];
        fds[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (fds[i] < 0) {
            return -errno;
        }
    }
    for (int i = 0; i < 3; i++) {
        if (dup2(fds[i], i) < 0) {
            return -errno;
        }
    }
    if (child->folder && chdir(child->folder) < 0) {
        return -errno;
    }
    return set_environment(child->environment);
}

static _Noreturn void become(const struct profile_child *child, int report)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGQUIT};
    sigset_t none;
    if (child->own_group) {
        setpgid(0, 0);
    }
    if (child->dies_with_us) {
        prctl(PR_SET_PDEATHSIG, child->dies_with_us);
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        signal(ends[i], SIG_DFL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int rc = set_up_child(child);
    if (rc == 0) {
        if (child->prepare) {
            child->prepare(child->context);
        }
        execvp(child->argv[0], child->argv);
        rc = -errno;
    }
    (void)!write(report, &rc, sizeof rc);
    _exit(CANNOT_START);
}

int profile_child_start(const struct profile_child *child, pid_t *pid)
{
    int ends[2], rc = 0;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return -errno;
    }
    /* Where a standard stream of ours is closed, the pipe must not be in its place. */
    int report = fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(ends[1]);
    pid_t started = report < 0 ? -1 : fork();
    if (started == 0) {
        become(child, report);
    }
    rc = started < 0 ? -errno : 0;
    if (report >= 0) {
        close(report);
    }
    if (rc == 0 && child->own_group) {
        setpgid(started, started); /* by both: the group may be killed at once */
    }
    if (rc == 0 && TEMP_FAILURE_RETRY(read(ends[0], &rc, sizeof rc)) == sizeof rc) {
        (void)TEMP_FAILURE_RETRY(waitpid(started, NULL, 0));
    } else if (rc == 0) {
        *pid = started;
    }
    close(ends[0]);
    return rc;
}

/* Waits until it has ended. Its exit status; 128 and the number of the signal that ended it;
 * -ECHILD. */
static int wait_for(pid_t pid)
{
    int status;
    if (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) < 0) {
        return -errno;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int profile_child_run(const struct profile_child *child)
{
    pid_t pid;
    int rc = profile_child_start(child, &pid);
    return rc < 0 ? rc : wait_for(pid);
}

/* -- calls -- */

/* The copy: no core file and no last words of a library that crashes. */
static _Noreturn void answer(int (*call)(void *context), void *context, int *rc, const void *memory,
                             size_t size)
{
    static const struct rlimit none = {0, 0};
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &none);
    if (nothing >= 0) {
        dup2(nothing, STDERR_FILENO);
    }
    *rc = call(context);
    if (size) {
        memcpy(rc + 1, memory, size);
    }
    _exit(0);
}

int profile_child_call(int (*call)(void *context), void *context, void *memory, size_t size)
{
    size_t all = sizeof(int) + size;
    int *rc = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rc == MAP_FAILED) {
        return -ENOMEM;
    }
    pid_t pid = fork();
    if (pid == 0) {
        answer(call, context, rc, memory, size);
    }
    int result = pid < 0 ? -errno : wait_for(pid) == 0 ? *rc : -EFAULT;
    if (result == 0 && size) {
        memcpy(memory, rc + 1, size);
    }
    munmap(rc, all);
    return result;
}

/* -- files in memory -- */

int profile_child_file(void)
{
    int fd = memfd_create("servet", MFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int profile_child_read(int fd, char **text)
{
    struct stat status;
    if (fstat(fd, &status) < 0) {
        return -errno;
    }
    const size_t size = (size_t)status.st_size;
    char *all = malloc(size + 1);
    if (!all) {
        return -ENOMEM;
    }
    if (pread(fd, all, size, 0) != (ssize_t)size) { /* memory is read at once */
        free(all);
        return -EIO;
    }
    all[size] = '\0';
    *text = all;
    return 0;
}

void profile_child_complaint(int fd, char *line, size_t size)
{
    char all[4096];
    ssize_t got = pread(fd, all, sizeof all - 1, 0);
    line[0] = '\0';
    all[got > 0 ? got : 0] = '\0';
    for (char *rest = all, *at; (at = strtok_r(rest, "\r\n", &rest));) {
        at += strspn(at, " \t");
        if (strspn(at, "-= \t") < strlen(at)) {
            snprintf(line, size, "%s", at);
            return;
        }
    }
}
