/* Domains that nobody declares, by what a unit adds to others that are at work already.
 *
 * Units that add less than 0.8 of what they get alone to one another are behind one link, whatever
 * the topology says; where no two do, a smallest set that leaves nothing for a further unit is
 * looked for, and every unit is tried beside it. */
#include "probes/pairs/sets.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two units that fill one link get together 0.9 of what they get apart when one adds 0.8 to the
 * other. */
static const double pair_gain = 0.8;

/* Units of one outer domain, and which of them were found to belong together. */
struct search {
    struct sets *sets;
    const struct partition *units;
    uint32_t *members; /* unit numbers */
    size_t count;
    uint32_t *group; /* by position in `members`: one of its group; at first itself */
    bool *known;
    double limit;       /* of the gain of a pair; less is a collision */
    double worst, best; /* gains that groups came of */
};

/* Two pairs that gain so differently are not of one domain only: buses in a cell, links in a
 * node. */
static const double other_domain = 0.25;

static int gain_beside(struct search *search, const bool *busy, size_t one, double *gain)
{
    struct sets *sets = search->sets;
    sets->first.count = sets->second.count = 0;
    for (size_t i = 0; i < search->count; i++) {
        if (busy[i] && i != one) {
            probe_sets_add_unit(sets, search->units, search->members[i], sets->pus->count,
                                &sets->first);
        }
    }
    probe_sets_add_unit(sets, search->units, search->members[one], sets->pus->count, &sets->second);
    return sets->first.count > 0 ? probe_sets_gain(sets, gain) : (*gain = 1, 0);
}

/* Makes one group of the two units' groups. */
static void join(struct search *search, size_t first, size_t other, double gain)
{
    uint32_t from = search->group[other], to = search->group[first];
    for (size_t i = 0; i < search->count; i++) {
        search->group[i] = search->group[i] == from ? to : search->group[i];
    }
    search->known[first] = search->known[other] = true;
    search->worst = fmin(search->worst, gain);
    search->best = fmax(search->best, gain);
}

/* Units of a known group are one domain: the largest of them speaks for all. */
static bool speaks(struct search *search, size_t i)
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
static int find_partners(struct search *search, size_t one, size_t *partners)
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
        rc = gain_beside(search, busy, one, &gain);
        busy[i] = false;
        if (rc == 0 && gain < search->limit) {
            join(search, one, i, gain);
            ++*partners;
        }
    }
    free(busy);
    return rc;
}

/* The first unit and a random second scout: where neither has a partner, nobody is asked. */
static int search_pairs(struct search *search, bool *any)
{
    size_t partners = 0;
    *any = false;
    int rc = find_partners(search, 0, &partners);
    if (rc == 0 && !partners && search->count > 2) {
        size_t scout = 1 + random_below(&search->sets->random, search->count - 1);
        rc = find_partners(search, scout, &partners);
    }
    *any = partners > 0;
    for (size_t i = 0; rc == 0 && *any && i < search->count; i++) {
        rc = search->known[i] ? 0 : find_partners(search, i, &partners);
    }
    return rc;
}

/* Tries to do without `chunk` of the busy units, the farthest in number first. */
static int do_without(struct search *search, size_t one, size_t chunk, bool *busy, double *gain)
{
    const size_t most = search->count;
    bool *fewer = malloc(most * sizeof *fewer);
    int rc = fewer ? 0 : -ENOMEM;
    for (size_t distance = most - 1; rc == 0 && distance > 0 && !probe_late(search->sets->probe);) {
        size_t taken = 0;
        double without = 1;
        memcpy(fewer, busy, most * sizeof *fewer);
        for (; distance > 0 && taken < chunk; distance--) {
            const size_t ends[] = {one + distance, one >= distance ? one - distance : most};
            for (size_t e = 0; e < 2; e++) {
                taken += ends[e] < most && fewer[ends[e]];
                fewer[ends[e] < most ? ends[e] : one] = false;
            }
        }
        rc = taken ? gain_beside(search, fewer, one, &without) : 0;
        if (rc == 0 && taken && without < sets_saturated_gain) {
            memcpy(busy, fewer, most * sizeof *busy);
            *gain = without;
        }
    }
    free(fewer);
    return rc;
}

/* Shrinks the set of busy units as long as it leaves less than half for the one. Several sets may
 * be smallest, of a link and of the socket around it; PUs with near numbers mostly are neighbours,
 * so that these are kept, which finds the link first. */
static int shrink(struct search *search, size_t one, bool *busy, double *gain)
{
    size_t left = 0;
    int rc = 0;
    for (size_t i = 0; i < search->count; i++) {
        left += busy[i];
    }
    for (size_t chunk = (left + 1) / 2; rc == 0 && chunk > 0;
         chunk = chunk > 1 ? (chunk + 1) / 2 : 0) {
        rc = do_without(search, one, chunk, busy, gain);
    }
    return rc;
}

/* The unit's domain, by a smallest set of others that leaves it little, and every other unit in its
 * place. Pairs have been tried: so it is of three units at least. */
static int find_domain(struct search *search, size_t one)
{
    bool *busy = calloc(search->count, sizeof *busy);
    double gain = 1, here;
    if (!busy) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < search->count; i++) {
        busy[i] = i != one && !search->known[i];
    }
    int rc = gain_beside(search, busy, one, &gain);
    bool limited = rc == 0 && gain < sets_saturated_gain;
    rc = limited ? shrink(search, one, busy, &gain) : rc;
    const double inside = (gain + 1) / 2;
    search->known[one] = true;
    for (size_t i = 0; rc == 0 && limited && i < search->count; i++) {
        if (i == one || (search->known[i] && !busy[i])) {
            continue;
        }
        here = gain;
        rc = busy[i] || probe_late(search->sets->probe) ? 0 : gain_beside(search, busy, i, &here);
        if (rc == 0 && here < inside) {
            join(search, one, i, gain);
        }
    }
    free(busy);
    return rc;
}

static int search_units(struct search *search, bool pairs, bool domains, bool *any)
{
    int rc = pairs ? search_pairs(search, any) : 0;
    for (size_t i = 0; rc == 0 && domains && !*any && i < search->count; i++) {
        rc = search->known[i] ? 0 : find_domain(search, i);
    }
    for (size_t i = 0; i < search->count; i++) {
        *any = *any || search->group[i] != i;
    }
    return rc;
}

/* A pass over all units: what it looks for, and what it found. */
struct pass {
    const struct partition *units, *outer; /* outer NULL: the machine */
    double limit;                          /* as in struct search */
    double worst, best;
};

/* Looks among the units of one outer domain, and merges in `merged` those that belong together. */
static int search_domain(struct sets *sets, struct pass *pass, uint32_t outer_unit,
                         struct domain *merged)
{
    const struct partition *units = pass->units, *outer = pass->outer;
    struct search search = {
        .sets = sets, .units = units, .limit = pass->limit, .worst = 1, .best = -1};
    size_t room = units->count + 1;
    search.members = malloc(room * sizeof *search.members);
    search.group = malloc(room * sizeof *search.group);
    search.known = calloc(room, sizeof *search.known);
    int rc = search.members && search.group && search.known ? 0 : -ENOMEM;
    for (uint32_t u = 0; rc == 0 && u < units->count; u++) {
        if (!outer || outer->unit[units->first[u]] == outer_unit) {
            search.group[search.count] = (uint32_t)search.count;
            search.members[search.count++] = u;
        }
    }
    bool any = false, of_cores = units->count == sets->cores.count;
    if (rc == 0 && search.count > 2) {
        rc = search_units(&search, !of_cores, !outer, &any);
    }
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
    return rc;
}

/* 1: the units were merged to a level; 0: nothing is hidden between them and what is known. */
static int search_pass(struct sets *sets, struct pass *pass)
{
    struct domain merged = {.of_pairs = -1, .share = 1, .spread = -1};
    pass->outer = probe_sets_outer_of(sets, pass->units);
    int rc = probe_partition_copy(pass->units, &merged.partition);
    for (uint32_t o = 0; rc == 0 && o < (pass->outer ? pass->outer->count : 1); o++) {
        rc = search_domain(sets, pass, o, &merged);
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
    int rc = search_pass(sets, &pass);
    if (rc > 0 && pass.best > pass.worst + other_domain && !probe_late(sets->probe)) {
        struct pass inner = {
            .units = units, .limit = (pass.best + pass.worst) / 2, .worst = 1, .best = -1};
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
