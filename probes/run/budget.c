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

void probe_budget_start(const struct probe_run *run, struct probe_results *results)
{
    const double budget_s = run->budget_s, pace = probe_machine_pace(run->machine),
                 end_s = fmin(tolerated * budget_s, limit * budget_s - writing_s * pace);
    results->until_s = budget_s;
    run->machine->until_s = budget_s >= kept_from_s ? fmax(end_s, budget_s / limit) : 0;
    run->machine->guard.budget_s = budget_s;
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

/* How long so much of the probe takes here. Caches are asked for in a hundred short operations, for
 * each of which two threads have to have a PU in turn; messages want two PUs at the same time. */
static double here(const struct probe_run *run, unsigned probe, double seconds)
{
    const double wakes_s = 1, pace = probe_machine_pace(run->machine);
    return seconds * pace * (probe == PROBE_MESSAGE ? pace : 1) +
           (probe == PROBE_CACHE ? wakes_s * (pace - 1) : 0);
}

static double least_here(const struct probe_run *run, const struct probe_results *results,
                         unsigned probe)
{
    return here(run, probe, least(results, probe));
}

/* What a probe that is begun needs for a figure that says something. */
static double first_here(const struct probe_run *run, const struct probe_results *results,
                         unsigned probe)
{
    return probe == PROBE_MEMORY ? here(run, probe, results->estimate.memory_alone_s)
                                 : least_here(run, results, probe);
}

double probe_budget_expected(const struct probe_run *run, const struct probe_results *results,
                             unsigned probe)
{
    return expected_of(results, probe).s * probe_machine_pace(run->machine);
}

typedef double seconds_function(const struct probe_run *run, const struct probe_results *results,
                                unsigned probe);

/* Of the probes asked for, from `first` on. */
static double sum_from(const struct probe_run *run, const struct probe_results *results,
                       unsigned first, seconds_function *seconds)
{
    double sum = 0;
    for (unsigned probe = first; probe < PROBE_ALL; probe <<= 1) {
        sum += run->probes & probe ? seconds(run, results, probe) : 0;
    }
    return sum;
}

double probe_budget_expected_after(const struct probe_run *run, const struct probe_results *results)
{
    const struct probe_estimate *estimate = &results->estimate;
    return ((run->probes & PROBE_MEMORY ? estimate->sets_s + estimate->kernels_s : 0) +
            (run->probes & PROBE_MESSAGE ? estimate->looks_s : 0)) *
           probe_machine_pace(run->machine);
}

double probe_budget_expected_from(const struct probe_run *run, const struct probe_results *results,
                                  unsigned first)
{
    return sum_from(run, results, first, probe_budget_expected) +
           probe_budget_expected_after(run, results);
}

double probe_budget_least_from(const struct probe_run *run, const struct probe_results *results,
                               unsigned first)
{
    return sum_from(run, results, first, least_here);
}

double probe_budget_left(const struct probe_results *results)
{
    return results->until_s > 0 ? results->until_s - probe_elapsed(&results->probe) : INFINITY;
}

bool probe_budget_fits_ranks(const struct probe_run *run, const struct probe_results *results)
{
    return results->estimate.mpi_s * probe_machine_pace(run->machine) +
               least_here(run, results, PROBE_MESSAGE) <
           probe_budget_left(results);
}

void probe_budget_grant(const struct probe_run *run, struct probe_results *results, unsigned probe,
                        double of)
{
    const double now = probe_elapsed(&results->probe), left = probe_budget_left(results),
                 share = left * probe_budget_expected(run, results, probe) /
                         probe_budget_expected_from(run, results, probe),
                 spare = left - probe_budget_expected_from(run, results, probe << 1),
                 most = left - probe_budget_least_from(run, results, probe << 1),
                 granted = fmin(fmax(share, spare), fmax(most, least_here(run, results, probe)));
    results->probe.deadline = results->until_s > 0 ? now + granted / of : 0;
}

/* Even the least of it takes longer than there is time for: it is left out where it is not all that
 * was asked for, and others can have the time or a machine that is less busy would have it. Caches
 * and who shares them are declared on most machines, what memory and messages get nowhere: what
 * those need first is not taken from them. */
static bool is_too_long(const struct probe_run *run, const struct probe_results *results,
                        unsigned probe)
{
    const double left = tolerated * probe_budget_left(results);
    bool others =
        (run->probes & (probe - 1)) != 0 || (run->probes != probe && least(results, probe) < left);
    double kept_s = 0;
    for (unsigned later = probe << 1; later < PROBE_ALL; later <<= 1) {
        const double first_s = first_here(run, results, later);
        const bool fits = (run->probes & later) && later != PROBE_SHARING &&
                          least(results, later) > 0 && first_s < left;
        others |= fits;
        kept_s += fits && probe < PROBE_MEMORY ? first_s : 0;
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

bool probe_budget_wants(const struct probe_run *run, struct probe_results *results, unsigned probe)
{
    if (!(run->probes & probe)) {
        return false;
    }
    if (probe & (PROBE_SHARING | PROBE_MESSAGE) && probe_machine_at_once(run->machine) < 2 &&
        run->machine->pus.count > 1) {
        results->throttled |= probe;
        return false;
    }
    const bool unknown = probe == PROBE_SHARING && (results->left_out & PROBE_CACHE);
    if (results->until_s > 0 && (unknown || is_too_long(run, results, probe))) {
        results->left_out |= probe;
        return false;
    }
    probe_budget_grant(run, results, probe, 1);
    return true;
}
