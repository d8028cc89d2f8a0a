/* Which PUs share a cache level: pairs are tried, each until it is decided, from the last level
 * inwards (sharing.h). */
#include "probes/pairs/sharing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/layers.h"
#include "profile/codec/codec.h"
#include "profile/query.h"

/* Constant        unit           source                            without it
 * MEMORY_SHARES   working sets   two pools of twice the set, and    machines of little memory swap
 *                                some room
 * set_share       of the cache   2010 paper, Figure 5               two private sets do not fit
 * ratio_most      ratio          2010 paper's threshold             -
 * ratio_least     ratio          the later paper                    noise passes for sharing */
enum { MEMORY_SHARES = 8, COUNT_LEAST = 2, TRIALS = 5, TRIALS_MOST = 9, VOIDS = 5 };
static const double set_share = 2.0 / 3;
static const double ratio_most = 2, ratio_least = 1.5;

/* How one level is tried. */
struct sharing_bar {
    size_t bytes;     /* working set of a PU */
    double threshold; /* of the ratio */
    /* seconds of a load alone from which on a trial is void; INFINITY: not known */
    double alone_most;
};

/* The trials of one pair. */
struct sharing_trials {
    double ratios[TRIALS_MOST]; /* of those that count */
    size_t count, low, voids;
    double seconds; /* of all trials, void ones too: of each alone, and of the slower together */
};

/* As far below the threshold as the later paper's ratio lies below that of 2010. */
static double undecided_from(double threshold)
{
    return threshold * (ratio_least / ratio_most);
}

/* The ratio that decides (sorts them); 0 of fewer than two. */
static double decisive_ratio(double *ratios, size_t count)
{
    profile_median_value(ratios, count); /* sorts */
    return count < COUNT_LEAST ? 0 : ratios[count <= TRIALS ? 1 : count / 4];
}

/* PAIR_TOGETHER, PAIR_APART, or NAN: undecided. */
static double verdict_on(double decisive, double threshold)
{
    return decisive > threshold                   ? PAIR_TOGETHER
           : decisive > undecided_from(threshold) ? NAN
                                                  : PAIR_APART;
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
        return ratio_most;
    }
    const double expected = seconds_at(curve, 2 * bytes) / seconds_at(curve, bytes);
    return fmin(fmax(sqrt(expected), ratio_least), ratio_most);
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

/* `bytes`: of a PU's working set. */
static struct sharing_bar make_bar(const struct probe_cache *caches, size_t level, size_t bytes)
{
    return (struct sharing_bar){.bytes = bytes,
                                .threshold = threshold_of(&caches->curve, &caches->levels[level]),
                                .alone_most = alone_most(caches, level, bytes)};
}

/* Two thirds of the cache, in whole nodes of the cycle, or `most` if that is less. */
static size_t set_bytes(const struct probe_cache_level *cache, size_t most)
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
    if (trials->low == COUNT_LEAST || trials->voids == VOIDS ||
        (tried >= COUNT_LEAST && probe_late(probe))) {
        return true;
    }
    return trials->count == TRIALS_MOST ||
           (trials->count >= TRIALS &&
            !isnan(verdict_on(decisive_ratio(trials->ratios, trials->count), bar->threshold)));
}

/* Too few trials count for a verdict. */
static bool says_nothing(const struct sharing_trials *trials)
{
    const bool contradict = trials->count < TRIALS && trials->low == 1;
    return trials->count < COUNT_LEAST || contradict;
}

/* All at the same time, each until it is decided. */
static int try_pairs(struct probe *probe, const struct sharing_bar *bar,
                     const struct pair_position *pairs, size_t count, struct sharing_trials *trials)
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

/* -- questions -- */

struct sharing_question {
    struct probe *probe;
    struct sampling *sampling;
    struct sharing_bar bar;
    struct probe_sharing_level *level;
    double done;
    uint32_t number;  /* of the level, and of the declared cache in whose place it is */
    double *decisive; /* by probe_pair_index(): the ratio; 0: none counts. Owned */
};

/* -- what is declared -- */

/* A PU that has the caches. */
static const uint32_t *first_holder(const struct probe *probe)
{
    return probe->holders && probe->holders[0] ? probe->holders[0]->ids : probe->machine->pus.ids;
}

/* The declared cache of the PU in whose place the level is; NULL: none is. */
static const struct profile_cache *declared_one(const struct sharing_question *question,
                                                uint32_t pu)
{
    const struct profile_class *declared = question->probe->declared;
    return declared ? profile_cache_of(declared, question->number, pu) : NULL;
}

/* PAIR_TOGETHER, PAIR_APART, or NAN: nothing is declared. */
static double declaration_of(const struct sharing_question *question,
                             const struct pair_position *position)
{
    const uint32_t *ids = question->probe->machine->pus.ids, a = ids[position->i],
                   b = ids[position->j];
    const struct profile_cache *cache = declared_one(question, a);
    return !cache ? NAN : profile_related(&cache->sharing, a, b) ? PAIR_TOGETHER : PAIR_APART;
}

/* -- one pair -- */

/* PAIR_TOGETHER, PAIR_APART, or NAN: undecided. */
static double sharing_conclude(struct sharing_question *question,
                               const struct pair_position *position, struct sharing_trials *trials)
{
    struct probe_sharing_level *level = question->level;
    const size_t pair =
        probe_pair_index(question->probe->machine->pus.count, position->i, position->j);
    const double decisive = decisive_ratio(trials->ratios, trials->count);
    question->decisive[pair] = says_nothing(trials) ? 0 : decisive;
    if (question->decisive[pair] <= 0) {
        return NAN;
    }
    level->repetitions =
        trials->count > level->repetitions ? (uint32_t)trials->count : level->repetitions;
    level->spread = fmax(level->spread, probe_spread(trials->ratios, trials->count));
    return verdict_on(decisive, question->bar.threshold);
}

/* -ECANCELED: the answer contradicts the declaration, when the pair is asked again too. Then no
 * class of pairs is known to agree. One pair may suffer from interference: where there is no time
 * to ask others, sharing is not measured. */
static int hold_against_declared(struct sharing_question *question,
                                 const struct pair_position *pair, double *answer)
{
    const double said = declaration_of(question, pair);
    struct sharing_trials trials;
    if (!(fabs(said - *answer) > 0)) { /* nothing is said, or the same */
        return 0;
    }
    TRY(probe_late(question->probe) ? -ETIME
                                    : try_pairs(question->probe, &question->bar, pair, 1, &trials));
    *answer = sharing_conclude(question, pair, &trials);
    return fabs(said - *answer) > 0 ? -ECANCELED : 0;
}

static int sharing_ask(void *argument, const struct pair_position *pairs, size_t count,
                       double *answers, double *figures)
{
    struct sharing_question *question = argument;
    const struct profile_set *pus = &question->probe->machine->pus;
    struct sharing_trials trials[CONCURRENT_MOST];
    probe_tell(question->probe, question->done, "sharing of %zu KiB by PUs %u and %u",
               question->bar.bytes >> 10, pus->ids[pairs->i], pus->ids[pairs->j]);
    const struct sampling *sampling = question->sampling;
    const bool trusting = sampling->strategy == SAMPLING_RANDOM && !sampling->exhaustive;
    TRY(try_pairs(question->probe, &question->bar, pairs, count, trials));
    for (size_t k = 0; k < count; k++) {
        answers[k] = sharing_conclude(question, &pairs[k], &trials[k]);
        figures[k] = trials[k].seconds / (double)(trials[k].count + trials[k].voids);
        TRY(trusting ? hold_against_declared(question, &pairs[k], &answers[k]) : 0);
    }
    return 0;
}

/* -- one level -- */

/* Undecided pairs are as declared, and private where nothing is. */
static void take_as_declared(struct sharing_question *question, const bool *wanted, double *answers)
{
    PROBE_EACH_PAIR(question->probe->machine->pus.count, i, j, k)
    {
        if (!wanted[k]) {
            answers[k] = PAIR_APART;
        } else if (isnan(answers[k])) {
            const double said = declaration_of(question, &(struct pair_position){i, j});
            answers[k] = isnan(said) ? PAIR_APART : said;
            question->level->undecided++;
            question->level->as_declared += isnan(said) ? 0 : 1;
        }
    }
}

static int keep_ratios(const struct sharing_question *question, bool *measured)
{
    const struct profile_set *pus = &question->probe->machine->pus;
    for (size_t k = 0; k < probe_pair_count(pus->count); k++) {
        measured[k] = question->decisive[k] > 0;
    }
    return probe_pair_figures(pus, question->decisive, measured, &question->level->ratios,
                              &question->level->ratio_count);
}

/* Pairs of which one does not have such a cache are not asked about. */
static void leave_pairs_out(const struct profile_set *pus, const struct profile_set *holders,
                            bool *wanted)
{
    PROBE_EACH_PAIR(holders ? pus->count : 0, i, j, k)
    {
        wanted[k] &= profile_set_has(holders, pus->ids[i]) && profile_set_has(holders, pus->ids[j]);
    }
}

/* Classes come from the declaration, or from nothing where that is wrong. -ETIME: there was no time
 * to find out which pairs agree. */
static int sharing_pairs(struct sharing_question *question, const bool *wanted,
                         struct sampling_outcome *outcome)
{
    struct sampling *sampling = question->sampling;
    int rc = probe_sampling_run(sampling, wanted, ++question->probe->seed, sharing_ask, question,
                                outcome);
    if (rc == -ECANCELED) {
        probe_sampling_forget(sampling);
        memset(question->decisive, 0,
               probe_pair_count(sampling->pus->count) * sizeof *question->decisive);
        rc = probe_sampling_run(sampling, wanted, ++question->probe->seed, sharing_ask, question,
                                outcome);
    }
    const bool unknown = sampling->strategy == SAMPLING_ROWS || outcome->fallbacks > 0;
    return rc == 0 && outcome->cut_short && unknown ? -ETIME : rc;
}

/* Pairs that share the level outside of this one; then those that share this one. */
static int sharing_decide(struct sharing_question *question, bool *wanted,
                          struct sampling_outcome *outcome)
{
    const struct profile_set *pus = &question->probe->machine->pus;
    struct probe_sharing_level *level = question->level;
    TRY(sharing_pairs(question, wanted, outcome));
    level->measured = outcome->measured_count;
    level->pairs = outcome->pair_count;
    level->cut_short = outcome->cut_short;
    level->at_once = outcome->most_at_once;
    level->refined = question->sampling->class_count > question->sampling->presumed_count;
    take_as_declared(question, wanted, outcome->values);
    for (size_t k = 0; k < probe_pair_count(pus->count); k++) {
        wanted[k] = outcome->values[k] <= PAIR_TOGETHER;
    }
    int rc = probe_relation_of_pairs(pus, wanted, &level->sharing);
    level->contradictions = level->sharing.pair_count;
    return rc < 0 ? rc : keep_ratios(question, outcome->measured);
}

/* `outer`: by probe_pair_index(), as sharing_decide() has it. */
static int test_level(struct sampling *sampling, const struct probe_cache *caches, size_t index,
                      uint32_t number, bool *outer, struct probe_sharing_level *level)
{
    struct probe *probe = sampling->probe;
    const size_t pairs = probe_pair_count(sampling->pus->count),
                 wanted_bytes = set_bytes(&caches->levels[index], SIZE_MAX),
                 bytes = set_bytes(&caches->levels[index],
                                   probe->machine->memory_limit_bytes / MEMORY_SHARES);
    FREED double *decisive = calloc(pairs + 1, sizeof *decisive);
    FREED_BY(probe_sampling_outcome_free) struct sampling_outcome outcome = {0};
    struct sharing_question question = {.probe = probe,
                                        .sampling = sampling,
                                        .bar = make_bar(caches, index, bytes),
                                        .number = number,
                                        .level = level,
                                        .done = 1 - (double)(index + 1) / (double)caches->count,
                                        .decisive = decisive};
    TRY(decisive ? probe_sampling_outcome_init(&outcome, pairs) : -ENOMEM);
    sampling->at_once =
        probe_concurrent_most(probe, probe->machine->memory_limit_bytes / (MEMORY_SHARES * bytes));
    /* Where a cache is not declared, no pair is known to be like another: where caches are
     * shared by few of many PUs, a sample may have none of their pairs, a PU's own has one. */
    if (!declared_one(&question, *first_holder(probe))) {
        sampling->strategy = SAMPLING_ROWS;
    }
    level->limited_bytes = bytes < wanted_bytes ? bytes : 0;
    return sharing_decide(&question, outer, &outcome);
}

static int test_levels(struct probe *probe, const struct probe_cache *caches,
                       struct probe_sharing *result)
{
    const struct profile_set *pus = &probe->machine->pus;
    const size_t pairs = probe_pair_count(pus->count);
    struct probe_cache_pairing pairing;
    FREED_BY(probe_sampling_free) struct sampling sampling = {0};
    FREED bool *outer = malloc(pairs + 1);
    TRY(outer ? probe_sampling_init(&sampling, pus, probe->declared) : -ENOMEM);
    probe_cache_pair(caches, probe->declared, first_holder(probe), &pairing);
    sampling.exhaustive = probe->exhaustive;
    sampling.probe = probe;
    sampling.answers = true;
    sampling.agree = probe_sampling_equal;
    memset(outer, true, pairs); /* outside of the last level all share the memory */
    for (size_t i = caches->count; i-- > 0;) {
        result->levels[i].spread = -1;
        leave_pairs_out(pus, probe->holders ? probe->holders[i] : NULL, outer);
        TRY(test_level(&sampling, caches, i, pairing.numbers[i], outer, &result->levels[i]));
    }
    return 0;
}

int probe_sharing(struct probe *probe, const struct probe_cache *caches, struct probe_sharing *out,
                  struct servet_error *error)
{
    FREED_BY(probe_sharing_free) struct probe_sharing result = {.count = caches->count};
    TRY(probe_error(error, test_levels(probe, caches, &result), "measuring shared caches"));
    *out = TAKE(result);
    return 0;
}

void probe_sharing_free(struct probe_sharing *result)
{
    for (size_t i = 0; i < result->count; i++) {
        profile_relation_free(&result->levels[i].sharing);
        free(result->levels[i].ratios);
    }
    memset(result, 0, sizeof *result);
}
