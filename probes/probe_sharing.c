#include "probe_sharing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schedule.h"
#include "sharing_witness.h"

enum { TRIALS = 5, WARM_PASSES = 16, NODE = 256 };
enum { MEMORY_SHARES = 8 }; /* working sets that a pair has room for: two pools of twice the set, and some room */
static const double set_share = 2.0 / 3;    /* of the cache, per PU (2010 paper, Figure 5) */
static const double ratio_least = 1.5;      /* the ratio of the later paper */
static const double uncertain_share = 0.75; /* of the threshold: the later paper's ratio where the threshold is 2 */
static const double ratio_private = 1.25;   /* two trials below this end the matter: disturbance never speeds up */
static const size_t largest_share = (size_t)256 << 20;

static double decisive_ratio(double *ratios, size_t count)
{
    probe_median(ratios, count); /* sorts */
    return ratios[count > 1 ? 1 : 0];
}

static enum probe_sharing_verdict verdict_of(double decisive, double threshold)
{
    if (decisive > threshold) {
        return SHARING_YES;
    }
    return decisive > threshold * uncertain_share ? SHARING_UNCERTAIN : SHARING_NO;
}

enum probe_sharing_verdict probe_sharing_decide(double *ratios, size_t count, double threshold)
{
    return verdict_of(decisive_ratio(ratios, count), threshold);
}

/* As far above the threshold as the later paper's ratio is below it. */
static bool is_clearly_shared(double decisive, double threshold)
{
    return decisive > threshold / uncertain_share;
}

static bool is_doubtful(double decisive, double threshold)
{
    return decisive > threshold * uncertain_share && !is_clearly_shared(decisive, threshold);
}

double probe_sharing_threshold(double expected)
{
    return fmin(fmax(sqrt(expected), ratio_least), PROBE_SHARING_RATIO);
}

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

static int traverse(struct probe *probe, size_t bytes, uint64_t seed, const uint32_t *pus, size_t count,
                    double *seconds)
{
    const struct machine_traversal what = {
        .bytes = bytes,
        .stride_bytes = NODE,
        .order = MACHINE_CHASE,
        .pages = probe->machine->huge_page_bytes ? MACHINE_PAGES_HUGE : MACHINE_PAGES_ORDINARY,
        .warm_passes = WARM_PASSES,
        .seed = seed,
    };
    return machine_traverse(probe->machine, &what, pus, count, seconds);
}

/* Pairs measured at the same time, and what came of it. */
struct pair_trials {
    double ratios[TRIALS];
    size_t count, low;
    double seconds; /* of all trials: of each alone, and of the slower together */
};

/* One ratio of each pair: both together, against each of them alone just before, with the same memory in the same
 * order: in a cache of few page colours some places are slower than others. Pairs that are measured at the same time
 * take each of these steps at the same time. */
static int one_trial(struct probe *probe, size_t bytes, double low, const uint32_t *pus, size_t pairs,
                     struct pair_trials **trials)
{
    double alone[2][TOGETHER_MOST], together[2 * TOGETHER_MOST];
    uint32_t single[TOGETHER_MOST];
    const uint64_t seed = ++probe->seed;
    for (size_t side = 0; side < 2; side++) {
        for (size_t k = 0; k < pairs; k++) {
            single[k] = pus[2 * k + side];
        }
        int rc = traverse(probe, bytes, seed, single, pairs, alone[side]);
        if (rc < 0) {
            return rc;
        }
    }
    int rc = traverse(probe, bytes, seed, pus, 2 * pairs, together);
    for (size_t k = 0; k < pairs && rc == 0; k++) {
        double ratio = fmax(together[2 * k] / alone[0][k], together[2 * k + 1] / alone[1][k]);
        trials[k]->ratios[trials[k]->count++] = ratio;
        trials[k]->low += ratio < low;
        trials[k]->seconds += alone[0][k] + alone[1][k] + fmax(together[2 * k], together[2 * k + 1]);
    }
    return rc;
}

/* Two trials below the bar put the second smallest below it whatever follows. */
static bool is_decided(const struct pair_trials *trials)
{
    return trials->count == TRIALS || trials->low == 2;
}

/* Trials of all pairs, of each until it is decided. */
static int test_pairs(struct probe *probe, size_t bytes, double threshold, const struct pair_position *pairs,
                      size_t count, struct pair_trials *trials)
{
    const double low = fmin(ratio_private, threshold * uncertain_share);
    const uint32_t *ids = probe->machine->pus.ids;
    memset(trials, 0, count * sizeof *trials);
    for (;;) {
        uint32_t pus[2 * TOGETHER_MOST];
        struct pair_trials *open[TOGETHER_MOST];
        size_t left = 0;
        for (size_t k = 0; k < count; k++) {
            if (!is_decided(&trials[k])) {
                pus[2 * left] = ids[pairs[k].i];
                pus[2 * left + 1] = ids[pairs[k].j];
                open[left++] = &trials[k];
            }
        }
        int rc = left > 0 ? one_trial(probe, bytes, low, pus, left, open) : 0;
        if (rc < 0 || left == 0) {
            return rc;
        }
    }
}

static size_t share_wanted(const struct probe_cache_level *cache)
{
    size_t bytes = (size_t)(set_share * (double)cache->size_bytes) / NODE * NODE;
    return bytes < largest_share ? bytes : largest_share;
}

static size_t share_of(const struct probe *probe, const struct probe_cache_level *cache)
{
    size_t bytes = share_wanted(cache);
    size_t limit = probe->machine->memory_limit_bytes / MEMORY_SHARES;
    return bytes < limit ? bytes : limit / NODE * NODE;
}

/* How a pair was decided, where the second witness was heard. */
enum hearing { NOT_HEARD, AGREES, TIPPED };

/* What the schedule asks for: 1 for a pair that shares the cache, 0 for one that does not. */
struct question {
    struct probe *probe;
    size_t bytes;
    struct probe_sharing_level *level;
    double done;
    double threshold; /* of the ratio */
    double *decisive; /* by pair_index(): the ratio; 0 of pairs that were not measured. Owned */
    uint8_t *heard;   /* by pair_index(): enum hearing. Owned */
    struct sharing_witness witness;
    bool called, silent; /* the witness: its references are measured; it cannot be had */
};

static int ask(void *argument, const struct pair_position *pairs, size_t count, double *shares, double *figures)
{
    struct question *question = argument;
    struct probe_sharing_level *level = question->level;
    const struct profile_set *pus = &question->probe->machine->pus;
    struct pair_trials trials[TOGETHER_MOST];
    probe_tell(question->probe, question->done, "sharing of %zu KiB by PUs %u and %u", question->bytes >> 10,
               pus->ids[pairs->i], pus->ids[pairs->j]);
    int rc = test_pairs(question->probe, question->bytes, question->threshold, pairs, count, trials);
    for (size_t k = 0; k < count && rc == 0; k++) {
        struct pair_trials *one = &trials[k];
        size_t pair = pair_index(pus->count, pairs[k].i, pairs[k].j);
        question->decisive[pair] = decisive_ratio(one->ratios, one->count);
        question->heard[pair] = NOT_HEARD;
        level->repetitions = one->count > level->repetitions ? (uint32_t)one->count : level->repetitions;
        level->spread = fmax(level->spread, probe_spread(one->ratios, one->count));
        shares[k] = verdict_of(question->decisive[pair], question->threshold) == SHARING_YES ? 1 : 0;
        figures[k] = one->seconds / (double)one->count;
    }
    return rc;
}

/* -- the second witness -- */

/* Sharing, or not, beyond doubt; of pairs that were measured. */
static bool is_sure(const struct question *question, double ratio, bool shared)
{
    return ratio > 0 && !is_doubtful(ratio, question->threshold) &&
           is_clearly_shared(ratio, question->threshold) == shared;
}

static int measure_line(struct question *question, size_t i, size_t j, double *seconds)
{
    const uint32_t *ids = question->probe->machine->pus.ids;
    const struct profile_pair pair = {ids[i], ids[j]};
    return sharing_witness_measure(question->probe, &pair, seconds);
}

/* References: pairs that the ratio is sure of, evenly over all there are. */
static int measure_references(struct question *question, bool shared, double *seconds, size_t *count)
{
    size_t n = question->probe->machine->pus.count, sure = 0, seen = 0;
    for (size_t k = 0; k < pair_count(n); k++) {
        double ratio = question->decisive[k];
        sure += is_sure(question, ratio, shared);
    }
    size_t step = sure / SHARING_REFERENCES + 1;
    for (size_t i = 0, k = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++, k++) {
            double ratio = question->decisive[k];
            bool one = is_sure(question, ratio, shared);
            int rc = one && seen++ % step == 0 ? measure_line(question, i, j, &seconds[(*count)++]) : 0;
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

static int call_witness(struct question *question)
{
    struct sharing_witness *witness = &question->witness;
    if (question->called) {
        return 0;
    }
    question->called = true;
    int rc = measure_references(question, true, witness->near, &witness->near_count);
    rc = rc < 0 ? rc : measure_references(question, false, witness->far, &witness->far_count);
    question->silent = rc == -ENOTSUP;
    return question->silent ? 0 : rc;
}

/* The witness decides on the pair, if it has an opinion. */
static int hear(struct question *question, size_t i, size_t j, double *shares)
{
    size_t k = pair_index(question->probe->machine->pus.count, i, j);
    double seconds;
    int rc = call_witness(question);
    if (rc < 0 || question->silent) {
        return rc;
    }
    rc = measure_line(question, i, j, &seconds);
    enum sharing_opinion opinion = rc == 0 ? sharing_witness_rule(&question->witness, seconds) : OPINION_NONE;
    if (opinion == OPINION_NONE) {
        return rc;
    }
    *shares = opinion == OPINION_SHARED ? 1 : 0;
    bool ratio_says = verdict_of(question->decisive[k], question->threshold) == SHARING_YES;
    question->heard[k] = ratio_says == (opinion == OPINION_SHARED) ? AGREES : TIPPED;
    return 0;
}

/* On the pairs whose ratio lies near the threshold. */
static int hear_on_doubtful(struct question *question, double *shares)
{
    size_t n = question->probe->machine->pus.count;
    for (size_t i = 0, k = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++, k++) {
            bool doubtful = is_doubtful(question->decisive[k], question->threshold) && question->heard[k] == NOT_HEARD;
            int rc = doubtful && !probe_late(question->probe) ? hear(question, i, j, &shares[k]) : 0;
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* -- contradictions -- */

typedef int pair_function(struct question *question, size_t i, size_t j, double *shares);

static int ask_once_more(struct question *question, size_t i, size_t j, double *shares)
{
    const struct pair_position pair = {i, j};
    double figure;
    return ask(question, &pair, 1, shares, &figure);
}

/* Pairs that do not share but have a partner with which both do, or the other way round: the relation has them as
 * single pairs. `decide` is called for each, whether it was measured or not. */
static int for_contradicting(struct question *question, const struct profile_relation *relation, pair_function *decide,
                             double *shares)
{
    const struct profile_set *pus = &question->probe->machine->pus;
    bool *involved = calloc(pus->count, sizeof *involved);
    int rc = involved ? 0 : -ENOMEM;
    for (size_t k = 0; rc == 0 && k < relation->pair_count; k++) {
        for (size_t i = 0; i < pus->count; i++) {
            involved[i] |= pus->ids[i] == relation->pairs[k].a || pus->ids[i] == relation->pairs[k].b;
        }
    }
    for (size_t i = 0; i < pus->count && rc == 0; i++) {
        for (size_t j = i + 1; j < pus->count && rc == 0; j++) {
            if (involved[i] && involved[j]) {
                rc = decide(question, i, j, &shares[pair_index(pus->count, i, j)]);
            }
        }
    }
    free(involved);
    return rc;
}

static int group(const struct profile_set *pus, const double *shares, struct profile_relation *out)
{
    struct pair_classes classes;
    int rc = pair_classes_init(&classes, pus);
    for (size_t i = 0; rc == 0 && i < pair_count(pus->count); i++) {
        classes.of[i] = shares[i] > 0 ? 0 : PAIR_NONE;
    }
    rc = rc < 0 ? rc : relation_from_classes(&classes, 0, 0, out);
    pair_classes_free(&classes);
    return rc;
}

static int group_again(const struct profile_set *pus, const double *shares, struct profile_relation *relation)
{
    struct profile_relation fresh;
    int rc = group(pus, shares, &fresh);
    if (rc == 0) {
        relation_free(relation);
        *relation = fresh;
    }
    return rc;
}

/* The second witness on all pairs of a contradiction that asking again left, sure ones too; only if it ends it. */
static int hear_on_contradicting(struct question *question, struct profile_relation *relation, double *shares)
{
    const struct profile_set *pus = &question->probe->machine->pus;
    size_t pairs = pair_count(pus->count);
    struct profile_relation heard = {0};
    double *trial = malloc(pairs * sizeof *trial);
    uint8_t *before = malloc(pairs);
    int rc = trial && before ? 0 : -ENOMEM;
    if (rc == 0) {
        memcpy(trial, shares, pairs * sizeof *trial);
        memcpy(before, question->heard, pairs);
        rc = for_contradicting(question, relation, hear, trial);
    }
    rc = rc < 0 ? rc : group(pus, trial, &heard);
    if (rc == 0 && heard.pair_count == 0) {
        struct profile_relation old = *relation;
        *relation = heard;
        heard = old;
        memcpy(shares, trial, pairs * sizeof *trial);
    } else if (rc == 0) {
        memcpy(question->heard, before, pairs);
    }
    relation_free(&heard);
    free(trial);
    free(before);
    return rc;
}

static int resolve(struct question *question, struct profile_relation *relation, double *shares)
{
    const struct profile_set *pus = &question->probe->machine->pus;
    if (relation->pair_count == 0 || probe_late(question->probe)) {
        return 0;
    }
    int rc = for_contradicting(question, relation, ask_once_more, shares);
    rc = rc < 0 ? rc : hear_on_doubtful(question, shares);
    rc = rc < 0 ? rc : group_again(pus, shares, relation);
    bool left = rc == 0 && relation->pair_count > 0 && !probe_late(question->probe);
    return left ? hear_on_contradicting(question, relation, shares) : rc;
}

/* -- levels -- */

static void count_witnessed(const struct question *question, struct probe_sharing_level *level)
{
    for (size_t k = 0; k < pair_count(question->probe->machine->pus.count); k++) {
        bool heard = question->heard[k] != NOT_HEARD;
        level->witnessed += heard;
        level->tipped += question->heard[k] == TIPPED;
        level->uncertain += !heard && verdict_of(question->decisive[k], question->threshold) == SHARING_UNCERTAIN;
    }
}

/* Pairs of which one does not have such a cache are not asked about. */
static void leave_out(const struct profile_set *pus, const struct profile_set *holders, bool *wanted)
{
    for (size_t i = 0; holders && i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count; j++) {
            if (!profile_set_has(holders, pus->ids[i]) || !profile_set_has(holders, pus->ids[j])) {
                wanted[pair_index(pus->count, i, j)] = false;
            }
        }
    }
}

/* `outer` (by pair_index()): the pairs that share the level outside of this one; then those that share this one. */
static int test_level(struct probe *probe, struct schedule *schedule, const struct probe_cache *caches, size_t index,
                      bool *outer, struct probe_sharing_level *level, double done)
{
    const struct profile_set *pus = &probe->machine->pus;
    const struct probe_cache_level *cache = &caches->levels[index];
    size_t pairs = pair_count(pus->count);
    struct question question = {.probe = probe,
                                .bytes = share_of(probe, cache),
                                .level = level,
                                .done = done,
                                .threshold = threshold_of(&caches->curve, cache),
                                .decisive = calloc(pairs + 1, sizeof *question.decisive),
                                .heard = calloc(pairs + 1, 1)};
    struct schedule_outcome outcome = {.values = calloc(pairs + 1, sizeof *outcome.values),
                                       .measured = calloc(pairs + 1, sizeof *outcome.measured)};
    int rc = outcome.values && outcome.measured && question.decisive && question.heard ? 0 : -ENOMEM;
    if (rc == 0) {
        size_t room = probe->machine->memory_limit_bytes / (MEMORY_SHARES * question.bytes);
        schedule->at_once = probe->one_by_one ? 1 : room;
        rc = schedule_run(schedule, outer, ++probe->seed, ask, schedule_agree_equal, &question, &outcome);
    }
    rc = rc < 0 ? rc : hear_on_doubtful(&question, outcome.values);
    rc = rc < 0 ? rc : group(pus, outcome.values, &level->sharing);
    rc = rc < 0 ? rc : resolve(&question, &level->sharing, outcome.values);
    if (rc == 0) {
        count_witnessed(&question, level);
    }
    level->contradictions = level->sharing.pair_count;
    level->measured = outcome.measured_count;
    level->pairs = outcome.pair_count;
    level->cut_short = outcome.cut_short;
    level->at_once = outcome.most_at_once;
    level->limited_bytes = question.bytes < share_wanted(cache) ? question.bytes : 0;
    for (size_t i = 0; rc == 0 && i < pairs; i++) {
        outer[i] = outcome.values[i] > 0;
    }
    free(question.decisive);
    free(question.heard);
    free(outcome.values);
    free(outcome.measured);
    return rc;
}

int probe_sharing(struct probe *probe, const struct probe_cache *caches, struct probe_sharing *out,
                  struct servet_error *error)
{
    struct probe_sharing result = {.count = caches->count};
    const struct profile_set *pus = &probe->machine->pus;
    struct schedule schedule;
    size_t pairs = pair_count(pus->count);
    bool *outer = malloc(pairs + 1);
    int rc = schedule_init(&schedule, pus, probe->declared);
    rc = outer ? rc : -ENOMEM;
    schedule.exhaustive = probe->exhaustive;
    schedule.probe = probe;
    for (size_t i = 0; rc == 0 && i < pairs; i++) {
        outer[i] = true; /* outside of the last level all share the memory */
    }
    for (size_t i = caches->count; i-- > 0 && rc == 0;) {
        result.levels[i].spread = -1;
        leave_out(pus, probe->holders ? probe->holders[i] : NULL, outer);
        rc = test_level(probe, &schedule, caches, i, outer, &result.levels[i],
                        1 - (double)(i + 1) / (double)caches->count);
    }
    free(outer);
    schedule_free(&schedule);
    if (rc < 0) {
        probe_sharing_free(&result);
        return probe_error(error, rc, "measuring shared caches");
    }
    *out = result;
    return 0;
}

void probe_sharing_free(struct probe_sharing *result)
{
    for (size_t i = 0; i < result->count; i++) {
        relation_free(&result->levels[i].sharing);
    }
    memset(result, 0, sizeof *result);
}
