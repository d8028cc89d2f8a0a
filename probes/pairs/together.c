/* Disjoint pairs measured at the same time, where a check (alone against together, by turns)
 * shows that they do not disturb one another. From the largest units down, since what disturbs
 * shares something. */
#include "probes/pairs/pairs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/probe.h"

enum {
    ROUNDS = 2,                 /* each of the pairs alone, then all together */
    PILOTS = 3,                 /* of a batch, measured alone */
    LOOK_AHEAD = 4096,          /* pairs looked at for one batch */
    COST = ROUNDS * PILOTS + 1, /* measurements that a check adds, if it passes */
};
/* The median of six ratios of two figures each deviates by 0.72 spreads: twice that. */
static const double tolerated_spreads = 1.5;
static const double least_tolerated =
    0.02; /* pairs of one layer differ by more than that themselves (layers.c) */
static const double banded_spreads = 3; /* that a figure may be away from those measured alone */
static const size_t worth = 2;          /* times its cost a check must save: it may fail */
static const double most_tolerated =
    0.1; /* however noisy the machine: a tenth is no figure of the same thing */

/* -- units -- */

static size_t count_units(const uint32_t *unit_of, size_t pus)
{
    uint32_t last = 0;
    for (size_t i = 0; i < pus; i++) {
        last = unit_of[i] > last ? unit_of[i] : last;
    }
    return (size_t)last + 1;
}

uint32_t *probe_together_units(const struct profile_set *pus,
                               const struct profile_relation *relation)
{
    uint32_t *unit_of = malloc((pus->count + 1) * sizeof *unit_of), units = 0;
    for (size_t i = 0; unit_of && i < pus->count; i++) {
        const struct profile_set *group = NULL;
        for (size_t g = 0; g < relation->group_count && !group; g++) {
            group =
                profile_set_has(&relation->groups[g], pus->ids[i]) ? &relation->groups[g] : NULL;
        }
        size_t first = 0;
        while (first < i && !(group && profile_set_has(group, pus->ids[first]))) {
            first++;
        }
        unit_of[i] = first < i ? unit_of[first] : units++;
    }
    return unit_of;
}

int probe_together_add(struct together *together, const struct profile_set *pus,
                       const struct profile_relation *relation)
{
    uint32_t *fresh = probe_together_units(pus, relation);
    size_t units = fresh ? count_units(fresh, pus->count) : 0, at = 0;
    if (!fresh) {
        return -ENOMEM;
    }
    while (at < together->count && count_units(together->unit_of[at], pus->count) < units) {
        at++;
    }
    bool known = at < together->count &&
                 memcmp(together->unit_of[at], fresh, pus->count * sizeof *fresh) == 0;
    if (units < 2 || known || together->count == TOGETHER_PARTITIONS) {
        free(fresh);
        return 0;
    }
    memmove(&together->unit_of[at + 1], &together->unit_of[at],
            (together->count - at) * sizeof together->unit_of[0]);
    together->unit_of[at] = fresh;
    together->count++;
    return 0;
}

static int add_nodes(struct together *together, const struct profile_set *pus,
                     const struct profile_class *declared)
{
    struct profile_set *sets = calloc(declared->numa_count + 1, sizeof *sets);
    for (size_t i = 0; sets && i < declared->numa_count; i++) {
        sets[i] = declared->numa[i].pus;
    }
    const struct profile_relation nodes = {.groups = sets, .group_count = declared->numa_count};
    int rc = sets ? probe_together_add(together, pus, &nodes) : -ENOMEM;
    free(sets);
    return rc;
}

int probe_together_init(struct together *together, const struct profile_set *pus,
                        const struct profile_class *declared)
{
    static const struct profile_relation nothing;
    *together = (struct together){.pu_count = pus->count};
    int rc = probe_together_add(together, pus, &nothing);
    if (rc == 0 && declared) {
        rc = probe_together_add(together, pus, &declared->packages);
        rc = rc < 0 ? rc : add_nodes(together, pus, declared);
        for (size_t i = 0; rc == 0 && i < declared->cache_count; i++) {
            rc = probe_together_add(together, pus, &declared->caches[i].sharing);
        }
        rc = rc < 0 ? rc : probe_together_add(together, pus, &declared->cores);
    }
    if (rc < 0) {
        probe_together_free(together);
    }
    return rc;
}

void probe_together_free(struct together *together)
{
    for (size_t i = 0; i < together->count; i++) {
        free(together->unit_of[i]);
    }
    memset(together, 0, sizeof *together);
}

/* -- batches -- */

size_t probe_together_most(const struct probe *probe, size_t room)
{
    size_t most = probe->one_by_one ? 1 : probe_machine_at_once(probe->machine) / 2;
    return room < most ? room : most;
}

static void exchange_pairs(struct pair_position *a, struct pair_position *b)
{
    struct pair_position swap = *a;
    *a = *b;
    *b = swap;
}

/* How many pairs touch each of the two units of a pair. */
static void touch(const uint32_t *unit_of, const struct pair_position *pair, uint32_t *touched)
{
    touched[unit_of[pair->i]]++;
    touched[unit_of[pair->j]] += unit_of[pair->i] != unit_of[pair->j];
}

size_t probe_together_compose(const struct together *together, const struct together_limit *limit,
                              struct pair_position *pairs, size_t count)
{
    uint32_t *touched = limit->pairs > 1 ? calloc(3 * together->pu_count, sizeof *touched) : NULL;
    if (!touched) { /* one by one needs no account; without memory it is the way out */
        return 1;
    }
    const uint32_t *own = together->unit_of[together->count - 1],
                   *apart = together->unit_of[limit->partition], *large = together->unit_of[0];
    uint32_t *by_pu = touched, *by_apart = touched + together->pu_count,
             *by_large = by_apart + together->pu_count;
    size_t taken = 0;
    for (size_t k = 0; k < count && k < LOOK_AHEAD && taken < limit->pairs; k++) {
        const struct pair_position *pair = &pairs[k];
        bool clash = by_pu[own[pair->i]] || by_pu[own[pair->j]] || by_apart[apart[pair->i]] ||
                     by_apart[apart[pair->j]];
        bool crowded = limit->crowd && (by_large[large[pair->i]] >= limit->crowd ||
                                        by_large[large[pair->j]] >= limit->crowd);
        if (!clash && !crowded) {
            touch(own, pair, by_pu);
            touch(apart, pair, by_apart);
            touch(large, pair, by_large);
            exchange_pairs(&pairs[taken++], &pairs[k]);
        }
    }
    free(touched);
    return taken;
}

/* Pairs of the batch that touch the same units as this one, over all partitions. */
static size_t company(const struct together *together, const struct pair_position *batch,
                      size_t count, size_t k)
{
    size_t sum = 0;
    for (size_t p = 0; p < together->count; p++) {
        const uint32_t *of = together->unit_of[p];
        for (size_t other = 0; other < count; other++) {
            sum += of[batch[k].i] == of[batch[other].i] || of[batch[k].i] == of[batch[other].j] ||
                   of[batch[k].j] == of[batch[other].i] || of[batch[k].j] == of[batch[other].j];
        }
    }
    return sum;
}

/* Those with the most company to the front: if any are disturbed, they are. */
static size_t choose_pilots(const struct together *together, struct pair_position *batch,
                            size_t count)
{
    size_t pilots = count < PILOTS ? count : PILOTS;
    for (size_t k = 0; k < pilots; k++) {
        size_t most = k;
        for (size_t other = k + 1; other < count; other++) {
            most = company(together, batch, count, other) > company(together, batch, count, most)
                       ? other
                       : most;
        }
        exchange_pairs(&batch[k], &batch[most]);
    }
    return pilots;
}

static size_t crowd_of(const struct together *together, const struct pair_position *batch,
                       size_t count)
{
    const uint32_t *of = together->unit_of[0];
    size_t most = 0;
    for (size_t k = 0; k < count; k++) {
        const uint32_t units[] = {of[batch[k].i], of[batch[k].j]};
        for (size_t u = 0; u < 2; u++) {
            size_t here = 0;
            for (size_t other = 0; other < count; other++) {
                here += of[batch[other].i] == units[u] || of[batch[other].j] == units[u];
            }
            most = here > most ? here : most;
        }
    }
    return most;
}

/* -- the check -- */

bool probe_together_as_expected(const struct together_limit *limit, double figure)
{
    return fabs(log(figure / limit->figure)) <= limit->band;
}

bool probe_together_undisturbed(double *ratios, size_t ratio_count, double *repeats,
                                size_t repeat_count)
{
    double middle = fabs(profile_median_value(ratios, ratio_count));
    double tolerated = tolerated_spreads * probe_layers_spread(repeats, repeat_count);
    return middle <= fmin(fmax(tolerated, least_tolerated), most_tolerated);
}

/* A batch that is tried: within which limit, on how many of its pairs it is checked, and whether
 * they were left undisturbed. */
struct batch_trial {
    struct together_limit limit;
    size_t pilots;
    bool passed;
};

/* Alone and together by turns; values[] of the pilots are of a measurement alone. Sets what is
 * expected of others. */
static int try_batch(const struct together_question *question, struct pair_position *batch,
                     size_t count, double *values, struct batch_trial *trial)
{
    struct together_limit *limit = &trial->limit;
    const size_t pilots = trial->pilots = choose_pilots(question->together, batch, count);
    double alone[ROUNDS][PILOTS], beside[ROUNDS][TOGETHER_MOST], scratch[TOGETHER_MOST];
    double ratios[ROUNDS * PILOTS], repeats[PILOTS + TOGETHER_MOST];
    size_t ratio_count = 0, repeat_count = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        int rc = question->measure(question->argument, batch, count, scratch, beside[round]);
        for (size_t k = 0; k < pilots && rc == 0; k++) {
            rc = question->measure(question->argument, &batch[k], 1, &values[k], &alone[round][k]);
        }
        if (rc < 0) {
            return rc;
        }
        for (size_t k = 0; k < pilots; k++) {
            ratios[ratio_count++] = log(beside[round][k] / alone[round][k]);
        }
        if (fabs(profile_median_value(ratios, ratio_count)) > most_tolerated) {
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
    trial->passed = probe_together_undisturbed(ratios, ratio_count, repeats, repeat_count);
    limit->band = fmax(most_tolerated, banded_spreads * probe_layers_spread(repeats, repeat_count));
    limit->figure = profile_median_value(alone[ROUNDS - 1], pilots);
    return 0;
}

/* Whether trying a batch is worth it, in measurements: it may fail, and a batch that is disturbed
 * takes as long as its pairs one by one. */
static bool pays(size_t left, size_t pairs_now, size_t pairs_then)
{
    return left / pairs_now > left / pairs_then + worth * COST + pairs_then;
}

int probe_together_find(const struct together_question *question, struct pair_position *pairs,
                        size_t count, double *values, struct together_found *out)
{
    const struct together *together = question->together;
    const size_t most = question->most < TOGETHER_MOST ? question->most : TOGETHER_MOST;
    struct batch_trial next = {.limit = {.pairs = most}};
    *out = (struct together_found){.limit = {.pairs = 1}};
    while (next.limit.pairs > 1 && next.limit.partition < together->count) {
        struct pair_position *rest = pairs + out->done;
        size_t left = count - out->done,
               batch = probe_together_compose(together, &next.limit, rest, left);
        if (batch <= out->limit.pairs || !pays(left, out->limit.pairs, batch)) {
            next.limit.partition++;
            continue;
        }
        int rc = try_batch(question, rest, batch, values + out->done, &next);
        if (rc < 0) {
            return rc;
        }
        out->tried++;
        if (next.passed) {
            out->limit = next.limit;
            out->limit.pairs = batch;
            out->limit.crowd = crowd_of(together, rest, batch);
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
