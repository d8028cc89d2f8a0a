#include "probe_memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

enum { ROUNDS = 3, PASSES = 3, SCALING_ALL_UP_TO = 8 };
static const double collision_margin = 0.9; /* of the bandwidth alone; rounds differ by 4-7 % on a shared machine */
static const size_t caches_beyond = 4;      /* times the last level cache, per array */
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
static int classify(const double *pair_bytes_per_s, size_t pairs, double reference, uint8_t *class_of,
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
        rc = cluster_values(values, colliding, cluster_of, clusters);
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

int probe_memory_levels(const struct profile_set *pus, double reference, const double *pair_bytes_per_s,
                        struct profile_memory *out)
{
    struct profile_memory memory = {.reference_bytes_per_s = reference};
    struct pair_classes classes;
    struct clusters clusters;
    int rc = pair_classes_init(&classes, pus);
    if (rc < 0) {
        return rc;
    }
    rc = classify(pair_bytes_per_s, pair_count(pus->count), reference, classes.of, &clusters);
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

static int copy(struct probe *probe, size_t bytes, const uint32_t *pus, size_t count, double *bytes_per_s)
{
    const struct machine_copy what = {.bytes = bytes, .passes = PASSES, .numa = -1};
    return machine_copy(probe->machine, &what, pus, count, bytes_per_s);
}

static size_t choose_bytes(const struct probe *probe, size_t last_level_bytes)
{
    size_t bytes = caches_beyond * last_level_bytes;
    bytes = bytes < array_least ? array_least : bytes;
    bytes = bytes > array_most ? array_most : bytes;
    size_t limit = probe->machine->memory_limit_bytes / 6; /* two PUs with two arrays each, and chase pools beside */
    return bytes < limit ? bytes : limit;
}

/* Alone and in pairs by turns, so that a drift of the machine meets both. The reference is the best of its rounds,
 * a pair is the median of its own: alone nothing can make a copy faster than it is. */
static int measure_pairs(struct probe *probe, size_t bytes, double *alone, size_t *alone_count, double *pairs)
{
    const struct profile_set *pus = &probe->machine->pus;
    size_t all = pair_count(pus->count), done = 0;
    for (size_t i = 0; i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count; j++) {
            const uint32_t both[] = {pus->ids[i], pus->ids[j]};
            double rounds[ROUNDS], rates[2];
            probe_tell(probe, (double)done++ / (double)(all + 1), "memory of PUs %u and %u", both[0], both[1]);
            for (int round = 0; round < ROUNDS; round++) {
                int rc = j == i + 1 ? copy(probe, bytes, both, 1, &alone[(*alone_count)++]) : 0;
                rc = rc < 0 ? rc : copy(probe, bytes, both, 2, rates);
                if (rc < 0) {
                    return rc;
                }
                rounds[round] = fmin(rates[0], rates[1]);
            }
            pairs[pair_index(pus->count, i, j)] = probe_median(rounds, ROUNDS);
        }
    }
    if (pus->count == 1) {
        for (int round = 0; round < ROUNDS; round++) {
            int rc = copy(probe, bytes, pus->ids, 1, &alone[(*alone_count)++]);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

static uint32_t next_workers(uint32_t workers)
{
    return workers < SCALING_ALL_UP_TO ? workers + 1 : workers + workers / 4;
}

/* How much the first group of the level gets by number of workers. */
static int measure_scaling(struct probe *probe, size_t bytes, const struct profile_set *group, double reference,
                           struct profile_memory_level *level)
{
    level->scaling = calloc(group->count, sizeof *level->scaling);
    double *rates = malloc(group->count * sizeof *rates);
    int rc = level->scaling && rates ? 0 : -ENOMEM;
    for (uint32_t workers = 1; rc == 0 && workers <= group->count;) {
        double total = reference;
        probe_tell(probe, 0.95, "memory with %u workers", workers);
        if (workers > 1) {
            size_t room = probe->machine->memory_limit_bytes / (3 * (size_t)workers);
            rc = copy(probe, bytes < room ? bytes : room, group->ids, workers, rates);
            total = 0;
            for (uint32_t i = 0; i < workers; i++) {
                total += rates[i];
            }
        }
        if (rc == 0) {
            level->scaling[level->scaling_count++] = (struct profile_scaling_point){workers, total};
        }
        uint32_t next = next_workers(workers);
        workers = next > group->count && workers < group->count ? (uint32_t)group->count : next;
    }
    free(rates);
    return rc;
}

static int measure(struct probe *probe, struct probe_memory *result)
{
    const struct profile_set *pus = &probe->machine->pus;
    double *alone = calloc(ROUNDS * pus->count, sizeof *alone);
    double *pairs = calloc(pair_count(pus->count) + 1, sizeof *pairs);
    size_t alone_count = 0;
    int rc = alone && pairs ? measure_pairs(probe, result->array_bytes, alone, &alone_count, pairs) : -ENOMEM;
    if (rc == 0) {
        double spread = probe_spread(alone, alone_count), best = alone[0];
        for (size_t i = 1; i < alone_count; i++) {
            best = fmax(best, alone[i]);
        }
        rc = probe_memory_levels(pus, best, pairs, &result->memory);
        result->memory.quality = (struct profile_quality){
            .origin = PROFILE_MEASURED, .repetitions = (uint32_t)alone_count, .spread = spread};
    }
    for (size_t i = 0; i < result->memory.level_count && rc == 0; i++) {
        struct profile_memory_level *level = &result->memory.levels[i];
        if (level->collisions.group_count > 0) {
            rc = measure_scaling(probe, result->array_bytes, &level->collisions.groups[0],
                                 result->memory.reference_bytes_per_s, level);
        }
    }
    free(alone);
    free(pairs);
    return rc;
}

int probe_memory(struct probe *probe, size_t last_level_bytes, struct probe_memory *out, struct servet_error *error)
{
    struct probe_memory result = {.array_bytes = choose_bytes(probe, last_level_bytes)};
    int rc = measure(probe, &result);
    if (rc < 0) {
        probe_memory_free(&result);
        return probe_error(error, rc, "measuring memory bandwidth");
    }
    *out = result;
    return 0;
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
    memset(result, 0, sizeof *result);
}
