/* Partitions as one number per PU: whether one refines another, and merging two units, are then a
 * pass over the PUs; a tree of sets would have to be kept a tree. */
#include "probes/pairs/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/pairs.h"

/* Numbers the units by their first PUs, whatever numbers below 2 x PUs they have. */
static int renumber(struct partition *partition)
{
    uint32_t *number = malloc((2 * partition->pus + 1) * sizeof *number);
    if (!number) {
        return -ENOMEM;
    }
    memset(number, 0xff, (2 * partition->pus + 1) * sizeof *number);
    partition->count = 0;
    for (size_t i = 0; i < partition->pus; i++) {
        uint32_t *of = &number[partition->unit[i]];
        if (*of == UINT32_MAX) {
            partition->first[partition->count] = (uint32_t)i;
            *of = partition->count++;
        }
        partition->unit[i] = *of;
    }
    free(number);
    return 0;
}

static int allocate(size_t pus, struct partition *out)
{
    *out = (struct partition){.pus = pus,
                              .unit = calloc(pus + 1, sizeof *out->unit),
                              .first = calloc(pus + 1, sizeof *out->first)};
    if (!out->unit || !out->first) {
        probe_partition_free(out);
        return -ENOMEM;
    }
    return 0;
}

int probe_partition_make(const struct profile_set *pus, const struct profile_relation *relation,
                         struct partition *out)
{
    uint32_t *units = probe_together_units(pus, relation);
    int rc = units ? allocate(pus->count, out) : -ENOMEM;
    if (rc == 0) {
        memcpy(out->unit, units, pus->count * sizeof *units);
        rc = renumber(out);
    }
    free(units);
    for (size_t i = 0; rc == 0 && i < relation->pair_count; i++) {
        size_t a = profile_set_position(pus, relation->pairs[i].a),
               b = profile_set_position(pus, relation->pairs[i].b);
        if (a < pus->count && b < pus->count) {
            probe_partition_merge(out, out->unit[a], out->unit[b]);
        }
    }
    return rc;
}

int probe_partition_copy(const struct partition *from, struct partition *out)
{
    int rc = allocate(from->pus, out);
    if (rc == 0) {
        memcpy(out->unit, from->unit, from->pus * sizeof *out->unit);
        memcpy(out->first, from->first, from->count * sizeof *out->first);
        out->count = from->count;
    }
    return rc;
}

int probe_partition_one(size_t pus, struct partition *out)
{
    int rc = allocate(pus, out);
    out->count = rc == 0;
    return rc;
}

void probe_partition_free(struct partition *partition)
{
    free(partition->unit);
    free(partition->first);
    *partition = (struct partition){0};
}

bool probe_partition_refines(const struct partition *fine, const struct partition *coarse)
{
    bool refines = true;
    for (size_t i = 0; i < fine->pus && refines; i++) {
        refines = coarse->unit[i] == coarse->unit[fine->first[fine->unit[i]]];
    }
    return refines;
}

size_t probe_partition_largest(const struct partition *of)
{
    size_t most = 0;
    for (uint32_t u = 0; u < of->count; u++) {
        size_t members = 0;
        for (size_t i = 0; i < of->pus; i++) {
            members += of->unit[i] == u;
        }
        most = members > most ? members : most;
    }
    return most;
}

void probe_partition_merge(struct partition *partition, uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    if (low == high) {
        return;
    }
    for (size_t i = 0; i < partition->pus; i++) {
        uint32_t *unit = &partition->unit[i];
        *unit = *unit == high ? low : *unit > high ? *unit - 1 : *unit;
    }
    /* the lower number had the earlier first PU, so that those after it only move up */
    memmove(&partition->first[high], &partition->first[high + 1],
            (partition->count - high - 1) * sizeof *partition->first);
    partition->count--;
}

int probe_partition_dissolve(struct partition *partition, const bool *keep)
{
    for (size_t i = 0; i < partition->pus; i++) {
        if (!keep[partition->unit[i]]) {
            partition->unit[i] = (uint32_t)(partition->pus + i);
        }
    }
    return renumber(partition);
}

int probe_partition_groups(const struct partition *partition, const struct profile_set *pus,
                           struct profile_relation *out)
{
    uint32_t *ids = malloc((pus->count + 1) * sizeof *ids);
    struct profile_relation relation = {.groups =
                                            calloc(partition->count + 1, sizeof *relation.groups)};
    int rc = ids && relation.groups ? 0 : -ENOMEM;
    for (uint32_t u = 0; rc == 0 && u < partition->count; u++) {
        size_t count = 0;
        for (size_t i = 0; i < pus->count; i++) {
            if (partition->unit[i] == u) {
                ids[count++] = pus->ids[i];
            }
        }
        if (count > 1) {
            rc = profile_set_from_array(ids, count, &relation.groups[relation.group_count]);
            relation.group_count += rc == 0;
        }
    }
    free(ids);
    if (rc < 0) {
        probe_relation_free(&relation);
        return rc;
    }
    *out = relation;
    return 0;
}
