/* Domains that nobody declares, by what a unit adds to others that are at work already.
 *
 * Units that add less than 0.8 of what they get alone to one another are behind one link, whatever
 * the topology says; where no two do, a smallest set that leaves nothing for a further unit is
 * looked for, and every unit is tried beside it. */
#include "probes/memory/search.h"
#include "probes/pairs/stopping.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Two units that fill one link get together 0.9 of what they get apart when one adds 0.8 to the
 * other. */
static const double pair_gain = 0.8;

/* Two pairs that gain so differently are not of one domain only: buses in a cell, links in a
 * node. */
static const double other_domain = 0.25;

/* Units of a known group are one domain: the largest of them speaks for all. */
static bool speaks(struct sets_search *search, size_t i)
{
    struct sets *sets = search->sets;
    size_t mine = probe_sets_cores_of(sets, search->units, search->members[i]);
    for (size_t other = 0; other < search->count; other++) {
        bool same = search->group[other] == search->group[i] && other != i;
        size_t theirs = same ? probe_sets_cores_of(sets, search->units, search->members[other]) : 0;
        if (theirs > mine || (theirs == mine && same && other < i)) {
            return false;
        }
    }
    return true;
}

/* Which of the others, alone or one for each known group, collide with the unit, two at a time; how
 * many do. */
static int find_partners(struct sets_search *search, size_t one, size_t *partners)
{
    bool *busy = calloc(search->count, sizeof *busy);
    int rc = busy ? 0 : -ENOMEM;
    *partners = 0;
    for (size_t i = 0; rc == 0 && i < search->count && !probe_late(search->sets->probe); i++) {
        double gain = 1;
        if (search->group[i] == search->group[one] || !speaks(search, i)) {
            continue;
        }
        busy[i] = true;
        rc = probe_sets_gain_beside(search, busy, one, search->limit, &gain);
        busy[i] = false;
        if (rc == 0 && gain < search->limit) {
            probe_sets_join(search, one, i, gain);
            ++*partners;
        }
    }
    free(busy);
    return rc;
}

/* The first unit and a random second scout: where neither has a partner, nobody is asked. */
static int search_pairs(struct sets_search *search, bool *any)
{
    size_t partners = 0;
    *any = false;
    int rc = find_partners(search, 0, &partners);
    if (rc == 0 && !partners && search->count > 2 && !probe_late(search->sets->probe)) {
        size_t scout = 1 + random_below(&search->sets->random, search->count - 1);
        rc = find_partners(search, scout, &partners);
    }
    *any = partners > 0;
    for (size_t i = 0; rc == 0 && *any && i < search->count; i++) {
        rc = search->known[i] ? 0 : find_partners(search, i, &partners);
    }
    return rc;
}

static int search_units(struct sets_search *search, bool pairs, bool domains, bool *any)
{
    int rc = pairs ? search_pairs(search, any) : 0;
    rc = rc == 0 && domains && !*any ? probe_sets_search_domains(search) : rc;
    for (size_t i = 0; i < search->count; i++) {
        *any = *any || search->group[i] != i;
    }
    return rc;
}

/* A pass over all units: what it looks for, and what it found. */
struct pass {
    size_t fill;    /* units that filled the last domain, as in struct sets_search */
    size_t workers; /* of each unit */
    const struct partition *units, *outer; /* outer NULL: the machine */
    double limit;                          /* as in struct sets_search */
    double worst, best;
    bool domains; /* cores inside of outer domains are searched for those of three and more */
};

/* All units are of one group: the outer domain, which is known. */
static bool is_all(const struct sets_search *search)
{
    bool all = true;
    for (size_t i = 1; all && i < search->count; i++) {
        all = search->group[i] == search->group[0];
    }
    return all;
}

/* Looks among the units of one outer domain, and merges in `merged` those that belong together. */
static int search_domain(struct sets *sets, struct pass *pass, uint32_t outer_unit,
                         struct domain *merged)
{
    const struct partition *units = pass->units, *outer = pass->outer;
    struct sets_search search = {.sets = sets,
                                 .units = units,
                                 .workers = pass->workers,
                                 .fill = pass->fill,
                                 .limit = pass->limit,
                                 .worst = 1,
                                 .best = -1};
    size_t room = units->count + 1;
    search.members = malloc(room * sizeof *search.members);
    search.group = malloc(room * sizeof *search.group);
    search.known = calloc(room, sizeof *search.known);
    search.alone = calloc(room, sizeof *search.alone);
    int rc = search.members && search.group && search.known && search.alone ? 0 : -ENOMEM;
    for (uint32_t u = 0; rc == 0 && u < units->count; u++) {
        if (!outer || outer->unit[units->first[u]] == outer_unit) {
            search.group[search.count] = (uint32_t)search.count;
            search.members[search.count++] = u;
        }
    }
    const bool of_cores = units->count == sets->cores.count;
    bool any = false;
    if (rc == 0 && search.count > 2) {
        rc = search_units(&search, !of_cores, !outer || (of_cores && pass->domains), &any);
        any = any && !(outer && is_all(&search));
    }
    pass->fill = search.fill;
    for (size_t i = 0; rc == 0 && any && i < search.count; i++) {
        if (search.group[i] != i) {
            probe_partition_merge(
                &merged->partition, merged->partition.unit[units->first[search.members[i]]],
                merged->partition.unit[units->first[search.members[search.group[i]]]]);
        }
    }
    merged->share = fmin(merged->share, (1 + search.worst) / 2);
    pass->worst = fmin(pass->worst, search.worst);
    pass->best = fmax(pass->best, search.best);
    free(search.members);
    free(search.group);
    free(search.known);
    free(search.alone);
    return rc;
}

/* So few of a unit's cores fill its own link that more of them would only take longer. */
static const double fills = 0.97;

/* How many of the unit's cores, from `workers` on, get what all of them get together. */
static int workers_that_fill(struct sets *sets, const struct partition *units, uint32_t unit,
                             size_t *workers)
{
    const size_t cores = probe_sets_cores_of(sets, units, unit);
    double all, some = 0;
    sets->first.count = 0;
    probe_sets_add_unit(sets, units, unit, cores, &sets->first);
    int rc = *workers < cores ? probe_sets_total_of(sets, &sets->first, &all) : 0;
    while (rc == 0 && *workers < cores) {
        sets->first.count = 0;
        probe_sets_add_unit(sets, units, unit, *workers, &sets->first);
        rc = probe_sets_total_of(sets, &sets->first, &some);
        if (rc == 0 && some > fills * all) {
            return 0;
        }
        *workers *= 2;
    }
    return rc;
}

/* That of the first unit of several cores and of a random second one; of a machine that is not
 * large all cores. */
static int choose_workers(struct sets *sets, const struct partition *units, size_t *workers)
{
    if (!probe_memory_is_large(sets->probe)) {
        *workers = sets->pus->count;
        return 0;
    }
    const uint32_t one = probe_sets_group_from(sets, units, 0);
    const uint32_t other = probe_sets_group_from(
        sets, units, one + 1 + (uint32_t)random_below(&sets->random, units->count - 1));
    *workers = 1;
    int rc = workers_that_fill(sets, units, one, workers);
    return rc < 0 ? rc : workers_that_fill(sets, units, other, workers);
}

/* 1: the units were merged to a level; 0: nothing is hidden between them and what is known. */
static int search_pass(struct sets *sets, struct pass *pass)
{
    struct domain merged = {.of_pairs = -1, .share = 1, .spread = -1};
    pass->outer = probe_sets_outer_of(sets, pass->units);
    const uint32_t outers = pass->outer ? pass->outer->count : 1;
    const bool of_cores = pass->units->count == sets->cores.count;
    const uint32_t second =
        of_cores && outers > 1 ? 1 + (uint32_t)random_below(&sets->random, outers - 1) : 0;
    int rc = probe_partition_copy(pass->units, &merged.partition);
    for (uint32_t i = 0; rc == 0 && i < outers; i++) {
        const uint32_t outer_unit = second == 0 ? i : i == 1 ? second : i == second ? 1 : i;
        pass->domains = i < 2 || merged.partition.count < pass->units->count;
        rc = search_domain(sets, pass, outer_unit, &merged);
    }
    merged.looked_at = merged.partition.count;
    merged.rounds = REPEAT_MEDIAN_LEAST;
    rc = rc == 0 && merged.partition.count < pass->units->count ? probe_sets_insert(sets, &merged)
                                                                : rc;
    if (rc <= 0) {
        probe_partition_free(&merged.partition);
    }
    return rc;
}

/* Where the pairs of the merged units differ much, a second pass looks for smaller domains in
 * them. */
static int search_hidden(struct sets *sets, const struct partition *units)
{
    struct pass pass = {.units = units, .limit = pair_gain, .worst = 1, .best = -1};
    int rc = choose_workers(sets, units, &pass.workers);
    rc = rc < 0 ? rc : search_pass(sets, &pass);
    if (rc > 0 && pass.best > pass.worst + other_domain && !probe_late(sets->probe)) {
        struct pass inner = {.units = units,
                             .workers = pass.workers,
                             .limit = (pass.best + pass.worst) / 2,
                             .worst = 1,
                             .best = -1};
        int more = search_pass(sets, &inner);
        rc = more < 0 ? more : rc;
    }
    return rc;
}

/* Units, then what they were merged to, until nothing more is found. */
int probe_sets_search(struct sets *sets, const struct partition *units)
{
    struct partition now = {0};
    int rc = probe_partition_copy(units, &now), found = 1;
    while (rc == 0 && found && now.count > 2 && !probe_late(sets->probe)) {
        found = search_hidden(sets, &now);
        rc = found < 0 ? found : 0;
        const struct partition *outer = found > 0 ? probe_sets_outer_of(sets, &now) : NULL;
        if (outer) {
            probe_partition_free(&now);
            rc = probe_partition_copy(outer, &now);
        }
    }
    probe_partition_free(&now);
    return rc;
}
