/* Which PUs share a cache level (2010 paper, Section III-B). Shared caches of today are
 * winner-takes-all, so the slower of the two threads decides; and a small one of several trials
 * does, since disturbance only ever makes a cache look shared. */
#include "probes/pairs/pairs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/query.h"

/* The numbers of the declared caches in whose place the measured levels are, as `pu` sees them; 0:
 * nothing is declared of that one. `declared` may be NULL. */
static void declared_levels(const struct profile_class *declared, uint32_t pu,
                            const struct probe_cache *caches, uint32_t numbers[CACHE_LEVELS_MAX])
{
    struct probe_cache_pairing pairs;
    probe_cache_pair(caches, declared, &pu, &pairs);
    for (size_t i = 0; i < caches->count; i++) {
        /* One of a wholly different size takes the place of the declared one of its number. */
        const uint32_t number = pairs.declared[i] ? pairs.declared[i]->level : pairs.numbers[i];
        numbers[i] = declared && profile_cache_of(declared, number, pu) ? number : 0;
    }
}

/* Of the level of that number (0: none). */
static enum sharing_declaration declared_sharing(const struct profile_class *declared,
                                                 uint32_t number, uint32_t a, uint32_t b)
{
    const struct profile_cache *cache = number ? profile_cache_of(declared, number, a) : NULL;
    if (!cache) {
        return NOTHING_DECLARED;
    }
    return profile_related(&cache->sharing, a, b) ? DECLARED_SHARED : DECLARED_PRIVATE;
}

enum {
    MEMORY_SHARES = 8
}; /* working sets that a pair has room for: two pools of twice the set, and some room */

static size_t share_wanted(const struct probe_cache_level *cache)
{
    return probe_sharing_set_bytes(cache, SIZE_MAX);
}

static size_t share_of(const struct probe *probe, const struct probe_cache_level *cache)
{
    return probe_sharing_set_bytes(cache, probe->machine->memory_limit_bytes / MEMORY_SHARES);
}

/* How a pair was decided, where the second witness was heard. */
enum hearing { NOT_HEARD, AGREES, TIPPED };

/* Where the answer is from, if all trials of a pair were void. */
enum voided { NOT_VOID, AS_DECLARED, NOT_DECLARED };

/* What the schedule asks for: 1 for a pair that shares the cache, 0 for one that does not. */
struct question {
    struct probe *probe;
    struct schedule *schedule;
    struct sharing_bar bar;
    struct probe_sharing_level *level;
    double done;
    uint32_t number; /* of the level, where it is declared; 0: it is not */
    /* by probe_pair_index(): the ratio; 0 of pairs that were not measured, or in vain. Owned */
    double *decisive;
    uint8_t *heard;  /* by probe_pair_index(): enum hearing. Owned */
    uint8_t *voided; /* by probe_pair_index(): enum voided. Owned */
    /* by probe_pair_index(): all others are told by these; NULL: they are not. Not owned */
    const bool *measured;
    struct sharing_witness witness;
    bool trusting, refuted; /* what is declared: it says which pairs are alike; it does not */
    bool called, silent;    /* the witness: its references are measured; it cannot be had */
};

static enum sharing_declaration declaration_of(const struct question *question,
                                               const struct pair_position *position)
{
    const uint32_t *ids = question->probe->machine->pus.ids;
    return declared_sharing(question->probe->declared, question->number, ids[position->i],
                            ids[position->j]);
}

static double as_declared(struct question *question, const struct pair_position *position)
{
    enum sharing_declaration said = declaration_of(question, position);
    size_t pair = probe_pair_index(question->probe->machine->pus.count, position->i, position->j);
    question->voided[pair] = said == NOTHING_DECLARED ? NOT_DECLARED : AS_DECLARED;
    return said == DECLARED_SHARED ? 1 : 0;
}

/* 1 or 0. What trials leave in doubt some of which were void is no better than what void ones
 * say. */
static double conclude(struct question *question, const struct pair_position *position,
                       struct sharing_trials *trials)
{
    struct probe_sharing_level *level = question->level;
    size_t pair = probe_pair_index(question->probe->machine->pus.count, position->i, position->j);
    double decisive = probe_sharing_decisive(trials->ratios, trials->count);
    enum probe_sharing_verdict verdict =
        probe_sharing_verdict_of(decisive, question->bar.threshold);
    bool in_vain =
        probe_sharing_is_void(trials) || (verdict == SHARING_UNCERTAIN && trials->voids > 0);
    question->decisive[pair] = in_vain ? 0 : decisive;
    question->heard[pair] = NOT_HEARD;
    question->voided[pair] = NOT_VOID;
    if (in_vain) {
        return as_declared(question, position);
    }
    level->repetitions =
        trials->count > level->repetitions ? (uint32_t)trials->count : level->repetitions;
    level->spread = fmax(level->spread, probe_spread(trials->ratios, trials->count));
    return verdict == SHARING_YES ? 1 : 0;
}

/* Where a pair shares that is declared not to, when it is asked again too, caches are not where
 * they are declared: no class of pairs is known to be alike. Where one does not share that is
 * declared to, pairs of the classes that follow may. One pair may be disturbed: where there is no
 * time to ask others it does not speak for them, and who shares is not measured. */
static int hold_against_declared(struct question *question, const struct pair_position *pair,
                                 double *share)
{
    const enum sharing_declaration said = declaration_of(question, pair);
    struct sharing_trials trials;
    if (said == NOTHING_DECLARED || (said == DECLARED_SHARED) == (*share > 0)) {
        return 0;
    }
    if (probe_late(question->probe)) {
        return -ETIME;
    }
    if (said == DECLARED_SHARED) {
        question->schedule->row = true;
        return 0;
    }
    int rc = probe_sharing_try(question->probe, &question->bar, pair, 1, &trials);
    *share = rc == 0 ? conclude(question, pair, &trials) : 0;
    question->refuted = *share > 0;
    return question->refuted ? -ECANCELED : rc;
}

/* Not where all trials were void, or leave doubt. */
static bool says(const void *argument, size_t pair)
{
    const struct question *question = argument;
    return question->voided[pair] == NOT_VOID &&
           probe_sharing_verdict_of(question->decisive[pair], question->bar.threshold) !=
               SHARING_UNCERTAIN;
}

static int ask(void *argument, const struct pair_position *pairs, size_t count, double *shares,
               double *figures)
{
    struct question *question = argument;
    const struct profile_set *pus = &question->probe->machine->pus;
    struct sharing_trials trials[TOGETHER_MOST];
    probe_tell(question->probe, question->done, "sharing of %zu KiB by PUs %u and %u",
               question->bar.bytes >> 10, pus->ids[pairs->i], pus->ids[pairs->j]);
    int rc = probe_sharing_try(question->probe, &question->bar, pairs, count, trials);
    for (size_t k = 0; k < count && rc == 0; k++) {
        shares[k] = conclude(question, &pairs[k], &trials[k]);
        figures[k] = trials[k].seconds / (double)(trials[k].count + trials[k].voids);
        rc = question->trusting ? hold_against_declared(question, &pairs[k], &shares[k]) : 0;
    }
    return rc;
}

/* -- the second witness -- */

/* Sharing, or not, beyond doubt; of pairs that were measured. */
static bool is_sure(const struct question *question, double ratio, bool shared)
{
    return ratio > 0 && !probe_sharing_is_doubtful(ratio, question->bar.threshold) &&
           probe_sharing_is_clear(ratio, question->bar.threshold) == shared;
}

static int measure_line(struct question *question, size_t i, size_t j, double *seconds)
{
    const uint32_t *ids = question->probe->machine->pus.ids;
    const struct profile_pair pair = {ids[i], ids[j]};
    return probe_sharing_witness_measure(question->probe, &pair, seconds);
}

/* References: pairs that the ratio is sure of, evenly over all there are. */
static int measure_references(struct question *question, bool shared, double *seconds,
                              size_t *count)
{
    size_t n = question->probe->machine->pus.count, sure = 0, seen = 0;
    for (size_t k = 0; k < probe_pair_count(n); k++) {
        double ratio = question->decisive[k];
        sure += is_sure(question, ratio, shared);
    }
    size_t step = sure / SHARING_REFERENCES + 1;
    for (size_t i = 0, k = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++, k++) {
            double ratio = question->decisive[k];
            bool one = is_sure(question, ratio, shared);
            int rc =
                one && seen++ % step == 0 ? measure_line(question, i, j, &seconds[(*count)++]) : 0;
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
    size_t k = probe_pair_index(question->probe->machine->pus.count, i, j);
    double seconds;
    int rc = call_witness(question);
    if (rc < 0 || question->silent) {
        return rc;
    }
    rc = measure_line(question, i, j, &seconds);
    enum sharing_opinion opinion =
        rc == 0 ? probe_sharing_witness_rule(&question->witness, seconds) : OPINION_NONE;
    if (opinion == OPINION_NONE) {
        return rc;
    }
    *shares = opinion == OPINION_SHARED ? 1 : 0;
    bool ratio_says =
        probe_sharing_verdict_of(question->decisive[k], question->bar.threshold) == SHARING_YES;
    question->heard[k] = ratio_says == (opinion == OPINION_SHARED) ? AGREES : TIPPED;
    return 0;
}

/* The ratio lies near the threshold, or there is none, nor anything declared. */
static bool is_in_doubt(const struct question *question, size_t pair)
{
    return question->heard[pair] == NOT_HEARD &&
           (question->voided[pair] == NOT_DECLARED ||
            probe_sharing_is_doubtful(question->decisive[pair], question->bar.threshold));
}

static int hear_on_doubtful(struct question *question, double *shares)
{
    size_t n = question->probe->machine->pus.count;
    for (size_t i = 0, k = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++, k++) {
            bool doubtful = is_in_doubt(question, k);
            int rc =
                doubtful && !probe_late(question->probe) ? hear(question, i, j, &shares[k]) : 0;
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* -- contradictions -- */

typedef int pair_function(struct question *question, size_t i, size_t j, double *shares);

/* What is void takes nothing back. */
static int ask_once_more(struct question *question, size_t i, size_t j, double *shares)
{
    const struct pair_position pair = {i, j};
    const size_t k = probe_pair_index(question->probe->machine->pus.count, i, j);
    const double before = question->decisive[k], answer = *shares;
    double figure;
    int rc = ask(question, &pair, 1, shares, &figure);
    if (rc == 0 && before > 0 && question->voided[k] != NOT_VOID) {
        question->decisive[k] = before;
        question->voided[k] = NOT_VOID;
        *shares = answer;
    }
    return rc;
}

/* Pairs that do not share but have a partner with which both do, or the other way round: the
 * relation has them as single pairs. `decide` is called for each, whether it was measured or
 * not, but where those that were measured told the others. */
static int for_contradicting(struct question *question, const struct profile_relation *relation,
                             pair_function *decide, double *shares)
{
    const struct profile_set *pus = &question->probe->machine->pus;
    bool *involved = calloc(pus->count, sizeof *involved);
    int rc = involved ? 0 : -ENOMEM;
    for (size_t k = 0; rc == 0 && k < relation->pair_count; k++) {
        for (size_t i = 0; i < pus->count; i++) {
            involved[i] |=
                pus->ids[i] == relation->pairs[k].a || pus->ids[i] == relation->pairs[k].b;
        }
    }
    for (size_t i = 0; i < pus->count && rc == 0; i++) {
        for (size_t j = i + 1; j < pus->count && rc == 0; j++) {
            if (involved[i] && involved[j]) {
                const size_t pair = probe_pair_index(pus->count, i, j);
                const bool told = question->measured && !question->measured[pair];
                rc = told ? 0 : decide(question, i, j, &shares[pair]);
            }
        }
    }
    free(involved);
    return rc;
}

static int group(const struct profile_set *pus, const double *shares, struct profile_relation *out)
{
    struct pair_classes classes;
    int rc = probe_pair_classes_init(&classes, pus);
    for (size_t i = 0; rc == 0 && i < probe_pair_count(pus->count); i++) {
        classes.of[i] = shares[i] > 0 ? 0 : PAIR_NONE;
    }
    rc = rc < 0 ? rc : probe_relation_from_classes(&classes, 0, out);
    probe_pair_classes_free(&classes);
    return rc;
}

static int group_again(const struct profile_set *pus, const double *shares,
                       struct profile_relation *relation)
{
    struct profile_relation fresh;
    int rc = group(pus, shares, &fresh);
    if (rc == 0) {
        probe_relation_free(relation);
        *relation = fresh;
    }
    return rc;
}

/* The second witness on all pairs of a contradiction that asking again left, sure ones too; only if
 * it ends it. */
static int hear_on_contradicting(struct question *question, struct profile_relation *relation,
                                 double *shares)
{
    const struct profile_set *pus = &question->probe->machine->pus;
    size_t pairs = probe_pair_count(pus->count);
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
    probe_relation_free(&heard);
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

static void count_pairs(const struct question *question, struct probe_sharing_level *level)
{
    for (size_t k = 0; k < probe_pair_count(question->probe->machine->pus.count); k++) {
        bool heard = question->heard[k] != NOT_HEARD;
        enum probe_sharing_verdict verdict =
            probe_sharing_verdict_of(question->decisive[k], question->bar.threshold);
        level->witnessed += heard;
        level->tipped += question->heard[k] == TIPPED && question->voided[k] == NOT_VOID;
        level->uncertain += !heard && verdict == SHARING_UNCERTAIN;
        level->as_declared += !heard && question->voided[k] == AS_DECLARED;
        level->unknown += !heard && question->voided[k] == NOT_DECLARED;
    }
}

/* `measured` becomes false for pairs that were measured in vain. */
static int keep_ratios(const struct question *question, bool *measured,
                       struct probe_sharing_level *level)
{
    const struct profile_set *pus = &question->probe->machine->pus;
    for (size_t k = 0; k < probe_pair_count(pus->count); k++) {
        measured[k] = question->decisive[k] > 0;
    }
    return probe_pair_figures(pus, question->decisive, measured, &level->ratios,
                              &level->ratio_count);
}

/* Pairs of which one does not have such a cache are not asked about. */
static void leave_out(const struct profile_set *pus, const struct profile_set *holders,
                      bool *wanted)
{
    for (size_t i = 0; holders && i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count; j++) {
            if (!profile_set_has(holders, pus->ids[i]) || !profile_set_has(holders, pus->ids[j])) {
                wanted[probe_pair_index(pus->count, i, j)] = false;
            }
        }
    }
}

/* Pairs that are alike as declared, or where that is wrong as where nothing is. -ETIME: there was
 * no time to find out which are. */
static int measure_pairs(struct question *question, const bool *wanted,
                         struct schedule_outcome *outcome)
{
    struct schedule *schedule = question->schedule;
    const size_t pairs = probe_pair_count(schedule->pus->count);
    question->trusting = !schedule->exhaustive && !schedule->by_messages;
    int rc = probe_schedule_run(schedule, wanted, ++question->probe->seed, ask, question, outcome);
    question->trusting = false;
    if (question->refuted) {
        schedule->class_count = 1;
        memset(schedule->class_of, 0, pairs);
        memset(question->decisive, 0, pairs * sizeof *question->decisive);
        memset(question->voided, NOT_VOID, pairs);
        schedule->row = true;
        rc = probe_schedule_run(schedule, wanted, ++question->probe->seed, ask, question, outcome);
    }
    question->measured = outcome->searched ? outcome->measured : NULL;
    for (size_t k = 0; question->measured && k < pairs; k++) {
        /* whose answer gave way to that of others */
        question->decisive[k] = question->measured[k] ? question->decisive[k] : 0;
        question->voided[k] = question->measured[k] ? question->voided[k] : NOT_VOID;
    }
    const bool unknown = schedule->row || question->refuted || outcome->fallbacks > 0;
    return rc == 0 && outcome->cut_short && unknown ? -ETIME : rc;
}

/* `outer` (by probe_pair_index()): the pairs that share the level outside of this one; then those
 * that share this one. */
static int test_level(struct schedule *schedule, const struct probe_cache *caches, size_t index,
                      uint32_t number, bool *outer, struct probe_sharing_level *level)
{
    struct probe *probe = schedule->probe;
    const struct profile_set *pus = schedule->pus;
    const struct probe_cache_level *cache = &caches->levels[index];
    size_t pairs = probe_pair_count(pus->count);
    struct question question = {.probe = probe,
                                .schedule = schedule,
                                .bar = probe_sharing_bar_of(caches, index, share_of(probe, cache)),
                                .number = number,
                                .level = level,
                                .done = 1 - (double)(index + 1) / (double)caches->count,
                                .decisive = calloc(pairs + 1, sizeof *question.decisive),
                                .heard = calloc(pairs + 1, 1),
                                .voided = calloc(pairs + 1, 1)};
    bool room_for_all = question.decisive && question.heard && question.voided;
    struct schedule_outcome outcome = {.values = calloc(pairs + 1, sizeof *outcome.values),
                                       .measured = calloc(pairs + 1, sizeof *outcome.measured)};
    int rc = outcome.values && outcome.measured && room_for_all ? 0 : -ENOMEM;
    if (rc == 0) {
        size_t room = probe->machine->memory_limit_bytes / (MEMORY_SHARES * question.bar.bytes);
        schedule->at_once = probe_together_most(probe, room);
        schedule->agree = probe_schedule_agree_equal;
        schedule->says = says;
        schedule->says_argument = &question;
        /* Of a cache that nobody declares no pair is known to be like another: where caches are
         * shared by few of many PUs, a sample may have none of their pairs, a PU's own has one. */
        schedule->row |= number == 0 || schedule->by_messages;
        rc = measure_pairs(&question, outer, &outcome);
    }
    rc = rc < 0 ? rc : hear_on_doubtful(&question, outcome.values);
    rc = rc < 0 ? rc : group(pus, outcome.values, &level->sharing);
    rc = rc < 0 ? rc : resolve(&question, &level->sharing, outcome.values);
    if (rc == 0) {
        count_pairs(&question, level);
        rc = keep_ratios(&question, outcome.measured, level);
    }
    level->contradictions = level->sharing.pair_count;
    level->measured = outcome.measured_count;
    level->pairs = outcome.pair_count;
    level->cut_short = outcome.cut_short;
    level->by_messages = schedule->by_messages;
    level->searched = outcome.searched;
    level->at_once = outcome.most_at_once;
    level->limited_bytes = question.bar.bytes < share_wanted(cache) ? question.bar.bytes : 0;
    for (size_t i = 0; rc == 0 && i < pairs; i++) {
        outer[i] = outcome.values[i] > 0;
    }
    free(question.decisive);
    free(question.heard);
    free(question.voided);
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
    size_t pairs = probe_pair_count(pus->count);
    uint32_t first = probe->holders && probe->holders[0] ? probe->holders[0]->ids[0] : pus->ids[0];
    uint32_t numbers[CACHE_LEVELS_MAX];
    bool *outer = malloc(pairs + 1);
    declared_levels(probe->declared, first, caches, numbers);
    int rc = probe_schedule_init(&schedule, pus, probe->declared);
    rc = outer ? rc : -ENOMEM;
    rc = rc < 0 ? rc : probe_schedule_divide(&schedule, probe->layers);
    schedule.exhaustive = probe->exhaustive;
    schedule.probe = probe;
    for (size_t i = 0; rc == 0 && i < pairs; i++) {
        outer[i] = true; /* outside of the last level all share the memory */
    }
    for (size_t i = caches->count; i-- > 0 && rc == 0;) {
        result.levels[i].spread = -1;
        leave_out(pus, probe->holders ? probe->holders[i] : NULL, outer);
        rc = test_level(&schedule, caches, i, numbers[i], outer, &result.levels[i]);
    }
    free(outer);
    probe_schedule_free(&schedule);
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
        probe_relation_free(&result->levels[i].sharing);
        free(result->levels[i].ratios);
    }
    memset(result, 0, sizeof *result);
}
