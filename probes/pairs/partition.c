/* Relations and partitions of PUs (partition.h). */
#include "probes/pairs/partition.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/codec/codec.h"
#include "profile/scope.h"

/* -- relations -- */

size_t probe_pair_count(size_t pus)
{
    return pus * (pus - 1) / 2;
}

size_t probe_pair_index(size_t pus, size_t i, size_t j)
{
    if (i > j) {
        size_t swap = i;
        i = j;
        j = swap;
    }
    return i * pus - i * (i + 1) / 2 + (j - i - 1);
}

/* Merges what is bound; `bound` counts the bound pairs by unit. */
static void bind_units(const uint32_t *class_of, uint32_t weakest, struct partition *units,
                       size_t *bound)
{
    PROBE_EACH_PAIR(units->pus, i, j, k)
    {
        if (class_of[k] <= weakest) {
            probe_partition_merge(units, units->unit[i], units->unit[j]);
        }
    }
    PROBE_EACH_PAIR(units->pus, i, j, k)
    {
        bound[units->unit[i]] += class_of[k] <= weakest;
    }
}

/* The bound pairs of units that are not to be kept. */
static int list_pairs(const uint32_t *ids, const uint32_t *class_of, uint32_t weakest,
                      const struct partition *units, const bool *keep, struct profile_relation *out)
{
    out->pairs = calloc(probe_pair_count(units->pus) + 1, sizeof *out->pairs);
    TRY(out->pairs ? 0 : -ENOMEM);
    PROBE_EACH_PAIR(units->pus, i, j, k)
    {
        if (class_of[k] <= weakest && !keep[units->unit[i]]) {
            out->pairs[out->pair_count++] = (struct profile_pair){ids[i], ids[j]};
        }
    }
    return 0;
}

int probe_relation_from_classes(const struct profile_set *pus, const uint32_t *class_of,
                                uint32_t weakest, struct profile_relation *out)
{
    FREED_BY(profile_relation_free) struct profile_relation pairs = {0};
    FREED_BY(probe_partition_free) struct partition units = {0};
    FREED size_t *bound = calloc(pus->count + 1, sizeof *bound);
    FREED bool *keep = calloc(pus->count + 1, sizeof *keep);
    TRY(bound && keep ? probe_partition_make(pus, NULL, &units) : -ENOMEM);
    bind_units(class_of, weakest, &units, bound);
    for (uint32_t u = 0; u < units.count; u++) {
        const size_t size = probe_partition_size(&units, units.first[u]);
        keep[u] = bound[u] == probe_pair_count(size);
    }
    TRY(list_pairs(pus->ids, class_of, weakest, &units, keep, &pairs));
    TRY(probe_partition_dissolve(&units, keep));
    TRY(probe_partition_groups(&units, pus, out));
    out->pair_count = TAKE(pairs.pair_count);
    out->pairs = TAKE(pairs.pairs);
    return 0;
}

int probe_relation_of_pairs(const struct profile_set *pus, const bool *related,
                            struct profile_relation *out)
{
    const size_t pairs = probe_pair_count(pus->count);
    FREED uint32_t *class_of = malloc((pairs + 1) * sizeof *class_of);
    TRY(class_of ? 0 : -ENOMEM);
    for (size_t k = 0; k < pairs; k++) {
        class_of[k] = related[k] ? 0 : PAIR_NONE;
    }
    return probe_relation_from_classes(pus, class_of, 0, out);
}

double probe_pair_rounded(double value)
{
    enum { DIGITS = 4 }; /* figures of pairs differ by 1 % from run to run at the least */
    char text[32];
    snprintf(text, sizeof text, "%.*e", DIGITS - 1, value);
    return strtod(text, NULL);
}

int probe_pair_figures(const struct profile_set *pus, const double *values, const bool *measured,
                       struct profile_pair_figure **list, size_t *count)
{
    size_t wanted = 0;
    for (size_t k = 0; k < probe_pair_count(pus->count); k++) {
        wanted += measured[k];
    }
    struct profile_pair_figure *made = calloc(wanted + 1, sizeof *made);
    TRY(made ? 0 : -ENOMEM);
    size_t used = 0;
    PROBE_EACH_PAIR(pus->count, i, j, k)
    {
        if (measured[k]) {
            made[used++] = (struct profile_pair_figure){pus->ids[i], pus->ids[j],
                                                        probe_pair_rounded(values[k])};
        }
    }
    free(*list);
    *list = made;
    *count = used;
    return 0;
}

/* -- partitions -- */

/* Partitions as one number per PU: whether one refines another, and merging two units, are then a
 * pass over the PUs; a tree of sets would have to be kept a tree. */

/* Numbers the units by their first PUs, whatever numbers below `limit` they have. */
static int renumber(struct partition *partition, size_t limit)
{
    FREED uint32_t *number = malloc((limit + 1) * sizeof *number);
    TRY(number ? 0 : -ENOMEM);
    memset(number, 0xff, (limit + 1) * sizeof *number);
    partition->count = 0;
    for (size_t i = 0; i < partition->pus; i++) {
        uint32_t *of = &number[partition->unit[i]];
        if (*of == UINT32_MAX) {
            partition->first[partition->count] = (uint32_t)i;
            *of = partition->count++;
        }
        partition->unit[i] = *of;
    }
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
    static const struct profile_relation nothing;
    TRY(allocate(pus->count, out));
    relation = relation ? relation : &nothing;
    for (size_t i = 0; i < pus->count; i++) {
        const uint32_t id = pus->ids[i];
        size_t g = 0;
        while (g < relation->group_count && !profile_set_has(&relation->groups[g], id)) {
            g++;
        }
        out->unit[i] = (uint32_t)(g < relation->group_count ? pus->count + g : i);
    }
    TRY(renumber(out, pus->count + relation->group_count));
    for (size_t i = 0; i < relation->pair_count; i++) {
        size_t a = profile_set_position(pus, relation->pairs[i].a),
               b = profile_set_position(pus, relation->pairs[i].b);
        if (a < pus->count && b < pus->count) {
            probe_partition_merge(out, out->unit[a], out->unit[b]);
        }
    }
    return 0;
}

int probe_partition_copy(const struct partition *from, struct partition *out)
{
    TRY(allocate(from->pus, out));
    memcpy(out->unit, from->unit, from->pus * sizeof *out->unit);
    memcpy(out->first, from->first, from->count * sizeof *out->first);
    out->count = from->count;
    return 0;
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

void probe_partitions_free(struct partitions *partitions)
{
    for (size_t i = 0; i < partitions->count; i++) {
        probe_partition_free(&partitions->of[i]);
    }
    free(partitions->of);
    *partitions = (struct partitions){0};
}

bool probe_partition_refines(const struct partition *fine, const struct partition *coarse)
{
    bool refines = true;
    for (size_t i = 0; i < fine->pus && refines; i++) {
        refines = coarse->unit[i] == coarse->unit[fine->first[fine->unit[i]]];
    }
    return refines;
}

size_t probe_partition_size(const struct partition *of, size_t pu)
{
    size_t members = 0;
    for (size_t i = 0; i < of->pus; i++) {
        members += of->unit[i] == of->unit[pu];
    }
    return members;
}

size_t probe_partition_largest(const struct partition *of)
{
    size_t most = 0;
    for (uint32_t u = 0; u < of->count; u++) {
        const size_t members = probe_partition_size(of, of->first[u]);
        most = members > most ? members : most;
    }
    return most;
}

uint32_t probe_partition_root(uint32_t *parent, uint32_t item)
{
    while (parent[item] != item) {
        parent[item] = parent[parent[item]];
        item = parent[item];
    }
    return item;
}

void probe_partition_unite(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = probe_partition_root(parent, a);
    b = probe_partition_root(parent, b);
    parent[a > b ? a : b] = a > b ? b : a;
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
    return renumber(partition, 2 * partition->pus);
}

int probe_partition_groups(const struct partition *partition, const struct profile_set *pus,
                           struct profile_relation *out)
{
    FREED uint32_t *ids = malloc((pus->count + 1) * sizeof *ids);
    FREED_BY(profile_relation_free)
    struct profile_relation relation = {.groups =
                                            calloc(partition->count + 1, sizeof *relation.groups)};
    TRY(ids && relation.groups ? 0 : -ENOMEM);
    for (uint32_t u = 0; u < partition->count; u++) {
        size_t count = 0;
        for (size_t i = 0; i < pus->count; i++) {
            if (partition->unit[i] == u) {
                ids[count++] = pus->ids[i];
            }
        }
        if (count > 1) {
            TRY(profile_set_from_array(ids, count, &relation.groups[relation.group_count]));
            relation.group_count++;
        }
    }
    *out = TAKE(relation);
    return 0;
}
