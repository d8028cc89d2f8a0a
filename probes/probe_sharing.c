#include "probe_sharing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schedule.h"

enum { TRIALS = 5, WARM_PASSES = 16, NODE = 256 };
static const double set_share = 2.0 / 3;   /* of the cache, per PU (2010 paper, Figure 5) */
static const double ratio_shared = 2;      /* 2010 paper */
static const double ratio_uncertain = 1.5; /* the ratio of the later paper */
static const double ratio_private = 1.25;  /* a first trial below this ends the matter: disturbance never speeds up */
static const size_t largest_share = (size_t)256 << 20;

enum probe_sharing_verdict probe_sharing_decide(double *ratios, size_t count)
{
    probe_median(ratios, count); /* sorts */
    double decisive = ratios[count > 1 ? 1 : 0];
    if (decisive > ratio_shared) {
        return SHARING_YES;
    }
    return decisive > ratio_uncertain ? SHARING_UNCERTAIN : SHARING_NO;
}

static int traverse(struct probe *probe, size_t bytes, const uint32_t *pus, size_t count, double *seconds)
{
    const struct machine_traversal what = {
        .bytes = bytes,
        .stride_bytes = NODE,
        .order = MACHINE_CHASE,
        .pages = probe->machine->huge_page_bytes ? MACHINE_PAGES_HUGE : MACHINE_PAGES_ORDINARY,
        .warm_passes = WARM_PASSES,
        .seed = ++probe->seed,
    };
    return machine_traverse(probe->machine, &what, pus, count, seconds);
}

/* One ratio: both together, against each of them alone just before. */
static int one_trial(struct probe *probe, size_t bytes, uint32_t a, uint32_t b, double *ratio)
{
    const uint32_t both[] = {a, b};
    double alone[2], together[2];
    for (int i = 0; i < 2; i++) {
        int rc = traverse(probe, bytes, &both[i], 1, &alone[i]);
        if (rc < 0) {
            return rc;
        }
    }
    int rc = traverse(probe, bytes, both, 2, together);
    if (rc < 0) {
        return rc;
    }
    *ratio = fmax(together[0] / alone[0], together[1] / alone[1]);
    return 0;
}

static int test_pair(struct probe *probe, size_t bytes, uint32_t a, uint32_t b, struct probe_sharing_level *level,
                     bool *shared)
{
    double ratios[TRIALS];
    size_t trials = 0, low = 0;
    /* Two trials below the bar put the second smallest below it whatever follows. */
    while (trials < TRIALS && low < 2) {
        int rc = one_trial(probe, bytes, a, b, &ratios[trials]);
        if (rc < 0) {
            return rc;
        }
        low += ratios[trials] < ratio_private;
        trials++;
    }
    enum probe_sharing_verdict verdict = probe_sharing_decide(ratios, trials);
    level->uncertain += verdict == SHARING_UNCERTAIN;
    level->repetitions = trials > level->repetitions ? (uint32_t)trials : level->repetitions;
    level->spread = fmax(level->spread, probe_spread(ratios, trials));
    *shared = verdict == SHARING_YES;
    return 0;
}

static size_t share_of(const struct probe *probe, const struct probe_cache_level *cache)
{
    size_t bytes = (size_t)(set_share * (double)cache->size_bytes) / NODE * NODE;
    size_t limit = probe->machine->memory_limit_bytes / 8; /* two pools of twice the set, and some room */
    limit = limit < largest_share ? limit : largest_share;
    return bytes < limit ? bytes : limit / NODE * NODE;
}

/* What the schedule asks for: 1 for a pair that shares the cache, 0 for one that does not. */
struct question {
    struct probe *probe;
    size_t bytes;
    struct probe_sharing_level *level;
    double done;
};

static int ask(void *argument, size_t i, size_t j, double *shares)
{
    struct question *question = argument;
    const uint32_t *ids = question->probe->machine->pus.ids;
    bool shared = false;
    probe_tell(question->probe, question->done, "sharing of %zu KiB by PUs %u and %u", question->bytes >> 10, ids[i],
               ids[j]);
    int rc = test_pair(question->probe, question->bytes, ids[i], ids[j], question->level, &shared);
    *shares = shared ? 1 : 0;
    return rc;
}

/* Pairs that do not share but have a partner with which both do, or the other way round: the relation has them as
 * single pairs. Asked again, whether they were measured or not. */
static int ask_again(struct question *question, const struct profile_relation *relation, double *shares)
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
                rc = ask(question, i, j, &shares[pair_index(pus->count, i, j)]);
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

/* `outer` (by pair_index()): the pairs that share the level outside of this one; then those that share this one. */
static int test_level(struct probe *probe, const struct schedule *schedule, const struct probe_cache_level *cache,
                      bool *outer, struct probe_sharing_level *level, double done)
{
    const struct profile_set *pus = &probe->machine->pus;
    size_t pairs = pair_count(pus->count);
    struct question question = {probe, share_of(probe, cache), level, done};
    struct schedule_outcome outcome = {.values = calloc(pairs + 1, sizeof *outcome.values),
                                       .measured = calloc(pairs + 1, sizeof *outcome.measured)};
    int rc = outcome.values && outcome.measured ? 0 : -ENOMEM;
    if (rc == 0) {
        rc = schedule_run(schedule, outer, ++probe->seed, ask, schedule_agree_equal, &question, &outcome);
    }
    rc = rc < 0 ? rc : group(pus, outcome.values, &level->sharing);
    if (rc == 0 && level->sharing.pair_count > 0 && !probe_late(probe)) {
        rc = ask_again(&question, &level->sharing, outcome.values);
        relation_free(&level->sharing);
        rc = rc < 0 ? rc : group(pus, outcome.values, &level->sharing);
    }
    level->contradictions = level->sharing.pair_count;
    level->measured = outcome.measured_count;
    level->pairs = outcome.pair_count;
    level->cut_short = outcome.cut_short;
    for (size_t i = 0; rc == 0 && i < pairs; i++) {
        outer[i] = outcome.values[i] > 0;
    }
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
        rc = test_level(probe, &schedule, &caches->levels[i], outer, &result.levels[i],
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
