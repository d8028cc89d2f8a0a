/* Domains of memory that sets of workers show: candidates are compared packed and spread
 * (domains_declared.c), hidden ones searched for (domains_hidden.c), then the machine as a whole, and
 * levels that are only a larger one's shadow go; the method is in domains.h. */
#include "probes/memory/search.h"
#include "probes/pairs/stopping.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two hardware threads of a core get together little more than one, 0.5 to 0.55 of two cores. */
static const double one_core_share = 0.6;
enum { ALL_UNITS_MOST = 64 }; /* units whose sum is measured one after the other, at most */

/* -- levels -- */

/* 1: it is a level now and belongs to `sets`; 0: it is one already, or lies across one. */
int probe_sets_insert(struct sets *sets, const struct domain *domain)
{
    size_t place = 0;
    for (size_t i = 0; i < sets->count; i++) {
        const struct partition *other = &sets->levels[i].partition;
        bool inside = probe_partition_refines(other, &domain->partition);
        bool around = probe_partition_refines(&domain->partition, other);
        if (inside == around || (around && sets->levels[i].loose)) {
            return 0;
        }
        place = inside ? i + 1 : place;
    }
    if (sets->count == sets->most_levels) {
        return 0;
    }
    memmove(&sets->levels[place + 1], &sets->levels[place],
            (sets->count - place) * sizeof *sets->levels);
    sets->levels[place] = *domain;
    sets->count++;
    for (size_t i = place + 1; i < sets->count; i++) {
        sets->levels[i].doubted = sets->levels[i].of_pairs < 0;
    }
    return 1;
}

void probe_sets_drop(struct sets *sets, size_t index)
{
    probe_partition_free(&sets->levels[index].partition);
    sets->count--;
    memmove(&sets->levels[index], &sets->levels[index + 1],
            (sets->count - index) * sizeof *sets->levels);
}

/* Two PUs that get together what one gets alone are hardware threads of one core, or as good as
 * that: from now on one of them works. A few of them may be known by their pair, or be the only
 * ones that are declared; then those of all come in their place. */
int probe_sets_adopt_cores(struct sets *sets, const struct partition *of, double share_of_two)
{
    struct partition cores;
    bool more = sets->cores.count == sets->pus->count ||
                (of->count < sets->cores.count && probe_partition_refines(&sets->cores, of) &&
                 probe_partition_largest(of) == 2);
    if (share_of_two > one_core_share || !more) {
        return 0;
    }
    int rc = probe_partition_copy(of, &cores);
    if (rc == 0) {
        probe_partition_free(&sets->cores);
        sets->cores = cores;
        sets->adopted = true;
    }
    return rc;
}

/* -- the whole machine, and pruning -- */

/* Do the largest domains, or all cores, get together what they get one after the other? */
static int look_at_machine(struct sets *sets)
{
    const struct partition *top =
        sets->count ? &sets->levels[sets->count - 1].partition : &sets->cores;
    double sum = 0, all = 0, one;
    sets->first.count = 0;
    for (uint32_t u = 0; u < top->count; u++) {
        probe_sets_add_unit(sets, top, u, sets->pus->count, &sets->first);
    }
    if (top->count < 2 || top->count > ALL_UNITS_MOST || sets->first.count > sets->at_once) {
        return 0;
    }
    int rc = 0;
    for (uint32_t u = 0; rc == 0 && u < top->count; u++) {
        if (probe_late(sets->probe)) {
            return 0;
        }
        sets->first.count = 0;
        probe_sets_add_unit(sets, top, u, sets->pus->count, &sets->first);
        rc = probe_sets_total(sets, &sets->first, &one);
        sum += one;
    }
    sets->first.count = 0;
    for (uint32_t u = 0; u < top->count; u++) {
        probe_sets_add_unit(sets, top, u, sets->pus->count, &sets->first);
    }
    size_t rounds = 0;
    while (rc == 0 && rounds < REPEAT_MEDIAN_MOST && all < sets_overhead_share * sum &&
           (rounds < REPEAT_MEDIAN_LEAST || !probe_late(sets->probe))) {
        rc = probe_sets_total(sets, &sets->first, &one);
        all = fmax(all, one); /* disturbance only takes bandwidth away */
        rounds++;
    }
    if (rc < 0 || all >= sets_overhead_share * sum) {
        return rc;
    }
    struct domain machine = {.of_pairs = -1,
                             .share = all / sum,
                             .spread = -1,
                             .looked_at = 1,
                             .rounds = (uint32_t)rounds,
                             .workers = (uint32_t)sets->first.count};
    rc = probe_partition_one(sets->pus->count, &machine.partition);
    rc = rc < 0 ? rc : probe_sets_insert(sets, &machine);
    if (rc <= 0) {
        probe_partition_free(&machine.partition);
    }
    return rc < 0 ? rc : 0;
}

/* A group that is neither one of what lies inside nor one of what lies around; where there is none,
 * the first of several units. */
static uint32_t own_group(const struct sets *sets, const struct partition *of)
{
    const struct partition *outer = probe_sets_outer_of(sets, of);
    const uint32_t first = probe_sets_group_from(sets, of, 0);
    uint32_t unit = first;
    while (outer && !probe_sets_is_part(of, unit, outer)) {
        const uint32_t next = probe_sets_group_from(sets, of, unit + 1);
        if (next <= unit) {
            return first;
        }
        unit = next;
    }
    return unit;
}

/* Levels that lose nothing against others within the next larger one, or against all others where
 * they are doubted; of pairs, too: a few of them that speak for all may be the only ones of their
 * level. The inner ones first: by what they hold together others are spread. */
static int prune(struct sets *sets)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sets->count && !probe_late(sets->probe);) {
        struct domain *level = &sets->levels[i], again = {.share = 1};
        const struct partition *of = &level->partition;
        const uint32_t unit = own_group(sets, of);
        const bool asked = level->doubted || probe_sets_around(sets, of, unit);
        rc = asked ? probe_sets_look_at_group(sets, of, unit, &again) : 0;
        if (rc == 0 && again.rounds > 0 && again.share >= sets_overhead_share) {
            probe_sets_drop(sets, i);
        } else {
            i++;
        }
    }
    return rc;
}

/* -- all of it -- */

/* The inner ones first; of equally many units those that come first, as probe_memory_sets() has
 * them. */
static void sort_by_units(struct partition *candidates, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        for (size_t k = i; k > 0 && candidates[k - 1].count < candidates[k].count; k--) {
            const struct partition inner = candidates[k];
            candidates[k] = candidates[k - 1];
            candidates[k - 1] = inner;
        }
    }
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

/* Nobody says of any PUs that they have something in common, as virtual machines do. */
static bool is_flat(const struct profile_class *declared)
{
    bool flat = !declared || (declared->cores.group_count == 0 &&
                              declared->packages.group_count < 2 && declared->numa_count < 2);
    for (size_t i = 0; flat && declared && i < declared->cache_count; i++) {
        flat = declared->caches[i].sharing.group_count == 0;
    }
    return flat;
}

/* Nothing was found, or on a flat machine a domain with no candidate smaller than it: a link may be
 * hidden inside, of three cores at least, since a pair would have shown one of two. */
static bool cores_are_left(const struct sets *sets, const struct partition *candidates,
                           size_t count)
{
    const struct domain *innermost = sets->levels;
    bool left = sets->count == 0 || (innermost->of_pairs < 0 && is_flat(sets->probe->declared));
    for (size_t i = 0; left && sets->count > 0 && i < count; i++) {
        const struct partition *of = &candidates[i];
        left = of->count <= innermost->partition.count || of->count >= sets->cores.count;
    }
    return left;
}

/* Copies of a candidate that is looked at in two places, and of those that meet in it. */
static const double candidate_copies = 20;

/* The effort depends on the findings: so many candidates, and the cores where nothing divides
 * them. */
static void expect(struct sets *sets, const struct partition *candidates, size_t count, size_t left)
{
    const bool searched = !sets->odd && cores_are_left(sets, candidates, count);
    sets->ahead = candidate_copies * (double)left +
                  (searched ? PROBE_MEMORY_SEARCHED_COPIES * (double)sets->cores.count : 0);
}

/* A level of one kind of cores says nothing of the others' PUs, which it leaves ungrouped. Groups
 * of such PUs do not cross it, but are not tried with those inside of it either. */
static int leave_out_unsaid(const struct partition *level, struct partition *candidate)
{
    uint32_t *members = calloc(level->count, sizeof *members);
    bool *said = calloc(candidate->count, sizeof *said);
    int rc = members && said ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < level->pus; i++) {
        members[level->unit[i]]++;
    }
    for (size_t i = 0; rc == 0 && i < level->pus; i++) {
        said[candidate->unit[i]] |= members[level->unit[i]] > 1;
    }
    const bool nested =
        probe_partition_refines(level, candidate) || probe_partition_refines(candidate, level);
    rc = rc == 0 && !nested ? probe_partition_dissolve(candidate, said) : rc;
    free(members);
    free(said);
    return rc;
}

static int try_nested(struct sets *sets, const struct partition *of)
{
    struct partition some = {0};
    bool known;
    int rc = of->count > 1 ? probe_partition_copy(of, &some) : 1;
    for (size_t i = 0; rc == 0 && i < sets->count; i++) {
        rc = leave_out_unsaid(&sets->levels[i].partition, &some);
    }
    if (rc == 0 && nests(sets, &some, &known) && !known) {
        rc = probe_sets_try(sets, &some);
    }
    probe_partition_free(&some);
    return rc < 0 ? rc : 0;
}

/* Is the candidate the one before it once more? Caches, messages and nodes often say the same. */
static bool is_again(const struct partition *candidates, size_t i)
{
    return i > 0 && probe_partition_refines(&candidates[i - 1], &candidates[i]) &&
           probe_partition_refines(&candidates[i], &candidates[i - 1]);
}

static int measure(struct sets *sets, struct partition *candidates, size_t count)
{
    int rc = 0;
    expect(sets, candidates, count, count);
    sort_by_units(candidates, count);
    /* Known domains keep the searches inside of them, which hold fewer units then. */
    for (size_t i = 0; rc >= 0 && i < count && !probe_late(sets->probe); i++) {
        rc = is_again(candidates, i) ? 0 : try_nested(sets, &candidates[i]);
    }
    /* Where a pair collides that nothing declared explains, the PUs themselves show the levels. */
    rc = rc >= 0 && sets->odd ? probe_sets_search(sets, &sets->cores) : rc;
    for (size_t i = 0; rc >= 0 && i < count && !probe_late(sets->probe); i++) {
        if (is_again(candidates, i)) {
            continue;
        }
        expect(sets, candidates, count, count - i - 1);
        bool known;
        rc = try_nested(sets, &candidates[i]);
        rc = rc >= 0 && nests(sets, &candidates[i], &known)
                 ? probe_sets_search(sets, &candidates[i])
                 : rc;
    }
    for (size_t i = 0; rc >= 0 && i < sets->count; i++) {
        /* what lies around the levels of pairs */
        const struct domain *level = &sets->levels[i];
        bool alone = level->of_pairs >= 0 && !probe_sets_outer_of(sets, &level->partition) &&
                     !probe_late(sets->probe);
        rc = alone ? probe_sets_search(sets, &level->partition) : 0;
    }
    sets->ahead = 0;
    if (rc >= 0 && !sets->odd && !probe_late(sets->probe) &&
        cores_are_left(sets, candidates, count)) {
        rc = probe_sets_search(sets, &sets->cores);
    }
    rc = rc < 0 || probe_late(sets->probe) ? rc : look_at_machine(sets);
    return rc < 0 ? rc : prune(sets);
}

static int start(struct sets *sets, const struct profile_memory *memory, size_t candidates)
{
    static const struct profile_relation nothing;
    const struct profile_class *declared = sets->probe->declared;
    size_t n = sets->pus->count;
    sets->most_levels = memory->level_count + 2 * candidates + 4;
    sets->levels = calloc(sets->most_levels, sizeof *sets->levels);
    sets->first.at = calloc(n, sizeof *sets->first.at);
    sets->second.at = calloc(n, sizeof *sets->second.at);
    sets->both.at = calloc(2 * n, sizeof *sets->both.at);
    sets->ids = calloc(2 * n, sizeof *sets->ids);
    sets->rates = calloc(2 * n, sizeof *sets->rates);
    if (!sets->levels || !sets->first.at || !sets->second.at || !sets->both.at || !sets->ids ||
        !sets->rates) {
        return -ENOMEM;
    }
    /* Where something else is declared than there is, each PU is for itself. */
    const bool told = declared && !sets->odd;
    int rc = probe_partition_make(sets->pus, told ? &declared->cores : &nothing, &sets->cores);
    return rc < 0 ? rc : probe_sets_take_levels(sets, memory);
}

static void stop(struct sets *sets)
{
    for (size_t i = 0; i < sets->count; i++) {
        probe_partition_free(&sets->levels[i].partition);
    }
    probe_partition_free(&sets->cores);
    free(sets->levels);
    free(sets->first.at);
    free(sets->second.at);
    free(sets->both.at);
    free(sets->ids);
    free(sets->rates);
}

static bool crosses(const struct partition *one, const struct partition *other)
{
    return !probe_partition_refines(one, other) && !probe_partition_refines(other, one);
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

/* What was measured crosses what is declared as the threads of cores, or says that those do not
 * share one: then each PU is for itself, or those are cores that their pairs showed. Of what else
 * is declared nothing crosses them. */
static int settle_cores(struct sets *sets, const struct profile_memory *memory,
                        const struct partition *candidates, size_t count)
{
    static const struct profile_relation nothing;
    const struct domain *pairs = sets->count && !sets->levels->loose ? sets->levels : NULL;
    bool none =
        (pairs && crosses(&sets->cores, &pairs->partition)) || cores_are_clear(sets, memory);
    for (size_t i = 0; i < count; i++) {
        none |= crosses(&sets->cores, &candidates[i]);
    }
    int rc = 0;
    if (none) {
        probe_partition_free(&sets->cores);
        rc = probe_partition_make(sets->pus, &nothing, &sets->cores);
    }
    return rc == 0 && pairs && probe_partition_largest(&pairs->partition) == 2
               ? probe_sets_adopt_cores(sets, &pairs->partition, pairs->share)
               : rc;
}

int probe_memory_sets(struct probe *probe, const struct profile_relation *const *candidates,
                      size_t count, struct probe_memory *found, struct servet_error *error)
{
    struct sets sets = {.probe = probe,
                        .pus = &probe->machine->pus,
                        .bytes = found->array_bytes,
                        .at_once = probe_machine_at_once(probe->machine),
                        .odd = found->odd,
                        .random = {++probe->seed}};
    struct partition *partitions = calloc(count + 1, sizeof *partitions);
    size_t made = 0;
    int rc = partitions && sets.pus->count > 2 ? 0 : partitions ? 1 : -ENOMEM;
    rc = rc != 0 ? rc : start(&sets, &found->memory, count);
    for (size_t i = 0; i < count && rc == 0; i++) {
        bool usable = candidates[i]->group_count > 0 && candidates[i]->pair_count == 0;
        rc = usable ? probe_partition_make(sets.pus, candidates[i], &partitions[made]) : 0;
        made += usable && rc == 0;
    }
    rc = rc != 0 ? rc : settle_cores(&sets, &found->memory, partitions, made);
    rc = rc != 0 ? rc : measure(&sets, partitions, made);
    const int end = rc == -EAGAIN || rc == -ETIME ? rc : 0; /* what was found until then stays */
    rc = rc != 0 && end == 0 ? rc : probe_sets_assemble(&sets, found);
    const bool late = end == -ETIME, apart = end == -EAGAIN || rc == -EAGAIN;
    rc = rc == -EAGAIN ? 0 : rc;
    if (rc == 0 && (apart || late)) {
        rc = apart
                 ? probe_note_beside_others(&found->memory.quality, "sets of PUs not all measured")
                 : probe_note(&found->memory.quality,
                              "sets of PUs not all measured: the budget was used up");
    }
    found->apart |= apart;
    found->searched = rc >= 0 && !found->apart && !late && !probe_late(probe);
    for (size_t i = 0; i < made; i++) {
        probe_partition_free(&partitions[i]);
    }
    free(partitions);
    stop(&sets);
    return rc < 0 ? probe_error(error, rc, "measuring the memory bandwidth of sets of PUs") : 0;
}
