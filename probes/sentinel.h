/* An operation during which other tasks ran on the measured PUs is measured a second time.
 *
 * A backend that can tell says how long its workers were ready and had no PU
 * (machine_ops.disturbed). That is what a load average cannot say: whether anybody was in the way
 * on these PUs, during this measurement.
 */
#ifndef SERVET_PROBES_SENTINEL_H
#define SERVET_PROBES_SENTINEL_H

#include "probes/machine.h"

/* Runs the operation once more at most; writes `count` values. */
typedef int machine_guard_run(struct machine *machine, const void *what, const void *places,
                              size_t count, double *values);

/* What a backend is asked: the operation, its places (PUs or pairs, `count` of them), and how many
 * PUs work at once. */
struct machine_question {
    machine_guard_run *run;
    const void *what, *places;
    size_t count, workers;
};

/* Runs it, and again if it was disturbed while the machine's time for that lasts; the less
 * disturbed of both counts. Keeps account in machine->guard. 0 or the first run's -errno. */
int probe_sentinel_ask(struct machine *machine, const struct machine_question *question,
                       double *values);

/* Adds the account of a machine that measured for this one. */
void probe_sentinel_add(struct machine_guard *sum, const struct machine_guard *more);

/* Too many operations stayed disturbed for the figures to be trusted. */
bool probe_machine_was_busy(const struct machine *machine);

#endif
