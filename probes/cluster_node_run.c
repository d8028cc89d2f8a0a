#include "cluster_node_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_topology.h"
#include "restrict.h"

enum { PIECE = 16384 };

static void answer(struct node_run *run, const char *format, const char *detail, int number)
{
    free(run->text);
    if (asprintf(&run->text, format, detail, number) < 0) {
        run->text = NULL;
    }
}

/* Nothing is measured: what the system declares of the PUs. */
static void declare(struct node_run *run, const struct profile_set *pus)
{
    struct servet_profile *profile;
    struct servet_error error;
    if (own_topology(&profile, &error) < 0) {
        answer(run, "! %s", error.text, 0);
        return;
    }
    run->text = restrict_class(&profile->classes[0], pus) == 0 ? profile_to_json(profile) : NULL;
    profile_free(profile);
}

/* The rank is pinned to one PU; its node is not. */
static void unpin(const struct profile_set *pus)
{
    uint32_t last = pus->ids[pus->count - 1];
    size_t size = CPU_ALLOC_SIZE(last + 1);
    cpu_set_t *mask = CPU_ALLOC(last + 1);
    if (!mask) {
        return;
    }
    CPU_ZERO_S(size, mask);
    for (size_t i = 0; i < pus->count; i++) {
        CPU_SET_S(pus->ids[i], size, mask);
    }
    sched_setaffinity(0, size, mask);
}

void node_run_start(struct node_run *run, const char *command, const char *probes, uint64_t seed,
                    const struct profile_set *pus)
{
    char seed_text[24];
    int ends[2];
    *run = (struct node_run){.from = -1};
    if (!probes[0]) {
        declare(run, pus);
        return;
    }
    if (pipe2(ends, O_CLOEXEC) < 0) {
        answer(run, "! %s", strerror(errno), 0);
        return;
    }
    snprintf(seed_text, sizeof seed_text, "%llu", (unsigned long long)seed);
    run->pid = fork();
    if (run->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDOUT_FILENO);
        dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
        unpin(pus);
        execl(command, command, "--quiet", "--output", "-", "--no-mpi", "--probes", probes, "--seed", seed_text, NULL);
        _exit(127);
    }
    close(ends[1]);
    run->from = ends[0];
    if (run->pid < 0) {
        run->pid = 0;
        answer(run, "! %s", strerror(errno), 0);
    }
}

/* The output has ended; false while the process itself has not. */
static bool finish(struct node_run *run)
{
    int status;
    pid_t ended = waitpid(run->pid, &status, WNOHANG);
    if (ended == 0) {
        return false;
    }
    close(run->from);
    run->from = -1;
    if (ended < 0 || !WIFEXITED(status)) {
        answer(run, "! %s was killed", "servet-probe", 0);
    } else if (WEXITSTATUS(status) != 0) {
        answer(run, "! %s ended with status %d (127: it cannot be started there)", "servet-probe", WEXITSTATUS(status));
    }
    run->pid = 0;
    return true;
}

bool node_run_busy(void *context)
{
    struct node_run *run = context;
    struct pollfd ready = {.fd = run->from, .events = POLLIN};
    if (!run->pid || poll(&ready, 1, 0) <= 0) {
        return run->pid != 0;
    }
    char *text = realloc(run->text, run->length + PIECE + 1);
    ssize_t got = text ? read(run->from, text + run->length, PIECE) : 0;
    run->text = text ? text : run->text;
    if (got > 0) {
        run->length += (size_t)got;
        run->text[run->length] = '\0';
        return true;
    }
    return !finish(run);
}

char *node_run_text(void *context)
{
    struct node_run *run = context;
    char *text = run->text ? run->text : strdup("! not enough memory");
    run->text = NULL;
    return text;
}
