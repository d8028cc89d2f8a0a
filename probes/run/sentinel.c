/* An operation during which other tasks ran on the measured PUs is measured a second time. How
 * long workers were ready and had no PU says what a load average cannot. */
#include "probes/run/sentinel.h"

#include <stdlib.h>
#include <string.h>

/* Of the workers' time. Daemons and interrupts of an idle machine stay below 1 %. */
static const double disturbed_share = 0.05;
/* Short waits say nothing: being woken takes as long. */
static const double disturbed_least_s = 0.5e-3;
/* On a machine that is never idle: so much longer a run may take, and no more. */
static const double repeats_most_s = 5;
/* Of all operations. Medians and minima bear fewer. */
static const double busy_share = 0.05;

static double waited(struct machine *machine)
{
    return machine->ops->disturbed ? machine->ops->disturbed(machine) : 0;
}

static bool is_disturbed(double waited_s, double seconds, size_t workers)
{
    return waited_s > disturbed_least_s && waited_s > disturbed_share * seconds * (double)workers;
}

/* 0 or -errno; how long it took, and how long of that its workers waited. */
static int timed(struct machine *machine, machine_guard_run *run, const void *what,
                 const void *places, size_t count, double *values, double *waited_s,
                 double *seconds)
{
    double before = waited(machine), started = probe_machine_elapsed(machine);
    int rc = run(machine, what, places, count, values);
    *waited_s = waited(machine) - before;
    *seconds = probe_machine_elapsed(machine) - started;
    return rc;
}

int probe_sentinel_open(struct machine *machine, machine_guard_run *run, const void *what,
                        const void *places, size_t count, size_t workers, double *values)
{
    struct machine_guard *guard = &machine->guard;
    double first_s, seconds, again_s;
    int rc = timed(machine, run, what, places, count, values, &first_s, &seconds);
    if (rc < 0) {
        return rc;
    }
    guard->operations++;
    if (!is_disturbed(first_s, seconds, workers)) {
        return 0;
    }
    double *again = guard->repeat_s < repeats_most_s ? malloc(count * sizeof *again) : NULL;
    bool better = false, calm = false;
    if (again) {
        bool done = timed(machine, run, what, places, count, again, &again_s, &seconds) == 0;
        guard->repeated++;
        guard->repeat_s += seconds;
        better = done && again_s < first_s;
        calm = done && !is_disturbed(again_s, seconds, workers);
    }
    if (better) {
        memcpy(values, again, count * sizeof *values);
    }
    guard->disturbed += !calm;
    free(again);
    return 0;
}

void probe_sentinel_add(struct machine_guard *sum, const struct machine_guard *more)
{
    sum->operations += more->operations;
    sum->repeated += more->repeated;
    sum->disturbed += more->disturbed;
    sum->repeat_s += more->repeat_s;
    sum->still_s += more->still_s;
}

bool probe_machine_was_busy(const struct machine *machine)
{
    return (double)machine->guard.disturbed > busy_share * (double)machine->guard.operations;
}
