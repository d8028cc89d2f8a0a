/* Domains of sets in the profile's form: levels of pairs come in, levels of both go out, each with
 * its groups, its note and its curve by the number of workers. */
#include "probes/memory/scaling.h"
#include "probes/memory/search.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int probe_sets_take_levels(struct sets *sets, const struct profile_memory *memory)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < memory->level_count; i++) {
        const struct profile_relation *collisions = &memory->levels[i].collisions;
        struct domain level = {
            .of_pairs = (ptrdiff_t)i,
            .loose = collisions->pair_count > 0,
            .share = memory->levels[i].bytes_per_s / memory->reference_bytes_per_s,
        };
        rc = probe_partition_make(sets->pus, collisions, &level.partition);
        sets->levels[sets->count++] = level;
    }
    return rc;
}

static char *make_note(const struct domain *domain, const struct profile_memory_level *level)
{
    double most = 0;
    uint32_t saturated = 0;
    char *note = NULL;
    for (size_t i = 0; i < level->scaling_count; i++) {
        most = fmax(most, level->scaling[i].bytes_per_s);
    }
    for (size_t i = level->scaling_count; i > 0; i--) {
        bool full = level->scaling[i - 1].bytes_per_s >= sets_overhead_share * most;
        saturated = full ? level->scaling[i - 1].workers : saturated;
    }
    size_t groups = level->collisions.group_count;
    size_t looked_at = domain->looked_at < groups ? domain->looked_at : groups;
    int length =
        asprintf(&note,
                 "found by sets of PUs: %u of them fill a group, whose PUs together get %.2f of "
                 "what they get apart; %zu of %zu groups measured%s",
                 saturated, domain->share, looked_at, groups,
                 looked_at < groups ? ", the others taken over from groups alike" : "");
    return length < 0 ? NULL : note;
}

/* How capable a core of the PU is, as declared; 0 where nothing is said. */
static uint32_t efficiency_of(const struct sets *sets, size_t position)
{
    const struct profile_class *declared = sets->probe->declared;
    for (size_t k = 0; declared && k < declared->kind_count; k++) {
        if (profile_set_has(&declared->kinds[k].pus, sets->pus->ids[position])) {
            return declared->kinds[k].efficiency;
        }
    }
    return 0;
}

/* Adds the PUs of the unit that are the most capable below `limit`; returns how capable these
 * are. */
static uint32_t add_kind(const struct sets *sets, const struct partition *of, uint32_t unit,
                         uint32_t limit, struct workers *out)
{
    uint32_t most = 0;
    for (size_t i = 0; i < sets->pus->count; i++) {
        uint32_t mine = efficiency_of(sets, i);
        most = of->unit[i] == unit && mine < limit && mine > most ? mine : most;
    }
    for (size_t i = 0; i < sets->pus->count; i++) {
        if (of->unit[i] == unit && efficiency_of(sets, i) == most) {
            out->at[out->count++] = i;
        }
    }
    return most;
}

/* The first group of several units of what lies inside. A level of hardware threads has none, as
 * they are what the cores are made of: its first group, which PUs of no group may come before. */
static uint32_t group_of_curve(const struct sets *sets, const struct partition *of)
{
    const uint32_t unit = probe_sets_group_from(sets, of, 0);
    const struct partition *inner = probe_sets_inner_of(sets, of);
    if (probe_sets_is_part(inner, inner->unit[of->first[unit]], of)) {
        return unit;
    }
    for (size_t i = 0; i < of->pus; i++) {
        if (of->first[of->unit[i]] != i) {
            return of->unit[i];
        }
    }
    return unit;
}

/* Positions of the level's first group, one per inner domain first; the slower cores last, or the
 * curve would fall with the first of them. */
static int order_group(struct sets *sets, size_t index, struct workers *out)
{
    const struct partition *of = &sets->levels[index].partition;
    const struct partition **inner = calloc(index + 1, sizeof *inner);
    uint32_t unit = group_of_curve(sets, of);
    if (!inner) {
        return -ENOMEM;
    }
    inner[0] = &sets->cores;
    for (size_t i = 0; i < index; i++) {
        inner[i + 1] = &sets->levels[i].partition;
    }
    out->count = 0;
    for (uint32_t limit = UINT32_MAX; limit > 0;) {
        size_t from = out->count;
        limit = add_kind(sets, of, unit, limit, out);
        probe_scaling_order(out->at + from, out->count - from, inner, index + 1);
    }
    free(inner);
    return 0;
}

static int make_level(struct sets *sets, size_t index, const struct profile_memory *memory,
                      struct profile_memory_level *out)
{
    const struct domain *domain = &sets->levels[index];
    const struct profile_scaling_point known[2] = {
        {1, memory->reference_bytes_per_s, memory->quality.repetitions, memory->quality.spread}};
    int rc = probe_partition_groups(&domain->partition, sets->pus, &out->collisions);
    rc = rc < 0 ? rc : order_group(sets, index, &sets->first);
    uint32_t *order = malloc(sets->pus->count * sizeof *order);
    rc = order ? rc : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < sets->first.count; i++) {
        order[i] = sets->pus->ids[sets->first.at[i]];
    }
    rc = rc < 0 ? rc
                : probe_scaling_measure(sets->probe, sets->bytes, order, sets->first.count, known,
                                        out);
    free(order);
    if (rc < 0) {
        return rc;
    }
    out->bytes_per_s = out->scaling_count > 1 ? out->scaling[1].bytes_per_s / 2 : 0;
    out->quality = (struct profile_quality){.origin = PROFILE_MEASURED,
                                            .repetitions = domain->rounds,
                                            .spread = domain->spread,
                                            .note = make_note(domain, out)};
    return out->quality.note ? 0 : -ENOMEM;
}

/* Two PUs of a domain that pairs do not fill get the same in all of them, up to noise; the profile
 * wants them in order. */
static void put_in_order(const struct sets *sets, struct profile_memory *memory)
{
    double known = INFINITY; /* of the next outer level that has a figure */
    for (size_t i = memory->level_count; i-- > 0;) {
        struct profile_memory_level *level = &memory->levels[i];
        if (sets->levels[i].of_pairs < 0) {
            level->bytes_per_s = fmin(level->bytes_per_s, known);
        }
        known = level->bytes_per_s > 0 ? level->bytes_per_s : known;
    }
    known = 0;
    for (size_t i = 0; i < memory->level_count; i++) {
        struct profile_memory_level *level = &memory->levels[i];
        if (level->bytes_per_s > 0) { /* otherwise it was not measured */
            known = level->bytes_per_s = fmax(level->bytes_per_s, known);
        }
    }
}

static void free_levels(struct profile_memory *memory)
{
    struct probe_memory old = {
        .memory = {.levels = memory->levels, .level_count = memory->level_count}};
    probe_memory_free(&old);
}

/* Levels of pairs move over, those of sets come between them. */
int probe_sets_assemble(struct sets *sets, struct probe_memory *found)
{
    struct probe_memory fresh = {.memory = found->memory};
    struct profile_memory *memory = &fresh.memory;
    memory->levels = calloc(sets->count + 1, sizeof *memory->levels);
    int rc = memory->levels ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < sets->count; i++) {
        ptrdiff_t pairs = sets->levels[i].of_pairs;
        memory->level_count = i + 1;
        rc = pairs < 0 ? make_level(sets, i, &found->memory, &memory->levels[i]) : 0;
    }
    if (rc < 0) {
        memory->method = NULL; /* still the other's */
        memory->quality.note = NULL;
        probe_memory_free(&fresh);
        return rc;
    }
    for (size_t i = 0; i < sets->count; i++) {
        if (sets->levels[i].of_pairs >= 0) {
            struct profile_memory_level *level = &found->memory.levels[sets->levels[i].of_pairs];
            memory->levels[i] = *level;
            *level = (struct profile_memory_level){0};
        }
    }
    free_levels(&found->memory); /* those that were pruned */
    put_in_order(sets, memory);
    found->memory = *memory;
    return 0;
}
