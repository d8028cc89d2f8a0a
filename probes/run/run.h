/* One run of servet-probe: the chosen probes, one after the other, and the profile that comes of
 * it. */
#ifndef SERVET_PROBES_RUN_RUN_H
#define SERVET_PROBES_RUN_RUN_H

#include "probes/machine.h"
#include "probes/run/estimate.h"
#include "probes/run/progress.h"
#include "probes/run/result.h"

enum probe_run_probes {
    PROBE_CACHE = 1,
    PROBE_SHARING = 2, /* needs the cache sizes */
    PROBE_MEMORY = 4,
    PROBE_MESSAGE = 8,
    PROBE_ALL = 15,
};

/* As --probes calls them, by bit of enum probe_run_probes. */
enum { PROBE_NAMES = 4 };
extern const char *const probe_run_names[PROBE_NAMES];

/* The argument of --probes: comma-separated names; a probe that needs another brings it. An unknown
 * name ends the command with status 2; `also` ("none, or ") says in that line what else is
 * allowed. */
unsigned probe_run_parse(const char *text, const char *also);

struct probe_run {
    unsigned probes;
    bool mpi;             /* messages through MPI where that can be had */
    bool paper;           /* cache sizes by the method of the 2010 paper */
    bool exhaustive;      /* every pair, nothing taken over */
    bool one_by_one;      /* never several pairs at the same time */
    double budget_s;      /* 0: as long as it takes */
    size_t largest_bytes; /* of the working sets that cache sizes are inferred from; 0: as declared
                             caches suggest */
    uint64_t seed;
    struct machine_journal *journal; /* of an interrupted run, or for one; may be NULL */
    struct machine *machine;
    struct progress *progress;
    int incomplete; /* set by the run: -ENODEV or -ENOMEM that ended it after some probe had its
                       result; 0: none */
};

/* Runs it. When a PU goes offline or memory does not do, the probes that were done make a partial
 * profile, marked by the condition "incomplete"; before the first one is done that is -ENODEV or
 * -ENOMEM. The machine's declared profile becomes the result (machine->declared is NULL
 * afterwards). What could not be measured is said in one line on stderr each, and stays as
 * declared. */
int probe_run_run(struct probe_run *run, struct servet_profile **out, struct servet_error *error);

/* What the probes of one run have found so far; for run.c and conditions.c alone. */

struct probe_results {
    struct probe probe;
    struct profile_class *node_class;
    struct kinds kinds;
    struct kind_results of[KINDS_MAX];
    struct probe_memory memory;
    struct probe_numa numa;
    struct profile_communication messages;
    char layer_note[640];
    struct probe_estimate estimate;
    double until_s; /* when the budget of all probes is used up, on the machine's clock; 0: never */
    unsigned left_out;  /* probes that the budget left no time for */
    unsigned shortened; /* and those that it cut short */
    unsigned done;
};

/* Under what conditions it was measured, and what of it was left out or cut short. 0 or -ENOMEM. */
int probe_run_add_conditions(const struct probe_run *run, const struct probe_results *results,
                             struct servet_profile *profile);

#endif
