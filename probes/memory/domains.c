/* A domain is a set of PUs that share a limit of memory bandwidth, a link or a controller, which no
 * pair of them fills.
 *
 * On a machine of today one core moves 20 GB/s, the link of a few cores 40 to 60, a socket 100 to
 * 400: no two workers collide (2010 paper, Section III-C), and yet eight on one link get a quarter
 * of what they could. So sets of units (cores, groups of cores) are measured, and everything is
 * decided by one figure: what a unit gains beside a set that is at work, of what it gets alone. A
 * unit is in a domain if it gains little beside a set that saturates it.
 *
 *   candidates   groups that are declared (caches, NUMA nodes, packages), or found by shared caches
 *                or by messages. A group is a domain if its parts get less than 0.9 together of
 *                what they get separately, and if they all gain little beside some of them. If any
 *                group is one, those that get less than 0.95 are a level.
 *   hidden ones  any unit beside others, until these saturate its domain; then every other unit
 *                beside these (domains_search.c).
 *   pruning      a level goes that loses nothing beyond what domains inside lose, found later.
 *
 * The measured EPYC 7402 is the pattern: two L3 caches behind one link of 37 GB/s, which no
 * topology mentions (tests/fixtures/machines/epyc-7402.json). */
#include "probes/memory/search.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/codec/codec.h"
#include "profile/query.h"

/* Constant        unit   source                                     without it
 * one_core_share  share  two threads of a core get 0.5 to 0.55 of   threads work as cores, and sets
 *                        two cores                                  take twice as long */
static const double one_core_share = 0.6;

/* -- levels -- */

const struct partition *probe_sets_inner_of(const struct sets *sets, const struct partition *of)
{
    const struct partition *inner = &sets->cores;
    for (size_t i = 0; i < sets->count; i++) {
        const struct partition *level = &sets->levels[i].partition;
        inner = level->count > of->count && probe_partition_refines(level, of) ? level : inner;
    }
    return inner;
}

const struct partition *probe_sets_outer_of(const struct sets *sets, const struct partition *of)
{
    for (size_t i = 0; i < sets->count; i++) {
        const struct partition *level = &sets->levels[i].partition;
        if (level->count < of->count && probe_partition_refines(of, level)) {
            return level;
        }
    }
    return NULL;
}

bool probe_sets_insert(struct sets *sets, struct partition *partition, double share)
{
    size_t place = 0;
    for (size_t i = 0; i < sets->count; i++) {
        const struct partition *other = &sets->levels[i].partition;
        bool inside = probe_partition_refines(other, partition);
        bool around = probe_partition_refines(partition, other);
        if (inside == around || (around && sets->levels[i].loose)) {
            return false;
        }
        place = inside ? i + 1 : place;
    }
    if (sets->count == sets->most_levels) {
        return false;
    }
    memmove(&sets->levels[place + 1], &sets->levels[place],
            (sets->count - place) * sizeof *sets->levels);
    sets->levels[place] =
        (struct domain){.partition = TAKE(*partition), .of_pairs = -1, .share = share};
    sets->count++;
    for (size_t i = place + 1; i < sets->count; i++) {
        sets->levels[i].doubted = sets->levels[i].of_pairs < 0;
    }
    return true;
}

static void drop_level(struct sets *sets, size_t index)
{
    probe_partition_free(&sets->levels[index].partition);
    sets->count--;
    memmove(&sets->levels[index], &sets->levels[index + 1],
            (sets->count - index) * sizeof *sets->levels);
}

void probe_sets_drop_parts(struct sets *sets, const struct partition *of)
{
    const size_t largest = probe_partition_largest(of);
    for (size_t i = sets->count; i > 0; i--) {
        const struct partition *level = &sets->levels[i - 1].partition;
        if (level->count > of->count && probe_partition_refines(level, of) &&
            probe_partition_largest(level) == largest) {
            drop_level(sets, i - 1);
        }
    }
}

/* A few threads of cores may be known by their pair, or be the only ones that are declared; then
 * those of all come in their place. */
int probe_sets_adopt_cores(struct sets *sets, const struct partition *of, double share_of_two)
{
    struct partition cores;
    bool more = sets->cores.count == sets->pus->count ||
                (of->count < sets->cores.count && probe_partition_refines(&sets->cores, of) &&
                 probe_partition_largest(of) == 2);
    if (share_of_two > one_core_share || !more) {
        return 0;
    }
    TRY(probe_partition_copy(of, &cores));
    probe_partition_free(&sets->cores);
    sets->cores = cores;
    sets->adopted = true;
    return 0;
}

/* -- the profile's form -- */

/* Levels that pairs gave. */
static int take_levels(struct sets *sets, const struct profile_memory *memory)
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

/* The first unit of several units of what lies inside; where there is none, of several PUs. */
static uint32_t first_group(const struct sets *sets, const struct partition *of)
{
    const struct partition *inner = probe_sets_inner_of(sets, of);
    uint32_t several = of->count;
    for (uint32_t unit = 0; unit < of->count; unit++) {
        const size_t pu = of->first[unit], size = probe_partition_size(of, pu);
        if (size > probe_partition_size(inner, pu)) {
            return unit;
        }
        several = several == of->count && size > 1 ? unit : several;
    }
    return several < of->count ? several : 0;
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
static int measure_domain_scaling(const struct sets *sets, size_t index,
                                  const struct profile_memory *memory,
                                  struct profile_memory_level *out)
{
    const struct partition *of = &sets->levels[index].partition;
    FREED struct partition *inner = calloc(index + 1, sizeof *inner); /* not owned */
    const size_t first = of->first[first_group(sets, of)];
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
    TRY(measure_domain_scaling(sets, index, memory, out));
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

/* Levels of pairs move over, those of sets come between them, with their curves. */
static int assemble_levels(struct sets *sets, struct probe_memory *found)
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

/* -- all of it -- */

/* The inner ones first; of equally many units those that come first, as probe_memory_sets() has
 * them. */
static void sort_by_units(struct partitions *candidates)
{
    struct partition *of = candidates->of;
    for (size_t i = 1; i < candidates->count; i++) {
        for (size_t k = i; k > 0 && of[k - 1].count < of[k].count; k--) {
            const struct partition inner = of[k];
            of[k] = of[k - 1];
            of[k - 1] = inner;
        }
    }
}

static bool crosses(const struct partition *one, const struct partition *other)
{
    return !probe_partition_refines(one, other) && !probe_partition_refines(other, one);
}

/* Groups that cross a measured level are no domains, whatever is declared, and neither are domains
 * that are put together of them. `known`: they
 * are a level. */
static bool nests(const struct sets *sets, const struct partition *of, bool *known)
{
    const bool cores = sets->adopted && of->count == sets->cores.count;
    bool nested =
        (cores || of->count < sets->cores.count) && probe_partition_refines(&sets->cores, of);
    *known = nested && cores;
    for (size_t i = 0; nested && i < sets->count; i++) {
        const struct partition *level = &sets->levels[i].partition;
        const bool inside = probe_partition_refines(level, of),
                   around = probe_partition_refines(of, level);
        nested = inside || around;
        *known |= inside && around;
    }
    return nested;
}

/* A level of one kind of cores leaves the PUs of the others ungrouped. Groups of such PUs do not
 * cross it, but are not tried together with those inside of it either. */
static int leave_out_unsaid(const struct partition *level, struct partition *candidate)
{
    FREED bool *said = calloc(candidate->count, sizeof *said);
    TRY(said ? 0 : -ENOMEM);
    for (size_t i = 0; i < level->pus; i++) {
        said[candidate->unit[i]] |= probe_partition_size(level, i) > 1;
    }
    return probe_partition_dissolve(candidate, said);
}

static int try_nested(struct sets *sets, const struct partition *of)
{
    FREED_BY(probe_partition_free) struct partition some = {0};
    bool known;
    if (of->count < 2) {
        return 0;
    }
    TRY(probe_partition_copy(of, &some));
    for (size_t i = 0; i < sets->count; i++) {
        const struct partition *level = &sets->levels[i].partition;
        TRY(crosses(level, &some) ? leave_out_unsaid(level, &some) : 0);
    }
    return nests(sets, &some, &known) && !known ? probe_sets_try(sets, &some) : 0;
}

/* Is the candidate the one before it once more? Caches, messages and nodes often say the same. */
static bool is_again(const struct partition *candidates, size_t i)
{
    return i > 0 && probe_partition_refines(&candidates[i - 1], &candidates[i]) &&
           probe_partition_refines(&candidates[i], &candidates[i - 1]);
}

/* Tries the candidates; `search`: each is the units of a search, too. */
static int try_all(struct sets *sets, const struct partitions *candidates, bool search)
{
    for (size_t i = 0; i < candidates->count && !probe_late(sets->probe); i++) {
        const struct partition *of = &candidates->of[i];
        bool known;
        if (is_again(candidates->of, i)) {
            continue;
        }
        TRY(try_nested(sets, of));
        TRY(search && nests(sets, of, &known) ? probe_sets_search(sets, of) : 0);
    }
    return 0;
}

/* In the candidates, then around the levels of pairs, where larger domains may be hidden. */
static int search_all(struct sets *sets, const struct partitions *candidates)
{
    TRY(try_all(sets, candidates, true));
    for (size_t i = 0; i < sets->count && !probe_late(sets->probe); i++) {
        const struct domain *level = &sets->levels[i];
        const bool open = level->of_pairs >= 0 && !probe_sets_outer_of(sets, &level->partition);
        TRY(open ? probe_sets_search(sets, &level->partition) : 0);
    }
    return 0;
}

/* All PUs may be one domain. */
static int try_machine(struct sets *sets)
{
    FREED_BY(probe_partition_free) struct partition all = {0};
    TRY(probe_partition_one(sets->pus->count, &all));
    return probe_sets_try(sets, &all);
}

/* The first group of several parts that is not all of the one around; of->count: there is none. */
static uint32_t own_group(const struct partition *inner, const struct partition *of,
                          const struct partition *outer)
{
    uint32_t unit = 0;
    for (; unit < of->count; unit++) {
        const size_t pu = of->first[unit], size = probe_partition_size(of, pu);
        if (probe_partition_size(inner, pu) < size && size < probe_partition_size(outer, pu)) {
            break;
        }
    }
    return unit;
}

/* Does the level lose nothing beyond what the domains inside lose, which were found later, or are
 * others of the domain around left as little by some of its own as these leave one another? */
static int is_shadow(struct sets *sets, const struct domain *level, bool *shadow)
{
    const struct partition *of = &level->partition, *outer = probe_sets_outer_of(sets, of),
                           *inner = probe_sets_inner_of(sets, of);
    const uint32_t unit = outer ? own_group(inner, of, outer) : of->count;
    double share = 0, least = level->doubted ? 1 : 0;
    bool all, none = true;
    for (uint32_t u = 0; level->doubted && u < of->count; u++) {
        TRY(probe_sets_loss(sets, inner, of, u, &share));
        least = fmin(least, share);
    }
    TRY(unit < of->count ? probe_sets_members(sets, of, unit, outer, &all, &none) : 0);
    *shadow = least >= PROBE_MEMORY_COLLISION || !none;
    return 0;
}

/* Levels that are only another's shadow go, the inner ones first. */
static int prune(struct sets *sets)
{
    for (size_t i = 0; i < sets->count && !probe_late(sets->probe);) {
        bool shadow = false;
        TRY(sets->levels[i].loose ? 0 : is_shadow(sets, &sets->levels[i], &shadow));
        if (shadow && !probe_late(sets->probe)) {
            drop_level(sets, i);
        } else {
            i++;
        }
    }
    return 0;
}

/* Known domains keep the searches inside of them, which hold fewer units then, so that candidates
 * come first. Where a pair collides that nothing declared explains, the PUs themselves show the
 * levels. */
static int measure_domains(struct sets *sets, struct partitions *candidates)
{
    sort_by_units(candidates);
    TRY(try_all(sets, candidates, false));
    TRY(sets->outliers ? probe_sets_search(sets, &sets->cores) : 0);
    TRY(search_all(sets, candidates));
    /* a link may be hidden inside of a domain, unless pairs show what lies inside */
    if (!sets->outliers && (sets->count == 0 || sets->levels[0].of_pairs < 0)) {
        TRY(probe_sets_search(sets, &sets->cores));
        TRY(sets->count > 0 ? try_all(sets, candidates, false) : 0);
    }
    TRY(probe_late(sets->probe) ? 0 : try_machine(sets));
    return prune(sets);
}

static int start_sets(struct sets *sets, const struct profile_memory *memory, size_t candidates)
{
    const struct profile_class *declared = sets->probe->declared;
    sets->most_levels = memory->level_count + 2 * candidates + 4;
    sets->levels = calloc(sets->most_levels, sizeof *sets->levels);
    sets->alone = calloc(sets->pus->count, sizeof *sets->alone);
    TRY(sets->levels && sets->alone ? 0 : -ENOMEM);
    /* Where something else is declared than there is, each PU is for itself. */
    const bool told = declared && !sets->outliers;
    TRY(probe_partition_make(sets->pus, told ? &declared->cores : NULL, &sets->cores));
    return take_levels(sets, memory);
}

static void stop(struct sets *sets)
{
    for (size_t i = 0; i < sets->count; i++) {
        probe_partition_free(&sets->levels[i].partition);
    }
    probe_partition_free(&sets->cores);
    free(sets->levels);
    free(sets->alone);
}

/* Do pairs of PUs of one declared core get, each of the two, what one gets alone? Threads of a core
 * do not: their pairs collide. One pair that does, or none that was measured, leaves the cores. */
static bool cores_are_clear(const struct sets *sets, const struct profile_memory *memory)
{
    const struct profile_set *pus = sets->pus;
    const struct partition *cores = &sets->cores;
    size_t clear = 0, colliding = 0;
    for (size_t i = 0; i < memory->pair_rate_count; i++) {
        const struct profile_pair_figure *pair = &memory->pair_rates[i];
        const uint32_t core = cores->unit[profile_set_position(pus, pair->a)];
        const bool same = core == cores->unit[profile_set_position(pus, pair->b)];
        const bool collide = probe_memory_collides(pair->value, memory->reference_bytes_per_s);
        clear += same && !collide;
        colliding += same && collide;
    }
    return clear > 0 && colliding == 0;
}

/* Measured groups may cross the declared threads of cores, or pairs may show that those do not
 * share a core: then each PU is a core of its own, unless pairs show other cores. */
static int settle_cores(struct sets *sets, const struct profile_memory *memory,
                        const struct partitions *candidates)
{
    const struct domain *pairs = sets->count && !sets->levels->loose ? sets->levels : NULL;
    bool none =
        (pairs && crosses(&sets->cores, &pairs->partition)) || cores_are_clear(sets, memory);
    for (size_t i = 0; i < candidates->count; i++) {
        none |= crosses(&sets->cores, &candidates->of[i]);
    }
    if (none) {
        probe_partition_free(&sets->cores);
        TRY(probe_partition_make(sets->pus, NULL, &sets->cores));
    }
    return pairs && probe_partition_largest(&pairs->partition) == 2
               ? probe_sets_adopt_cores(sets, &pairs->partition, pairs->share)
               : 0;
}

static int find_levels(struct sets *sets, const struct profile_relation *const *candidates,
                       size_t count, const struct profile_memory *memory)
{
    FREED_BY(probe_partitions_free)
    struct partitions made = {.of = calloc(count + 1, sizeof *made.of)};
    TRY(made.of ? start_sets(sets, memory, count) : -ENOMEM);
    for (size_t i = 0; i < count; i++) {
        if (candidates[i]->group_count > 0 && candidates[i]->pair_count == 0) {
            TRY(probe_partition_make(sets->pus, candidates[i], &made.of[made.count++]));
        }
    }
    TRY(settle_cores(sets, memory, &made));
    return measure_domains(sets, &made);
}

int probe_memory_sets(struct probe *probe, const struct profile_relation *const *candidates,
                      size_t count, struct probe_memory *found, struct servet_error *error)
{
    FREED_BY(stop)
    struct sets sets = {.probe = probe,
                        .pus = &probe->machine->pus,
                        .bytes = found->array_bytes,
                        .at_once = probe_machine_at_once(probe->machine),
                        .outliers = found->outliers,
                        .random = {++probe->seed}};
    int rc = sets.pus->count > 2 ? find_levels(&sets, candidates, count, &found->memory) : 1;
    bool late = rc == -ETIME, not_concurrent = rc == -EAGAIN; /* what was found until then stays */
    if (rc == 0 || late || not_concurrent) {
        rc = assemble_levels(&sets, found);
        not_concurrent |= rc == -EAGAIN;
        rc = rc == -EAGAIN ? 0 : rc;
    }
    if (rc == 0 && not_concurrent) {
        rc = probe_note_beside_others(&found->memory.quality, "sets of PUs not all measured");
    } else if (rc == 0 && late) {
        rc = probe_note(&found->memory.quality,
                        "sets of PUs not all measured: the budget was used up");
    }
    found->not_concurrent |= not_concurrent;
    found->searched = rc >= 0 && !found->not_concurrent && !late && !probe_late(probe);
    return probe_error(error, rc < 0 ? rc : 0, "measuring the memory bandwidth of sets of PUs");
}
