/* Disjoint pairs measured at the same time, where a check (alone against together, by turns) shows
 * that they do not disturb one another. The largest units are tried first, since what disturbs
 * shares something. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/layers.h"
#include "probes/pairs/sample.h"

/* Constant           unit      source                               without it
 * ROUNDS, PILOTS     turns,    six ratios: their median deviates    a disturbed pilot decides
 *                    pairs     by 0.72 spreads
 * LOOK_AHEAD         pairs     -                                    n^2 looks for one batch
 * tolerated_spreads  spreads   twice that                           noise passes for interference
 * banded_spreads     spreads   a Gaussian's 99.7 %                  one figure in twenty is retaken
 * worth              times     a check may fail                     checks cost more than none */
enum { ROUNDS = 2, PILOTS = 3, LOOK_AHEAD = 4096 };
static const double tolerated_spreads = 1.5;
static const double banded_spreads = 3;
static const size_t worth = 2;

/* -- units -- */

/* Keeps the largest units first. Leaves out one unit of all, and a partition that is there. */
static int concurrent_add(struct concurrent *concurrent, const struct profile_set *pus,
                          const struct profile_relation *relation)
{
    const struct profile_relation groups = {.groups = relation->groups,
                                            .group_count = relation->group_count};
    struct partition fresh, *partitions = concurrent->partitions;
    size_t at = 0;
    TRY(probe_partition_make(pus, &groups, &fresh));
    while (at < concurrent->count && partitions[at].count < fresh.count) {
        at++;
    }
    const bool known = at < concurrent->count && partitions[at].count == fresh.count &&
                       probe_partition_refines(&partitions[at], &fresh);
    if (fresh.count < 2 || known || concurrent->count == CONCURRENT_PARTITIONS) {
        probe_partition_free(&fresh);
        return 0;
    }
    memmove(&partitions[at + 1], &partitions[at], (concurrent->count - at) * sizeof *partitions);
    partitions[at] = fresh;
    concurrent->count++;
    return 0;
}

static int concurrent_add_declared(struct concurrent *concurrent, const struct profile_set *pus,
                                   const struct profile_class *declared)
{
    FREED struct profile_set *sets = calloc(declared->numa_count + 1, sizeof *sets);
    TRY(sets ? 0 : -ENOMEM);
    for (size_t i = 0; i < declared->numa_count; i++) {
        sets[i] = declared->numa[i].pus;
    }
    const struct profile_relation nodes = {.groups = sets, .group_count = declared->numa_count};
    TRY(concurrent_add(concurrent, pus, &declared->packages));
    TRY(concurrent_add(concurrent, pus, &nodes));
    for (size_t i = 0; i < declared->cache_count; i++) {
        TRY(concurrent_add(concurrent, pus, &declared->caches[i].sharing));
    }
    return concurrent_add(concurrent, pus, &declared->cores);
}

int probe_concurrent_init(struct concurrent *concurrent, const struct profile_set *pus,
                          const struct profile_class *declared)
{
    static const struct profile_relation nothing;
    *concurrent = (struct concurrent){.pus = pus->count};
    TRY(concurrent_add(concurrent, pus, &nothing));
    return declared ? concurrent_add_declared(concurrent, pus, declared) : 0;
}

void probe_concurrent_free(struct concurrent *concurrent)
{
    for (size_t i = 0; i < concurrent->count; i++) {
        probe_partition_free(&concurrent->partitions[i]);
    }
    concurrent->count = 0;
}

/* -- batches -- */

size_t probe_concurrent_most(const struct probe *probe, size_t room)
{
    size_t most = probe->one_by_one ? 1 : probe_machine_at_once(probe->machine) / 2;
    return room < most ? room : most;
}

size_t probe_concurrent_compose(const struct concurrent *concurrent,
                                const struct concurrent_limit *limit, struct pair_position *pairs,
                                size_t count)
{
    /* one by one needs no account; without memory it is the way out */
    FREED bool *touched = limit->pairs > 1 ? calloc(2 * concurrent->pus, sizeof *touched) : NULL;
    if (!touched) {
        return 1;
    }
    const uint32_t *unit = concurrent->partitions[limit->partition].unit;
    bool *by_pu = touched, *by_unit = touched + concurrent->pus;
    size_t taken = 0;
    for (size_t k = 0; k < count && k < LOOK_AHEAD && taken < limit->pairs; k++) {
        const struct pair_position pair = pairs[k];
        if (by_pu[pair.i] || by_pu[pair.j] || by_unit[unit[pair.i]] || by_unit[unit[pair.j]]) {
            continue;
        }
        by_pu[pair.i] = by_pu[pair.j] = by_unit[unit[pair.i]] = by_unit[unit[pair.j]] = true;
        pairs[k] = pairs[taken];
        pairs[taken++] = pair;
    }
    return taken;
}

/* -- the check -- */

bool probe_concurrent_as_expected(const struct concurrent_limit *limit, double figure)
{
    return fabs(log(figure / limit->figure)) <= limit->band;
}

bool probe_concurrent_undisturbed(double *ratios, size_t ratio_count, double *repeats,
                                  size_t repeat_count)
{
    double middle = fabs(profile_median_value(ratios, ratio_count));
    double tolerated = tolerated_spreads * probe_layers_spread(repeats, repeat_count);
    return middle <= fmin(fmax(tolerated, LAYERS_LEAST_SPREAD), CONCURRENT_TOLERATED);
}

/* A batch that is tried: within which limit, on how many of its pairs it is checked, and whether
 * they were left undisturbed. */
struct batch_trial {
    struct concurrent_limit limit;
    size_t pilots;
    bool passed;
};

/* Alone and together by turns; values[] of the pilots are of a measurement alone. Sets what is
 * expected of others. */
static int concurrent_try(const struct concurrent_question *question, struct pair_position *batch,
                          size_t count, double *values, struct batch_trial *trial)
{
    struct concurrent_limit *limit = &trial->limit;
    const size_t pilots = trial->pilots = count < PILOTS ? count : PILOTS;
    double alone[ROUNDS][PILOTS], beside[ROUNDS][CONCURRENT_MOST], scratch[CONCURRENT_MOST];
    double ratios[ROUNDS * PILOTS], repeats[PILOTS + CONCURRENT_MOST];
    size_t ratio_count = 0, repeat_count = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        TRY(question->measure(question->argument, batch, count, scratch, beside[round]));
        for (size_t k = 0; k < pilots; k++) {
            TRY(question->measure(question->argument, &batch[k], 1, &values[k], &alone[round][k]));
            ratios[ratio_count++] = log(beside[round][k] / alone[round][k]);
        }
        if (fabs(profile_median_value(ratios, ratio_count)) > CONCURRENT_TOLERATED) {
            trial->passed = false; /* the first round may do */
            return 0;
        }
    }
    for (size_t k = 0; k < pilots; k++) {
        repeats[repeat_count++] = log(alone[1][k] / alone[0][k]);
    }
    for (size_t k = 0; k < count; k++) {
        repeats[repeat_count++] = log(beside[1][k] / beside[0][k]);
    }
    trial->passed = probe_concurrent_undisturbed(ratios, ratio_count, repeats, repeat_count);
    limit->band =
        fmax(CONCURRENT_TOLERATED, banded_spreads * probe_layers_spread(repeats, repeat_count));
    limit->figure = profile_median_value(alone[ROUNDS - 1], pilots);
    return 0;
}

/* Whether trying a batch is worth it, in measurements: it may fail, and a batch that is disturbed
 * takes as long as its pairs one by one. */
static bool concurrent_pays(size_t left, size_t pairs_now, size_t pairs_then)
{
    return left / pairs_now > left / pairs_then + worth * (ROUNDS * PILOTS + 1) + pairs_then;
}

int probe_concurrent_find(const struct concurrent_question *question, struct pair_position *pairs,
                          size_t count, double *values, struct concurrent_found *out)
{
    const struct concurrent *concurrent = question->concurrent;
    const size_t most = question->most < CONCURRENT_MOST ? question->most : CONCURRENT_MOST;
    struct batch_trial next = {.limit = {.pairs = most}};
    *out = (struct concurrent_found){.limit = {.pairs = 1}};
    while (next.limit.pairs > 1 && next.limit.partition < concurrent->count) {
        struct pair_position *rest = pairs + out->done;
        size_t left = count - out->done,
               batch = probe_concurrent_compose(concurrent, &next.limit, rest, left);
        if (batch <= out->limit.pairs || !concurrent_pays(left, out->limit.pairs, batch)) {
            next.limit.partition++;
            continue;
        }
        TRY(concurrent_try(question, rest, batch, values + out->done, &next));
        if (next.passed) {
            out->limit = next.limit;
            out->limit.pairs = batch;
        }
        out->done += next.pilots;
        if (!next.passed && out->limit.pairs > 1) {
            break;
        }
        next.limit.partition += next.passed;
        next.limit.pairs = next.passed ? next.limit.pairs : batch > 2 ? (batch + 1) / 2 : 1;
    }
    return 0;
}
