/* The time of a run: one deadline, from when the machine was opened, and steps in a fixed order
 * (budget.c). */
#ifndef SERVET_PROBES_RUN_BUDGET_H
#define SERVET_PROBES_RUN_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "probes/memory/memory.h"
#include "probes/probe.h"
#include "probes/run/result.h"
#include "probes/run/run.h"

/* Results of one run so far; used by run.c, budget.c and conditions.c only. */

struct probe_results {
    const struct probe_run *run; /* not owned */
    struct probe probe;
    struct profile_class *node_class;
    struct kinds kinds;
    struct kind_results of[KINDS_MAX];
    struct probe_memory memory;
    struct probe_numa numa;
    struct probe_devices devices;
    struct profile_communication messages;
    bool through_threads; /* messages */
    size_t step;          /* of those asked for, from 1 on */
    double until_s; /* when the budget of all probes is used up, on the machine's clock; 0: never */
    unsigned left_out;  /* probes that the budget left no time for */
    unsigned throttled; /* and those that a quota leaves too few workers for */
    unsigned shortened; /* and those that it cut short */
    unsigned done;
};

/* How many steps were asked for. */
size_t probe_budget_steps(const struct probe_run *run);
void probe_budget_start(struct probe_results *results);

/* The next step: was it asked for, and does it fit? Grants it its part and shows it. A step that
 * does not fit is left out and stays as declared. */
bool probe_budget_begins(struct probe_results *results, unsigned probe);
/* Grants one of `of` equal parts of the step's time, from now on. */
void probe_budget_grant(struct probe_results *results, unsigned probe, double of);

/* Seconds; infinity without a budget. */
double probe_budget_left(const struct probe_results *results);
/* Is there time to start the ranks of MPI? */
bool probe_budget_fits_ranks(const struct probe_results *results);

/* No probe of those asked for had a figure: -ETIME, and a line that says why. */
int probe_budget_fail(const struct probe_run *run, struct servet_error *error);

/* One PU shares nothing and sends nothing: there is nothing to be late with. */
bool probe_budget_asks_nothing(const struct probe_results *results, unsigned probe);

/* Under what conditions it was measured, and what of it was left out or cut short. 0 or -ENOMEM. */
int probe_run_add_conditions(const struct probe_results *results, struct servet_profile *profile);

#endif
