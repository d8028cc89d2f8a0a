/* From the bandwidth of pairs to overhead levels. */
#include <errno.h>
#include <stdlib.h>

#include "cluster.h"
#include "probe_memory.h"
#include "repeat.h"

static const double collision_margin = PROBE_MEMORY_COLLISION;

static int add_level(const struct pair_classes *classes, uint8_t level, double bytes_per_s,
                     struct profile_memory *memory)
{
    struct profile_memory_level *slot = &memory->levels[level];
    slot->bytes_per_s = bytes_per_s;
    slot->quality =
        (struct profile_quality){.origin = PROFILE_MEASURED, .repetitions = REPEAT_MEDIAN_LEAST, .spread = -1};
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
