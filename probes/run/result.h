/* From what the probes found to a profile. The declared topology gives the names of things
 * (packages, cores, NUMA nodes) and the declared sizes; every figure that was measured replaces the
 * declared one and says so. */
#pragma once

#include "probes/cache/probe.h"
#include "probes/memory/memory.h"
#include "probes/pairs/sharing.h"
#include "probes/run/run.h"
#include "profile/model.h"

/* Results of one kind of cores. */
struct kind_results {
    struct probe_cache caches;
    struct probe_sharing sharing; /* empty: the declared groups are kept */
};

/* Where the caches were measured, for the notes. */
struct measured_on {
    uint32_t pu;
    bool guest; /* a virtual machine */
    bool busy;  /* other programs ran before or while it was measured */
};

/* Puts the measured levels of each kind in the place of the declared caches. A declared level that
 * was not seen in the measurement stays, marked as declared. A cache that kinds have in common is
 * the one found by the first. Where a size is not the declared one, the level's note says so.
 * where->pu is each kind's first. 0 or -ENOMEM. */
int probe_result_set_caches(struct profile_class *node_class, const struct kinds *kinds,
                            struct kind_results *results, const struct measured_on *where);

int probe_result_copy_relation(const struct profile_relation *from, struct profile_relation *out);

/* After an unfinished search for levels of memory, declared levels that do not cross those found
 * stay. 0 or -ENOMEM. */
int probe_result_keep_levels(const struct profile_memory *declared, struct profile_memory *found);
/* Moves the layers into the class, with the names of what their PUs have in common. 0 or
 * -ENOMEM. */
int probe_result_set_layers(struct profile_class *node_class, struct profile_communication *found);

/* holders[i]: the PUs that may share measured level i of the first kind. NULL stands for all PUs:
 * the operating system declares the cache for other kinds, too; or it does not declare the last
 * one, and another kind's last one may be as large. */
void probe_result_holders(const struct profile_class *node_class, const struct kinds *kinds,
                          const struct kind_results *results, const struct profile_set **holders);

/* -- a run so far, and its time: one deadline, from when the machine was opened, and steps in a
 * fixed order (budget.c); for run.c, budget.c and conditions.c only -- */

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

/* Puts all that was found into the declared class. 0 or -ENOMEM. */
int probe_run_assemble(struct probe_results *results, const struct servet_profile *profile);

/* Under what conditions it was measured, and what of it was left out or cut short. 0 or -ENOMEM. */
int probe_run_add_conditions(const struct probe_results *results, struct servet_profile *profile);
