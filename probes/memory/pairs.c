/* From the bandwidth of pairs to overhead levels (pairs.h). */
#include "probes/memory/pairs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/memory/rounds.h"
#include "probes/pairs/layers.h"
#include "profile/codec/codec.h"

/* Constant       unit      source                                  without it
 * outlier_share  of pairs  less than a domain of half a class      a hidden link is no level
 * CHECKED        pairs     1 % miss one wrong pair in four        one lucky round breaks a group */
static const double outlier_share = 0.25;
enum { CHECKED = 16 };

/* -- levels of values -- */

/* Clusters the colliding pairs among `pairs` values; class 0 is the lowest bandwidth, that is the
 * worst level. */
static int classify(const double *pair_bytes_per_s, size_t pairs, double reference, double spread,
                    uint32_t *class_of, struct clusters *clusters)
{
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
        TRY(probe_layers_cluster(values, colliding, spread, cluster_of, clusters));
    }
    for (size_t i = 0, k = 0; i < pairs; i++) {
        const bool collides = probe_memory_collides(pair_bytes_per_s[i], reference);
        class_of[i] = collides ? cluster_of[k++] : PAIR_NONE;
    }
    return 0;
}

int probe_memory_levels(const struct profile_set *pus, double reference,
                        const double *pair_bytes_per_s, double spread, uint32_t *level_of,
                        struct profile_memory *out)
{
    struct clusters clusters;
    TRY(classify(pair_bytes_per_s, probe_pair_count(pus->count), reference, spread, level_of,
                 &clusters));
    FREED_BY(profile_memory_free)
    struct profile_memory made = {.reference_bytes_per_s = reference,
                                  .levels = calloc(clusters.count + 1, sizeof *made.levels)};
    TRY(made.levels ? 0 : -ENOMEM);
    for (uint32_t i = 0; i < clusters.count; i++) {
        struct profile_memory_level *level = &made.levels[made.level_count++];
        level->bytes_per_s = clusters.centre[i];
        level->quality.spread = -1;
        TRY(probe_relation_from_classes(pus, level_of, i, &level->collisions));
    }
    *out = TAKE(made);
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
    const double reference = probe_memory_rounds_reference(rounds);
    size_t others = 0;
    PROBE_EACH_PAIR(probe_late(rounds->probe) ? 0 : n, i, j, k)
    {
        const struct pair_position pair = {i, j};
        const bool measured = outcome->measured[k],
                   colliding = probe_memory_collides(outcome->values[k], reference),
                   chosen = measured && (colliding || others++ % step == 0);
        if (chosen || (!colliding && is_bridged(outcome, n, i, j, reference))) {
            TRY(probe_memory_rounds_again(rounds, &pair, &outcome->values[k]));
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
    const double reference = probe_memory_rounds_reference(rounds);
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
    int rc =
        probe_sampling_run(sampling, NULL, ++probe->seed, probe_memory_rounds_ask, rounds, outcome);
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

static int measure_pairs(struct memory_rounds *rounds, struct sampling_outcome *outcome,
                         struct probe_memory *result)
{
    struct probe *probe = rounds->probe;
    const struct profile_set *pus = &probe->machine->pus;
    FREED_BY(probe_sampling_free) struct sampling sampling = {0};
    if (pus->count == 1 || probe_machine_at_once(probe->machine) < 2) {
        int rc = probe_memory_rounds_one(rounds, pus->ids[0]);
        leave_open(rounds, outcome);
        return rc == -ETIME && rounds->alone_count > 0 ? 0 : rc;
    }
    TRY(probe_memory_rounds_alone(rounds));
    TRY(probe_sampling_init(&sampling, pus, probe->declared));
    TRY(sample_pairs(rounds, &sampling, outcome, result));
    rounds->spread = probe_layers_spread(rounds->logs, rounds->ratios);
    return 0;
}

/* -- levels -- */

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
                 struct probe_memory *result)
{
    const struct profile_set *pus = &rounds->probe->machine->pus;
    double spread = probe_spread(rounds->alone, rounds->alone_count); /* sorts */
    double best = rounds->alone[rounds->alone_count - 1];
    FREED uint32_t *level_of = malloc((probe_pair_count(pus->count) + 1) * sizeof *level_of);
    TRY(level_of ? probe_memory_levels(pus, best, outcome->values, rounds->spread, level_of,
                                       &result->memory)
                 : -ENOMEM);
    result->memory.quality = (struct profile_quality){
        .origin = PROFILE_MEASURED, .repetitions = (uint32_t)rounds->alone_count, .spread = spread};
    for (size_t i = 0; i < result->memory.level_count; i++) {
        TRY(level_quality(rounds, outcome, level_of, &result->memory, i));
    }
    return 0;
}

static int measure_levels(struct memory_rounds *rounds, struct sampling_outcome *outcome,
                          struct probe_memory *result)
{
    struct probe *probe = rounds->probe;
    struct profile_memory *memory = &result->memory;
    TRY(measure_pairs(rounds, outcome, result));
    TRY(infer(rounds, outcome, result));
    TRY(probe_pair_figures(&probe->machine->pus, rounds->slower, outcome->measured,
                           &memory->pair_rates, &memory->pair_rate_count));
    TRY(result->not_concurrent ? probe_note_beside_others(&memory->quality, "pairs not measured")
                               : 0);
    for (size_t i = 0; i < memory->level_count; i++) {
        if (memory->levels[i].collisions.group_count > 0 && !probe_late(probe)) {
            int rc = measure_scaling(rounds, memory, i);
            TRY(rc == -EAGAIN ? 0 : rc); /* the pairs have met */
        }
    }
    return 0;
}

static int measure_memory(struct probe *probe, struct probe_memory *result)
{
    FREED_BY(probe_memory_rounds_free) struct memory_rounds rounds = {0};
    FREED_BY(probe_sampling_outcome_free) struct sampling_outcome outcome = {0};
    TRY(probe_memory_rounds_init(&rounds, probe, result->array_bytes));
    TRY(probe_sampling_outcome_init(&outcome, probe_pair_count(probe->machine->pus.count)));
    return measure_levels(&rounds, &outcome, result);
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
