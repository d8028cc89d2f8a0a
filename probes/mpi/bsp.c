#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/bsp/machine.h"
#include "probes/mpi/launch.h"
#include "profile/base/cli.h"

/* The longest order asked for takes a second or so. Longer than this and something hangs. */
static const double answer_timeout_s = 60;

struct ranks {
    struct mpi_child child;
    bool broken;
};

static int mpi_superstep(struct bsp_machine *machine, uint32_t processors,
                         const struct bsp_superstep *what, double *seconds)
{
    struct ranks *ranks = machine->state;
    char order[128], line[256];
    snprintf(order, sizeof order, "%u %u %d %u %u\n", processors, what->h, what->packing,
             what->supersteps, what->batches);
    int rc = ranks->broken ? -EIO : probe_mpi_child_send(&ranks->child, order);
    if (rc == 0) {
        rc = probe_mpi_child_receive(&ranks->child, answer_timeout_s, machine->native->cancel, line,
                                     sizeof line);
    }
    double found = rc == 0 && line[0] == '=' ? strtod(line + 1, NULL) : 0;
    if (rc == 0 && !(found > 0)) {
        rc = -EIO;
    }
    ranks->broken |= rc < 0;
    if (rc < 0) {
        return rc == -ETIMEDOUT ? -EIO : rc;
    }
    *seconds = found;
    return 0;
}

static void mpi_close(struct bsp_machine *machine)
{
    struct ranks *ranks = machine->state;
    const volatile sig_atomic_t *cancel = machine->native->cancel;
    probe_mpi_child_end(&ranks->child, !ranks->broken && !(cancel && *cancel));
    free(ranks);
    machine->state = NULL;
}

static int start(const struct profile_set *pus, struct mpi_child *child, struct servet_error *error)
{
    bool as_root = false;
    char *text = profile_set_text(pus);
    if (!text) {
        return profile_error(error, -ENOMEM, "starting mpirun: %s", strerror(ENOMEM));
    }
    int rc = probe_mpi_child_start("servet-bsp-mpi", pus->count, text, child, &as_root, error);
    free(text);
    if (rc == 0 && as_root) {
        cli_note("running as root: OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                 "are set for mpirun");
    }
    return rc;
}

int probe_bsp_open_mpi(struct machine *native, struct bsp_machine *out, struct servet_error *error)
{
    static const struct bsp_machine_ops ops = {probe_native_bsp_daxpy, mpi_superstep, mpi_close};
    struct ranks *ranks = calloc(1, sizeof *ranks);
    if (!ranks) {
        return profile_error(error, -ENOMEM, "starting mpirun: %s", strerror(ENOMEM));
    }
    int rc = start(&native->pus, &ranks->child, error);
    if (rc < 0) {
        free(ranks);
        return rc;
    }
    struct bsp_machine machine = {&ops, "mpi", (uint32_t)native->pus.count, native, ranks};
    rc = probe_mpi_child_greet(&ranks->child, native->cancel, error);
    if (rc < 0) {
        ranks->broken = true;
        mpi_close(&machine);
        return rc;
    }
    *out = machine;
    return 0;
}
