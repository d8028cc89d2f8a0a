/* The ranks of one node behind mpirun, as a machine that exchanges messages and runs supersteps.
 * servet-probe itself is linked with no MPI: it starts servet-ranks-LIBRARY (servet-ranks.c) as a
 * child, asks line by line, and can end it whatever state it is in. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/bsp/bsp.h"
#include "probes/machine.h"
#include "probes/network/network.h"
#include "profile/base/child.h"
#include "profile/base/cli.h"
#include "profile/base/clock.h"
#include "profile/base/file.h"

enum { POLL_MS = 100, END_TRIES = 50 /* of a quarter of POLL_MS */ };

/* mpirun with its ranks, as a child that answers line by line. */
struct team {
    pid_t pid;
    int to, from, errors; /* pipes, and a memory file with its stderr */
    char pending[4096];   /* read but not yet handed out */
    size_t pending_count;
    bool broken;
    double waited_s; /* by ranks that had messages to send: ready, and without their PU */
    double opened_s;
};

/* -- finding -- */

int probe_network_find(const char *program, char path[PATH_MAX])
{
    static const char *const places[] = {".", "../libexec/servet", SERVET_LIBEXECDIR, NULL};
    return profile_child_find(places, program, X_OK, path);
}

/* -- starting -- */

/* With the mpirun of the library that the ranks are linked with; several may be installed. */
static int run_mpirun(struct team *team, size_t ranks, char *helper, const char *pus)
{
    /* As variables and not as options: another MPI's mpirun ignores them. The ranks pin themselves;
     * slots are cores there, and we want one rank per PU, without the yielding that Open MPI then
     * switches on. */
    static const char *const environment[] = {
        "OMPI_MCA_hwloc_base_binding_policy=none", "OMPI_MCA_rmaps_base_oversubscribe=1",
        "OMPI_MCA_mpi_yield_when_idle=0",          "OMPI_ALLOW_RUN_AS_ROOT=1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",        NULL};
    char count[24], *mpirun[] = {(char[]){SERVET_MPIRUN}, (char[]){"mpirun"}};
    int in[2], out[2], rc = -ENOENT;
    if (pipe2(in, O_CLOEXEC) < 0) {
        return -errno;
    }
    if (pipe2(out, O_CLOEXEC) < 0) {
        rc = -errno;
        close(in[0]);
        close(in[1]);
        return rc;
    }
    snprintf(count, sizeof count, "%zu", ranks);
    *team = (struct team){.to = in[1], .from = out[0], .errors = profile_child_file()};
    for (size_t i = 0; i < sizeof mpirun / sizeof *mpirun && rc == -ENOENT; i++) {
        char *arguments[] = {mpirun[i],           (char[]){"-np"},        count, helper,
                             (char[]){"--serve"}, (char *)(uintptr_t)pus, NULL};
        /* Own process group: Ctrl-C on the terminal is for servet-probe, which then ends this one
         * in order. */
        rc = profile_child_start(&(struct profile_child){.argv = arguments,
                                                         .environment = environment,
                                                         .in = in[0],
                                                         .out = out[1],
                                                         .errors = team->errors,
                                                         .own_group = true,
                                                         .dies_with_us = SIGTERM},
                                 &team->pid);
    }
    close(in[0]);
    close(out[1]);
    if (rc < 0) {
        close(team->to);
        close(team->from);
        close(team->errors);
    }
    return rc;
}

/* Starts one rank on each PU of the list. -ENOENT (mpirun or the ranks are not installed, `error`
 * says which), -errno. As root the two variables that Open MPI asks for are set, for the child
 * only. */
static int team_start(size_t ranks, const char *pus, struct team *team, struct servet_error *error)
{
    char helper[PATH_MAX];
    if (probe_network_find(SERVET_RANKS, helper) < 0) {
        return profile_error(error, -ENOENT, "the program %s is not installed (built without MPI)",
                             SERVET_RANKS);
    }
    int rc = run_mpirun(team, ranks, helper, pus);
    if (rc == -ENOENT) {
        return profile_error(error, rc, "%s is not installed", SERVET_MPIRUN);
    }
    if (rc < 0) {
        return profile_error(error, rc, "cannot start mpirun: %s", strerror(-rc));
    }
    static bool said;
    if (geteuid() == 0 && !getenv("OMPI_ALLOW_RUN_AS_ROOT") && !said) {
        said = true; /* ranks are started more than once */
        cli_note("running as root: OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                 "are set for mpirun");
    }
    return 0;
}

/* -- talking -- */

/* One line. 0 or -EIO. */
static int team_send(struct team *team, const char *line)
{
    size_t length = strlen(line);
    while (length > 0) {
        ssize_t sent = write(team->to, line, length);
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

static bool take_line(struct team *team, char *line, size_t size)
{
    char *end = memchr(team->pending, '\n', team->pending_count);
    if (!end) {
        return false;
    }
    size_t length = (size_t)(end - team->pending);
    snprintf(line, size, "%.*s", (int)length, team->pending);
    team->pending_count -= length + 1;
    memmove(team->pending, end + 1, team->pending_count);
    return true;
}

/* One line, without its end. 0, -EINTR (*cancel), -ETIMEDOUT, -EIO (it ended). */
static int team_receive(struct team *team, double seconds, const volatile sig_atomic_t *cancel,
                        char *line, size_t size)
{
    double until = profile_now_s() + seconds;
    while (!take_line(team, line, size)) {
        struct pollfd ready = {.fd = team->from, .events = POLLIN};
        if (cancel && *cancel) {
            return -EINTR;
        }
        if (profile_now_s() > until) {
            return -ETIMEDOUT;
        }
        if (poll(&ready, 1, POLL_MS) <= 0) {
            continue;
        }
        ssize_t got = read(team->from, team->pending + team->pending_count,
                           sizeof team->pending - team->pending_count);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return -EIO;
        }
        team->pending_count += (size_t)got;
    }
    return 0;
}

/* Waits for its first line. 0, -EINTR, -EIO with what it or mpirun said instead. */
static int team_greet(struct team *team, const volatile sig_atomic_t *cancel,
                      struct servet_error *error)
{
    char line[256], complaint[256];
    int rc = team_receive(team, MACHINE_ANSWER_S, cancel, line, sizeof line);
    if (rc == 0 && strncmp(line, "ready ", strlen("ready ")) == 0) {
        return 0;
    }
    if (rc == -EINTR) {
        return profile_error(error, rc, "starting mpirun: %s", probe_machine_strerror(rc));
    }
    if (rc == 0) {
        return profile_error(error, -EIO, "mpirun: %s", line + strspn(line, "! "));
    }
    profile_child_complaint(team->errors, complaint, sizeof complaint);
    return profile_error(
        error, -EIO, "mpirun: %s",
        complaint[0] ? complaint : (rc == -ETIMEDOUT ? "no answer within a minute" : "it ended"));
}

/* Lets it end by itself, or not, and reaps it: afterwards no process of it is left. */
static void team_close(struct team *team, const volatile sig_atomic_t *cancel)
{
    const struct timespec step = {.tv_nsec = POLL_MS * 1000000L / 4};
    close(team->to);
    close(team->from);
    bool ended = false;
    if (team->broken || (cancel && *cancel)) {
        kill(team->pid, SIGTERM); /* mpirun passes it on to its ranks */
    }
    for (int i = 0; i < END_TRIES && !ended; i++) {
        ended = waitpid(team->pid, NULL, WNOHANG) != 0;
        if (!ended) {
            nanosleep(&step, NULL);
        }
    }
    if (!ended) {
        kill(-team->pid, SIGKILL); /* the ranks die with mpirun: they asked the kernel for it */
        waitpid(team->pid, NULL, 0);
    }
    close(team->errors);
    free(team);
}

/* 0, -ENOMEM, or as team_start() and team_greet(). */
static int team_open(const struct profile_set *pus, const volatile sig_atomic_t *cancel,
                     struct team **out, struct servet_error *error)
{
    FREED struct team *team = calloc(1, sizeof *team);
    FREED char *text = profile_set_text(pus);
    TRY(team && text ? team_start(pus->count, text, team, error)
                     : profile_error(error, -ENOMEM, "starting mpirun: %s", strerror(ENOMEM)));
    team->opened_s = profile_now_s();
    int rc = team_greet(team, cancel, error);
    if (rc < 0) {
        team->broken = true;
        team_close(TAKE(team), cancel);
        return rc;
    }
    *out = TAKE(team);
    return 0;
}

/* Sends the order; the numbers of the answer. */
static int team_take(struct team *team, const char *order, const volatile sig_atomic_t *cancel,
                     double *numbers, size_t count)
{
    char line[4096], *at = line + 1, *end;
    TRY(team_send(team, order));
    TRY(team_receive(team, MACHINE_ANSWER_S, cancel, line, sizeof line));
    if (line[0] != '=') {
        return strcmp(line, "! moved") == 0 ? -ENODEV : -EIO;
    }
    for (size_t i = 0; i < count; i++, at = end) {
        numbers[i] = strtod(at, &end);
        TRY(end == at || !(numbers[i] >= 0) ? -EIO : 0);
    }
    return 0;
}

/* An order, and the numbers of its answer. 0, -EINTR, -EIO; -ENODEV: a rank was moved off its
 * PU. */
static int team_ask(struct team *team, const char *order, const volatile sig_atomic_t *cancel,
                    double *numbers, size_t count)
{
    int rc = team->broken ? -EIO : team_take(team, order, cancel, numbers, count);
    team->broken |= rc < 0;
    return rc == -ETIMEDOUT ? -EIO : rc;
}

/* -- the machine -- */

static char *order_text(const struct machine *machine, const struct machine_exchange *what,
                        const struct profile_pair *pairs, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *stream = profile_stream_open(&text, &size);
    if (!stream) {
        return NULL;
    }
    fprintf(stream, "exchange %zu %u %u %d %zu", what->bytes, what->round_trips, what->batches,
            what->unwritten, count);
    for (size_t i = 0; i < count; i++) { /* ranks */
        fprintf(stream, " %zu %zu", profile_set_position(&machine->pus, pairs[i].a),
                profile_set_position(&machine->pus, pairs[i].b));
    }
    fputc('\n', stream);
    return fclose(stream) == 0 ? text : NULL;
}

static int mpi_exchange(struct machine *machine, const struct machine_exchange *what,
                        const struct profile_pair *pairs, size_t count, double *seconds)
{
    struct team *team = machine->state;
    FREED char *order = order_text(machine, what, pairs, count);
    FREED double *numbers = calloc(count + 1, sizeof *numbers);
    TRY(order && numbers ? team_ask(team, order, machine->cancel, numbers, count + 1) : -ENOMEM);
    for (size_t i = 0; i < count; i++) {
        TRY(numbers[i + 1] > 0 ? 0 : -EIO);
        seconds[i] = numbers[i + 1];
    }
    team->waited_s += numbers[0];
    return 0;
}

static int mpi_superstep(struct machine *machine, uint32_t processors,
                         const struct bsp_superstep *what, double *seconds)
{
    char order[128];
    double found;
    snprintf(order, sizeof order, "superstep %u %u %d %u %u\n", processors, what->h, what->packing,
             what->supersteps, what->batches);
    TRY(team_ask(machine->state, order, machine->cancel, &found, 1));
    TRY(found > 0 ? 0 : -EIO);
    *seconds = found;
    return 0;
}

static void mpi_close(struct machine *machine)
{
    team_close(machine->state, machine->cancel);
}

static double mpi_elapsed(struct machine *machine)
{
    return profile_now_s() - ((const struct team *)machine->state)->opened_s;
}

static struct machine_times mpi_times(struct machine *machine)
{
    return (struct machine_times){.waited = ((const struct team *)machine->state)->waited_s};
}

int probe_machine_open_mpi(const struct profile_set *pus, const volatile sig_atomic_t *cancel,
                           struct machine *out, struct servet_error *error)
{
    static const struct machine_ops ops = {.exchange = mpi_exchange,
                                           .superstep = mpi_superstep,
                                           .elapsed = mpi_elapsed,
                                           .times = mpi_times,
                                           .close = mpi_close};
    FREED_BY(profile_set_free) struct profile_set own = {0};
    struct team *team;
    int rc = profile_set_copy(pus, &own);
    if (rc < 0) {
        return profile_error(error, rc, "starting mpirun: %s", strerror(-rc));
    }
    TRY(team_open(pus, cancel, &team, error));
    *out = (struct machine){
        .ops = &ops, .name = "mpi", .cancel = cancel, .pus = TAKE(own), .state = team};
    return 0;
}
