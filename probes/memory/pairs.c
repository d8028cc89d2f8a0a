/* From copies of single PUs and of pairs, by turns, to overhead levels (memory.h).
 *
 * A round measures one PU alone and then pairs together, so that a drift of the machine meets both.
 * A pair's figure is the median of its rounds; the reference is the best that any PU got alone,
 * because alone nothing makes a copy faster than it is. */
#include "probes/memory/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/memory/rates.h"
#include "probes/pairs/layers.h"
#include "probes/pairs/sample.h"
#include "profile/codec/codec.h"

/* Constant       unit      source                               without it
 * ALONE_MAX      figures   of one PU alone; more add nothing    -
 * LEARN_FROM     pairs     the first idea of the spread         classes are judged by no noise
 * outlier_share  of pairs  less than a domain of half a class   a hidden link is no level
 * CHECKED        pairs     1 % miss one wrong pair in four      one lucky round breaks a group */
static const double outlier_share = 0.25;
enum { ALONE_MAX = 64, LEARN_FROM = 16, CHECKED = 16 };

struct memory_rounds {
    struct probe *probe;
    size_t bytes;
    double alone[ALONE_MAX]; /* scaled */
    size_t alone_count;
    uint32_t fewest_rounds; /* of any pair */
    /* by probe_pair_index(): the slower PU as it is; of a pair's rounds, < 0: not known. Owned, as
     * all below */
    double *slower, *spreads;
    double *scale; /* by position of the PU: the best PU alone over this one */
    double *logs;  /* of the ratios of two rounds of one pair */
    size_t ratios;
    double spread;       /* of one figure, from them */
    bool thorough;       /* one round is not enough, however much a pair gets */
    bool not_concurrent; /* the PUs of the last round never ran at the same time */
};

static int rounds_init(struct memory_rounds *rounds, struct probe *probe, size_t bytes)
{
    const size_t pus = probe->machine->pus.count, pairs = probe_pair_count(pus);
    *rounds = (struct memory_rounds){.probe = probe,
                                     .bytes = bytes,
                                     .fewest_rounds = REPEAT_MEDIAN_MOST,
                                     .slower = calloc(pairs + 1, sizeof *rounds->slower),
                                     .spreads = calloc(pairs + 1, sizeof *rounds->spreads),
                                     .scale = calloc(pus, sizeof *rounds->scale),
                                     .logs = calloc(pairs + 1, sizeof *rounds->logs)};
    TRY(rounds->slower && rounds->spreads && rounds->logs && rounds->scale ? 0 : -ENOMEM);
    for (size_t i = 0; i < pus; i++) {
        rounds->scale[i] = 1;
    }
    return 0;
}

static void rounds_free(struct memory_rounds *rounds)
{
    free(rounds->slower);
    free(rounds->spreads);
    free(rounds->logs);
    free(rounds->scale);
}

/* -- alone -- */

static void keep_alone(struct memory_rounds *rounds, double bytes_per_s)
{
    if (rounds->alone_count < ALONE_MAX) {
        rounds->alone[rounds->alone_count++] = bytes_per_s;
    }
}

/* The best that any PU got alone so far, scaled. */
static double reference_of(const struct memory_rounds *rounds)
{
    double best = 0;
    for (size_t i = 0; i < rounds->alone_count; i++) {
        best = fmax(best, rounds->alone[i]);
    }
    return best;
}

/* One PU until its median is settled. */
static int settle_alone(struct memory_rounds *rounds, uint32_t pu)
{
    while (!probe_repeat_median_settled(rounds->alone, rounds->alone_count)) {
        double alone;
        TRY(probe_memory_copy(rounds->probe, rounds->bytes, pu, &alone));
        keep_alone(rounds, alone);
    }
    return 0;
}

/* PUs that get less than the best one are measured until that is settled, and scaled. */
static int scale_slow(struct memory_rounds *rounds, const double *alone, size_t count)
{
    const uint32_t *ids = rounds->probe->machine->pus.ids;
    const struct machine_copy what = probe_memory_what(rounds->probe, rounds->bytes, -1);
    double best = reference_of(rounds);
    for (size_t i = 0; i < count; i++) {
        best = fmax(best, alone[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (probe_memory_collides(alone[i], best) && !probe_late(rounds->probe)) {
            struct profile_scaling_point settled = {.workers = 1};
            TRY(probe_memory_settled(rounds->probe, &what, &ids[i], &settled));
            rounds->scale[i] =
                probe_memory_collides(settled.bytes_per_s, best) ? best / settled.bytes_per_s : 1;
        }
    }
    return 0;
}

/* Every PU alone: one that is far from all memory, or of a slower kind of cores, copies less, and
 * its pairs are compared with that. Ends early where it is late. */
static int measure_alone(struct memory_rounds *rounds)
{
    const struct profile_set *pus = &rounds->probe->machine->pus;
    FREED double *alone = malloc((pus->count + 1) * sizeof *alone);
    size_t done = 0;
    int rc = alone ? 0 : -ENOMEM;
    while (rc == 0 && done < pus->count && !(done > 0 && probe_late(rounds->probe))) {
        probe_tell(rounds->probe, 0, "memory of PU %u", pus->ids[done]);
        rc = probe_memory_copy(rounds->probe, rounds->bytes, pus->ids[done], &alone[done]);
        done += rc == 0;
    }
    if (rc == 0 || (rc == -ETIME && done > 0)) {
        rc = scale_slow(rounds, alone, done);
    }
    for (size_t i = 0; i < done; i++) {
        keep_alone(rounds, alone[i] * rounds->scale[i]);
    }
    return rc == -ETIME && done > 0 ? 0 : rc;
}

/* -- pairs -- */

/* One pair's rounds. */
struct pair_rounds {
    double slower[REPEAT_MEDIAN_MOST];
    double as_they_are[REPEAT_MEDIAN_MOST]; /* `slower` is scaled */
};

static double scale_of(const struct memory_rounds *rounds, uint32_t pu)
{
    return rounds->scale[profile_set_position(&rounds->probe->machine->pus, pu)];
}

/* One PU alone, as long as that adds something, then all pairs at the same time. Where the rest of
 * the budget is another probe's, that is all there is. */
static int one_pair_round(struct memory_rounds *rounds, const uint32_t *pus, size_t pairs,
                          size_t round, struct pair_rounds *out)
{
    struct probe *probe = rounds->probe;
    double rates[2 * CONCURRENT_MOST], alone;
    rounds->not_concurrent = false;
    if (rounds->alone_count < ALONE_MAX) {
        TRY(probe_memory_copy(probe, rounds->bytes, pus[0], &alone));
        keep_alone(rounds, alone * scale_of(rounds, pus[0]));
    }
    if (probe->machine->until_s > 0 && probe_late(probe)) {
        return -ETIME;
    }
    const struct machine_copy what = probe_memory_what(probe, rounds->bytes, -1);
    int rc = probe_machine_copy_together(probe->machine, &what, pus, 2 * pairs, rates);
    rounds->not_concurrent = rc == -EAGAIN;
    /* pairs that never met have no figure, as those there was no time for */
    TRY(rounds->not_concurrent ? -ETIME : rc);
    for (size_t k = 0; k < pairs; k++) {
        out[k].slower[round] = fmin(rates[2 * k] * scale_of(rounds, pus[2 * k]),
                                    rates[2 * k + 1] * scale_of(rounds, pus[2 * k + 1]));
        out[k].as_they_are[round] = fmin(rates[2 * k], rates[2 * k + 1]);
    }
    return 0;
}

/* Interference only takes bandwidth away, so a pair that once got the middle between colliding and
 * all that one gets alone does not collide, and most pairs are asked no more. Not of the first
 * ones, of which the spread is learned, nor where every pair's figure is asked for. */
static bool is_clear(const struct memory_rounds *rounds, const struct pair_rounds *pair,
                     size_t done)
{
    return done == 1 && !rounds->thorough && !rounds->probe->exhaustive &&
           rounds->ratios >= LEARN_FROM &&
           probe_memory_is_clear(pair->slower[0], reference_of(rounds));
}

/* A run that is late does with one round. */
static bool are_rounds_settled(const struct memory_rounds *rounds, const struct pair_rounds *pairs,
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
    /* whether a class's pairs agree is asked while it is measured */
    if (rounds->ratios <= LEARN_FROM) {
        memcpy(sorted, rounds->logs, rounds->ratios * sizeof *sorted);
        rounds->spread = probe_layers_spread(sorted, rounds->ratios);
    }
}

static void keep_pairs(struct memory_rounds *rounds, const struct pair_position *pairs,
                       size_t count, struct pair_rounds *found, size_t done)
{
    for (size_t k = 0; k < count; k++) {
        const size_t pair =
            probe_pair_index(rounds->probe->machine->pus.count, pairs[k].i, pairs[k].j);
        rounds->slower[pair] = profile_median_value(found[k].as_they_are, done);
        rounds->spreads[pair] = probe_spread(found[k].slower, done);
    }
}

/* A pairs_measure_function: what the slower PU of each pair gets, scaled; learns the spread from
 * the first pairs. */
static int ask_pair_rates(void *argument, const struct pair_position *pairs, size_t count,
                          double *bytes_per_s, double *figures)
{
    struct memory_rounds *rounds = argument;
    const struct profile_set *set = &rounds->probe->machine->pus;
    const struct probe_pairs *all = &rounds->probe->pairs;
    const double part = all->planned > 0 ? (double)all->done / (double)all->planned : 1;
    struct pair_rounds found[CONCURRENT_MOST];
    uint32_t pus[2 * CONCURRENT_MOST] = {0};
    size_t done = 0;
    for (size_t k = 0; k < count; k++) {
        pus[2 * k] = set->ids[pairs[k].i];
        pus[2 * k + 1] = set->ids[pairs[k].j];
    }
    probe_tell(rounds->probe, part, "memory of PUs %u and %u", pus[0], pus[1]);
    for (; !are_rounds_settled(rounds, found, count, done); done++) {
        int rc = one_pair_round(rounds, pus, count, done, found);
        if (done > 0 && rounds->not_concurrent) {
            break;
        }
        TRY(rc);
    }
    learn(rounds, found, count, done);
    keep_pairs(rounds, pairs, count, found, done);
    for (size_t k = 0; k < count; k++) {
        figures[k] = bytes_per_s[k] = profile_median_value(found[k].slower, done);
    }
    if (done < rounds->fewest_rounds && !is_clear(rounds, found, done)) {
        rounds->fewest_rounds = (uint32_t)done;
    }
    return 0;
}

/* The pair once more, in all rounds. Where it collided the better figure counts, since interference
 * only takes bandwidth away; else the later one. */
static int ask_pair_again(struct memory_rounds *rounds, const struct pair_position *pair,
                          double *bytes_per_s)
{
    const size_t at = probe_pair_index(rounds->probe->machine->pus.count, pair->i, pair->j);
    const double slower = rounds->slower[at];
    const bool collided = probe_memory_collides(*bytes_per_s, reference_of(rounds));
    double again, figure;
    rounds->thorough = true;
    int rc = ask_pair_rates(rounds, pair, 1, &again, &figure);
    rounds->thorough = false;
    if (rc < 0 || (collided && again <= *bytes_per_s)) {
        rounds->slower[at] = slower;
        return rc == -ETIME ? 0 : rc;
    }
    *bytes_per_s = again;
    return 0;
}

/* -- curves -- */

/* The curve of the level's first group, one worker per group of the levels within it first. */
static int measure_scaling(struct memory_rounds *rounds, struct profile_memory *memory,
                           size_t index)
{
    const struct profile_set *pus = &rounds->probe->machine->pus;
    const struct profile_class *declared = rounds->probe->declared;
    struct profile_memory_level *level = &memory->levels[index];
    FREED_BY(probe_partitions_free)
    struct partitions inner = {.of = calloc(index + 1, sizeof *inner.of)};
    TRY(inner.of ? 0 : -ENOMEM);
    for (size_t i = 0; i <= index; i++) {
        const struct profile_relation *cores = declared ? &declared->cores : NULL;
        TRY(probe_partition_make(pus, i ? &memory->levels[i - 1].collisions : cores,
                                 &inner.of[inner.count++]));
    }
    return probe_scaling_measure(rounds->probe, rounds->bytes, level->collisions.groups, &inner,
                                 memory, level);
}

/* -- pairs -- */

/* Pairs that were not measured count as if they did not collide. */
static void leave_open(const struct memory_rounds *rounds, struct sampling_outcome *outcome)
{
    for (size_t k = 0; k < probe_pair_count(rounds->probe->machine->pus.count); k++) {
        outcome->values[k] = outcome->measured[k] ? outcome->values[k] : INFINITY;
    }
}

/* Does the pair not collide, and both of it with one other PU? Collisions are transitive. */
static bool is_bridged(const struct sampling_outcome *outcome, size_t n, size_t i, size_t j,
                       double reference)
{
    bool bridged = false;
    for (size_t k = 0; k < n && !bridged; k++) {
        bridged = k != i && k != j &&
                  probe_memory_collides(outcome->values[probe_pair_index(n, i, k)], reference) &&
                  probe_memory_collides(outcome->values[probe_pair_index(n, j, k)], reference);
    }
    return bridged;
}

/* The one pass that verifies: measured pairs that collide, and some others, are measured once more,
 * and all that are bridged, measured or not. Pairs that took a figure over do so anew. */
static int verify(struct memory_rounds *rounds, struct sampling *sampling,
                  struct sampling_outcome *outcome)
{
    const size_t n = sampling->pus->count, step = outcome->measured_count / CHECKED + 1;
    const double reference = reference_of(rounds);
    size_t others = 0;
    PROBE_EACH_PAIR(probe_late(rounds->probe) ? 0 : n, i, j, k)
    {
        const struct pair_position pair = {i, j};
        const bool measured = outcome->measured[k],
                   colliding = probe_memory_collides(outcome->values[k], reference),
                   chosen = measured && (colliding || others++ % step == 0);
        if (chosen || (!colliding && is_bridged(outcome, n, i, j, reference))) {
            TRY(ask_pair_again(rounds, &pair, &outcome->values[k]));
            outcome->measured_count += !measured;
            outcome->measured[k] = true;
        }
    }
    return probe_sampling_again(sampling, outcome, 0, NULL, NULL);
}

/* By class: measured pairs, those that collide, and the best of them. */
struct class_figures {
    size_t measured, colliding;
    double best;
};

/* A few colliding pairs of a class are of a domain that the sample was too small for, unless most
 * pairs of the machine were measured. No pair tells which PUs it has, so the sets of PUs are
 * searched for it, and these pairs are as the others. */
static int set_outliers_aside(const struct memory_rounds *rounds, const struct sampling *sampling,
                              struct sampling_outcome *outcome, bool *outliers)
{
    const size_t pairs = probe_pair_count(sampling->pus->count);
    const double reference = reference_of(rounds);
    const bool most_open = 2 * outcome->measured_count < outcome->pair_count;
    FREED struct class_figures *of = calloc(sampling->class_count + 1, sizeof *of);
    TRY(of ? 0 : -ENOMEM);
    for (size_t k = 0; k < pairs; k++) {
        struct class_figures *class = &of[sampling->class_of[k]];
        if (outcome->measured[k]) {
            class->measured++;
            class->colliding += probe_memory_collides(outcome->values[k], reference);
            class->best = fmax(class->best, outcome->values[k]);
        }
    }
    for (size_t k = 0; k < pairs && (outcome->cut_short || most_open); k++) {
        const struct class_figures *class = &of[sampling->class_of[k]];
        if (outcome->cut_short) {
            /* a single pair without verification does not represent its class */
            const bool lone = class->measured == 1 && class->colliding == 1;
            outcome->values[k] = lone ? INFINITY : outcome->values[k];
            outcome->measured[k] &= !lone;
        } else if (outcome->measured[k] && probe_memory_collides(outcome->values[k], reference) &&
                   (double)class->colliding < outlier_share * (double)class->measured) {
            *outliers = true;
            outcome->values[k] = class->best;
            outcome->measured[k] = false;
        }
    }
    return 0;
}

static int sample_pairs(struct memory_rounds *rounds, struct sampling *sampling,
                        struct sampling_outcome *outcome, struct probe_memory *result)
{
    struct probe *probe = rounds->probe;
    sampling->exhaustive = probe->exhaustive;
    sampling->strategy = SAMPLING_ROWS;
    sampling->probe = probe;
    sampling->spread = &rounds->spread;
    sampling->at_once = probe_concurrent_most(probe, probe->machine->memory_limit_bytes /
                                                         (MEMORY_SHARES * rounds->bytes));
    int rc = probe_sampling_run(sampling, NULL, ++probe->seed, ask_pair_rates, rounds, outcome);
    if (rc == -ETIME && rounds->alone_count > 0) {
        leave_open(rounds, outcome);
        outcome->cut_short = true;
        result->not_concurrent = rounds->not_concurrent;
        return 0;
    }
    TRY(rc);
    TRY(verify(rounds, sampling, outcome));
    return set_outliers_aside(rounds, sampling, outcome, &result->outliers);
}

static int measure_pair_rates(struct memory_rounds *rounds, struct sampling_outcome *outcome,
                              struct probe_memory *result)
{
    struct probe *probe = rounds->probe;
    const struct profile_set *pus = &probe->machine->pus;
    FREED_BY(probe_sampling_free) struct sampling sampling = {0};
    if (pus->count == 1 || probe_machine_at_once(probe->machine) < 2) {
        int rc = settle_alone(rounds, pus->ids[0]);
        leave_open(rounds, outcome);
        return rc == -ETIME && rounds->alone_count > 0 ? 0 : rc;
    }
    TRY(measure_alone(rounds));
    TRY(probe_sampling_init(&sampling, pus, probe->declared));
    TRY(sample_pairs(rounds, &sampling, outcome, result));
    rounds->spread = probe_layers_spread(rounds->logs, rounds->ratios);
    return 0;
}

/* -- levels -- */

/* Clusters the colliding pairs. level_of[k]: the level of each pair, the lowest bandwidth, that is
 * the worst, first; PAIR_NONE where it does not collide. */
static int classify(const struct memory_rounds *rounds, const double *pair_bytes_per_s,
                    double reference, uint32_t *level_of, struct clusters *clusters)
{
    const size_t pairs = probe_pair_count(rounds->probe->machine->pus.count);
    FREED double *values = malloc((pairs + 1) * sizeof *values);
    FREED uint32_t *cluster_of = malloc((pairs + 1) * sizeof *cluster_of);
    size_t colliding = 0;
    TRY(values && cluster_of ? 0 : -ENOMEM);
    for (size_t i = 0; i < pairs; i++) {
        if (probe_memory_collides(pair_bytes_per_s[i], reference)) {
            values[colliding++] = pair_bytes_per_s[i];
        }
    }
    clusters->count = 0;
    if (colliding > 0) {
        TRY(probe_layers_cluster(values, colliding, rounds->spread, cluster_of, clusters));
    }
    for (size_t i = 0, k = 0; i < pairs; i++) {
        const bool collides = probe_memory_collides(pair_bytes_per_s[i], reference);
        level_of[i] = collides ? cluster_of[k++] : PAIR_NONE;
    }
    return 0;
}

/* The median dispersion of the rounds of the level's measured pairs. A
 * level that has none is inferred. */
static int level_quality(const struct memory_rounds *rounds, const struct sampling_outcome *outcome,
                         const uint32_t *level_of, struct profile_memory *memory, size_t level)
{
    size_t pairs = probe_pair_count(rounds->probe->machine->pus.count), measured = 0;
    FREED double *spreads = malloc((pairs + 1) * sizeof *spreads);
    TRY(spreads ? 0 : -ENOMEM);
    for (size_t k = 0; k < pairs; k++) {
        if (outcome->measured[k] && level_of[k] == level) {
            spreads[measured++] = rounds->spreads[k];
        }
    }
    struct profile_quality *quality = &memory->levels[level].quality;
    quality->origin = measured > 0 ? PROFILE_MEASURED : PROFILE_INFERRED;
    quality->repetitions = rounds->fewest_rounds;
    quality->spread = measured > 0 ? profile_median_value(spreads, measured) : -1;
    return probe_sampling_note(outcome, &quality->note);
}

/* From figures to levels, without scaling. */
static int infer(struct memory_rounds *rounds, const struct sampling_outcome *outcome,
                 struct profile_memory *out)
{
    const struct profile_set *pus = &rounds->probe->machine->pus;
    const double spread = probe_spread(rounds->alone, rounds->alone_count); /* sorts */
    struct clusters clusters;
    FREED uint32_t *level_of = malloc((probe_pair_count(pus->count) + 1) * sizeof *level_of);
    out->reference_bytes_per_s = rounds->alone[rounds->alone_count - 1];
    out->quality = (struct profile_quality){
        .origin = PROFILE_MEASURED, .repetitions = (uint32_t)rounds->alone_count, .spread = spread};
    TRY(level_of
            ? classify(rounds, outcome->values, out->reference_bytes_per_s, level_of, &clusters)
            : -ENOMEM);
    out->levels = calloc(clusters.count + 1, sizeof *out->levels);
    TRY(out->levels ? 0 : -ENOMEM);
    for (uint32_t i = 0; i < clusters.count; i++) {
        out->level_count++;
        out->levels[i].bytes_per_s = clusters.centre[i];
        TRY(probe_relation_from_classes(pus, level_of, i, &out->levels[i].collisions));
        TRY(level_quality(rounds, outcome, level_of, out, i));
    }
    return 0;
}

static int measure_memory(struct probe *probe, struct probe_memory *result)
{
    const struct profile_set *pus = &probe->machine->pus;
    struct profile_memory *memory = &result->memory;
    FREED_BY(rounds_free) struct memory_rounds rounds = {0};
    FREED_BY(probe_sampling_outcome_free) struct sampling_outcome outcome = {0};
    TRY(rounds_init(&rounds, probe, result->array_bytes));
    TRY(probe_sampling_outcome_init(&outcome, probe_pair_count(pus->count)));
    TRY(measure_pair_rates(&rounds, &outcome, result));
    TRY(infer(&rounds, &outcome, memory));
    TRY(probe_pair_figures(pus, rounds.slower, outcome.measured, &memory->pair_rates,
                           &memory->pair_rate_count));
    TRY(result->not_concurrent ? probe_note_beside_others(&memory->quality, "pairs not measured")
                               : 0);
    for (size_t i = 0; i < memory->level_count; i++) {
        if (memory->levels[i].collisions.group_count > 0 && !probe_late(probe)) {
            int rc = measure_scaling(&rounds, memory, i);
            TRY(rc == -EAGAIN ? 0 : rc); /* the pairs have met */
        }
    }
    return 0;
}

int probe_memory(struct probe *probe, size_t last_level_bytes, struct probe_memory *out,
                 struct servet_error *error)
{
    FREED_BY(probe_memory_free)
    struct probe_memory result = {.array_bytes = probe_memory_bytes(probe, last_level_bytes)};
    result.cut_short = result.array_bytes < probe_memory_wanted_bytes(probe, last_level_bytes);
    TRY(probe_error(error, measure_memory(probe, &result), "measuring memory bandwidth"));
    *out = TAKE(result);
    return 0;
}

void probe_memory_free(struct probe_memory *result)
{
    profile_memory_free(&result->memory);
    memset(result, 0, sizeof *result);
}
