/* Trials of whether two PUs share a cache, and their verdict (sharing.h). */
#include <math.h>
#include <string.h>

#include "probes/pairs/layers.h"
#include "probes/pairs/sharing.h"

/* Constant        unit           source                            without it
 * set_share       of the cache   2010 paper, Figure 5               two private sets do not fit
 * ratio_least     ratio          the later paper                    noise passes for sharing */
enum { COUNT_LEAST = 2 };
static const double set_share = 2.0 / 3;
static const double ratio_least = 1.5;

/* As far below the threshold as the later paper's ratio lies below that of 2010. */
static double undecided_from(double threshold)
{
    return threshold * (ratio_least / PROBE_SHARING_RATIO);
}

double probe_sharing_decisive(double *ratios, size_t count)
{
    profile_median_value(ratios, count); /* sorts */
    return count < COUNT_LEAST ? 0 : ratios[count <= SHARING_TRIALS ? 1 : count / 4];
}

double probe_sharing_verdict(double decisive, double threshold)
{
    return decisive > threshold                   ? PAIR_TOGETHER
           : decisive > undecided_from(threshold) ? NAN
                                                  : PAIR_APART;
}

double probe_sharing_threshold(double expected)
{
    return fmin(fmax(sqrt(expected), ratio_least), PROBE_SHARING_RATIO);
}

/* -- the bar -- */

/* The time on the curve, on a straight line between its points. */
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
    size_t bytes =
        (size_t)(set_share * (double)cache->size_bytes) / MACHINE_NODE_BYTES * MACHINE_NODE_BYTES;
    return bytes < most ? bytes : most / MACHINE_NODE_BYTES * MACHINE_NODE_BYTES;
}

/* -- trials -- */

static int traverse_all(struct probe *probe, size_t bytes, uint64_t seed, const uint32_t *pus,
                        size_t count, double *seconds)
{
    const struct machine_traversal what = {
        .bytes = bytes,
        .stride_bytes = MACHINE_NODE_BYTES,
        .order = MACHINE_CHASE,
        .pages = machine_pages(probe->machine),
        .warm_passes = MACHINE_WARM_PASSES,
        .seed = seed,
    };
    return probe_machine_traverse(probe->machine, &what, pus, count, seconds);
}

/* Trials below this put the deciding one below the bar whatever follows. */
static double surely_private(const struct sharing_bar *bar)
{
    return fmin(LAYERS_APART, undecided_from(bar->threshold));
}

/* Takes one trial of a pair into account. */
static void count_trial(const struct sharing_bar *bar, const double alone[2],
                        const double *together, struct sharing_trials *trials)
{
    double ratio = fmax(together[0] / alone[0], together[1] / alone[1]);
    bool is_void = fmax(alone[0], alone[1]) > bar->alone_most;
    trials->seconds += alone[0] + alone[1] + fmax(together[0], together[1]);
    trials->voids += is_void;
    if (!is_void) {
        trials->ratios[trials->count++] = ratio;
        trials->low += ratio < surely_private(bar);
    }
}

/* One ratio of each pair: both together, against each of them alone just before, with the same
 * memory in the same order: in a cache of few page colours some places are slower than others.
 * Pairs that are measured at the same time take each of these steps at the same time. */
static int one_trial(struct probe *probe, const struct sharing_bar *bar, const uint32_t *pus,
                     size_t pairs, struct sharing_trials **trials)
{
    double alone[2][CONCURRENT_MOST], together[2 * CONCURRENT_MOST];
    uint32_t single[CONCURRENT_MOST];
    const uint64_t seed = ++probe->seed;
    for (size_t side = 0; side < 2; side++) {
        for (size_t k = 0; k < pairs; k++) {
            single[k] = pus[2 * k + side];
        }
        TRY(traverse_all(probe, bar->bytes, seed, single, pairs, alone[side]));
    }
    TRY(traverse_all(probe, bar->bytes, seed, pus, 2 * pairs, together));
    for (size_t k = 0; k < pairs; k++) {
        const double sides[2] = {alone[0][k], alone[1][k]};
        count_trial(bar, sides, &together[2 * k], trials[k]);
    }
    return 0;
}

static bool is_settled(const struct probe *probe, const struct sharing_bar *bar,
                       struct sharing_trials *trials)
{
    const size_t tried = trials->count + trials->voids;
    if (trials->low == COUNT_LEAST || trials->voids == SHARING_VOIDS ||
        (tried >= COUNT_LEAST && probe_late(probe))) {
        return true;
    }
    return trials->count == SHARING_TRIALS_MOST ||
           (trials->count >= SHARING_TRIALS &&
            !isnan(probe_sharing_verdict(probe_sharing_decisive(trials->ratios, trials->count),
                                         bar->threshold)));
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
    const uint32_t *ids = probe->machine->pus.ids;
    memset(trials, 0, count * sizeof *trials);
    for (;;) {
        uint32_t pus[2 * CONCURRENT_MOST];
        struct sharing_trials *open[CONCURRENT_MOST];
        size_t left = 0;
        for (size_t k = 0; k < count; k++) {
            if (!is_settled(probe, bar, &trials[k])) {
                pus[2 * left] = ids[pairs[k].i];
                pus[2 * left + 1] = ids[pairs[k].j];
                open[left++] = &trials[k];
            }
        }
        int rc = left > 0 ? one_trial(probe, bar, pus, left, open) : 0;
        if (rc < 0 || left == 0) {
            return rc;
        }
    }
}
