#include "probes/mpi/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probes/machine.h"

/* Starting many ranks takes seconds. Longer than this and something hangs. */
static const double start_timeout_s = 60;

enum { POLL_MS = 100, END_TRIES = 50 /* of POLL_MS */, ARGUMENTS = 8 };

/* -- finding -- */

static bool executable(const char *path)
{
    return access(path, X_OK) == 0;
}

/* Beside this command (build folder), in its prefix's libexec, or where it was to be installed. */
static int find_helper(const char *helper, char *path, size_t size)
{
    static const char *const beside[] = {"", "/../libexec/servet"};
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    for (size_t i = 0; length > 0 && i < sizeof beside / sizeof *beside; i++) {
        self[length] = '\0';
        int folder = (int)(strrchr(self, '/') - self);
        int needed = snprintf(path, size, "%.*s%s/%s", folder, self, beside[i], helper);
        if (needed < (int)size && executable(path)) {
            return 0;
        }
    }
    snprintf(path, size, SERVET_LIBEXECDIR "/%s", helper);
    return executable(path) ? 0 : -ENOENT;
}

static int find_in_path(const char *name, char *path, size_t size)
{
    const char *folders = getenv("PATH");
    while (folders && *folders) {
        size_t length = strcspn(folders, ":");
        snprintf(path, size, "%.*s/%s", (int)length, folders, name);
        if (length > 0 && executable(path)) {
            return 0;
        }
        folders += length + (folders[length] == ':');
    }
    return -ENOENT;
}

/* The one of the MPI library that the helper was built with; several may be installed. */
static int find_mpirun(char *path, size_t size)
{
    if (find_in_path(SERVET_MPIRUN, path, size) == 0) {
        return 0;
    }
    return find_in_path("mpirun", path, size);
}

/* -- starting -- */

static void set_environment(void)
{
    /* As variables and not as options: another MPI's mpirun ignores them. */
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1); /* the ranks pin themselves */
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1",
           1); /* slots are cores there, and we want one rank per PU */
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1); /* what the line above would switch on */
    if (geteuid() == 0) {
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    }
}

static _Noreturn void become(const char *mpirun, char *const *arguments, int in, int out,
                             int errors)
{
    /* Own process group: Ctrl-C on the terminal is for servet-probe, which then ends this one in
     * order. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    set_environment();
    execv(mpirun, arguments);
    _exit(127);
}

int probe_mpi_child_start(const char *program, size_t ranks, const char *pus,
                          struct mpi_child *child, bool *as_root, struct servet_error *error)
{
    char mpirun[PATH_MAX], helper[PATH_MAX], count[24];
    int in[2], out[2];
    if (find_helper(program, helper, sizeof helper) < 0) {
        return profile_error(error, -ENOENT, "the program %s is not installed (built without MPI)",
                             program);
    }
    if (find_mpirun(mpirun, sizeof mpirun) < 0) {
        return profile_error(error, -ENOENT, "%s is not installed", SERVET_MPIRUN);
    }
    *as_root = geteuid() == 0 && !getenv("OMPI_ALLOW_RUN_AS_ROOT");
    snprintf(count, sizeof count, "%zu", ranks);
    char *arguments[ARGUMENTS] = {mpirun, (char[]){"-np"},        count,
                                  helper, (char *)(uintptr_t)pus, NULL};
    if (pipe2(in, O_CLOEXEC) < 0) {
        return profile_error(error, -errno, "cannot start mpirun: %s", strerror(errno));
    }
    if (pipe2(out, O_CLOEXEC) < 0) {
        int code = -errno;
        close(in[0]);
        close(in[1]);
        return profile_error(error, code, "cannot start mpirun: %s", strerror(-code));
    }
    *child = (struct mpi_child){
        .to = in[1], .from = out[0], .errors = memfd_create("mpirun", MFD_CLOEXEC)};
    child->pid = fork();
    if (child->pid == 0) {
        become(mpirun, arguments, in[0], out[1], child->errors);
    }
    int code = -errno;
    close(in[0]);
    close(out[1]);
    if (child->pid < 0) {
        close(child->to);
        close(child->from);
        close(child->errors);
        return profile_error(error, code, "cannot start mpirun: %s", strerror(-code));
    }
    setpgid(child->pid, child->pid);
    return 0;
}

/* -- talking -- */

int probe_mpi_child_send(struct mpi_child *child, const char *line)
{
    size_t length = strlen(line);
    while (length > 0) {
        ssize_t sent = write(child->to, line, length);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return -EIO;
        }
        line += sent;
        length -= (size_t)sent;
    }
    return 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool take_line(struct mpi_child *child, char *line, size_t size)
{
    char *end = memchr(child->pending, '\n', child->pending_count);
    if (!end) {
        return false;
    }
    size_t length = (size_t)(end - child->pending);
    snprintf(line, size, "%.*s", (int)length, child->pending);
    child->pending_count -= length + 1;
    memmove(child->pending, end + 1, child->pending_count);
    return true;
}

int probe_mpi_child_receive(struct mpi_child *child, double seconds,
                            const volatile sig_atomic_t *cancel, char *line, size_t size)
{
    double until = now() + seconds;
    while (!take_line(child, line, size)) {
        struct pollfd ready = {.fd = child->from, .events = POLLIN};
        if (cancel && *cancel) {
            return -EINTR;
        }
        if (now() > until) {
            return -ETIMEDOUT;
        }
        if (poll(&ready, 1, POLL_MS) <= 0) {
            continue;
        }
        ssize_t got = read(child->from, child->pending + child->pending_count,
                           sizeof child->pending - child->pending_count);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return -EIO;
        }
        child->pending_count += (size_t)got;
    }
    return 0;
}

void probe_mpi_child_complaint(const struct mpi_child *child, char *text, size_t size)
{
    char all[2048];
    ssize_t length = pread(child->errors, all, sizeof all - 1, 0);
    text[0] = '\0';
    if (length <= 0) {
        return;
    }
    all[length] = '\0';
    for (char *rest = all, *line; (line = strtok_r(rest, "\n", &rest));) {
        if (strspn(line, "-= ") < strlen(line)) { /* mpirun frames its messages with dashes */
            snprintf(text, size, "%s", line);
            return;
        }
    }
}

int probe_mpi_child_greet(struct mpi_child *child, const volatile sig_atomic_t *cancel,
                          struct servet_error *error)
{
    char line[256], complaint[256];
    int rc = probe_mpi_child_receive(child, start_timeout_s, cancel, line, sizeof line);
    if (rc == 0 && strncmp(line, "ready ", strlen("ready ")) == 0) {
        return 0;
    }
    if (rc == -EINTR) {
        return profile_error(error, rc, "starting mpirun: %s", probe_machine_strerror(rc));
    }
    if (rc == 0) {
        return profile_error(error, -EIO, "mpirun: %s", line + strspn(line, "! "));
    }
    probe_mpi_child_complaint(child, complaint, sizeof complaint);
    return profile_error(
        error, -EIO, "mpirun: %s",
        complaint[0] ? complaint : (rc == -ETIMEDOUT ? "no answer within a minute" : "it ended"));
}

static bool reaped(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) != 0;
}

void probe_mpi_child_end(struct mpi_child *child, bool patient)
{
    const struct timespec step = {.tv_nsec = POLL_MS * 1000000L / 4};
    close(child->to);
    close(child->from);
    bool ended = false;
    if (!patient) {
        kill(child->pid, SIGTERM); /* mpirun passes it on to its ranks */
    }
    for (int i = 0; i < END_TRIES && !ended; i++) {
        ended = reaped(child->pid);
        if (!ended) {
            nanosleep(&step, NULL);
        }
    }
    if (!ended) {
        kill(-child->pid, SIGKILL); /* the ranks die with mpirun: they asked the kernel for it */
        waitpid(child->pid, NULL, 0);
    }
    close(child->errors);
}
