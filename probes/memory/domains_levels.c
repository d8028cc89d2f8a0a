/* Domains of sets in the profile's form: levels of pairs come in, levels of both go out, each with
 * its groups, its note and its curve by the number of workers. */
#include "probes/memory/search.h"
#include "profile/codec/codec.h"
#include "profile/query.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int probe_sets_take_levels(struct sets *sets, const struct profile_memory *memory)
{
    for (size_t i = 0; i < memory->level_count; i++) {
        const struct profile_relation *collisions = &memory->levels[i].collisions;
        struct domain *level = &sets->levels[sets->count++];
        *level = (struct domain){
            .of_pairs = (ptrdiff_t)i,
            .loose = collisions->pair_count > 0,
            .share = memory->levels[i].bytes_per_s / memory->reference_bytes_per_s,
        };
        TRY(probe_partition_make(sets->pus, collisions, &level->partition));
    }
    return 0;
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
        bool full = level->scaling[i - 1].bytes_per_s >= PROBE_MEMORY_COLLISION * most;
        saturated = full ? level->scaling[i - 1].workers : saturated;
    }
    int length = asprintf(&note,
                          "found by sets of PUs: %u of them fill a group, whose parts together get "
                          "%.2f of what they get separately",
                          saturated, domain->share);
    return length < 0 ? NULL : note;
}

/* The curve of the level's first group, one worker per inner domain first. */
static int measure_scaling(const struct sets *sets, size_t index,
                           const struct profile_memory *memory, struct profile_memory_level *out)
{
    const struct partition *of = &sets->levels[index].partition;
    FREED struct partition *inner = calloc(index + 1, sizeof *inner); /* not owned */
    const size_t first = of->first[probe_sets_first_group(sets, of)];
    const struct profile_set *group = profile_group_of(&out->collisions, sets->pus->ids[first]);
    TRY(inner ? 0 : -ENOMEM);
    for (size_t i = 0; i <= index; i++) {
        inner[i] = i ? sets->levels[i - 1].partition : sets->cores;
    }
    return probe_scaling_measure(sets->probe, sets->bytes, group,
                                 &(struct partitions){inner, index + 1}, memory, out);
}

static int make_level(const struct sets *sets, size_t index, const struct profile_memory *memory,
                      struct profile_memory_level *out)
{
    const struct domain *domain = &sets->levels[index];
    TRY(probe_partition_groups(&domain->partition, sets->pus, &out->collisions));
    TRY(measure_scaling(sets, index, memory, out));
    const struct profile_scaling_point *two = &out->scaling[out->scaling_count > 1];
    out->bytes_per_s = out->scaling_count > 1 ? two->bytes_per_s / 2 : 0;
    out->quality = (struct profile_quality){.origin = PROFILE_MEASURED,
                                            .repetitions = two->repetitions,
                                            .spread = two->spread,
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

int probe_sets_assemble(struct sets *sets, struct probe_memory *found)
{
    struct profile_memory *memory = &found->memory;
    FREED_BY(profile_memory_free)
    struct profile_memory fresh = {.levels = calloc(sets->count + 1, sizeof *fresh.levels)};
    TRY(fresh.levels ? 0 : -ENOMEM);
    for (size_t i = 0; i < sets->count; i++) {
        fresh.level_count++;
        TRY(sets->levels[i].of_pairs < 0 ? make_level(sets, i, memory, &fresh.levels[i]) : 0);
    }
    for (size_t i = 0; i < sets->count; i++) {
        if (sets->levels[i].of_pairs >= 0) {
            fresh.levels[i] = TAKE(memory->levels[sets->levels[i].of_pairs]);
        }
    }
    const struct profile_memory pruned = {.levels = memory->levels,
                                          .level_count = memory->level_count};
    memory->levels = fresh.levels;
    memory->level_count = fresh.level_count;
    fresh = pruned;
    put_in_order(sets, memory);
    return 0;
}
