/* An operation during which other tasks ran on the measured PUs is measured a second time. How
 * long workers were ready and had no PU says what a load average cannot. */
#include "probes/sentinel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the workers' time. Daemons and interrupts of an idle machine stay below 1 %. */
static const double disturbed_share = 0.05;
/* Short waits say nothing: being woken takes as long. */
static const double disturbed_least_s = 0.5e-3;
/* On a machine that is never idle: so much longer a run may take, and no more. */
static const double repeats_most_s = 5;
/* And of a budget. */
static const double repeats_share = 0.1;
/* Of all operations. Medians and minima bear fewer. */
static const double busy_share = 0.05;

static double waited(struct machine *machine)
{
    return machine->ops->disturbed ? machine->ops->disturbed(machine) : 0;
}

/* How long an operation took, and how long of that its workers waited. */
struct timing {
    double seconds, waited_s;
};

static bool is_disturbed(const struct timing *timing, size_t workers)
{
    return timing->waited_s > disturbed_least_s &&
           timing->waited_s > disturbed_share * timing->seconds * (double)workers;
}

static int timed(struct machine *machine, const struct machine_question *question, double *values,
                 struct timing *out)
{
    double before = waited(machine), started = probe_machine_elapsed(machine);
    int rc = question->run(machine, question->what, question->places, question->count, values);
    out->waited_s = waited(machine) - before;
    out->seconds = probe_machine_elapsed(machine) - started;
    return rc;
}

int probe_sentinel_ask(struct machine *machine, const struct machine_question *question,
                       double *values)
{
    struct machine_guard *guard = &machine->guard;
    const size_t size = question->count * sizeof *values;
    struct timing first, second;
    int rc = timed(machine, question, values, &first);
    if (rc < 0) {
        return rc;
    }
    guard->operations++;
    guard->last_s = first.seconds;
    guard->asked_s += first.seconds * (double)question->workers;
    guard->waited_s += first.waited_s;
    if (!is_disturbed(&first, question->workers)) {
        return 0;
    }
    const double most_s = guard->budget_s > 0
                              ? fmin(repeats_most_s, repeats_share * guard->budget_s)
                              : repeats_most_s;
    double *again = guard->repeat_s + first.seconds < most_s ? malloc(size) : NULL;
    bool better = false, calm = false;
    if (again) {
        bool done = timed(machine, question, again, &second) == 0;
        guard->repeated++;
        guard->repeat_s += second.seconds;
        better = done && second.waited_s < first.waited_s;
        calm = done && !is_disturbed(&second, question->workers);
    }
    if (better) {
        memcpy(values, again, size);
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
