/* The bandwidth that sets of units get together, whether groups are domains, and hidden domains.
 *
 * The total is compared, not the rate of one worker, since a saturated link is not always shared
 * evenly. The parts of a domain get less together than separately, and each of them gets little
 * beside a set of others that saturates it. A group around hidden domains has the first in common
 * with them, and not the second.
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

/* Constant       unit     source                                  without it
 * LOOKS, _MANY   copies   with 3 % of outliers every second copy  totals are too low, and gains too
 *                         of 30 workers has one                   high
 * MANY           workers  as LOOKS                                all sets take twice as long
 * COPIES_EACH    copies   11 to 15 a core on simulated machines   the bar stands still or jumps
 *                         of 128 to 512 PUs
 * ROUNDS_LEAST,  rounds   with 3 % of outliers one copy of twelve members pass for others, and the
 * ROUNDS_MOST             workers in three has one                other way round
 * MEMBER_CHECKS  parts    0.4 % miss three of four elsewhere      groups around hidden domains pass
 * SCOUTS         units    1 % miss a domain of one unit in four   all units are looked at */
enum { LOOKS = 3, LOOKS_MANY = 6, MANY = 16, COPIES_EACH = 12 };
enum { ROUNDS_LEAST = 3, ROUNDS_MOST = 6, MEMBER_CHECKS = 4, SCOUTS = 16 };

/* The share that a saturated domain leaves to one more core; half is far from both 0 and 1. */
static const double saturated_gain = 0.5;
/* What one of two parts gains beside the other where both get 0.9 of their sum. */
static const double pair_gain = PROBE_MEMORY_COLLISION * 2 - 1;

/* -- sets of units at work -- */

/* One PU of each core of each unit that works; how many. */
static size_t put_workers(const struct sets *sets, const struct partition *of, const bool *works,
                          uint32_t *ids)
{
    size_t count = 0;
    for (size_t i = 0; i < of->pus; i++) {
        bool core_works = !works[of->unit[i]];
        for (size_t k = sets->cores.first[sets->cores.unit[i]]; k < i && !core_works; k++) {
            core_works = sets->cores.unit[k] == sets->cores.unit[i] && of->unit[k] == of->unit[i];
        }
        if (!core_works) {
            ids[count++] = sets->pus->ids[i];
        }
    }
    return count;
}

static int copy_once(struct sets *sets, const uint32_t *ids, size_t count, double *bytes_per_s)
{
    const struct machine_copy what =
        probe_memory_what(sets->probe, probe_memory_room(sets->probe, sets->bytes, count), -1);
    const double made = (double)sets->copies, expected = COPIES_EACH * (double)sets->cores.count;
    probe_tell(sets->probe, made / (made + expected), "memory of %zu PUs together", count);
    double sum;
    int rc = probe_memory_total(sets->probe, &what, ids, count, &sum);
    sets->copies++;
    *bytes_per_s = fmax(*bytes_per_s, sum);
    return rc;
}

/* The total of the units that work, by a copy `once` or by the best of some, since interference
 * only takes bandwidth away; NAN: they are more workers than a quota allows. */
static int total_of(struct sets *sets, const struct partition *of, const bool *works, bool once,
                    double *bytes_per_s)
{
    FREED uint32_t *ids = malloc((of->pus + 1) * sizeof *ids);
    TRY(ids ? 0 : -ENOMEM);
    const size_t count = put_workers(sets, of, works, ids);
    const size_t looks = once ? 1 : count > MANY ? LOOKS_MANY : LOOKS;
    *bytes_per_s = count > sets->at_once ? NAN : 0;
    if (count == 0 || count > sets->at_once) {
        return 0;
    }
    for (size_t look = 0; look < looks && (look == 0 || !probe_late(sets->probe)); look++) {
        TRY(copy_once(sets, ids, count, bytes_per_s));
    }
    return 0;
}

/* The PU of a unit that is one core is measured once in all. */
static int get_alone(struct sets *sets, const struct partition *of, uint32_t unit,
                     double *bytes_per_s)
{
    const size_t pu = of->first[unit];
    const bool one_core = probe_partition_size(of, pu) <= probe_partition_size(&sets->cores, pu);
    *bytes_per_s = one_core ? sets->alone[pu] : 0;
    if (*bytes_per_s > 0) {
        return 0;
    }
    FREED bool *works = calloc(of->count, sizeof *works);
    TRY(works ? 0 : -ENOMEM);
    works[unit] = true;
    TRY(total_of(sets, of, works, false, bytes_per_s));
    sets->alone[pu] = one_core ? *bytes_per_s : sets->alone[pu];
    return 0;
}

/* -- a search -- */

/* Units among which a domain is looked for. All arrays are by unit. */
struct search {
    struct sets *sets;
    const struct partition *units;
    double limit;   /* of the gain beside others; less is a domain */
    uint32_t *list; /* of the units, in order. Owned, as all below */
    size_t count;
    uint32_t *group; /* one of its domain; at first itself */
    bool *known;     /* its domain was looked for, or found */
    double *alone;   /* 0: not known yet */
    bool *before_of; /* the units whose total is `before` */
    double before;   /* 0: none is */
    double share;    /* of the domain that loses most */
};

static void search_stop(struct search *search)
{
    free(search->list);
    free(search->group);
    free(search->known);
    free(search->alone);
    free(search->before_of);
}

/* The units inside of that unit of `outer` (NULL: all). */
static int search_start(struct search *search, struct sets *sets, const struct partition *units,
                        const struct partition *outer, uint32_t outer_unit)
{
    const size_t room = units->count + 1;
    const bool of_cores = units->count == sets->cores.count;
    *search = (struct search){.sets = sets,
                              .units = units,
                              .limit = of_cores ? saturated_gain : pair_gain,
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
    return *known > 0 ? 0 : get_alone(search->sets, search->units, unit, known);
}

/* The total of the busy units is measured once for all that are asked beside them. */
static int know_before(struct search *search, const bool *busy)
{
    const size_t size = search->units->count * sizeof *busy;
    if (search->before > 0 && memcmp(search->before_of, busy, size) == 0) {
        return 0;
    }
    memcpy(search->before_of, busy, size);
    return total_of(search->sets, search->units, busy, false, &search->before);
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
            TRY(total_of(search->sets, search->units, busy, true, &again));
            before = fmax(before, again);
        }
        busy[unit] = true;
        int rc = total_of(search->sets, search->units, busy, true, &again);
        busy[unit] = false;
        TRY(rc);
        after = fmax(after, again);
        *gain = isnan(again) ? 1 : (after - before) / search->alone[unit];
        if (*gain > PROBE_MEMORY_COLLISION ||
            (round + 1 >= ROUNDS_LEAST && *gain < saturated_gain / 2) ||
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

/* A smallest set of units, in `busy` (zeroes), that leaves others of the domain of the unit *gain
 * or about that, less than the limit; from the limit on: there is none. */
static int fill_domain(struct search *search, uint32_t unit, bool *busy, double *gain)
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

/* Is the unit in the domain that `busy` saturates, which leaves `gain` to one of its units?
 * Interference with the unit makes it a member, so both totals are measured anew then. */
static int ask_member(struct search *search, bool *busy, double gain, uint32_t unit, bool *member)
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

/* -- are groups domains? -- */

int probe_sets_loss(struct sets *sets, const struct partition *inner, const struct partition *of,
                    uint32_t unit, double *share)
{
    FREED bool *works = calloc(inner->count, sizeof *works);
    double sum = 0, one = 0, all = 0;
    size_t parts = 0;
    TRY(works ? 0 : -ENOMEM);
    *share = 1;
    for (uint32_t u = 0; u < inner->count; u++) {
        works[u] = of->unit[inner->first[u]] == unit;
        parts += works[u];
    }
    if (parts < 2) {
        return 0;
    }
    for (uint32_t u = 0; u < inner->count; u++) {
        TRY(works[u] ? get_alone(sets, inner, u, &one) : 0);
        if (works[u] && isnan(one)) {
            return 0;
        }
        sum += works[u] ? one : 0;
    }
    /* a total of many that seems to lose something may have been disturbed */
    for (int again = 0; again < 2 && all < PROBE_MEMORY_COLLISION * sum; again++) {
        TRY(total_of(sets, inner, works, false, &one));
        all = fmax(all, one);
    }
    *share = all > 0 ? all / sum : 1;
    return 0;
}

/* A random part of that unit of `of`, but not of that one of `but`. */
static uint32_t random_part(struct sets *sets, const struct partition *inner,
                            const struct partition *of, uint32_t unit, const struct partition *but,
                            uint32_t but_unit)
{
    uint32_t part, seen = 0, found = 0;
    for (part = 0; part < inner->count; part++) {
        const size_t pu = inner->first[part];
        if (of->unit[pu] == unit && !(but && but->unit[pu] == but_unit)) {
            found = random_below(&sets->random, ++seen) == 0 ? part : found;
        }
    }
    return found;
}

int probe_sets_members(struct sets *sets, const struct partition *of, uint32_t unit,
                       const struct partition *outer, bool *all, bool *none)
{
    const struct partition *inner = probe_sets_inner_of(sets, of), *from = outer ? outer : of;
    const uint32_t around = outer ? outer->unit[of->first[unit]] : unit;
    FREED_BY(search_stop) struct search search = {0};
    FREED bool *busy = calloc(inner->count, sizeof *busy);
    double gain = 1;
    *all = *none = true;
    TRY(busy ? search_start(&search, sets, inner, of, unit) : -ENOMEM);
    TRY(fill_domain(&search, search.list[0], busy, &gain));
    if (outer && gain >= search.limit) {
        /* no part is left little, but some lose: so may others of the domain around */
        search.limit = pair_gain;
        memset(busy, 0, inner->count * sizeof *busy);
        TRY(fill_domain(&search, search.list[0], busy, &gain));
    }
    for (size_t check = 0; gain < search.limit && check < MEMBER_CHECKS; check++) {
        const uint32_t part = random_part(sets, inner, from, around, outer ? of : NULL, unit);
        bool member;
        if (!busy[part] && part != search.list[0]) {
            TRY(ask_member(&search, busy, gain, part, &member));
            *all &= member;
            *none &= !member;
        }
    }
    return 0;
}

/* The groups that are domains stay, and the others become single PUs. */
static int keep_groups(struct partition *of, const double *shares)
{
    FREED bool *keep = malloc(of->count * sizeof *keep);
    TRY(keep ? 0 : -ENOMEM);
    for (uint32_t u = 0; u < of->count; u++) {
        keep[u] = !probe_memory_is_clear(shares[u], 1);
    }
    return probe_partition_dissolve(of, keep);
}

static int accept(struct sets *sets, const struct partition *of, const double *shares,
                  uint32_t least)
{
    FREED_BY(probe_partition_free) struct partition groups = {0};
    TRY(probe_partition_copy(of, &groups));
    /* Where a level lies inside all groups stay: a large one would look like a small one. */
    if (probe_sets_inner_of(sets, of) == &sets->cores) {
        TRY(keep_groups(&groups, shares));
    }
    if (probe_partition_largest(of) == 2) {
        TRY(probe_sets_adopt_cores(sets, of, shares[least]));
    }
    const struct partition kept = groups;
    if (probe_sets_insert(sets, &groups, shares[least])) {
        probe_sets_drop_parts(sets, &kept);
    }
    return 0;
}

int probe_sets_try(struct sets *sets, const struct partition *of)
{
    const struct partition *inner = probe_sets_inner_of(sets, of);
    FREED double *shares = malloc(of->count * sizeof *shares);
    uint32_t least = 0;
    bool meet = true, none;
    TRY(shares ? 0 : -ENOMEM);
    for (uint32_t u = 0; u < of->count; u++) {
        if (probe_late(sets->probe)) {
            return 0; /* nothing can be said of some groups */
        }
        TRY(probe_sets_loss(sets, inner, of, u, &shares[u]));
        least = shares[u] < shares[least] ? u : least;
    }
    if (shares[least] >= PROBE_MEMORY_COLLISION) {
        return 0;
    }
    TRY(probe_sets_members(sets, of, least, NULL, &meet, &none));
    return meet && !probe_late(sets->probe) ? accept(sets, of, shares, least) : 0;
}

/* -- a domain -- */

/* Joins to the domain of the one all units that gain little beside the busy ones. */
static int join_members(struct search *search, uint32_t one, bool *busy, double gain)
{
    for (size_t k = 0; k < search->count && !probe_late(search->sets->probe); k++) {
        const uint32_t unit = search->list[k];
        bool member = busy[unit];
        if (unit != one && !member && is_single(search, unit)) {
            TRY(ask_member(search, busy, gain, unit, &member));
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
    TRY(busy ? fill_domain(search, one, busy, &gain) : -ENOMEM);
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
    FREED_BY(search_stop) struct search search = {0};
    double share = 0;
    TRY(search_start(&search, sets, units, outer, outer_unit));
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
