/* Trials of whether two PUs share a cache, and what is made of them. A trial in which one PU
 * alone missed the cache says nothing; where the ratios are not clear the time of a cache line
 * between the two decides. */
#include "probes/pairs/pairs.h"

#include <math.h>
#include <string.h>

enum { LINE_BYTES = 64, ROUND_TRIPS = 50, BATCHES = 5, SWEEPS = 3 };
static const double alike =
    1.1; /* pairs of one kind: twice the 1 to 5 % that they were seen to differ by */
static const double apart = 1.25; /* pairs of two kinds, where only one of them is known */

/* `above` of four: the third quartile for 3, the first one for 1. */
static double quartile(const double *values, size_t count, size_t above)
{
    double sorted[SHARING_REFERENCES];
    memcpy(sorted, values, count * sizeof *sorted);
    profile_median_value(sorted, count); /* sorts */
    return sorted[above * (count - 1) / 4];
}

static enum sharing_opinion between(double near, double far, double seconds)
{
    if (near * alike >= far) {
        return OPINION_NONE;
    }
    return seconds < sqrt(near * far) ? OPINION_SHARED : OPINION_PRIVATE;
}

enum sharing_opinion probe_sharing_witness_rule(const struct sharing_witness *witness,
                                                double seconds)
{
    double near = witness->near_count ? quartile(witness->near, witness->near_count, 3) : 0;
    double far = witness->far_count ? quartile(witness->far, witness->far_count, 1) : INFINITY;
    if (witness->near_count && witness->far_count) {
        return between(near, far, seconds);
    }
    if (witness->near_count && seconds >= near * apart) {
        return OPINION_PRIVATE;
    }
    return witness->far_count && seconds <= far / apart ? OPINION_SHARED : OPINION_NONE;
}

int probe_sharing_witness_measure(struct probe *probe, const struct profile_pair *pair,
                                  double *seconds)
{
    const struct machine_exchange what = {LINE_BYTES, ROUND_TRIPS, BATCHES, false};
    double least = INFINITY;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double now;
        int rc = probe_machine_exchange(probe->machine, &what, pair, 1, &now);
        if (rc < 0) {
            return rc;
        }
        least = fmin(least, now);
    }
    *seconds = least;
    return 0;
}

enum { WARM_PASSES = 16, NODE = 256, COUNT_LEAST = 2 };
static const double set_share = 2.0 / 3; /* of the cache, per PU (2010 paper, Figure 5) */
static const double ratio_least = 1.5;   /* the ratio of the later paper */
static const double uncertain_share =
    0.75; /* of the threshold: the later paper's ratio where the threshold is 2 */
static const double ratio_private =
    1.25; /* two trials below this end the matter: disturbance never speeds up */

double probe_sharing_decisive(double *ratios, size_t count)
{
    profile_median_value(ratios, count); /* sorts */
    return count >= COUNT_LEAST ? ratios[COUNT_LEAST - 1] : 0;
}

enum probe_sharing_verdict probe_sharing_verdict_of(double decisive, double threshold)
{
    if (decisive > threshold) {
        return SHARING_YES;
    }
    return decisive > threshold * uncertain_share ? SHARING_UNCERTAIN : SHARING_NO;
}

enum probe_sharing_verdict probe_sharing_decide(double *ratios, size_t count, double threshold)
{
    return probe_sharing_verdict_of(probe_sharing_decisive(ratios, count), threshold);
}

bool probe_sharing_is_clear(double decisive, double threshold)
{
    return decisive > threshold / uncertain_share;
}

bool probe_sharing_is_doubtful(double decisive, double threshold)
{
    return decisive > threshold * uncertain_share && !probe_sharing_is_clear(decisive, threshold);
}

double probe_sharing_threshold(double expected)
{
    return fmin(fmax(sqrt(expected), ratio_least), PROBE_SHARING_RATIO);
}

/* -- the bar -- */

/* Of the curve, on a straight line between its points. */
static double seconds_at(const struct cache_curve *curve, double bytes)
{
    size_t i = 1;
    while (i + 1 < curve->count && curve->bytes[i] < bytes) {
        i++;
    }
    double share = (bytes - curve->bytes[i - 1]) / (curve->bytes[i] - curve->bytes[i - 1]);
    share = fmin(fmax(share, 0), 1);
    return curve->seconds[i - 1] + share * (curve->seconds[i] - curve->seconds[i - 1]);
}

/* Two sets of two thirds in one cache are as one of four thirds. */
static double threshold_of(const struct cache_curve *curve, const struct probe_cache_level *cache)
{
    double bytes = set_share * (double)cache->size_bytes;
    if (curve->count < 2) {
        return PROBE_SHARING_RATIO;
    }
    return probe_sharing_threshold(seconds_at(curve, 2 * bytes) / seconds_at(curve, bytes));
}

/* Seconds that translating addresses adds to a load somewhere in so many bytes. */
static double translation_seconds(const struct probe_tlb *tlb, double bytes)
{
    double seconds = 0;
    for (size_t i = 0; i < tlb->count; i++) {
        seconds += tlb->levels[i].seconds * fmax(1 - (double)tlb->levels[i].reach_bytes / bytes, 0);
    }
    return seconds;
}

/* In the middle, by ratio, between a load that hits in this level and one that hits in the next. */
static double alone_most(const struct probe_cache *caches, size_t level, size_t bytes)
{
    double own = caches->levels[level].seconds;
    double next =
        level + 1 < caches->count ? caches->levels[level + 1].seconds : caches->memory_seconds;
    double translation = translation_seconds(&caches->tlb, (double)bytes);
    return own > 0 && next > own ? sqrt((own + translation) * (next + translation)) : INFINITY;
}

struct sharing_bar probe_sharing_bar_of(const struct probe_cache *caches, size_t level,
                                        size_t bytes)
{
    return (struct sharing_bar){.bytes = bytes,
                                .threshold = threshold_of(&caches->curve, &caches->levels[level]),
                                .alone_most = alone_most(caches, level, bytes)};
}

size_t probe_sharing_set_bytes(const struct probe_cache_level *cache, size_t most)
{
    size_t bytes = (size_t)(set_share * (double)cache->size_bytes) / NODE * NODE;
    return bytes < most ? bytes : most / NODE * NODE;
}

/* -- trials -- */

static int traverse(struct probe *probe, size_t bytes, uint64_t seed, const uint32_t *pus,
                    size_t count, double *seconds)
{
    const struct machine_traversal what = {
        .bytes = bytes,
        .stride_bytes = NODE,
        .order = MACHINE_CHASE,
        .pages = probe->machine->huge_page_bytes ? MACHINE_PAGES_HUGE : MACHINE_PAGES_ORDINARY,
        .warm_passes = WARM_PASSES,
        .seed = seed,
    };
    return probe_machine_traverse(probe->machine, &what, pus, count, seconds);
}

/* Takes what one trial gave a pair into account. */
static void count_trial(const struct sharing_bar *bar, double low, const double alone[2],
                        const double *together, struct sharing_trials *trials)
{
    double ratio = fmax(together[0] / alone[0], together[1] / alone[1]);
    bool is_void = fmax(alone[0], alone[1]) > bar->alone_most;
    trials->seconds += alone[0] + alone[1] + fmax(together[0], together[1]);
    trials->voids += is_void;
    if (!is_void) {
        trials->ratios[trials->count++] = ratio;
        trials->low += ratio < low;
    }
}

/* One ratio of each pair: both together, against each of them alone just before, with the same
 * memory in the same order: in a cache of few page colours some places are slower than others.
 * Pairs that are measured at the same time take each of these steps at the same time. */
static int one_trial(struct probe *probe, const struct sharing_bar *bar, double low,
                     const uint32_t *pus, size_t pairs, struct sharing_trials **trials)
{
    double alone[2][TOGETHER_MOST], together[2 * TOGETHER_MOST];
    uint32_t single[TOGETHER_MOST];
    const uint64_t seed = ++probe->seed;
    for (size_t side = 0; side < 2; side++) {
        for (size_t k = 0; k < pairs; k++) {
            single[k] = pus[2 * k + side];
        }
        int rc = traverse(probe, bar->bytes, seed, single, pairs, alone[side]);
        if (rc < 0) {
            return rc;
        }
    }
    int rc = traverse(probe, bar->bytes, seed, pus, 2 * pairs, together);
    for (size_t k = 0; k < pairs && rc == 0; k++) {
        const double sides[2] = {alone[0][k], alone[1][k]};
        count_trial(bar, low, sides, &together[2 * k], trials[k]);
    }
    return rc;
}

/* A run that is late does with as few as decide. */
static bool is_late(const struct probe *probe, const struct sharing_trials *trials)
{
    return trials->count + trials->voids >= COUNT_LEAST && probe_late(probe);
}

/* Two trials below the bar put the second smallest below it whatever follows. */
static bool is_decided(const struct sharing_trials *trials)
{
    return trials->count == SHARING_TRIALS || trials->low == COUNT_LEAST ||
           trials->voids == SHARING_VOIDS;
}

bool probe_sharing_is_void(const struct sharing_trials *trials)
{
    const bool contradict = trials->count < SHARING_TRIALS && trials->low == 1;
    return trials->count < COUNT_LEAST || contradict;
}

int probe_sharing_try(struct probe *probe, const struct sharing_bar *bar,
                      const struct pair_position *pairs, size_t count,
                      struct sharing_trials *trials)
{
    const double low = fmin(ratio_private, bar->threshold * uncertain_share);
    const uint32_t *ids = probe->machine->pus.ids;
    memset(trials, 0, count * sizeof *trials);
    for (;;) {
        uint32_t pus[2 * TOGETHER_MOST];
        struct sharing_trials *open[TOGETHER_MOST];
        size_t left = 0;
        for (size_t k = 0; k < count; k++) {
            if (!is_decided(&trials[k]) && !is_late(probe, &trials[k])) {
                pus[2 * left] = ids[pairs[k].i];
                pus[2 * left + 1] = ids[pairs[k].j];
                open[left++] = &trials[k];
            }
        }
        int rc = left > 0 ? one_trial(probe, bar, low, pus, left, open) : 0;
        if (rc < 0 || left == 0) {
            return rc;
        }
    }
}
