/* How the time that a run has is divided among its probes: what each is expected to take on this
 * machine as busy as it is, what it takes at the least, what is left out before it starts. */
#include "probes/run/run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* Rather a little late than without a figure; half as much again is a budget's limit. */
static const double tolerated = 1.25, limit = 1.5;
/* Of the processor, about: what was measured is put together and written, and whoever sleeps over
 * it waits for the PU again. */
static const double writing_s = 0.15;
/* A budget below that asks for the least there is, however long it takes. */
static const double kept_from_s = 2;

/* Of what later probes need first: an operation that is ended waits for its PU once more. */
static const double kept_for_later = 2;

/* When operations end at the latest, and no probe is begun that would not have its first part. */
static double end_of(const struct probe_run *run)
{
    const double budget_s = run->budget_s, pace = probe_machine_pace(run->machine);
    return fmax(fmin(tolerated * budget_s, limit * budget_s - writing_s * pace), budget_s / limit);
}

void probe_budget_start(const struct probe_run *run, struct probe_results *results)
{
    results->until_s = run->budget_s;
    run->machine->until_s = run->budget_s >= kept_from_s ? end_of(run) : 0;
    run->machine->guard.budget_s = run->budget_s;
}

/* What a probe is expected to take, and what it takes at the least, however late it is: some of it
 * for a probe that comes at all. */
struct expected {
    double s, least_s;
};

static struct expected expected_of(const struct probe_results *results, unsigned probe)
{
    const struct probe_estimate *of = &results->estimate;
    return probe == PROBE_CACHE     ? (struct expected){of->cache_s, of->cache_least_s}
           : probe == PROBE_SHARING ? (struct expected){of->sharing_s, of->sharing_least_s}
           : probe == PROBE_MEMORY  ? (struct expected){of->memory_s, of->memory_least_s}
                                    : (struct expected){of->message_s, of->message_least_s};
}

static double least(const struct probe_results *results, unsigned probe)
{
    return expected_of(results, probe).least_s;
}

/* What a probe that is begun needs here for a figure that says something. Caches are asked for in a
 * hundred short operations, for each of which two threads have to have a PU in turn. */
static double first_here(const struct probe_run *run, const struct probe_results *results,
                         unsigned probe)
{
    const double wakes_s = 1, pace = probe_machine_pace(run->machine),
                 first_s = probe == PROBE_MEMORY ? results->estimate.memory_alone_s
                                                 : least(results, probe);
    return first_s * pace + (probe == PROBE_CACHE ? wakes_s * (pace - 1) : 0);
}

static double expected_here(const struct probe_run *run, const struct probe_results *results,
                            unsigned probe)
{
    return expected_of(results, probe).s * probe_machine_pace(run->machine);
}

typedef double seconds_function(const struct probe_run *run, const struct probe_results *results,
                                unsigned probe);

/* A quota of one worker at a time leaves too few for it. */
static bool lacks_workers(const struct probe_run *run, unsigned probe)
{
    return probe & (PROBE_SHARING | PROBE_MESSAGE) && probe_machine_at_once(run->machine) < 2 &&
           run->machine->pus.count > 1;
}

/* Is it asked for, and may it be measured? */
static bool asks(const struct probe_run *run, unsigned probe)
{
    return run->probes & probe && !lacks_workers(run, probe);
}

/* Is it still to come, from `first` on? */
static bool is_from(const struct probe_results *results, unsigned probe, unsigned first)
{
    const bool postponed = probe == PROBE_SHARING && results->estimate.messages_first;
    return first == PROBE_CACHE || ((probe >= first || postponed) && !(results->done & probe));
}

/* Of the probes asked for, from `first` on. */
static double sum_from(const struct probe_run *run, const struct probe_results *results,
                       unsigned first, seconds_function *seconds)
{
    double sum = 0;
    for (unsigned probe = PROBE_CACHE; probe < PROBE_ALL; probe <<= 1) {
        const bool counts = asks(run, probe) && is_from(results, probe, first);
        sum += counts ? seconds(run, results, probe) : 0;
    }
    return sum;
}

/* What comes after all probes that have a name. */
static double expected_after(const struct probe_run *run, const struct probe_results *results)
{
    const struct probe_estimate *estimate = &results->estimate;
    return ((run->probes & PROBE_MEMORY ? estimate->sets_s + estimate->kernels_s : 0) +
            (asks(run, PROBE_MESSAGE) ? estimate->looks_s : 0)) *
           probe_machine_pace(run->machine);
}

double probe_budget_expected_from(const struct probe_run *run, const struct probe_results *results,
                                  unsigned first)
{
    return sum_from(run, results, first, expected_here) + expected_after(run, results);
}

static double messages_wait(const struct probe_run *run, const struct probe_results *results)
{
    return results->estimate.mpi_s > 0 ? probe_machine_long_pace(run->machine) : 1;
}

double probe_budget_said(const struct probe_run *run, const struct probe_results *results,
                         unsigned probe)
{
    return expected_of(results, probe).s * probe_machine_long_pace(run->machine) *
           (probe == PROBE_MESSAGE ? messages_wait(run, results) : 1);
}

double probe_budget_said_sets(const struct probe_run *run, const struct probe_results *results)
{
    return (run->probes & PROBE_MEMORY ? results->estimate.sets_s : 0) *
           probe_machine_long_pace(run->machine);
}

double probe_budget_said_last(const struct probe_run *run, const struct probe_results *results)
{
    const struct probe_estimate *of = &results->estimate;
    return ((run->probes & PROBE_MEMORY ? of->kernels_s : 0) +
            (asks(run, PROBE_MESSAGE) ? of->looks_s * messages_wait(run, results) : 0)) *
           probe_machine_long_pace(run->machine);
}

double probe_budget_said_from(const struct probe_run *run, const struct probe_results *results,
                              unsigned first)
{
    return sum_from(run, results, first, probe_budget_said) + probe_budget_said_sets(run, results) +
           probe_budget_said_last(run, results);
}

double probe_budget_first_from(const struct probe_run *run, const struct probe_results *results,
                               unsigned first)
{
    return sum_from(run, results, first, first_here);
}

double probe_budget_left(const struct probe_results *results)
{
    return results->until_s > 0 ? results->until_s - probe_elapsed(&results->probe) : INFINITY;
}

bool probe_budget_fits_ranks(const struct probe_run *run, const struct probe_results *results)
{
    /* ranks that wait for each other do not sleep: they need two PUs at the same time */
    const double pace = probe_machine_pace(run->machine);
    return (results->estimate.mpi_s + results->estimate.message_least_s * pace) * pace <
           probe_budget_left(results);
}

void probe_budget_grant(const struct probe_run *run, struct probe_results *results, unsigned probe,
                        double of)
{
    const double now = probe_elapsed(&results->probe), left = probe_budget_left(results),
                 share = left * expected_here(run, results, probe) /
                         probe_budget_expected_from(run, results, probe),
                 spare = left - probe_budget_expected_from(run, results, probe << 1),
                 most = left - probe_budget_first_from(run, results, probe << 1),
                 granted = fmin(fmax(share, spare), fmax(most, first_here(run, results, probe)));
    results->probe.deadline = results->until_s > 0 ? now + granted / of : 0;
    if (run->machine->until_s > 0) { /* nor do operations that are late take it from them */
        const double later_s = kept_for_later * probe_budget_first_from(run, results, probe << 1);
        run->machine->until_s = fmax(end_of(run) - later_s, now + granted);
    }
}

/* Even the least of it takes longer than there is time for: it is left out where it is not all that
 * was asked for, and others can have the time or a machine that is less busy would have it. Caches
 * and who shares them are declared on most machines, what memory and messages get nowhere: what
 * those need first is not taken from them, nor what messages need from memory, which takes more. */
static bool is_too_long(const struct probe_run *run, const struct probe_results *results,
                        unsigned probe)
{
    const double left = end_of(run) - probe_elapsed(&results->probe);
    bool others =
        (run->probes & (probe - 1)) != 0 || (run->probes != probe && least(results, probe) < left);
    double kept_s = 0;
    for (unsigned later = probe << 1; later < PROBE_ALL; later <<= 1) {
        const double first_s = first_here(run, results, later);
        const bool fits = asks(run, later) && !(results->done & later) && later != PROBE_SHARING &&
                          least(results, later) > 0 && first_s < left;
        others |= fits;
        kept_s += fits ? first_s : 0;
    }
    return others && first_here(run, results, probe) + kept_s > left;
}

int probe_budget_fail(const struct probe_run *run, const struct probe_results *results,
                      struct servet_error *error)
{
    const double others = probe_machine_others(run->machine);
    double least_s = INFINITY;
    char busy[96] = "";
    for (unsigned probe = PROBE_CACHE; probe < PROBE_ALL; probe <<= 1) {
        const bool asked = (run->probes & probe) && least(results, probe) > 0;
        least_s = asked && probe != PROBE_SHARING ? fmin(least_s, first_here(run, results, probe))
                                                  : least_s;
    }
    if (others >= 1) {
        snprintf(busy, sizeof busy,
                 " beside %.0f other task%s for each PU; measure when nothing else runs, or",
                 others, others < 1.5 ? "" : "s");
    }
    /* what was used up was too little, whatever is expected */
    return profile_error(error, -ETIME, "nothing could be measured in %g s%s with --budget %.0f",
                         run->budget_s, *busy ? busy : "; expected to do",
                         ceil(fmax(2 * run->budget_s, run->budget_s + least_s)));
}

bool probe_budget_asks_nothing(const struct probe_results *results, unsigned probe)
{
    return probe & (PROBE_SHARING | PROBE_MESSAGE) && results->probe.machine->pus.count == 1;
}

bool probe_budget_wants(const struct probe_run *run, struct probe_results *results, unsigned probe)
{
    if (!(run->probes & probe)) {
        return false;
    }
    if (lacks_workers(run, probe)) {
        results->throttled |= probe;
        return false;
    }
    const bool unknown = probe == PROBE_SHARING && (results->left_out & PROBE_CACHE);
    if (results->until_s > 0 && !probe_budget_asks_nothing(results, probe) &&
        (unknown || is_too_long(run, results, probe))) {
        results->left_out |= probe;
        results->not_begun |= probe;
        return false;
    }
    probe_budget_grant(run, results, probe, 1);
    return true;
}

/* A look that is late has its seconds all the same, and the fit after it only its share of the
 * processor: begun after 3 of 5 s beside nine tasks the two ended after 8.8. */
static bool may_fit_yet(const struct probe_run *run, const struct probe_results *results,
                        unsigned probe)
{
    const double fit_s = results->estimate.cache_fit_s * probe_machine_pace(run->machine);
    return probe != PROBE_CACHE ||
           probe_elapsed(&results->probe) + CACHE_LOOK_LEAST_S + fit_s < end_of(run);
}

bool probe_budget_wants_yet(const struct probe_run *run, struct probe_results *results,
                            unsigned probe)
{
    const bool yet = results->not_begun & probe && run->machine->until_s > 0 &&
                     probe_budget_left(results) > 0 && may_fit_yet(run, results, probe);
    if (yet) {
        results->not_begun &= ~probe;
        probe_budget_grant(run, results, probe, 1);
    }
    return yet;
}
