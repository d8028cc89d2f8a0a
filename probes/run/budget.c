/* How the time of a run is shared out: one deadline, steps in a fixed order, of which each has its
 * least and by its share of what is left.
 *
 * Operations of the machine end at 1.1 of the budget, beside other tasks at up to 1.45. A step is
 * begun where its least fits before the least of those after it; it repeats nothing that need not
 * be repeated once its part is over. Time that a step leaves goes to those after it. */
#include "probes/run/result.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* By bit of enum probe_run_probes. Seconds of an idle machine for a first figure, and shares of the
 * time, from whole runs of machines of 2 to 64 PUs. The least of the caches is one look at every
 * other size and the fit; of memory, touching the arrays of one PU, as large as the last level.
 * Those of devices, a driver's start and 64 MiB of pinned memory, are an estimate. */
static const struct step {
    const char *name;
    double least_s;
    double after_s; /* of that: of the processor, after its operations */
    double share;
} steps[] = {
    {"cache", 1.0, 0.45, 6}, {"sharing", 0.1, 0, 2}, {"memory", 0.25, 0, 3}, {"message", 0.2, 0, 3},
    {"device", 0.5, 0, 1},   {"sets", 0, 0, 2},      {"repeats", 0, 0, 1},
};
enum { STEPS = sizeof steps / sizeof *steps };

/* Share of the budget by which a run may exceed it: for each second of pace, and at most; and the
 * processor time that it takes to assemble and write the profile. */
static const double over_share = 0.1, over_most = 0.45, writing_s = 0.1;
/* A smaller budget asks for the least there is, however long it takes. */
static const double kept_from_s = 2;
/* Starting the ranks of MPI, and their first messages; ranks wait awake, so each needs its PU. */
static const double ranks_s = 0.5;

static double end_of_budget(const struct probe_run *run)
{
    const double budget_s = run->budget_s, pace = probe_machine_pace(run->machine),
                 over_s = fmin(over_share * pace, over_most) * budget_s;
    return fmax(budget_s + over_s - writing_s * pace, budget_s / 2);
}

static const struct step *step_of(unsigned probe)
{
    return &steps[__builtin_ctz(probe)];
}

/* A quota of one worker at a time leaves too few for it. */
static bool lacks_workers(const struct probe_run *run, unsigned probe)
{
    return probe & (PROBE_SHARING | PROBE_MESSAGE | PROBE_SETS) &&
           probe_machine_at_once(run->machine) < 2 && run->machine->pus.count > 1;
}

/* Sets come with memory, repetitions with memory or messages. */
static bool is_asked(const struct probe_run *run, unsigned probe)
{
    const unsigned asked = run->probes | (run->probes & PROBE_MEMORY ? PROBE_SETS : 0) |
                           (run->probes & (PROBE_MEMORY | PROBE_MESSAGE) ? PROBE_REPEATS : 0);
    return asked & probe && !lacks_workers(run, probe);
}

size_t probe_budget_steps(const struct probe_run *run)
{
    size_t count = 0;
    for (size_t i = 0; i < STEPS; i++) {
        count += is_asked(run, 1u << i);
    }
    return count;
}

void probe_budget_start(struct probe_results *results)
{
    const struct probe_run *run = results->run;
    results->until_s = run->budget_s;
    run->machine->until_s = run->budget_s >= kept_from_s ? end_of_budget(run) : 0;
    run->machine->guard.budget_s = run->budget_s;
}

/* Least time and shares of the steps after `probe`. */
struct rest {
    double least_s, share;
};

static struct rest rest_after(const struct probe_run *run, unsigned probe)
{
    struct rest rest = {0};
    for (size_t i = 0; i < STEPS; i++) {
        const bool after = 1u << i > probe && is_asked(run, 1u << i);
        rest.least_s += after ? steps[i].least_s * probe_machine_pace(run->machine) : 0;
        rest.share += after ? steps[i].share : 0;
    }
    return rest;
}

double probe_budget_left(const struct probe_results *results)
{
    return results->until_s > 0 ? results->until_s - probe_elapsed(&results->probe) : INFINITY;
}

bool probe_budget_fits_ranks(const struct probe_results *results)
{
    return ranks_s * probe_machine_pace(results->run->machine) < probe_budget_left(results);
}

void probe_budget_grant(struct probe_results *results, unsigned probe, double of)
{
    const struct probe_run *run = results->run;
    const struct step *step = step_of(probe);
    const struct rest rest = rest_after(run, probe);
    const double now = probe_elapsed(&results->probe), left_s = probe_budget_left(results),
                 share_s = left_s * step->share / (step->share + rest.share),
                 granted_s = fmax(fmin(share_s, left_s - rest.least_s),
                                  step->least_s * probe_machine_pace(run->machine));
    if (results->until_s > 0) {
        results->probe.deadline = now + granted_s / of;
    }
    if (run->machine->until_s > 0) { /* operations that are late take nothing from later steps */
        const double after_s = step->after_s * probe_machine_pace(run->machine);
        run->machine->until_s = fmax(end_of_budget(run) - rest.least_s, now + granted_s) - after_s;
    }
}

/* The least of it does not fit before that of the steps after it, and is not all that was asked. */
static bool is_too_long(const struct probe_results *results, unsigned probe)
{
    const struct probe_run *run = results->run;
    const double now = probe_elapsed(&results->probe),
                 least_s = step_of(probe)->least_s * probe_machine_pace(run->machine);
    if (run->budget_s < kept_from_s || run->probes == probe) {
        return run->probes != probe && now > results->until_s;
    }
    return now + least_s + rest_after(run, probe).least_s > end_of_budget(run);
}

int probe_budget_fail(const struct probe_run *run, struct servet_error *error)
{
    const double others = probe_machine_others(run->machine);
    char busy[96] = "";
    if (others >= 1) {
        snprintf(busy, sizeof busy, " beside %.0f other task%s for each PU", others,
                 others < 1.5 ? "" : "s");
    }
    return profile_error(error, -ETIME,
                         "nothing could be measured in %g s%s; expected a larger --budget",
                         run->budget_s, busy);
}

bool probe_budget_asks_nothing(const struct probe_results *results, unsigned probe)
{
    return probe & (PROBE_SHARING | PROBE_MESSAGE) && results->probe.machine->pus.count == 1;
}

bool probe_budget_begins(struct probe_results *results, unsigned probe)
{
    if (!is_asked(results->run, probe)) {
        results->throttled |= results->run->probes & probe;
        return false;
    }
    results->step++;
    const bool unknown = probe == PROBE_SHARING && (results->left_out & PROBE_CACHE);
    if (results->until_s > 0 && !probe_budget_asks_nothing(results, probe) &&
        (unknown || is_too_long(results, probe))) {
        results->left_out |= probe & PROBE_ALL;
        return false;
    }
    probe_budget_grant(results, probe, 1);
    probe_progress_next(results->run->progress, results->step, step_of(probe)->name);
    return true;
}
