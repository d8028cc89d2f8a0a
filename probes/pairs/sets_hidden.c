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
    size_t workers;  /* of each unit */
    uint32_t *group; /* by position in `members`: one of its group; at first itself */
    bool *known;
    double *alone;      /* by position: what the unit gets; 0: not known yet */
    double before;      /* what the busy units of a domain get together; 0: they change */
    size_t fill;        /* units that filled the last domain that was found; 0: none was */
    double limit;       /* of the gain of a pair; less is a collision */
    double worst, best; /* gains that groups came of */
};

/* Two pairs that gain so differently are not of one domain only: buses in a cell, links in a
 * node. */
static const double other_domain = 0.25;

static void add_unit(const struct search *search, size_t position, struct workers *out)
{
    probe_sets_add_unit(search->sets, search->units, search->members[position],
                        out->count + search->workers, out);
}

/* The best of two looks: disturbance only takes bandwidth away. */
static int total_of(struct sets *sets, const struct workers *workers, double *bytes_per_s)
{
    double second = 0;
    int rc = probe_sets_total(sets, workers, bytes_per_s);
    rc = rc < 0 ? rc : probe_sets_total(sets, workers, &second);
    *bytes_per_s = fmax(*bytes_per_s, second);
    return rc;
}

/* sets->first: the busy units but the one; how many. */
static size_t put_busy(struct search *search, const bool *busy, size_t one, size_t *last)
{
    struct sets *sets = search->sets;
    size_t units = 0;
    sets->first.count = 0;
    for (size_t i = 0; i < search->count; i++) {
        if (busy[i] && i != one) {
            add_unit(search, i, &sets->first);
            *last = i;
            units++;
        }
    }
    return units;
}

/* What sets->second, the unit, adds to sets->first, the busy units: `units`, or the one other.
 * Most units add all that they get alone: what each side gets is measured first, once where it is
 * asked again, and then one look at both does. */
static int gain_once(struct search *search, size_t units, size_t other, size_t one, double *gain)
{
    struct sets *sets = search->sets;
    double now = 0, *before = units == 1           ? &search->alone[other]
                              : search->before > 0 ? &search->before
                                                   : &now;
    int rc = *before > 0 ? 0 : total_of(sets, &sets->first, before);
    if (rc == 0 && search->alone[one] <= 0) {
        rc = total_of(sets, &sets->second, &search->alone[one]);
    }
    return rc < 0 ? rc : probe_sets_gain_known(sets, *before, search->alone[one], gain);
}

/* What the one adds to the busy units. */
static int gain_beside(struct search *search, const bool *busy, size_t one, double *gain)
{
    struct sets *sets = search->sets;
    size_t other = 0, units = put_busy(search, busy, one, &other);
    sets->second.count = 0;
    add_unit(search, one, &sets->second);
    if (sets->first.count == 0 || sets->first.count + sets->second.count > sets->at_once) {
        *gain = 1;
        return 0;
    }
    return probe_memory_is_large(sets->probe) ? gain_once(search, units, other, one, gain)
                                              : probe_sets_gain(sets, gain);
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

/* As many of the nearest units in number as filled another domain, in `busy`; false: there are not
 * so many that are not known yet. */
static bool put_nearest(const struct search *search, size_t one, bool *busy)
{
    size_t wanted = search->fill;
    memset(busy, 0, search->count * sizeof *busy);
    for (size_t distance = 1; distance < search->count && wanted > 0; distance++) {
        const size_t ends[] = {one + distance, one >= distance ? one - distance : search->count};
        for (size_t e = 0; e < 2 && wanted > 0; e++) {
            if (ends[e] < search->count && !search->known[ends[e]]) {
                busy[ends[e]] = true;
                wanted--;
            }
        }
    }
    return search->fill > 0 && wanted == 0;
}

/* A smallest set of others that leaves less than half to the one: of those that the last domain
 * would lead one to expect, or of all. gain >= sets_saturated_gain: there is none. */
static int fill_domain(struct search *search, size_t one, bool *busy, double *gain)
{
    int rc = 0;
    *gain = 1;
    if (put_nearest(search, one, busy)) {
        rc = gain_beside(search, busy, one, gain);
    }
    if (rc == 0 && *gain >= sets_saturated_gain) {
        for (size_t i = 0; i < search->count; i++) {
            busy[i] = i != one && !search->known[i];
        }
        rc = gain_beside(search, busy, one, gain);
    }
    return rc == 0 && *gain < sets_saturated_gain ? shrink(search, one, busy, gain) : rc;
}

/* Do the units of that group get less together than one after the other? What one adds to many is a
 * small difference of large sums, of which a single disturbed worker takes as much as the one adds:
 * of 60 PUs with a link each such differences alone make a domain. */
static int is_domain(struct search *search, uint32_t group, bool *less)
{
    struct sets *sets = search->sets;
    double sum = 0, all;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < search->count; i++) {
        if (search->group[i] == group) {
            sets->second.count = 0;
            add_unit(search, i, &sets->second);
            rc =
                search->alone[i] > 0 ? 0 : probe_sets_total(sets, &sets->second, &search->alone[i]);
            sum += search->alone[i];
        }
    }
    sets->first.count = 0;
    for (size_t i = 0; i < search->count; i++) {
        if (search->group[i] == group) {
            add_unit(search, i, &sets->first);
        }
    }
    rc = rc < 0 ? rc : total_of(sets, &sets->first, &all);
    *less = rc == 0 && all < sets_overhead_share * sum;
    return rc;
}

/* What was known before the domain of the one was looked for, but that it has none. */
static void disband(struct search *search, size_t one, double worst, double best)
{
    const uint32_t group = search->group[one];
    for (size_t i = 0; i < search->count; i++) {
        const bool member = search->group[i] == group;
        search->group[i] = member ? (uint32_t)i : search->group[i];
        search->known[i] = search->known[i] && (!member || i == one);
    }
    search->fill = 0;
    search->worst = worst;
    search->best = best;
}

/* The unit's domain, by a smallest set of others that leaves it little, and every other unit in its
 * place. Pairs have been tried: so it is of three units at least. */
static int find_domain(struct search *search, size_t one)
{
    bool *busy = calloc(search->count, sizeof *busy);
    double gain = 1, here;
    size_t last = 0, units = 0;
    int rc = busy ? fill_domain(search, one, busy, &gain) : -ENOMEM;
    const bool limited = rc == 0 && gain < sets_saturated_gain;
    const double inside = (gain + 1) / 2, worst = search->worst, best = search->best;
    bool joined = false, less = true;
    search->known[one] = true;
    if (limited && probe_memory_is_large(search->sets->probe)) {
        units = search->fill = put_busy(search, busy, one, &last);
    }
    if (units > 1) {
        rc = total_of(search->sets, &search->sets->first, &search->before);
    }
    for (size_t i = 0; rc == 0 && limited && i < search->count; i++) {
        if (i == one || (search->known[i] && !busy[i])) {
            continue;
        }
        here = gain;
        rc = busy[i] || probe_late(search->sets->probe) ? 0 : gain_beside(search, busy, i, &here);
        if (rc == 0 && here < inside) {
            join(search, one, i, gain);
            joined = true;
        }
    }
    search->before = 0;
    free(busy);
    rc = rc == 0 && joined ? is_domain(search, search->group[one], &less) : rc;
    if (!less) {
        disband(search, one, worst, best);
    }
    return rc;
}

static int search_units(struct search *search, bool pairs, bool domains, bool *any)
{
    int rc = pairs ? search_pairs(search, any) : 0;
    for (size_t i = 0; rc == 0 && domains && !*any && i < search->count; i++) {
        rc = search->known[i] || probe_late(search->sets->probe) ? 0 : find_domain(search, i);
    }
    for (size_t i = 0; i < search->count; i++) {
        *any = *any || search->group[i] != i;
    }
    return rc;
}

/* A pass over all units: what it looks for, and what it found. */
struct pass {
    size_t fill;    /* units that filled the last domain, as in struct search */
    size_t workers; /* of each unit */
    const struct partition *units, *outer; /* outer NULL: the machine */
    double limit;                          /* as in struct search */
    double worst, best;
    bool domains; /* cores inside of outer domains are searched for those of three and more */
};

/* All units are of one group: the outer domain, which is known. */
static bool is_all(const struct search *search)
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
    struct search search = {.sets = sets,
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
        any = any && !(outer && of_cores && is_all(&search));
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
    int rc = *workers < cores ? total_of(sets, &sets->first, &all) : 0;
    while (rc == 0 && *workers < cores) {
        sets->first.count = 0;
        probe_sets_add_unit(sets, units, unit, *workers, &sets->first);
        rc = total_of(sets, &sets->first, &some);
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
