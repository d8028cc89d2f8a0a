/* Rounds of copies, of single PUs and of pairs by turns, until each pair's figure is settled. By
 * turns, because a machine drifts: a ratio of figures minutes apart is one of two machines. */
#include "probes/pairs/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/layers.h"
#include "probes/pairs/partition.h"
#include "probes/pairs/sample.h"
#include "probes/pairs/stopping.h"

enum { LEARN_FROM = 16 };              /* pairs that the first idea of the spread comes from */
static const double pairs_share = 0.9; /* of the probe's time, for the progress bar */

int probe_memory_rounds_init(struct memory_rounds *rounds, struct probe *probe, size_t bytes)
{
    size_t pairs = probe_pair_count(probe->machine->pus.count);
    *rounds =
        (struct memory_rounds){.probe = probe,
                               .bytes = bytes,
                               .fewest_rounds = REPEAT_MEDIAN_MOST,
                               .totals = calloc(pairs + 1, sizeof *rounds->totals),
                               .slower = calloc(pairs + 1, sizeof *rounds->slower),
                               .spreads = calloc(pairs + 1, sizeof *rounds->spreads),
                               .scale = calloc(probe->machine->pus.count, sizeof *rounds->scale),
                               .logs = calloc(pairs + 1, sizeof *rounds->logs)};
    if (!rounds->totals || !rounds->slower || !rounds->spreads || !rounds->logs || !rounds->scale) {
        probe_memory_rounds_free(rounds);
        return -ENOMEM;
    }
    for (size_t i = 0; i < probe->machine->pus.count; i++) {
        rounds->scale[i] = 1;
    }
    return 0;
}

void probe_memory_rounds_free(struct memory_rounds *rounds)
{
    free(rounds->totals);
    free(rounds->slower);
    free(rounds->spreads);
    free(rounds->logs);
    free(rounds->scale);
    rounds->totals = rounds->slower = rounds->spreads = rounds->logs = rounds->scale = NULL;
}

/* One of 64 cores of 6 GB/s in clusters of four took 95 s, one of 512 PUs four minutes. */
enum { LARGE_FROM = 64 };

bool probe_memory_is_large(const struct probe *probe)
{
    return probe->machine->pus.count >= LARGE_FROM;
}

/* A figure is the upper quartile of so many bursts, in a part of a large array or in three passes
 * of a small one. More make it no surer than the rounds do, and take seconds beside a cache of
 * hundreds of MiB. Where hundreds of workers share a memory few have to do: beside ten ready tasks
 * on two PUs 24 bursts said 36.5 to 46.1 GB/s in eight of ten tries, 256 of them 37.9 to 45.7. */
enum { BURSTS = 192, BURSTS_LARGE = 32, PASSES_MOST = 3 };

/* Those were of half a MiB at 40 GB/s. Bursts that take as long are as exact on slower memory,
 * where half a MiB takes twenty times as long and says no more. They are of whole sixteen small
 * pages, so that one odd page makes none; where that is more than the time asks for, fewer do. */
static const double burst_seconds = 25e-6;
static const size_t burst_step = 64u << 10, burst_most = 512u << 10;

/* Bytes of as long a burst. */
static double burst_in_time(const struct probe *probe)
{
    const double bytes = burst_seconds * probe->alone_bytes_per_s / 2;
    return bytes > 0 ? fmin(bytes, (double)burst_most) : (double)burst_most;
}

static size_t whole_bursts(double bytes, size_t burst)
{
    return (size_t)ceil(bytes / (double)burst) * burst;
}

struct machine_copy probe_memory_what(const struct probe *probe, size_t bytes, int32_t numa)
{
    const double in_time = burst_in_time(probe);
    const size_t burst = whole_bursts(in_time, burst_step), least = BURSTS_LARGE * burst,
                 usual = whole_bursts(BURSTS * in_time, burst),
                 wanted = probe_memory_is_large(probe) || usual < least ? least : usual,
                 passes = bytes > 0 ? wanted / bytes : 1;
    return (struct machine_copy){
        .bytes = bytes,
        .passes = passes < 1             ? 1
                  : passes > PASSES_MOST ? PASSES_MOST
                                         : (uint32_t)passes,
        .part = wanted,
        .burst = burst,
        .numa = numa,
        .pages = probe_memory_pages(probe->machine),
        .deadline = probe->deadline,
    };
}

int probe_memory_copy(struct probe *probe, size_t bytes, const uint32_t *pus, size_t count,
                      double *bytes_per_s)
{
    const struct machine_copy what = probe_memory_what(probe, bytes, -1);
    int rc = probe_machine_copy_together(probe->machine, &what, pus, count, bytes_per_s);
    if (rc == 0 && count == 1) {
        probe->alone_bytes_per_s = fmax(probe->alone_bytes_per_s, *bytes_per_s);
    }
    return rc;
}

static double scale_of(const struct memory_rounds *rounds, uint32_t pu)
{
    return rounds->scale[profile_set_position(&rounds->probe->machine->pus, pu)];
}

int probe_memory_rounds_alone(struct memory_rounds *rounds, uint32_t pu)
{
    if (rounds->alone_count == MEMORY_ALONE_MAX) {
        return 0;
    }
    double *alone = &rounds->alone[rounds->alone_count];
    int rc = probe_memory_copy(rounds->probe, rounds->bytes, &pu, 1, alone);
    *alone = rc == 0 ? *alone * scale_of(rounds, pu) : 0;
    rounds->alone_count += rc == 0;
    return rc;
}

/* What one PU copies alone, as it is, as often as a median needs. */
static int settled_alone(struct memory_rounds *rounds, uint32_t pu, double *bytes_per_s)
{
    double values[REPEAT_MEDIAN_MOST];
    size_t done = 0;
    while (!probe_repeat_median_settled(values, done) && !(done > 0 && probe_late(rounds->probe))) {
        int rc = probe_memory_copy(rounds->probe, rounds->bytes, &pu, 1, &values[done++]);
        if (rc < 0) {
            return rc;
        }
    }
    *bytes_per_s = profile_median_value(values, done);
    return 0;
}

int probe_memory_rounds_kinds(struct memory_rounds *rounds)
{
    const struct kinds *kinds = rounds->probe->kinds;
    const struct profile_set *pus = &rounds->probe->machine->pus;
    double alone[KINDS_MAX], best = 0;
    for (size_t kind = 0; kinds && kinds->count > 1 && kind < kinds->count; kind++) {
        int rc = settled_alone(rounds, kinds->pus[kind].ids[0], &alone[kind]);
        if (rc < 0) {
            return rc;
        }
        best = fmax(best, alone[kind]);
    }
    for (size_t i = 0; best > 0 && i < pus->count; i++) {
        rounds->scale[i] = best / alone[probe_kinds_find(kinds, pus->ids[i])];
    }
    return 0;
}

/* One pair's rounds. */
struct pair_rounds {
    double slower[REPEAT_MEDIAN_MOST], totals[REPEAT_MEDIAN_MOST];
    double as_they_are[REPEAT_MEDIAN_MOST]; /* `slower` is by what each gets alone */
};

/* A round of all pairs at the same time; one PU copies alone, truly alone, before. Where the rest
 * of the budget is another probe's, that is all there is. */
static int one_round(struct memory_rounds *rounds, const uint32_t *pus, size_t pairs, size_t round,
                     struct pair_rounds *out)
{
    double rates[2 * CONCURRENT_MOST];
    int rc = probe_memory_rounds_alone(rounds, pus[0]);
    rc = rc == 0 && rounds->probe->machine->until_s > 0 && probe_late(rounds->probe) ? -ETIME : rc;
    const struct machine_copy what = probe_memory_what(rounds->probe, rounds->bytes, -1);
    rc = rc < 0 ? rc
                : probe_machine_copy_together(rounds->probe->machine, &what, pus, 2 * pairs, rates);
    rounds->apart = rc == -EAGAIN;
    rc = rc == -EAGAIN ? -ETIME : rc; /* what has no figure as well */
    for (size_t k = 0; k < pairs && rc == 0; k++) {
        out[k].slower[round] = fmin(rates[2 * k] * scale_of(rounds, pus[2 * k]),
                                    rates[2 * k + 1] * scale_of(rounds, pus[2 * k + 1]));
        out[k].totals[round] = rates[2 * k] + rates[2 * k + 1];
        out[k].as_they_are[round] = fmin(rates[2 * k], rates[2 * k + 1]);
    }
    return rc;
}

/* Disturbance only takes bandwidth away, so a pair that once got what lies in the middle between
 * colliding and all that one gets alone does not collide, and that is all that is asked of most
 * pairs. Not of the first ones, of which the spread is learned, nor where every pair's figure is
 * asked for. */
static bool is_clear(const struct memory_rounds *rounds, const struct pair_rounds *pair,
                     size_t done)
{
    const double enough = (1 + PROBE_MEMORY_COLLISION) / 2 * probe_memory_rounds_reference(rounds);
    return done == 1 && !rounds->doubted && !rounds->probe->exhaustive &&
           rounds->ratios >= LEARN_FROM && pair->slower[0] > enough;
}

static bool all_clear(const struct memory_rounds *rounds, const struct pair_rounds *pairs,
                      size_t count, size_t done)
{
    bool clear = true;
    for (size_t k = 0; k < count && clear; k++) {
        clear = is_clear(rounds, &pairs[k], done);
    }
    return clear;
}

/* A run that is late does with one round. */
static bool is_settled(const struct memory_rounds *rounds, const struct pair_rounds *pairs,
                       size_t count, size_t done)
{
    bool settled = true;
    for (size_t k = 0; k < count && settled; k++) {
        settled =
            is_clear(rounds, &pairs[k], done) || probe_repeat_median_settled(pairs[k].slower, done);
    }
    return settled || (done > 0 && probe_late(rounds->probe));
}

static void learn(struct memory_rounds *rounds, const struct pair_rounds *pairs, size_t count,
                  size_t done)
{
    double sorted[LEARN_FROM];
    for (size_t k = 0; k < count && done > 1; k++) {
        if (rounds->ratios < probe_pair_count(rounds->probe->machine->pus.count)) {
            rounds->logs[rounds->ratios++] = log(pairs[k].slower[1] / pairs[k].slower[0]);
        }
    }
    /* Whether a class's pairs agree is asked while it is measured: cheap enough to look often at
     * first. */
    if (rounds->ratios <= LEARN_FROM) {
        memcpy(sorted, rounds->logs, rounds->ratios * sizeof *sorted);
        rounds->spread = probe_layers_spread(sorted, rounds->ratios);
    }
}

int probe_memory_rounds_ask(void *argument, const struct pair_position *pairs, size_t count,
                            double *bytes_per_s, double *figures)
{
    struct memory_rounds *rounds = argument;
    const struct profile_set *set = &rounds->probe->machine->pus;
    struct pair_rounds found[CONCURRENT_MOST];
    uint32_t pus[2 * CONCURRENT_MOST];
    size_t done = 0;
    for (size_t k = 0; k < count; k++) {
        pus[2 * k] = set->ids[pairs[k].i];
        pus[2 * k + 1] = set->ids[pairs[k].j];
    }
    const struct probe_pairs *all = &rounds->probe->pairs;
    probe_tell(rounds->probe,
               all->planned > 0 ? pairs_share * (double)all->done / (double)all->planned
                                : pairs_share,
               "memory of PUs %u and %u", pus[0], pus[1]);
    while (!is_settled(rounds, found, count, done)) {
        int rc = one_round(rounds, pus, count, done, found);
        if (done > 0 && rounds->apart) {
            break;
        }
        if (rc < 0) {
            return rc;
        }
        done++;
    }
    learn(rounds, found, count, done);
    for (size_t k = 0; k < count; k++) {
        size_t pair = probe_pair_index(set->count, pairs[k].i, pairs[k].j);
        rounds->totals[pair] = profile_median_value(found[k].totals, done);
        rounds->slower[pair] = profile_median_value(found[k].as_they_are, done);
        rounds->spreads[pair] = probe_spread(found[k].slower, done);
        figures[k] = bytes_per_s[k] = profile_median_value(found[k].slower, done);
    }
    if (done < rounds->fewest_rounds && !all_clear(rounds, found, count, done)) {
        rounds->fewest_rounds = (uint32_t)done;
    }
    return 0;
}

int probe_memory_rounds_better(struct memory_rounds *rounds, size_t i, size_t j,
                               double *bytes_per_s)
{
    const struct pair_position pair = {i, j};
    const size_t at = probe_pair_index(rounds->probe->machine->pus.count, i, j);
    const double total = rounds->totals[at], slower = rounds->slower[at];
    double again, figure;
    int rc = probe_memory_rounds_ask(rounds, &pair, 1, &again, &figure);
    if (rc < 0 || again <= *bytes_per_s) {
        rounds->totals[at] = total;
        rounds->slower[at] = slower;
        return rc == -ETIME ? 0 : rc;
    }
    *bytes_per_s = again;
    return 0;
}

/* Does the pair not collide, and both of it with one other PU? */
static bool is_bridged(const struct sampling_outcome *outcome, size_t n,
                       const struct pair_position *pair, double reference)
{
    bool bridged = false;
    if (probe_memory_collides(outcome->values[probe_pair_index(n, pair->i, pair->j)], reference)) {
        return false;
    }
    for (size_t k = 0; k < n && !bridged; k++) {
        bridged =
            k != pair->i && k != pair->j &&
            probe_memory_collides(outcome->values[probe_pair_index(n, pair->i, k)], reference) &&
            probe_memory_collides(outcome->values[probe_pair_index(n, pair->j, k)], reference);
    }
    return bridged;
}

int probe_memory_rounds_doubt(struct memory_rounds *rounds, struct sampling_outcome *outcome)
{
    const size_t n = rounds->probe->machine->pus.count;
    const double reference = probe_memory_rounds_reference(rounds);
    int rc = 0;
    rounds->doubted = true;
    for (size_t i = 0, k = 0; i < n; i++) {
        for (size_t j = i + 1; j < n && rc == 0; j++, k++) {
            const bool once = outcome->measured[k] && rounds->spreads[k] < 0;
            const struct pair_position pair = {i, j};
            double figure;
            rc = once && !probe_late(rounds->probe) && is_bridged(outcome, n, &pair, reference)
                     ? probe_memory_rounds_ask(rounds, &pair, 1, &outcome->values[k], &figure)
                     : 0;
        }
    }
    rounds->doubted = false;
    return rc == -ETIME ? 0 : rc;
}

double probe_memory_rounds_reference(const struct memory_rounds *rounds)
{
    double best = 0;
    for (size_t i = 0; i < rounds->alone_count; i++) {
        best = fmax(best, rounds->alone[i]);
    }
    return best;
}

bool probe_memory_collides(double bytes_per_s, double reference)
{
    return bytes_per_s < PROBE_MEMORY_COLLISION * reference;
}

/* Do all pairs of the PU that were measured collide? */
static bool collides_with_all(const struct sampling_outcome *outcome, size_t n, size_t pu,
                              double reference)
{
    size_t count = 0, colliding = 0;
    for (size_t other = 0; other < n; other++) {
        const size_t k = other == pu ? 0 : probe_pair_index(n, pu, other);
        const bool one = other != pu && outcome->measured[k];
        count += one;
        colliding += one && probe_memory_collides(outcome->values[k], reference);
    }
    return count > 0 && colliding == count;
}

static bool any_is_free(const struct sampling_outcome *outcome, size_t pairs, double reference)
{
    bool any = false;
    for (size_t k = 0; k < pairs && !any; k++) {
        any = outcome->measured[k] && !probe_memory_collides(outcome->values[k], reference);
    }
    return any;
}

int probe_memory_rounds_slow(struct memory_rounds *rounds, struct sampling_outcome *outcome)
{
    const struct profile_set *pus = &rounds->probe->machine->pus;
    const double reference = probe_memory_rounds_reference(rounds);
    double *factor = malloc(pus->count * sizeof *factor);
    const bool some = any_is_free(outcome, probe_pair_count(pus->count), reference);
    int rc = factor ? 0 : -ENOMEM;
    for (size_t i = 0; factor && i < pus->count; i++) {
        factor[i] = 1;
    }
    for (size_t i = 0; rc == 0 && i < pus->count; i++) {
        double alone;
        const bool asked = some && !probe_late(rounds->probe) &&
                           collides_with_all(outcome, pus->count, i, reference);
        rc = asked ? settled_alone(rounds, pus->ids[i], &alone) : 0;
        if (rc == 0 && asked && probe_memory_collides(alone * rounds->scale[i], reference)) {
            factor[i] = reference / (alone * rounds->scale[i]);
            rounds->scale[i] *= factor[i];
        }
    }
    /* also where the time was over before all were asked: their rounds are scaled already */
    rc = rc == -ETIME ? 0 : rc;
    for (size_t i = 0, k = 0; rc == 0 && i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count; j++, k++) {
            outcome->values[k] *= fmax(factor[i], factor[j]);
        }
    }
    free(factor);
    return rc;
}
