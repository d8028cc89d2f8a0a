/* Hidden domains, by what a unit gains beside others that are at work already.
 *
 * For a unit without a domain, others are put to work until they leave it less than the limit: the
 * nearest first, by what the two of them get for groups of cores, by number for cores, whose pairs
 * are known. Those that are not needed for that go. Every other unit is asked beside what remains,
 * and what gains little is of the domain. The domain stays if its units lose something together. */
#include "probes/memory/search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Constant      unit    source                                   without it
 * ROUNDS_LEAST, rounds  with 3 % of outliers one copy of twelve  members pass for others, and the
 * ROUNDS_MOST           workers in three has one                 other way round
 * SCOUTS        units   1 % miss a domain of one unit in four    all units are looked at */
enum { ROUNDS_LEAST = 3, ROUNDS_MOST = 6, SCOUTS = 16 };

/* -- a search -- */

void probe_search_stop(struct search *search)
{
    free(search->list);
    free(search->group);
    free(search->known);
    free(search->alone);
    free(search->before_of);
}

int probe_search_start(struct search *search, struct sets *sets, const struct partition *units,
                       const struct partition *outer, uint32_t outer_unit)
{
    const size_t room = units->count + 1;
    const bool of_cores = units->count == sets->cores.count;
    *search = (struct search){.sets = sets,
                              .units = units,
                              .limit = of_cores ? sets_saturated_gain : SETS_PAIR_GAIN,
                              .list = malloc(room * sizeof *search->list),
                              .group = malloc(room * sizeof *search->group),
                              .known = calloc(room, sizeof *search->known),
                              .alone = calloc(room, sizeof *search->alone),
                              .before_of = calloc(room, sizeof *search->before_of),
                              .share = 1};
    TRY(search->list && search->group && search->known && search->alone && search->before_of
            ? 0
            : -ENOMEM);
    for (uint32_t u = 0; u < units->count; u++) {
        search->group[u] = u;
        if (!outer || outer->unit[units->first[u]] == outer_unit) {
            search->list[search->count++] = u;
        }
    }
    return 0;
}

/* The unit has no domain so far. If one was looked for, interference may have hidden it. */
static bool is_single(const struct search *search, uint32_t unit)
{
    size_t members = 0;
    for (size_t k = 0; k < search->count && members < 2; k++) {
        members += search->group[search->list[k]] == search->group[unit];
    }
    return members == 1;
}

/* -- gains -- */

static int know_alone(struct search *search, uint32_t unit)
{
    double *known = &search->alone[unit];
    return *known > 0 ? 0 : probe_sets_alone(search->sets, search->units, unit, known);
}

/* The total of the busy units is measured once for all that are asked beside them. */
static int know_before(struct search *search, const bool *busy)
{
    const size_t size = search->units->count * sizeof *busy;
    if (search->before > 0 && memcmp(search->before_of, busy, size) == 0) {
        return 0;
    }
    memcpy(search->before_of, busy, size);
    return probe_sets_total(search->sets, search->units, busy, false, &search->before);
}

/* The gain is what the unit adds to the busy ones, of what it gets alone. Interference only takes
 * bandwidth away, so the best of both totals counts, by turns, and what is neither little nor all
 * gets more rounds. */
static int gain_of(struct search *search, bool *busy, uint32_t unit, double *gain)
{
    double after = 0, again;
    *gain = 1;
    TRY(know_before(search, busy));
    double before = search->before;
    TRY(isnan(before) ? 0 : know_alone(search, unit));
    for (size_t round = 0; before > 0 && search->alone[unit] > 0 && round < ROUNDS_MOST; round++) {
        if (round > 0) {
            TRY(probe_sets_total(search->sets, search->units, busy, true, &again));
            before = fmax(before, again);
        }
        busy[unit] = true;
        int rc = probe_sets_total(search->sets, search->units, busy, true, &again);
        busy[unit] = false;
        TRY(rc);
        after = fmax(after, again);
        *gain = isnan(again) ? 1 : (after - before) / search->alone[unit];
        if (*gain > PROBE_MEMORY_COLLISION ||
            (round + 1 >= ROUNDS_LEAST && *gain < sets_saturated_gain / 2) ||
            probe_late(search->sets->probe)) {
            break;
        }
    }
    return 0;
}

/* -- a set that saturates -- */

struct near {
    uint32_t unit;
    double key;
};

static int by_key(const void *a, const void *b)
{
    const struct near *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key ? 1 : (x->unit < y->unit) - (x->unit > y->unit);
}

/* The others without a domain, the nearest first; how many. Groups that gain as much beside all of
 * them have none: then there are no others. */
static int order_others(struct search *search, uint32_t unit, bool *busy, struct near *order,
                        size_t *count)
{
    const bool by_gain = search->units->count != search->sets->cores.count;
    double gain;
    *count = 0;
    for (size_t k = 0; k < search->count; k++) {
        const uint32_t other = search->list[k];
        busy[other] = other != unit && is_single(search, other);
        if (busy[other]) {
            order[(*count)++] = (struct near){other, fabs((double)other - (double)unit)};
        }
    }
    if (by_gain) {
        TRY(gain_of(search, busy, unit, &gain));
        *count = gain < search->limit ? *count : 0;
    }
    memset(busy, 0, search->units->count * sizeof *busy);
    for (size_t k = 0; by_gain && k < *count; k++) {
        busy[order[k].unit] = true;
        TRY(gain_of(search, busy, unit, &order[k].key));
        busy[order[k].unit] = false;
    }
    qsort(order, *count, sizeof *order, by_key);
    return 0;
}

/* Puts the nearest to work, twice as many each time, until they leave the unit little. */
static int grow_domain(struct search *search, uint32_t unit, const struct near *order, size_t count,
                       bool *busy, double *gain)
{
    *gain = 1;
    for (size_t put = 0, size = 1; put < count && *gain >= search->limit; size *= 2) {
        for (; put < size && put < count; put++) {
            busy[order[put].unit] = true;
        }
        TRY(probe_late(search->sets->probe) ? -ETIME : gain_of(search, busy, unit, gain));
    }
    return 0;
}

/* Does without each of the busy ones that is not needed, the farthest first: of a link and the
 * socket around it the link is found. */
static int thin(struct search *search, uint32_t unit, const struct near *order, size_t count,
                bool *busy, double *gain)
{
    for (size_t k = count; k > 0 && !probe_late(search->sets->probe); k--) {
        const uint32_t other = order[k - 1].unit;
        double without = 1;
        if (busy[other]) {
            busy[other] = false;
            TRY(gain_of(search, busy, unit, &without));
            busy[other] = without >= search->limit;
            *gain = busy[other] ? *gain : without;
        }
    }
    return 0;
}

int probe_search_fill(struct search *search, uint32_t unit, bool *busy, double *gain)
{
    FREED struct near *order = malloc((search->count + 1) * sizeof *order);
    size_t count = 0;
    TRY(order ? order_others(search, unit, busy, order, &count) : -ENOMEM);
    TRY(grow_domain(search, unit, order, count, busy, gain));
    TRY(*gain < search->limit ? thin(search, unit, order, count, busy, gain) : 0);
    if (*gain < search->limit) {
        /* It joins those that leave it little, so that they leave nothing to others: a unit that
         * wants much is left little beside one that wants little. */
        busy[unit] = true;
        *gain = 0;
    }
    return 0;
}

/* Interference with the unit makes it a member, so both totals are measured anew then. */
int probe_search_ask(struct search *search, bool *busy, double gain, uint32_t unit, bool *member)
{
    *member = true;
    for (int again = 0; *member && again < 2; again++) {
        double here;
        search->before = again ? 0 : search->before;
        TRY(gain_of(search, busy, unit, &here));
        *member = here < (gain + 1) / 2;
    }
    return 0;
}

/* -- a domain -- */

/* Joins to the domain of the one all units that gain little beside the busy ones. */
static int join_members(struct search *search, uint32_t one, bool *busy, double gain)
{
    for (size_t k = 0; k < search->count && !probe_late(search->sets->probe); k++) {
        const uint32_t unit = search->list[k];
        bool member = busy[unit];
        if (unit != one && !member && is_single(search, unit)) {
            TRY(probe_search_ask(search, busy, gain, unit, &member));
        }
        if (member && unit != one) {
            search->group[unit] = search->group[one];
        }
    }
    return 0;
}

/* Keeps the domain of the one where its units lose something together: what one gains beside many
 * is a small difference of large sums, and such differences alone make up a domain. */
static int keep_domain(struct search *search, uint32_t one)
{
    const uint32_t group = search->group[one];
    FREED_BY(probe_partition_free) struct partition domain = {0};
    double share = 1;
    TRY(probe_partition_one(search->units->pus, &domain));
    for (size_t i = 0; i < domain.pus; i++) {
        domain.unit[i] = search->group[search->units->unit[i]] != group;
    }
    TRY(probe_sets_loss(search->sets, search->units, &domain, 0, &share));
    const bool is_domain = share < PROBE_MEMORY_COLLISION && !probe_late(search->sets->probe);
    for (size_t k = 0; k < search->count; k++) {
        const uint32_t unit = search->list[k];
        if (search->group[unit] == group) {
            search->group[unit] = is_domain ? group : unit;
            search->known[unit] |= is_domain;
        }
    }
    search->share = is_domain ? fmin(search->share, share) : search->share;
    return 0;
}

static int find_domain(struct search *search, uint32_t one)
{
    FREED bool *busy = calloc(search->units->count, sizeof *busy);
    double gain = 1;
    search->known[one] = true;
    TRY(busy ? probe_search_fill(search, one, busy, &gain) : -ENOMEM);
    if (gain >= search->limit) {
        return 0;
    }
    TRY(join_members(search, one, busy, gain));
    return keep_domain(search, one);
}

/* A domain for each unit, from the first one that has none on, and a random one after a failure. */
static int find_domains(struct search *search)
{
    FREED uint32_t *open = malloc((search->count + 1) * sizeof *open);
    size_t failed = 0;
    TRY(open ? 0 : -ENOMEM);
    while (failed < SCOUTS && !probe_late(search->sets->probe)) {
        size_t count = 0;
        for (size_t k = 0; k < search->count; k++) {
            open[count] = search->list[k];
            count += !search->known[open[count]];
        }
        if (count == 0) {
            break;
        }
        const uint32_t one = open[failed ? random_below(&search->sets->random, count) : 0];
        TRY(find_domain(search, one));
        failed = is_single(search, one) ? failed + 1 : 0;
    }
    return 0;
}

/* Merges in `merged` what belongs together; not all, which is the domain around. */
static void merge_found(const struct search *search, bool all_known, struct partition *merged)
{
    const struct partition *units = search->units;
    size_t groups = 0;
    for (size_t k = 0; k < search->count; k++) {
        groups += search->group[search->list[k]] == search->list[k];
    }
    for (size_t k = 0; k < search->count && !(all_known && groups == 1); k++) {
        const uint32_t unit = search->list[k], of = search->group[unit];
        if (unit != of) {
            probe_partition_merge(merged, merged->unit[units->first[unit]],
                                  merged->unit[units->first[of]]);
        }
    }
}

/* On a large machine where all units get together what they get separately, none is looked for. */
static int search_inside(struct sets *sets, const struct partition *units,
                         const struct partition *outer, uint32_t outer_unit,
                         struct partition *merged, double *least)
{
    FREED_BY(probe_search_stop) struct search search = {0};
    double share = 0;
    TRY(probe_search_start(&search, sets, units, outer, outer_unit));
    if (!outer && probe_memory_is_large(sets->probe)) {
        FREED_BY(probe_partition_free) struct partition all = {0};
        TRY(probe_partition_one(sets->pus->count, &all));
        TRY(probe_sets_loss(sets, units, &all, 0, &share));
    }
    if (search.count > 2 && share < PROBE_MEMORY_COLLISION) {
        TRY(find_domains(&search));
        merge_found(&search, outer != NULL, merged);
        *least = fmin(*least, search.share);
    }
    return 0;
}

/* 1: the units were merged to a level; 0: nothing is hidden between them and what is known. Where
 * two domains around hold nothing hidden, the others are taken to hold nothing either. */
static int search_once(struct sets *sets, const struct partition *units)
{
    FREED_BY(probe_partition_free) struct partition merged = {0};
    double share = 1;
    const struct partition *outer = probe_sets_outer_of(sets, units);
    const uint32_t outers = outer ? outer->count : 1,
                   from = (uint32_t)random_below(&sets->random, outers);
    TRY(probe_partition_copy(units, &merged));
    for (uint32_t i = 0; i < outers; i++) {
        if (i < 2 || merged.count < units->count) {
            TRY(search_inside(sets, units, outer, (from + i) % outers, &merged, &share));
        }
    }
    return merged.count < units->count && probe_sets_insert(sets, &merged, share);
}

int probe_sets_search(struct sets *sets, const struct partition *units)
{
    FREED_BY(probe_partition_free) struct partition now = {0};
    TRY(probe_partition_copy(units, &now));
    while (now.count > 2 && !probe_late(sets->probe)) {
        const int found = search_once(sets, &now);
        TRY(found);
        const struct partition *outer = found ? probe_sets_outer_of(sets, &now) : NULL;
        if (!outer) {
            break;
        }
        probe_partition_free(&now);
        TRY(probe_partition_copy(outer, &now));
    }
    return 0;
}
