#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probes/machine.h"
#include "probes/mpi/launch.h"
#include "profile/base/cli.h"

/* An answer takes milliseconds. Longer than this and something hangs. */
static const double answer_timeout_s = 60;

struct messenger {
    struct mpi_child child;
    bool broken;
    double waited_s; /* by ranks that had messages to send: ready, and without their PU */
    struct timespec opened;
};

static uint32_t rank_of(const struct machine *machine, uint32_t pu)
{
    uint32_t rank = 0;
    while (machine->pus.ids[rank] != pu) {
        rank++;
    }
    return rank;
}

static char *order_text(const struct machine *machine, const struct machine_exchange *what,
                        const struct profile_pair *pairs, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) {
        return NULL;
    }
    fprintf(stream, "%zu %u %u %zu", what->bytes, what->round_trips, what->batches, count);
    for (size_t i = 0; i < count; i++) {
        fprintf(stream, " %u %u", rank_of(machine, pairs[i].a), rank_of(machine, pairs[i].b));
    }
    fputc('\n', stream);
    return fclose(stream) == 0 ? text : (free(text), NULL);
}

static int parse_answer(const char *line, size_t count, double *seconds, double *waited_s)
{
    char *rest;
    bool displaced = false;
    if (line[0] != '=') {
        return -EIO;
    }
    line++;
    for (size_t i = 0; i < count; i++) {
        char *end;
        seconds[i] = strtod(line, &end);
        if (end == line || !(seconds[i] > 0 || seconds[i] < 0)) {
            return -EIO;
        }
        displaced |= seconds[i] < 0;
        line = end;
    }
    double waited = strtod(line, &rest);
    if (rest == line || !(waited >= 0)) {
        return -EIO;
    }
    *waited_s += waited;
    return displaced ? -ENODEV : 0;
}

static int mpi_exchange(struct machine *machine, const struct machine_exchange *what,
                        const struct profile_pair *pairs, size_t count, double *seconds)
{
    struct messenger *messenger = machine->state;
    char line[4096];
    char *order = order_text(machine, what, pairs, count);
    if (!order) {
        return -ENOMEM;
    }
    int rc = messenger->broken ? -EIO : probe_mpi_child_send(&messenger->child, order);
    free(order);
    if (rc == 0) {
        rc = probe_mpi_child_receive(&messenger->child, answer_timeout_s, machine->cancel, line,
                                     sizeof line);
    }
    if (rc == 0) {
        rc = parse_answer(line, count, seconds, &messenger->waited_s);
    }
    messenger->broken |= rc < 0;
    return rc == -ETIMEDOUT ? -EIO : rc;
}

static void mpi_close(struct machine *machine)
{
    struct messenger *messenger = machine->state;
    if (messenger) {
        probe_mpi_child_end(&messenger->child,
                            !messenger->broken && !(machine->cancel && *machine->cancel));
    }
    free(messenger);
    machine->state = NULL;
}

static double mpi_elapsed(struct machine *machine)
{
    const struct messenger *messenger = machine->state;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - messenger->opened.tv_sec) +
           1e-9 * (double)(now.tv_nsec - messenger->opened.tv_nsec);
}

static double mpi_disturbed(struct machine *machine)
{
    return ((const struct messenger *)machine->state)->waited_s;
}

static const struct machine_ops mpi_ops = {.exchange = mpi_exchange,
                                           .elapsed = mpi_elapsed,
                                           .disturbed = mpi_disturbed,
                                           .close = mpi_close};

int probe_machine_open_mpi(const struct profile_set *pus, const volatile sig_atomic_t *cancel,
                           struct machine *out, struct servet_error *error)
{
    struct machine machine = {.ops = &mpi_ops, .name = "mpi", .cancel = cancel};
    bool as_root = false;
    struct messenger *messenger = calloc(1, sizeof *messenger);
    char *text = profile_set_text(pus);
    int rc = messenger && text ? profile_set_copy(pus, &machine.pus) : -ENOMEM;
    if (rc < 0) {
        profile_error(error, rc, "starting mpirun: %s", strerror(-rc));
    } else {
        rc = probe_mpi_child_start("servet-probe-mpi", pus->count, text, &messenger->child,
                                   &as_root, error);
    }
    free(text);
    if (rc < 0) {
        free(messenger);
        profile_set_free(&machine.pus);
        return rc;
    }
    if (as_root) {
        cli_note("running as root: OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                 "are set for mpirun");
    }
    machine.state = messenger;
    clock_gettime(CLOCK_MONOTONIC, &messenger->opened);
    rc = probe_mpi_child_greet(&messenger->child, cancel, error);
    if (rc < 0) {
        messenger->broken = true;
        probe_machine_close(&machine);
        return rc;
    }
    *out = machine;
    return 0;
}
