/* The checks that hold for every backend, and the guard that repeats what was disturbed. */
#include "probes/machine.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/control_groups.h"

/* -- when to end -- */

static bool cancelled(const struct machine *machine)
{
    return machine->cancel && *machine->cancel;
}

/* 0, -EINTR, or -ETIME: it is to do nothing more. */
static int stopped(struct machine *machine)
{
    const bool over = machine->until_s > 0 && probe_machine_elapsed(machine) >= machine->until_s;
    return cancelled(machine) ? -EINTR : over ? -ETIME : 0;
}

/* -- the guard: what was disturbed is measured a second time -- */

/* Share of the workers' time that a measurement, and share of its operations that a run, may be
 * disturbed. Daemons and interrupts of an idle machine stay below 1 %. */
static const double disturbed_share = 0.05;
/* Shorter waits are ignored: waking takes as long. */
static const double disturbed_least_s = 0.5e-3;
/* On a machine that is never idle: so much longer a run may take, and no more. */
static const double repeats_most_s = 5;
/* And of a budget. */
static const double repeats_share = 0.1;

enum machine_operation { MACHINE_TRAVERSE, MACHINE_COPY, MACHINE_EXCHANGE };

/* A question to a backend: the operation, its places (PUs or pairs, `count` of them), and how many
 * PUs work at once. */
struct machine_question {
    enum machine_operation operation;
    const void *what, *places;
    size_t count, workers;
};

static int run_once(struct machine *machine, const struct machine_question *question,
                    double *values)
{
    const struct machine_ops *ops = machine->ops;
    const void *what = question->what, *places = question->places;
    switch (question->operation) {
    case MACHINE_TRAVERSE:
        return ops->traverse(machine, what, places, question->count, values);
    case MACHINE_COPY:
        return ops->copy(machine, what, places, question->count, values);
    default:
        return ops->exchange(machine, what, places, question->count, values);
    }
}

static struct machine_times times_of(struct machine *machine)
{
    return machine->ops->times ? machine->ops->times(machine) : (struct machine_times){0};
}

/* How long an operation took, and how long of that its workers waited, and ran. */
struct timing {
    double seconds, waited_s, ran_s;
    bool throttled;
};

static bool is_disturbed(const struct timing *timing, size_t workers)
{
    return timing->waited_s > disturbed_least_s &&
           timing->waited_s > disturbed_share * timing->seconds * (double)workers;
}

static int timed_question(struct machine *machine, const struct machine_question *question,
                          double *values, struct timing *out)
{
    const struct machine_times before = times_of(machine);
    const double started = probe_machine_elapsed(machine);
    int rc = run_once(machine, question, values);
    const struct machine_times after = times_of(machine);
    *out = (struct timing){probe_machine_elapsed(machine) - started, after.waited - before.waited,
                           after.ran - before.ran, after.throttled > before.throttled};
    return rc == -EINTR && !cancelled(machine) ? -ETIME : rc; /* one end for two reasons */
}

/* Runs it, and again if it was disturbed while the machine's time for that lasts; the less
 * disturbed of both counts. Keeps account in machine->guard. `values` has room for those of both.
 * 0 or the first run's -errno. */
static int guarded(struct machine *machine, const struct machine_question *question, double *values)
{
    struct machine_guard *guard = &machine->guard;
    struct timing first, second;
    guard->not_concurrent = false;
    TRY(timed_question(machine, question, values, &first));
    const bool before = guard->not_concurrent;
    guard->operations++;
    guard->throttled += first.throttled;
    guard->last_s = first.seconds;
    guard->asked_s += first.seconds * (double)question->workers;
    guard->ran_s += first.ran_s;
    if (!is_disturbed(&first, question->workers)) {
        return 0;
    }
    const double most_s = guard->budget_s > 0
                              ? fmin(repeats_most_s, repeats_share * guard->budget_s)
                              : repeats_most_s;
    bool calm = false;
    if (guard->repeat_s + first.seconds < most_s) {
        double *again = values + question->count;
        const bool done = timed_question(machine, question, again, &second) == 0;
        guard->repeated++;
        guard->repeat_s += second.seconds;
        if (done && (guard->not_concurrent == before ? second.waited_s < first.waited_s : before)) {
            memcpy(values, again, question->count * sizeof *values);
        } else {
            guard->not_concurrent = before;
        }
        calm = done && !is_disturbed(&second, question->workers);
    }
    guard->disturbed += !calm;
    return 0;
}

void probe_guard_add(struct machine_guard *sum, const struct machine_guard *more)
{
    sum->operations += more->operations;
    sum->repeated += more->repeated;
    sum->disturbed += more->disturbed;
    sum->throttled += more->throttled;
    sum->repeat_s += more->repeat_s;
    sum->still_s += more->still_s;
}

bool probe_machine_was_busy(const struct machine *machine)
{
    return (double)machine->guard.disturbed > disturbed_share * (double)machine->guard.operations;
}

/* -- the operations -- */

/* Quadratic, but an operation that keeps n PUs busy costs far more than n * n comparisons. */
static bool distinct_and_known(const struct machine *machine, const uint32_t *pus, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!profile_set_has(&machine->pus, pus[i])) {
            return false;
        }
        for (size_t j = 0; j < i; j++) {
            if (pus[i] == pus[j]) {
                return false;
            }
        }
    }
    return count > 0;
}

/* `can`: the backend has the operation; `sound`: the question makes sense. Outputs are set on
 * success only, whatever a backend does to them. */
static int ask_machine(struct machine *machine, const struct machine_question *question, bool can,
                       bool sound, double *out)
{
    TRY(can ? stopped(machine) : -ENOTSUP);
    if (!sound || !distinct_and_known(machine, question->places, question->workers)) {
        return -EINVAL;
    }
    FREED double *values = malloc(2 * question->count * sizeof *values);
    TRY(values ? guarded(machine, question, values) : -ENOMEM);
    memcpy(out, values, question->count * sizeof *values);
    return 0;
}

int probe_machine_traverse(struct machine *machine, const struct machine_traversal *what,
                           const uint32_t *pus, size_t count, double *seconds_per_access)
{
    const struct machine_question question = {MACHINE_TRAVERSE, what, pus, count, count};
    const bool sound = what->stride_bytes >= sizeof(void *) && what->bytes >= what->stride_bytes;
    return ask_machine(machine, &question, machine->ops->traverse, sound, seconds_per_access);
}

int probe_machine_copy(struct machine *machine, const struct machine_copy *what,
                       const uint32_t *pus, size_t count, double *bytes_per_s)
{
    const struct machine_question question = {MACHINE_COPY, what, pus, count, count};
    const bool sound = what->bytes > 0 && what->passes > 0;
    return ask_machine(machine, &question, machine->ops->copy, sound, bytes_per_s);
}

/* A woken worker has its PU soon, beside 8 others as well; a few times one of both has not. */
enum { TOGETHER_TRIES = 8 };

int probe_machine_copy_together(struct machine *machine, const struct machine_copy *what,
                                const uint32_t *pus, size_t count, double *bytes_per_s)
{
    int rc = -EAGAIN;
    for (int i = 0; i < TOGETHER_TRIES && rc == -EAGAIN; i++) {
        rc = probe_machine_copy(machine, what, pus, count, bytes_per_s);
        rc = rc == 0 && machine->guard.not_concurrent ? -EAGAIN : rc;
    }
    return rc;
}

int probe_machine_exchange(struct machine *machine, const struct machine_exchange *what,
                           const struct profile_pair *pairs, size_t count, double *seconds)
{
    const struct machine_question question = {MACHINE_EXCHANGE, what, machine_pair_pus(pairs),
                                              count, 2 * count};
    const bool sound = what->bytes > 0 && what->round_trips > 0 && what->batches > 0;
    return ask_machine(machine, &question, machine->ops->exchange, sound, seconds);
}

int probe_machine_transfer(struct machine *machine, const struct profile_device *device,
                           const struct machine_transfer *places, size_t count,
                           struct machine_transferred *out, struct servet_error *why)
{
    const int stop = machine->ops->transfer ? stopped(machine) : -ENOTSUP;
    if (stop < 0) {
        return stop;
    }
    const double begun = probe_machine_elapsed(machine);
    int rc = machine->ops->transfer(machine, device, places, count, out, why);
    machine->guard.last_s = probe_machine_elapsed(machine) - begun;
    return rc;
}

double probe_machine_elapsed(struct machine *machine)
{
    return machine->ops->elapsed ? machine->ops->elapsed(machine) : 0;
}

double probe_machine_others(struct machine *machine)
{
    return machine->ops->others ? machine->ops->others(machine) : 0;
}

/* A task that needs its PU for a moment has it sooner than its share says, and tasks of the least
 * priority (nice) take nothing: what operations waited so far counts, at most the share. */
double probe_machine_pace(struct machine *machine)
{
    const struct machine_guard *guard = &machine->guard;
    const double shared = 1 + probe_machine_others(machine);
    const bool known = guard->ran_s > 0 && guard->asked_s >= MACHINE_PACE_LEAST_S;
    return known ? fmax(1, fmin(shared, guard->asked_s / guard->ran_s)) : shared;
}

size_t probe_machine_at_once(const struct machine *machine)
{
    const uint32_t workers = profile_quota_workers(machine->cpu_quota);
    return workers ? workers : SIZE_MAX;
}

void probe_machine_close(struct machine *machine)
{
    if (machine->ops && machine->ops->close) {
        machine->ops->close(machine);
    }
    profile_set_free(&machine->pus);
    profile_free(machine->declared);
    memset(machine, 0, sizeof *machine);
}

const char *probe_machine_strerror(int error)
{
    switch (-error) {
    case ENOTSUP:
        return "not possible with this kind of machine";
    case EPERM:
        return "not allowed to pin a thread to this PU";
    case ENODEV:
        return "a PU went offline while it was measured";
    case ENOMEM:
        return "not enough memory for the working sets";
    case EACCES:
        return "not allowed to place memory on this NUMA node";
    case EINTR:
        return "interrupted";
    case ETIME:
        return "the budget was used up";
    default:
        return strerror(-error);
    }
}
