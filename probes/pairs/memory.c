/* From the bandwidth of pairs to overhead levels. */
#include "probes/pairs/memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/layers.h"
#include "probes/pairs/partition.h"
#include "probes/pairs/sample.h"
#include "probes/pairs/stopping.h"
#include "profile/codec/codec.h"
#include "profile/query.h"

static int add_level(const struct pair_classes *classes, uint8_t level, double bytes_per_s,
                     struct profile_memory *memory)
{
    struct profile_memory_level *slot = &memory->levels[level];
    slot->bytes_per_s = bytes_per_s;
    slot->quality = (struct profile_quality){
        .origin = PROFILE_MEASURED, .repetitions = REPEAT_MEDIAN_LEAST, .spread = -1};
    int rc = probe_relation_from_classes(classes, level, &slot->collisions);
    memory->level_count += rc == 0;
    return rc;
}

/* Clusters the colliding pairs among `pairs` values; class 0 is the lowest bandwidth, that is the
 * worst level. */
static int classify(const double *pair_bytes_per_s, size_t pairs, double reference, double spread,
                    uint8_t *class_of, struct clusters *clusters)
{
    double *values = malloc((pairs ? pairs : 1) * sizeof *values);
    uint32_t *cluster_of = malloc((pairs ? pairs : 1) * sizeof *cluster_of);
    size_t colliding = 0;
    int rc = values && cluster_of ? 0 : -ENOMEM;
    for (size_t i = 0; i < pairs && rc == 0; i++) {
        if (probe_memory_collides(pair_bytes_per_s[i], reference)) {
            values[colliding++] = pair_bytes_per_s[i];
        }
    }
    clusters->count = 0;
    if (rc == 0 && colliding > 0) {
        rc = probe_layers_cluster(values, colliding, spread, cluster_of, clusters);
    }
    for (size_t i = 0, k = 0; i < pairs && rc == 0; i++) {
        if (probe_memory_collides(pair_bytes_per_s[i], reference)) {
            class_of[i] = (uint8_t)cluster_of[k++];
        }
    }
    free(values);
    free(cluster_of);
    return rc;
}

int probe_memory_levels(const struct profile_set *pus, double reference,
                        const double *pair_bytes_per_s, double spread, struct profile_memory *out)
{
    struct profile_memory memory = {.reference_bytes_per_s = reference};
    struct pair_classes classes;
    struct clusters clusters;
    int rc = probe_pair_classes_init(&classes, pus);
    if (rc < 0) {
        return rc;
    }
    rc = classify(pair_bytes_per_s, probe_pair_count(pus->count), reference, spread, classes.of,
                  &clusters);
    if (rc == 0 && clusters.count > 0) {
        memory.levels = calloc(clusters.count, sizeof *memory.levels);
        rc = memory.levels ? 0 : -ENOMEM;
        for (size_t i = 0; i < clusters.count && rc == 0; i++) {
            rc = add_level(&classes, (uint8_t)i, clusters.centre[i], &memory);
        }
    }
    probe_pair_classes_free(&classes);
    if (rc < 0) {
        struct probe_memory whole = {.memory = memory};
        probe_memory_free(&whole);
        return rc;
    }
    *out = memory;
    return 0;
}

/* What two workers get together is known from the rounds of the pairs; another measurement, at
 * another time, might contradict them. 0 when no pair of the level was measured. */
static double total_of_two(const struct memory_rounds *rounds,
                           const struct profile_memory_level *level)
{
    const struct profile_set *pus = &rounds->probe->machine->pus;
    double best = 0, total = 0;
    for (size_t i = 0; i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count; j++) {
            double candidate = rounds->totals[probe_pair_index(pus->count, i, j)];
            double nearness = candidate > 0 ? fmin(candidate / 2 / level->bytes_per_s,
                                                   2 * level->bytes_per_s / candidate)
                                            : 0;
            if (nearness > best && profile_related(&level->collisions, pus->ids[i], pus->ids[j])) {
                best = nearness;
                total = candidate;
            }
        }
    }
    return total;
}

/* The points that the pairs' rounds gave; bytes_per_s 0: not known. */
static void known_points(const struct memory_rounds *rounds, const struct profile_memory *alone,
                         const struct profile_memory_level *level,
                         struct profile_scaling_point out[2])
{
    out[0] = (struct profile_scaling_point){1, alone->reference_bytes_per_s,
                                            alone->quality.repetitions, alone->quality.spread};
    out[1] = (struct profile_scaling_point){2, total_of_two(rounds, level),
                                            level->quality.repetitions, level->quality.spread};
}

/* The curve of the level's first group, one worker per group of the levels within it first. */
static int measure_scaling(struct memory_rounds *rounds, struct profile_memory *memory,
                           size_t index)
{
    const struct profile_set *pus = &rounds->probe->machine->pus;
    const struct profile_class *declared = rounds->probe->declared;
    struct profile_memory_level *level = &memory->levels[index];
    const struct profile_set *group = &level->collisions.groups[0];
    static const struct profile_relation nothing;
    const struct partition **inner = calloc(index + 1, sizeof *inner);
    struct partition *made = calloc(index + 1, sizeof *made);
    uint32_t *order = malloc(group->count * sizeof *order);
    size_t *positions = malloc(group->count * sizeof *positions), count = 0;
    int rc = inner && made && order && positions ? 0 : -ENOMEM;
    for (size_t i = 0; i <= index && rc == 0; i++) {
        inner[i] = &made[i];
        rc = probe_partition_make(pus,
                                  i          ? &memory->levels[i - 1].collisions
                                  : declared ? &declared->cores
                                             : &nothing,
                                  &made[i]);
    }
    for (size_t i = 0; i < pus->count && rc == 0; i++) {
        if (profile_set_has(group, pus->ids[i])) {
            positions[count++] = i;
        }
    }
    if (rc == 0) {
        struct profile_scaling_point known[2];
        known_points(rounds, memory, level, known);
        probe_scaling_order(positions, count, inner, index + 1);
        for (size_t k = 0; k < count; k++) {
            order[k] = pus->ids[positions[k]];
        }
        rc = probe_scaling_measure(rounds->probe, rounds->bytes, order, count, known, level);
    }
    for (size_t i = 0; made && i <= index; i++) {
        probe_partition_free(&made[i]);
    }
    free(inner);
    free(made);
    free(order);
    free(positions);
    return rc;
}

enum {
    MEMORY_SHARES = 6
}; /* arrays that a pair has room for: two PUs with two each, and chase pools beside */
static const double contradiction =
    1.25; /* a second look at a pair gives so much more: beyond that drift */
static const size_t caches_beyond = 4; /* times the last level cache, per array */
/* In a hurry: source and target together are still twice what the cache holds. */
static const size_t caches_beyond_hurried = 1;
static const size_t array_least = 32u << 20, array_most = (size_t)512 << 20;

enum machine_pages probe_memory_pages(const struct machine *machine)
{
    return machine->huge_page_bytes ? MACHINE_PAGES_HUGE : MACHINE_PAGES_ORDINARY;
}

char *probe_memory_method(const struct machine *machine, size_t array_bytes)
{
    char *text = NULL;
    size_t page = machine->huge_page_bytes ? machine->huge_page_bytes : machine->page_bytes;
    bool large = page >= 1u << 20;
    int length = asprintf(&text, "%s, pages of %zu %s%s, arrays of %zu MiB",
                          machine->copy_method ? machine->copy_method : "copies",
                          page >> (large ? 20 : 10), large ? "MiB" : "KiB",
                          machine->huge_page_bytes ? " asked for" : "", array_bytes >> 20);
    return length < 0 ? NULL : text;
}

static size_t wanted_bytes(const struct probe *probe, size_t last_level_bytes)
{
    size_t bytes = (probe->hurried ? caches_beyond_hurried : caches_beyond) * last_level_bytes;
    bytes = bytes < array_least ? array_least : bytes;
    return bytes > array_most ? array_most : bytes;
}

static size_t choose_bytes(const struct probe *probe, size_t last_level_bytes)
{
    size_t bytes = wanted_bytes(probe, last_level_bytes);
    size_t limit = probe->machine->memory_limit_bytes / MEMORY_SHARES;
    return bytes < limit ? bytes : limit;
}

/* -- pairs -- */

/* Of the pairs of a class, all measured: where fewer collide, what is said to be alike is not. */
static const double odd_share = 0.25;

/* What is usual of the class's pairs: what they took over; where all were measured, what those have
 * that do not collide, if few of them do. < 0: nothing is. */
static double usual_of(const struct memory_rounds *rounds, const struct sampling *sampling,
                       const struct sampling_outcome *outcome, size_t class)
{
    const double reference = probe_memory_rounds_reference(rounds);
    size_t count = 0, colliding = 0;
    double best = -1;
    for (size_t k = 0; k < probe_pair_count(sampling->pus->count); k++) {
        if (sampling->class_of[k] == class && !outcome->measured[k]) {
            return outcome->values[k];
        }
        if (sampling->class_of[k] == class) {
            count++;
            colliding += probe_memory_collides(outcome->values[k], reference);
            best = fmax(best, outcome->values[k]);
        }
    }
    const bool few = (double)colliding < odd_share * (double)count;
    return few && outcome->measured_count < outcome->pair_count ? best : -1;
}

/* A lone colliding pair is no cluster of its class's sample; but if it collides when looked at
 * again it is of a domain that the sample was too small for; so are the few of a class that was
 * measured for them, while others are taken over. Which PUs that has no pair tells: such
 * pairs take over what the others of the class did, and the sets of PUs are searched for it. */
static int set_odd_aside(struct memory_rounds *rounds, const struct sampling *sampling,
                         struct sampling_outcome *outcome, bool *odd)
{
    const size_t n = sampling->pus->count;
    /* a second look has the PU alone once more */
    double reference = probe_memory_rounds_reference(rounds);
    int rc = 0;
    for (size_t class = 0; class < sampling->class_count; class ++) {
        const double usual = usual_of(rounds, sampling, outcome, class);
        for (size_t i = 0; usual >= 0 && !probe_memory_collides(usual, reference) && i < n; i++) {
            for (size_t j = i + 1; j < n && rc == 0; j++) {
                const size_t k = probe_pair_index(n, i, j);
                const bool other = sampling->class_of[k] == class && outcome->measured[k] &&
                                   probe_memory_collides(outcome->values[k], reference);
                rc = other ? probe_memory_rounds_better(rounds, i, j, &outcome->values[k]) : 0;
                reference = other ? probe_memory_rounds_reference(rounds) : reference;
                if (rc == 0 && other && probe_memory_collides(outcome->values[k], reference)) {
                    *odd = true;
                    outcome->values[k] = usual;
                    outcome->measured[k] = false;
                }
            }
        }
    }
    return rc;
}

/* Of pairs that were not measured nobody knows: as if none collided. */
static void leave_open(const struct memory_rounds *rounds, struct sampling_outcome *outcome)
{
    for (size_t k = 0; k < probe_pair_count(rounds->probe->machine->pus.count); k++) {
        outcome->values[k] = outcome->measured[k] ? outcome->values[k] : INFINITY;
    }
}

/* A pair that collides is looked at as often as a median needs, unless it does no more. */
static int look_at_few(struct memory_rounds *rounds, size_t i, size_t j, double *bytes_per_s)
{
    int rc = 0;
    for (size_t look = 1; look < REPEAT_MEDIAN_LEAST && rc == 0; look++) {
        rc = probe_memory_collides(*bytes_per_s, probe_memory_rounds_reference(rounds))
                 ? probe_memory_rounds_better(rounds, i, j, bytes_per_s)
                 : 0;
    }
    return rc;
}

/* How many of the class's pairs are measured, and collide. */
static size_t count_of(const struct memory_rounds *rounds, const struct sampling *sampling,
                       const struct sampling_outcome *outcome, size_t class, size_t *colliding)
{
    const double reference = probe_memory_rounds_reference(rounds);
    size_t count = 0;
    *colliding = 0;
    for (size_t k = 0; k < probe_pair_count(sampling->pus->count); k++) {
        const bool one = sampling->class_of[k] == class && outcome->measured[k];
        count += one;
        *colliding += one && probe_memory_collides(outcome->values[k], reference);
    }
    return count;
}

/* The best of the class's measured pairs, where fewer speak for it than a median needs; < 0: there
 * are enough. So few as collide are looked at again. */
static int best_of_few(struct memory_rounds *rounds, const struct sampling *sampling,
                       struct sampling_outcome *outcome, size_t class, double *best)
{
    const size_t n = sampling->pus->count;
    size_t colliding, count = count_of(rounds, sampling, outcome, class, &colliding);
    int rc = 0;
    *best = -1;
    for (size_t i = 0; colliding < REPEAT_MEDIAN_LEAST && i < n; i++) {
        for (size_t j = i + 1; j < n && rc == 0; j++) {
            const size_t k = probe_pair_index(n, i, j);
            if (sampling->class_of[k] == class && outcome->measured[k]) {
                rc = look_at_few(rounds, i, j, &outcome->values[k]);
                *best = count < REPEAT_MEDIAN_LEAST ? fmax(*best, outcome->values[k]) : -1;
            }
        }
    }
    return rc;
}

/* A pair that was disturbed speaks for its whole class where the budget left it the only one, and
 * makes a level of all packages. Disturbance only takes bandwidth away: the best counts. */
static int check_few(struct memory_rounds *rounds, const struct sampling *sampling,
                     struct sampling_outcome *outcome)
{
    int rc = 0;
    for (size_t class = 0; rc == 0 && class < sampling->class_count; class ++) {
        double best;
        rc = best_of_few(rounds, sampling, outcome, class, &best);
        for (size_t k = 0; best >= 0 && k < probe_pair_count(sampling->pus->count); k++) {
            const bool took = sampling->class_of[k] == class && !outcome->measured[k];
            outcome->values[k] = took ? best : outcome->values[k];
        }
    }
    return rc;
}

static int measure_pairs(struct memory_rounds *rounds, struct sampling_outcome *outcome, bool *odd,
                         bool *apart)
{
    struct probe *probe = rounds->probe;
    const struct profile_set *pus = &probe->machine->pus;
    struct sampling sampling;
    int rc = 0;
    const bool alone = pus->count == 1 || probe_machine_at_once(probe->machine) < 2;
    while (alone && rc == 0 && !probe_repeat_median_settled(rounds->alone, rounds->alone_count)) {
        rc = probe_memory_rounds_alone(rounds, pus->ids[0]);
    }
    if (rc < 0 || alone) {
        leave_open(rounds, outcome);
        return rc == -ETIME && rounds->alone_count > 0 ? 0 : rc;
    }
    rc = probe_sampling_init(&sampling, pus, probe->declared);
    if (rc == 0) {
        sampling.exhaustive = probe->exhaustive;
        sampling.row = true;
        sampling.probe = probe;
        sampling.spread = &rounds->spread;
        sampling.at_once = probe_concurrent_most(probe, probe->machine->memory_limit_bytes /
                                                            (MEMORY_SHARES * rounds->bytes));
        rc = probe_sampling_run(&sampling, NULL, ++probe->seed, probe_memory_rounds_ask, rounds,
                                outcome);
        if (rc == -ETIME && rounds->alone_count > 0) {
            leave_open(rounds, outcome);
            outcome->cut_short = true;
            *apart = rounds->apart;
            rc = 0;
        } else if (rc == 0) {
            rc = probe_memory_rounds_doubt(rounds, outcome);
            rc = rc < 0 || outcome->cut_short ? rc : probe_memory_rounds_slow(rounds, outcome);
            rc = rc < 0               ? rc
                 : outcome->cut_short ? check_few(rounds, &sampling, outcome)
                                      : set_odd_aside(rounds, &sampling, outcome, odd);
        }
        rounds->spread = probe_layers_spread(rounds->logs, rounds->ratios);
        probe_sampling_free(&sampling);
    }
    return rc;
}

/* -- levels -- */

/* A level's centre is nearest to its own pairs. */
static size_t nearest_level(const struct profile_memory *memory, double bytes_per_s)
{
    size_t nearest = 0;
    for (size_t i = 1; i < memory->level_count; i++) {
        double distance = fabs(log(bytes_per_s / memory->levels[i].bytes_per_s));
        nearest =
            distance < fabs(log(bytes_per_s / memory->levels[nearest].bytes_per_s)) ? i : nearest;
    }
    return nearest;
}

/* Of the level's measured pairs: how far the rounds of one of them lie apart, in the middle. A
 * level that has none is inferred. */
static int level_quality(const struct memory_rounds *rounds, const struct sampling_outcome *outcome,
                         struct profile_memory *memory, size_t level)
{
    size_t pairs = probe_pair_count(rounds->probe->machine->pus.count), measured = 0;
    double *spreads = malloc((pairs + 1) * sizeof *spreads);
    if (!spreads) {
        return -ENOMEM;
    }
    for (size_t k = 0; k < pairs; k++) {
        if (outcome->measured[k] &&
            probe_memory_collides(outcome->values[k], memory->reference_bytes_per_s) &&
            nearest_level(memory, outcome->values[k]) == level) {
            spreads[measured++] = rounds->spreads[k];
        }
    }
    struct profile_quality *quality = &memory->levels[level].quality;
    quality->origin = measured > 0 ? PROFILE_MEASURED : PROFILE_INFERRED;
    quality->repetitions = rounds->fewest_rounds;
    quality->spread = measured > 0 ? profile_median_value(spreads, measured) : -1;
    free(spreads);
    return probe_sampling_note(outcome, &quality->note);
}

/* From what was measured to levels, without scaling. */
static int infer_levels(struct memory_rounds *rounds, const struct sampling_outcome *outcome,
                        struct probe_memory *result)
{
    double spread = probe_spread(rounds->alone, rounds->alone_count); /* sorts */
    double best = rounds->alone[rounds->alone_count - 1];
    int rc = probe_memory_levels(&rounds->probe->machine->pus, best, outcome->values,
                                 rounds->spread, &result->memory);
    result->memory.quality = (struct profile_quality){
        .origin = PROFILE_MEASURED, .repetitions = (uint32_t)rounds->alone_count, .spread = spread};
    for (size_t i = 0; i < result->memory.level_count && rc == 0; i++) {
        rc = level_quality(rounds, outcome, &result->memory, i);
    }
    return rc;
}

/* A measured pair of the level: the one nearest to its centre. */
static bool representative(const struct memory_rounds *rounds,
                           const struct sampling_outcome *outcome, double centre, size_t *first,
                           size_t *second)
{
    size_t n = rounds->probe->machine->pus.count;
    double nearest = INFINITY;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            size_t pair = probe_pair_index(n, i, j);
            double distance = fabs(log(outcome->values[pair] / centre));
            if (outcome->measured[pair] && distance < nearest) {
                nearest = distance;
                *first = i;
                *second = j;
            }
        }
    }
    return nearest < INFINITY;
}

static bool listed_in(const struct profile_relation *relation, uint32_t a, uint32_t b)
{
    size_t i = 0;
    while (i < relation->pair_count && (relation->pairs[i].a != a || relation->pairs[i].b != b)) {
        i++;
    }
    return i < relation->pair_count;
}

/* All measured pairs that collided. */
static int retake(struct memory_rounds *rounds, struct sampling_outcome *outcome, double reference)
{
    size_t n = rounds->probe->machine->pus.count;
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n && rc == 0; j++) {
            size_t pair = probe_pair_index(n, i, j);
            bool colliding =
                outcome->measured[pair] && probe_memory_collides(outcome->values[pair], reference);
            rc = colliding && !probe_late(rounds->probe)
                     ? probe_memory_rounds_better(rounds, i, j, &outcome->values[pair])
                     : 0;
        }
    }
    return rc;
}

/* Pairs that a level lists one by one, because the bond is not transitive: one of them may have
 * been disturbed, and all are few. `again` says whether any was measured. */
static int look_at_listed(struct memory_rounds *rounds, struct sampling_outcome *outcome,
                          const struct profile_memory *memory, bool *again)
{
    size_t n = rounds->probe->machine->pus.count;
    const uint32_t *ids = rounds->probe->machine->pus.ids;
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n && rc == 0; j++) {
            size_t pair = probe_pair_index(n, i, j);
            bool listed = false;
            for (size_t k = 0; k < memory->level_count && outcome->measured[pair] && !listed; k++) {
                listed = listed_in(&memory->levels[k].collisions, ids[i], ids[j]);
            }
            if (listed && !probe_late(rounds->probe)) {
                rc = probe_memory_rounds_better(rounds, i, j, &outcome->values[pair]);
                *again = true;
            }
        }
    }
    return rc;
}

static int infer_anew(struct memory_rounds *rounds, const struct sampling_outcome *outcome,
                      struct probe_memory *result)
{
    probe_memory_free(result);
    rounds->spread = probe_layers_spread(rounds->logs, rounds->ratios);
    return infer_levels(rounds, outcome, result);
}

/* Levels that a second look at one pair of each contradicts were a disturbance: their pairs are
 * measured again, and the levels inferred anew. */
static int infer(struct memory_rounds *rounds, struct sampling_outcome *outcome,
                 struct probe_memory *result)
{
    size_t first = 0, second = 0;
    bool contradicted = false;
    bool listed = false;
    int rc = infer_levels(rounds, outcome, result);
    rc = rc < 0 ? rc : look_at_listed(rounds, outcome, &result->memory, &listed);
    rc = rc == 0 && listed ? infer_anew(rounds, outcome, result) : rc;
    for (size_t i = 0; rc == 0 && i < result->memory.level_count && !contradicted; i++) {
        double centre = result->memory.levels[i].bytes_per_s, again = centre;
        bool look =
            !probe_late(rounds->probe) && representative(rounds, outcome, centre, &first, &second);
        rc = look ? probe_memory_rounds_better(rounds, first, second, &again) : 0;
        contradicted = again > contradiction * centre;
    }
    if (rc < 0 || !contradicted) {
        return rc;
    }
    rc = retake(rounds, outcome, result->memory.reference_bytes_per_s);
    return rc < 0 ? rc : infer_anew(rounds, outcome, result);
}

static int measure(struct probe *probe, struct probe_memory *result)
{
    size_t pairs = probe_pair_count(probe->machine->pus.count), bytes = result->array_bytes;
    struct memory_rounds rounds;
    struct sampling_outcome outcome = {.values = calloc(pairs + 1, sizeof *outcome.values),
                                       .measured = calloc(pairs + 1, sizeof *outcome.measured)};
    int rc = probe_memory_rounds_init(&rounds, probe, bytes);
    rc = outcome.values && outcome.measured ? rc : -ENOMEM;
    rc = rc < 0 ? rc : probe_memory_rounds_kinds(&rounds);
    rc = rc < 0 ? rc : measure_pairs(&rounds, &outcome, &result->odd, &result->apart);
    rc = rc < 0 ? rc : infer(&rounds, &outcome, result);
    rc = rc < 0 ? rc
                : probe_pair_figures(&probe->machine->pus, rounds.slower, outcome.measured,
                                     &result->memory.pair_rates, &result->memory.pair_rate_count);
    rc = rc == 0 && result->apart
             ? probe_note_beside_others(&result->memory.quality, "pairs not measured")
             : rc;
    result->array_bytes = bytes;
    for (size_t i = 0; i < result->memory.level_count && rc == 0; i++) {
        struct profile_memory_level *level = &result->memory.levels[i];
        if (level->collisions.group_count > 0 && !probe_late(probe)) {
            rc = measure_scaling(&rounds, &result->memory, i);
            rc = rc == -EAGAIN ? 0 : rc; /* the pairs have met */
        }
    }
    free(outcome.values);
    free(outcome.measured);
    probe_memory_rounds_free(&rounds);
    return rc;
}

size_t probe_memory_bytes(const struct probe *probe, size_t last_level_bytes)
{
    return choose_bytes(probe, last_level_bytes);
}

int probe_memory(struct probe *probe, size_t last_level_bytes, struct probe_memory *out,
                 struct servet_error *error)
{
    struct probe_memory result = {.array_bytes = choose_bytes(probe, last_level_bytes)};
    result.cut_short = result.array_bytes < wanted_bytes(probe, last_level_bytes);
    int rc = measure(probe, &result);
    if (rc < 0) {
        probe_memory_free(&result);
        return probe_error(error, rc, "measuring memory bandwidth");
    }
    *out = result;
    return 0;
}

int probe_memory_alone(struct probe *probe, size_t last_level_bytes, uint32_t pu,
                       double *bytes_per_s)
{
    return probe_memory_copy(probe, choose_bytes(probe, last_level_bytes), &pu, 1, bytes_per_s);
}

void probe_memory_free(struct probe_memory *result)
{
    profile_memory_free(&result->memory);
    memset(result, 0, sizeof *result);
}
