#include "probe_memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "query.h"
#include "schedule.h"

enum {
    ROUNDS = 3,
    PASSES = 3,
    SCALING_ALL_UP_TO = 8,
    ALONE_MAX = 64,      /* measurements of one PU alone; more say nothing new */
    EXPECTED_PAIRS = 32, /* for the progress bar */
};
static const double collision_margin = 0.9; /* of the bandwidth alone; rounds differ by 4-7 % on a shared machine */
static const double contradiction = 1.25;   /* a second look at a pair gives so much more: beyond that drift */
static const double not_less = 0.85;        /* of what fewer workers got together */
static const double quartiles_of_deviation = 1.349; /* their distance, of a Gaussian */
static const size_t caches_beyond = 4;              /* times the last level cache, per array */
static const size_t array_least = 32u << 20, array_most = (size_t)512 << 20;

/* -- inference -- */

static int add_level(const struct pair_classes *classes, uint8_t level, double bytes_per_s,
                     struct profile_memory *memory)
{
    struct profile_memory_level *slot = &memory->levels[level];
    slot->bytes_per_s = bytes_per_s;
    slot->quality = (struct profile_quality){.origin = PROFILE_MEASURED, .repetitions = ROUNDS, .spread = -1};
    int rc = relation_from_classes(classes, 0, level, &slot->collisions);
    memory->level_count += rc == 0;
    return rc;
}

/* Clusters the colliding pairs among `pairs` values; class 0 is the lowest bandwidth, that is the worst level. */
static int classify(const double *pair_bytes_per_s, size_t pairs, double reference, double spread, uint8_t *class_of,
                    struct clusters *clusters)
{
    double *values = malloc((pairs ? pairs : 1) * sizeof *values);
    uint32_t *cluster_of = malloc((pairs ? pairs : 1) * sizeof *cluster_of);
    size_t colliding = 0;
    int rc = values && cluster_of ? 0 : -ENOMEM;
    for (size_t i = 0; i < pairs && rc == 0; i++) {
        if (pair_bytes_per_s[i] < collision_margin * reference) {
            values[colliding++] = pair_bytes_per_s[i];
        }
    }
    clusters->count = 0;
    if (rc == 0 && colliding > 0) {
        rc = cluster_values(values, colliding, spread, cluster_of, clusters);
    }
    for (size_t i = 0, k = 0; i < pairs && rc == 0; i++) {
        if (pair_bytes_per_s[i] < collision_margin * reference) {
            class_of[i] = (uint8_t)cluster_of[k++];
        }
    }
    free(values);
    free(cluster_of);
    return rc;
}

int probe_memory_levels(const struct profile_set *pus, double reference, const double *pair_bytes_per_s, double spread,
                        struct profile_memory *out)
{
    struct profile_memory memory = {.reference_bytes_per_s = reference};
    struct pair_classes classes;
    struct clusters clusters;
    int rc = pair_classes_init(&classes, pus);
    if (rc < 0) {
        return rc;
    }
    rc = classify(pair_bytes_per_s, pair_count(pus->count), reference, spread, classes.of, &clusters);
    if (rc == 0 && clusters.count > 0) {
        memory.levels = calloc(clusters.count, sizeof *memory.levels);
        rc = memory.levels ? 0 : -ENOMEM;
        for (size_t i = 0; i < clusters.count && rc == 0; i++) {
            rc = add_level(&classes, (uint8_t)i, clusters.centre[i], &memory);
        }
    }
    pair_classes_free(&classes);
    if (rc < 0) {
        struct probe_memory whole = {.memory = memory};
        probe_memory_free(&whole);
        return rc;
    }
    *out = memory;
    return 0;
}

/* -- measurement -- */

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
                          machine->copy_method ? machine->copy_method : "copies", page >> (large ? 20 : 10),
                          large ? "MiB" : "KiB", machine->huge_page_bytes ? " asked for" : "", array_bytes >> 20);
    return length < 0 ? NULL : text;
}

static int copy(struct probe *probe, size_t bytes, const uint32_t *pus, size_t count, double *bytes_per_s)
{
    const struct machine_copy what = {
        .bytes = bytes, .passes = PASSES, .numa = -1, .pages = probe_memory_pages(probe->machine)};
    return machine_copy(probe->machine, &what, pus, count, bytes_per_s);
}

static size_t wanted_bytes(size_t last_level_bytes)
{
    size_t bytes = caches_beyond * last_level_bytes;
    bytes = bytes < array_least ? array_least : bytes;
    return bytes > array_most ? array_most : bytes;
}

static size_t choose_bytes(const struct probe *probe, size_t last_level_bytes)
{
    size_t bytes = wanted_bytes(last_level_bytes);
    size_t limit = probe->machine->memory_limit_bytes / 6; /* two PUs with two arrays each, and chase pools beside */
    return bytes < limit ? bytes : limit;
}

/* Alone and in pairs by turns, so that a drift of the machine meets both. The reference is the best of its rounds,
 * a pair is the median of its own: alone nothing can make a copy faster than it is. */
struct question {
    struct probe *probe;
    size_t bytes, asked;
    double alone[ALONE_MAX];
    size_t alone_count;
    uint32_t fewest_rounds; /* of any pair */
    double *totals;         /* of both PUs of a pair together, by pair_index(); 0: not measured */
    double *logs;           /* of the ratios of two rounds of one pair */
    size_t ratios;
    double spread; /* of one figure, from them */
};

static int measure_alone(struct question *question, uint32_t pu)
{
    if (question->alone_count == ALONE_MAX) {
        return 0;
    }
    return copy(question->probe, question->bytes, &pu, 1, &question->alone[question->alone_count++]);
}

static int ask(void *argument, size_t i, size_t j, double *bytes_per_s)
{
    struct question *question = argument;
    const struct profile_set *pus = &question->probe->machine->pus;
    const uint32_t both[] = {pus->ids[i], pus->ids[j]};
    double rounds[ROUNDS], totals[ROUNDS], rates[2];
    size_t pair = pair_index(pus->count, i, j), count = probe_late(question->probe) ? 1 : ROUNDS;
    probe_tell(question->probe, 1 - exp(-(double)question->asked++ / EXPECTED_PAIRS), "memory of PUs %u and %u",
               both[0], both[1]);
    for (size_t round = 0; round < count; round++) {
        int rc = measure_alone(question, both[0]);
        rc = rc < 0 ? rc : copy(question->probe, question->bytes, both, 2, rates);
        if (rc < 0) {
            return rc;
        }
        rounds[round] = fmin(rates[0], rates[1]);
        totals[round] = rates[0] + rates[1];
    }
    if (count > 1 && question->ratios < pair_count(pus->count)) {
        question->logs[question->ratios++] = log(rounds[1] / rounds[0]);
    }
    question->totals[pair] = probe_median(totals, count);
    question->fewest_rounds = count < question->fewest_rounds ? (uint32_t)count : question->fewest_rounds;
    *bytes_per_s = probe_median(rounds, count);
    return 0;
}

/* A class's pairs agree, or not, by what is known of the noise when they were measured: cheap enough to ask often. */
static int ask_and_learn(void *argument, size_t i, size_t j, double *bytes_per_s)
{
    enum { LEARN_FROM = 16 };
    struct question *question = argument;
    double sorted[LEARN_FROM];
    int rc = ask(argument, i, j, bytes_per_s);
    if (rc == 0 && question->ratios <= LEARN_FROM) {
        memcpy(sorted, question->logs, question->ratios * sizeof *sorted);
        question->spread = cluster_spread(sorted, question->ratios);
    }
    return rc;
}

static int measure_pairs(struct question *question, struct schedule_outcome *outcome)
{
    struct probe *probe = question->probe;
    const struct profile_set *pus = &probe->machine->pus;
    struct schedule schedule;
    int rc = 0;
    for (int round = 0; round < ROUNDS && pus->count == 1 && rc == 0; round++) {
        rc = measure_alone(question, pus->ids[0]);
    }
    if (rc < 0 || pus->count == 1) {
        return rc;
    }
    rc = schedule_init(&schedule, pus, probe->declared);
    if (rc == 0) {
        schedule.exhaustive = probe->exhaustive;
        schedule.probe = probe;
        schedule.spread = &question->spread;
        rc = schedule_run(&schedule, NULL, ++probe->seed, ask_and_learn, schedule_agree_cluster, question, outcome);
        question->spread = cluster_spread(question->logs, question->ratios);
        schedule_free(&schedule);
    }
    return rc;
}

static uint32_t next_workers(uint32_t workers)
{
    return workers < SCALING_ALL_UP_TO ? workers + 1 : workers + workers / 4;
}

/* What so many workers of the group get together: the median of the rounds. */
static int measure_workers(struct probe *probe, size_t bytes, const struct profile_set *group, uint32_t workers,
                           double *rates, double *total)
{
    size_t room = probe->machine->memory_limit_bytes / (3 * (size_t)workers);
    size_t rounds = probe_late(probe) ? 1 : ROUNDS;
    double totals[ROUNDS];
    for (size_t round = 0; round < rounds; round++) {
        int rc = copy(probe, bytes < room ? bytes : room, group->ids, workers, rates);
        if (rc < 0) {
            return rc;
        }
        totals[round] = 0;
        for (uint32_t i = 0; i < workers; i++) {
            totals[round] += rates[i];
        }
    }
    *total = probe_median(totals, rounds);
    return 0;
}

/* What two workers get together is known from the rounds of the pairs; another measurement, at another time, might
 * contradict them. 0 when no pair of the level was measured. */
static double total_of_two(const struct question *question, const struct profile_memory_level *level)
{
    const struct profile_set *pus = &question->probe->machine->pus;
    double best = 0, total = 0;
    for (size_t i = 0; i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count; j++) {
            double candidate = question->totals[pair_index(pus->count, i, j)];
            double nearness =
                candidate > 0 ? fmin(candidate / 2 / level->bytes_per_s, 2 * level->bytes_per_s / candidate) : 0;
            if (nearness > best && profile_related(&level->collisions, pus->ids[i], pus->ids[j])) {
                best = nearness;
                total = candidate;
            }
        }
    }
    return total;
}

/* More workers than before that get clearly less were disturbed: asked again once, and the better figure counts. */
static int measure_point(struct question *question, const struct profile_set *group, uint32_t workers, double before,
                         double *rates, double *total)
{
    double again;
    int rc = measure_workers(question->probe, question->bytes, group, workers, rates, total);
    if (rc < 0 || *total > not_less * before) {
        return rc;
    }
    rc = measure_workers(question->probe, question->bytes, group, workers, rates, &again);
    *total = rc == 0 ? fmax(*total, again) : *total;
    return rc;
}

/* How much the first group of the level gets by number of workers. */
static int measure_scaling(struct question *question, const struct profile_set *group, double reference,
                           struct profile_memory_level *level)
{
    level->scaling = calloc(group->count, sizeof *level->scaling);
    double *rates = malloc(group->count * sizeof *rates);
    int rc = level->scaling && rates ? 0 : -ENOMEM;
    for (uint32_t workers = 1; rc == 0 && workers <= group->count;) {
        double total = workers == 1 ? reference : workers == 2 ? total_of_two(question, level) : 0;
        double before = level->scaling_count ? level->scaling[level->scaling_count - 1].bytes_per_s : 0;
        probe_tell(question->probe, 0.95, "memory with %u workers", workers);
        rc = total > 0 ? 0 : measure_point(question, group, workers, before, rates, &total);
        if (rc == 0) {
            level->scaling[level->scaling_count++] = (struct profile_scaling_point){workers, total};
        }
        uint32_t next = next_workers(workers);
        workers = next > group->count && workers < group->count ? (uint32_t)group->count : next;
    }
    free(rates);
    return rc;
}

/* Is a pair of this level among those that were measured? A level's centre is nearest to its own pairs. */
static enum profile_origin level_origin(const struct question *question, const struct schedule_outcome *outcome,
                                        const struct profile_memory *memory, size_t level)
{
    size_t pairs = pair_count(question->probe->machine->pus.count);
    for (size_t k = 0; k < pairs; k++) {
        size_t nearest = 0;
        for (size_t i = 1; i < memory->level_count; i++) {
            double distance = fabs(log(outcome->values[k] / memory->levels[i].bytes_per_s));
            nearest = distance < fabs(log(outcome->values[k] / memory->levels[nearest].bytes_per_s)) ? i : nearest;
        }
        if (nearest == level && outcome->measured[k]) {
            return PROFILE_MEASURED;
        }
    }
    return PROFILE_INFERRED;
}

/* From what was measured to levels, without scaling. */
static int infer_levels(struct question *question, const struct schedule_outcome *outcome, struct probe_memory *result)
{
    double spread = probe_spread(question->alone, question->alone_count); /* sorts */
    double best = question->alone[question->alone_count - 1];
    int rc =
        probe_memory_levels(&question->probe->machine->pus, best, outcome->values, question->spread, &result->memory);
    result->memory.quality = (struct profile_quality){
        .origin = PROFILE_MEASURED, .repetitions = (uint32_t)question->alone_count, .spread = spread};
    for (size_t i = 0; i < result->memory.level_count && rc == 0; i++) {
        struct profile_memory_level *level = &result->memory.levels[i];
        level->quality.note = schedule_note(outcome);
        level->quality.repetitions = question->fewest_rounds;
        level->quality.spread = question->spread > 0 ? quartiles_of_deviation * question->spread : -1;
        level->quality.origin = level_origin(question, outcome, &result->memory, i);
    }
    return rc;
}

/* A measured pair of the level: the one nearest to its centre. */
static bool representative(const struct question *question, const struct schedule_outcome *outcome, double centre,
                           size_t *first, size_t *second)
{
    size_t n = question->probe->machine->pus.count;
    double nearest = INFINITY;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            size_t pair = pair_index(n, i, j);
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

/* Once more, and the better round counts: disturbance only takes bandwidth away. */
static int ask_better(struct question *question, size_t i, size_t j, double *bytes_per_s)
{
    double *total = &question->totals[pair_index(question->probe->machine->pus.count, i, j)];
    double before = *total, again;
    int rc = ask(question, i, j, &again);
    if (rc < 0 || again <= *bytes_per_s) {
        *total = before;
        return rc;
    }
    *bytes_per_s = again;
    return 0;
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
static int retake(struct question *question, struct schedule_outcome *outcome, double reference)
{
    size_t n = question->probe->machine->pus.count;
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n && rc == 0; j++) {
            size_t pair = pair_index(n, i, j);
            bool colliding = outcome->measured[pair] && outcome->values[pair] < collision_margin * reference;
            rc = colliding && !probe_late(question->probe) ? ask_better(question, i, j, &outcome->values[pair]) : 0;
        }
    }
    return rc;
}

/* Pairs that a level lists one by one, because the bond is not transitive: one of them may have been disturbed, and all
 * are few. `again` says whether any was measured. */
static int look_at_listed(struct question *question, struct schedule_outcome *outcome,
                          const struct profile_memory *memory, bool *again)
{
    size_t n = question->probe->machine->pus.count;
    const uint32_t *ids = question->probe->machine->pus.ids;
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n && rc == 0; j++) {
            size_t pair = pair_index(n, i, j);
            bool listed = false;
            for (size_t k = 0; k < memory->level_count && outcome->measured[pair] && !listed; k++) {
                listed = listed_in(&memory->levels[k].collisions, ids[i], ids[j]);
            }
            if (listed && !probe_late(question->probe)) {
                rc = ask_better(question, i, j, &outcome->values[pair]);
                *again = true;
            }
        }
    }
    return rc;
}

static int infer_anew(struct question *question, const struct schedule_outcome *outcome, struct probe_memory *result)
{
    probe_memory_free(result);
    question->spread = cluster_spread(question->logs, question->ratios);
    return infer_levels(question, outcome, result);
}

/* Levels that a second look at one pair of each contradicts were a disturbance: their pairs are measured again, and the
 * levels inferred anew. */
static int infer(struct question *question, struct schedule_outcome *outcome, struct probe_memory *result)
{
    size_t first = 0, second = 0;
    bool contradicted = false;
    bool listed = false;
    int rc = infer_levels(question, outcome, result);
    rc = rc < 0 ? rc : look_at_listed(question, outcome, &result->memory, &listed);
    rc = rc == 0 && listed ? infer_anew(question, outcome, result) : rc;
    for (size_t i = 0; rc == 0 && i < result->memory.level_count && !contradicted; i++) {
        double centre = result->memory.levels[i].bytes_per_s, again = centre;
        bool look = !probe_late(question->probe) && representative(question, outcome, centre, &first, &second);
        rc = look ? ask_better(question, first, second, &again) : 0;
        contradicted = again > contradiction * centre;
    }
    if (rc < 0 || !contradicted) {
        return rc;
    }
    rc = retake(question, outcome, result->memory.reference_bytes_per_s);
    return rc < 0 ? rc : infer_anew(question, outcome, result);
}

static int measure(struct probe *probe, struct probe_memory *result)
{
    size_t pairs = pair_count(probe->machine->pus.count), bytes = result->array_bytes;
    struct question question = {.probe = probe,
                                .bytes = bytes,
                                .fewest_rounds = ROUNDS,
                                .totals = calloc(pairs + 1, sizeof *question.totals),
                                .logs = calloc(pairs + 1, sizeof *question.logs)};
    struct schedule_outcome outcome = {.values = calloc(pairs + 1, sizeof *outcome.values),
                                       .measured = calloc(pairs + 1, sizeof *outcome.measured)};
    bool room = outcome.values && outcome.measured && question.totals && question.logs;
    int rc = room ? measure_pairs(&question, &outcome) : -ENOMEM;
    rc = rc < 0 ? rc : infer(&question, &outcome, result);
    result->array_bytes = bytes;
    for (size_t i = 0; i < result->memory.level_count && rc == 0; i++) {
        struct profile_memory_level *level = &result->memory.levels[i];
        if (level->collisions.group_count > 0 && !probe_late(probe)) {
            rc = measure_scaling(&question, &level->collisions.groups[0], result->memory.reference_bytes_per_s, level);
        }
    }
    free(outcome.values);
    free(outcome.measured);
    free(question.totals);
    free(question.logs);
    return rc;
}

int probe_memory(struct probe *probe, size_t last_level_bytes, struct probe_memory *out, struct servet_error *error)
{
    struct probe_memory result = {.array_bytes = choose_bytes(probe, last_level_bytes)};
    result.cut_short = result.array_bytes < wanted_bytes(last_level_bytes);
    int rc = measure(probe, &result);
    if (rc < 0) {
        probe_memory_free(&result);
        return probe_error(error, rc, "measuring memory bandwidth");
    }
    *out = result;
    return 0;
}

int probe_memory_alone(struct probe *probe, size_t last_level_bytes, uint32_t pu, double *bytes_per_s)
{
    return copy(probe, choose_bytes(probe, last_level_bytes), &pu, 1, bytes_per_s);
}

void probe_memory_free(struct probe_memory *result)
{
    for (size_t i = 0; i < result->memory.level_count; i++) {
        struct profile_memory_level *level = &result->memory.levels[i];
        relation_free(&level->collisions);
        free(level->scaling);
        free(level->quality.note);
    }
    free(result->memory.levels);
    free(result->memory.quality.note);
    free(result->memory.method);
    memset(result, 0, sizeof *result);
}
