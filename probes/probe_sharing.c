#include "probe_sharing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* Sharing is an equivalence, so every PU is compared with one member of each group found so far; and it nests, so
 * only PUs that share the next outer cache can share this one. `group_of` goes from the outer level's to this one's. */
static int test_level(struct probe *probe, const struct probe_cache_level *cache, size_t *group_of,
                      struct probe_sharing_level *level, double done, double span)
{
    const struct profile_set *pus = &probe->machine->pus;
    struct pair_classes classes;
    size_t bytes = share_of(probe, cache);
    size_t *group = malloc(pus->count * sizeof *group);
    int rc = group ? pair_classes_init(&classes, pus) : -ENOMEM;
    if (rc < 0) {
        free(group);
        return rc;
    }
    for (size_t i = 0; i < pus->count && rc == 0; i++) {
        group[i] = i;
        for (size_t first = 0; first < i && group[i] == i && rc == 0; first++) {
            bool shared = false;
            if (group[first] != first || group_of[first] != group_of[i]) {
                continue;
            }
            probe_tell(probe, done + span * (double)i / (double)pus->count, "cache of %llu KiB on PUs %u and %u",
                       (unsigned long long)(cache->size_bytes >> 10), pus->ids[first], pus->ids[i]);
            rc = test_pair(probe, bytes, pus->ids[first], pus->ids[i], level, &shared);
            group[i] = shared ? first : i;
        }
    }
    for (size_t i = 0; i < pus->count && rc == 0; i++) {
        for (size_t j = i + 1; j < pus->count; j++) {
            if (group[i] == group[j]) {
                classes.of[pair_index(pus->count, i, j)] = 0;
            }
        }
    }
    if (rc == 0) {
        rc = relation_from_classes(&classes, 0, 0, &level->sharing);
        memcpy(group_of, group, pus->count * sizeof *group);
    }
    pair_classes_free(&classes);
    free(group);
    return rc;
}

int probe_sharing(struct probe *probe, const struct probe_cache *caches, struct probe_sharing *out,
                  struct servet_error *error)
{
    struct probe_sharing result = {.count = caches->count};
    size_t *group_of = calloc(probe->machine->pus.count, sizeof *group_of); /* outermost: all in one */
    int rc = group_of ? 0 : -ENOMEM;
    for (size_t i = caches->count; i-- > 0 && rc == 0;) {
        double span = 1.0 / (double)caches->count;
        result.levels[i].spread = -1;
        rc = test_level(probe, &caches->levels[i], group_of, &result.levels[i], 1 - (double)(i + 1) * span, span);
    }
    free(group_of);
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
