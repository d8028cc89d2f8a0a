/* Domains of memory that sets of workers show; the method is in sets.h.
 *
 * A *unit* is a part of a partition of the PUs. Of a unit one PU per core works: siblings of a core
 * add little, and where they collide their pair says so. Everything is measured by turns and
 * compared within a round, so that a drift of the machine meets both sides, and a figure is the
 * median of its rounds. What a set gets in all is compared, not what one of its workers gets: a
 * saturated link is not always shared evenly. */
#include "probes/pairs/memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/pairs.h"
#include "profile/base/random.h"

/* Two units that fill one link get together 0.9 of what they get apart when one adds 0.8 to the
 * other: the papers' margin, of a pair. */
static const double overhead_share = PROBE_MEMORY_COLLISION, pair_gain = 0.8;
/* What a saturated domain leaves to one more unit; half is far from both 0 and 1. */
static const double saturated_gain = 0.5;
/* Two hardware threads of a core get together little more than one, 0.5 to 0.55 of two cores. */
static const double one_core_share = 0.6;
/* What adds so much needs no other round; in a first one the others may have been disturbed. */
static const double surely_free = 0.9;
enum {
    GAIN_ROUNDS_LEAST = 2,
    GAIN_ROUNDS_MOST = 6,
    MEMBER_CHECKS = 4,  /* random members of a candidate group that are tried beside others of it */
    ALL_UNITS_MOST = 64 /* units whose sum is measured one after the other, at most */
};

struct domain {
    struct partition partition;
    ptrdiff_t of_pairs; /* position among the levels that pairs gave; < 0: found by sets */
    double share;       /* of one group's packed workers, of what as many get that are spread */
    double spread;      /* of that, between rounds */
    uint32_t workers;   /* that it was measured with */
    uint32_t looked_at; /* groups that were measured; the others are taken over */
    uint32_t rounds;
    bool loose; /* pairs that are no groups: nothing can be put inside */
};

/* Positions in the machine's set. */
struct workers {
    size_t *at, count;
};

struct sets {
    struct probe *probe;
    const struct profile_set *pus;
    size_t bytes, most_levels, count, asked;
    struct partition cores;
    struct domain *levels; /* inner ones first */
    struct random random;
    struct workers first, second, both; /* room for all PUs each */
    uint32_t *ids;
    double *rates;
};

/* -- measuring -- */

static int total(struct sets *sets, const struct workers *workers, double *bytes_per_s)
{
    size_t room = sets->probe->machine->memory_limit_bytes / (3 * workers->count);
    for (size_t i = 0; i < workers->count; i++) {
        sets->ids[i] = sets->pus->ids[workers->at[i]];
    }
    int rc = probe_memory_copy(sets->probe, sets->bytes < room ? sets->bytes : room, sets->ids,
                               workers->count, sets->rates);
    *bytes_per_s = 0;
    for (size_t i = 0; i < workers->count && rc == 0; i++) {
        *bytes_per_s += sets->rates[i];
    }
    return rc;
}

static bool is_late(const struct sets *sets, size_t done)
{
    return done > 0 && probe_late(sets->probe);
}

static void tell(struct sets *sets, size_t workers)
{
    const double expected = 64; /* for the progress bar */
    probe_tell(sets->probe, 1 - exp(-(double)sets->asked++ / expected),
               "memory of %zu PUs together", workers);
}

/* What sets->first gets in all, of what sets->second (as many) gets. */
static int compare(struct sets *sets, struct domain *out)
{
    double shares[REPEAT_MEDIAN_MOST];
    size_t done = 0;
    tell(sets, sets->first.count);
    while (!probe_repeat_median_settled(shares, done) && !is_late(sets, done)) {
        double packed, spread;
        int rc = total(sets, &sets->first, &packed);
        rc = rc < 0 ? rc : total(sets, &sets->second, &spread);
        if (rc < 0) {
            return rc;
        }
        shares[done++] = packed / spread;
    }
    out->spread = probe_spread(shares, done); /* sorts */
    out->share = profile_median_value(shares, done);
    out->rounds = (uint32_t)done;
    out->workers = (uint32_t)sets->first.count;
    return 0;
}

/* What sets->second adds to sets->first at work, of what it gets alone. Disturbance only takes
 * bandwidth away, and a difference of totals suffers from it more than each of them: the best of
 * the rounds counts, and what is neither little nor all gets more rounds. */
static int measure_gain(struct sets *sets, double *gain)
{
    double before = 0, after = 0, alone = 0;
    size_t done = 0;
    struct workers *both = &sets->both;
    memcpy(both->at, sets->first.at, sets->first.count * sizeof *both->at);
    memcpy(both->at + sets->first.count, sets->second.at, sets->second.count * sizeof *both->at);
    both->count = sets->first.count + sets->second.count;
    tell(sets, both->count);
    for (bool settled = false; !settled; settled = settled || is_late(sets, done)) {
        double now;
        int rc = total(sets, &sets->first, &now);
        before = fmax(before, now);
        rc = rc < 0 ? rc : total(sets, both, &now);
        after = fmax(after, now);
        rc = rc < 0 ? rc : total(sets, &sets->second, &now);
        alone = fmax(alone, now);
        if (rc < 0) {
            return rc;
        }
        *gain = (after - before) / alone;
        done++;
        settled = (done >= GAIN_ROUNDS_LEAST && *gain > surely_free) || done == GAIN_ROUNDS_MOST ||
                  (done >= REPEAT_MEDIAN_LEAST && *gain < saturated_gain);
    }
    return 0;
}

/* -- choosing workers -- */

/* Adds one PU of each core of the unit, up to `most` workers in all. */
static void add_unit(const struct sets *sets, const struct partition *of, uint32_t unit,
                     size_t most, struct workers *out)
{
    size_t from = out->count;
    for (size_t i = 0; i < sets->pus->count && out->count < most; i++) {
        bool core_works = false;
        for (size_t k = from; k < out->count && of->unit[i] == unit; k++) {
            core_works = core_works || sets->cores.unit[out->at[k]] == sets->cores.unit[i];
        }
        if (of->unit[i] == unit && !core_works) {
            out->at[out->count++] = i;
        }
    }
}

static size_t cores_of(struct sets *sets, const struct partition *of, uint32_t unit)
{
    sets->both.count = 0;
    add_unit(sets, of, unit, sets->pus->count, &sets->both);
    return sets->both.count;
}

/* The largest level inside of the partition; the cores when there is none. */
static const struct partition *inner_of(const struct sets *sets, const struct partition *of)
{
    const struct partition *inner = &sets->cores;
    for (size_t i = 0; i < sets->count; i++) {
        const struct partition *level = &sets->levels[i].partition;
        inner = level->count > of->count && probe_partition_refines(level, of) ? level : inner;
    }
    return inner;
}

/* The smallest level around it, or NULL. */
static const struct partition *outer_of(const struct sets *sets, const struct partition *of)
{
    for (size_t i = 0; i < sets->count; i++) {
        const struct partition *level = &sets->levels[i].partition;
        if (level->count < of->count && probe_partition_refines(of, level)) {
            return level;
        }
    }
    return NULL;
}

/* Units of `inner` in that unit of `of`, by their first PUs; how many. */
static size_t units_in(const struct partition *inner, const struct partition *of, uint32_t unit,
                       uint32_t *out)
{
    size_t count = 0;
    for (uint32_t u = 0; u < inner->count; u++) {
        if (of->unit[inner->first[u]] == unit) {
            out[count++] = u;
        }
    }
    return count;
}

/* sets->second: as many workers as sets->first has, in whole units of `inner` taken by turns from
 * units of `of` that lie far apart, all in the same unit of `outer`. False: there are not so
 * many. */
static bool spread_workers(struct sets *sets, const struct partition *of, uint32_t unit,
                           const struct partition *outer, uint32_t *scratch)
{
    static const size_t none = 0;
    const struct partition *inner = inner_of(sets, of);
    uint32_t *siblings = scratch, *parts = scratch + of->count;
    size_t count = 0, wanted = units_in(inner, of, unit, parts), progress = 1;
    for (uint32_t u = 0; u < of->count; u++) {
        if (!outer || outer->unit[of->first[u]] == outer->unit[of->first[unit]]) {
            siblings[count++] = u;
        }
    }
    size_t used = wanted < count ? wanted : count;
    sets->second.count = none;
    for (size_t turn = 0; progress > 0 && count > 1; turn++) {
        progress = 0;
        for (size_t s = 0; s < used && sets->second.count < sets->first.count; s++) {
            size_t have = units_in(inner, of, siblings[s * count / used], parts);
            if (turn < have) {
                add_unit(sets, inner, parts[turn], sets->first.count, &sets->second);
                progress++;
            }
        }
    }
    return count > 1 && sets->second.count == sets->first.count;
}

/* Kinds of cores do not copy equally fast: sets of other kinds cannot be compared. */
static bool same_kinds(const struct sets *sets)
{
    const struct kinds *kinds = sets->probe->kinds;
    int balance[KINDS_MAX] = {0};
    bool same = true;
    for (size_t i = 0; kinds && kinds->count > 1 && i < sets->first.count; i++) {
        balance[probe_kinds_find(kinds, sets->pus->ids[sets->first.at[i]])]++;
        balance[probe_kinds_find(kinds, sets->pus->ids[sets->second.at[i]])]--;
    }
    for (size_t k = 0; k < KINDS_MAX; k++) {
        same = same && balance[k] == 0;
    }
    return same;
}

/* -- levels -- */

/* 1: it is a level now and belongs to `sets`; 0: it is one already, or lies across one. */
static int insert(struct sets *sets, const struct domain *domain)
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
    return 1;
}

static void drop(struct sets *sets, size_t index)
{
    probe_partition_free(&sets->levels[index].partition);
    sets->count--;
    memmove(&sets->levels[index], &sets->levels[index + 1],
            (sets->count - index) * sizeof *sets->levels);
}

/* Two PUs that get together what one gets alone are hardware threads of one core, or as good as
 * that: from now on one of them works. */
static int adopt_cores(struct sets *sets, const struct partition *of, double share_of_two)
{
    struct partition cores;
    if (share_of_two > one_core_share || sets->cores.count < sets->pus->count) {
        return 0;
    }
    int rc = probe_partition_copy(of, &cores);
    if (rc == 0) {
        probe_partition_free(&sets->cores);
        sets->cores = cores;
    }
    return rc;
}

/* -- candidates -- */

/* One group against its siblings. share 1: they cannot be compared. */
static int look_at_group(struct sets *sets, const struct partition *of, uint32_t unit,
                         struct domain *out)
{
    uint32_t *scratch = malloc(2 * (sets->pus->count + 1) * sizeof *scratch);
    out->share = 1;
    if (!scratch) {
        return -ENOMEM;
    }
    sets->first.count = 0;
    add_unit(sets, of, unit, sets->pus->count, &sets->first);
    bool comparable = sets->first.count > 1 &&
                      spread_workers(sets, of, unit, outer_of(sets, of), scratch) &&
                      same_kinds(sets);
    free(scratch);
    return comparable ? compare(sets, out) : 0;
}

/* Do the members of the group meet in one domain? Some fill it; a random one more then gets little.
 * Where no set of them leaves less than half for one more, nothing is said. */
static int check_members(struct sets *sets, const struct partition *of, uint32_t unit, bool *alike)
{
    const struct partition *inner = inner_of(sets, of);
    uint32_t *parts = malloc(inner->count * sizeof *parts);
    size_t count = parts ? units_in(inner, of, unit, parts) : 0, busy = 1;
    double gain = 1;
    int rc = parts ? 0 : -ENOMEM;
    *alike = true;
    for (size_t k = 1; rc == 0 && gain > saturated_gain && k < count; k *= 2) {
        sets->first.count = sets->second.count = 0;
        for (size_t i = 0; i < k; i++) {
            add_unit(sets, inner, parts[i], sets->pus->count, &sets->first);
        }
        add_unit(sets, inner, parts[k], sets->pus->count, &sets->second);
        rc = measure_gain(sets, &gain);
        busy = k;
    }
    const double inside = (gain + 1) / 2;
    for (size_t check = 0; rc == 0 && check < MEMBER_CHECKS && gain < saturated_gain &&
                           busy + 1 < count && *alike && !probe_late(sets->probe);
         check++) {
        double again;
        uint32_t member = parts[busy + 1 + random_below(&sets->random, count - busy - 1)];
        sets->second.count = 0;
        add_unit(sets, inner, member, sets->pus->count, &sets->second);
        rc = measure_gain(sets, &again);
        *alike = again < inside;
    }
    free(parts);
    return rc;
}

/* The first group of at least two cores from `from` on, round to the beginning. */
static uint32_t group_from(struct sets *sets, const struct partition *of, uint32_t from)
{
    uint32_t unit = from % of->count;
    while (cores_of(sets, of, unit) < 2 && (unit + 1) % of->count != from % of->count) {
        unit = (unit + 1) % of->count;
    }
    return unit;
}

/* Where the two groups looked at disagree, all are looked at; those that lose nothing are none, or
 * all are left when a level lies inside of them. */
static int look_at_all(struct sets *sets, struct domain *domain, bool *any)
{
    struct partition *of = &domain->partition;
    bool *collides = calloc(of->count, sizeof *collides);
    struct domain found = {.share = 1}, worst = {.share = 1};
    int rc = collides ? 0 : -ENOMEM;
    for (uint32_t unit = 0; rc == 0 && unit < of->count; unit++) {
        rc = look_at_group(sets, of, unit, &found);
        collides[unit] = found.share < overhead_share;
        worst = found.share < worst.share ? found : worst;
    }
    *any = rc == 0 && worst.share < overhead_share;
    if (*any) {
        worst.partition = *of;
        worst.of_pairs = -1;
        worst.looked_at = of->count;
        *domain = worst;
        rc = probe_partition_dissolve(&domain->partition, collides);
    }
    free(collides);
    return rc;
}

/* 1: the partition is a level now, and owned; 0: it is none. */
static int try_candidate(struct sets *sets, const struct partition *of)
{
    struct domain first = {.share = 1}, second = {.share = 1};
    uint32_t unit = group_from(sets, of, 0);
    uint32_t other =
        group_from(sets, of, unit + 1 + (uint32_t)random_below(&sets->random, of->count - 1));
    int rc = look_at_group(sets, of, unit, &first);
    rc = rc < 0 ? rc : look_at_group(sets, of, other, &second);
    bool one = first.share < overhead_share, two = second.share < overhead_share, alike = true;
    if (rc < 0 || (!one && !two)) {
        return rc;
    }
    rc = check_members(sets, of, one ? unit : other, &alike);
    if (rc < 0 || !alike) {
        return rc;
    }
    first = one ? first : second;
    first.of_pairs = -1;
    first.looked_at = other == unit ? 1 : 2;
    rc = probe_partition_copy(of, &first.partition);
    bool any = true;
    if (rc == 0 && one != two) {
        rc = look_at_all(sets, &first, &any);
    }
    rc = rc == 0 && any && first.workers == 2 ? adopt_cores(sets, of, first.share) : rc;
    rc = rc == 0 && any ? insert(sets, &first) : rc;
    if (rc <= 0) {
        probe_partition_free(&first.partition);
    }
    return rc;
}

/* -- domains that nobody declares -- */

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
            add_unit(sets, search->units, search->members[i], sets->pus->count, &sets->first);
        }
    }
    add_unit(sets, search->units, search->members[one], sets->pus->count, &sets->second);
    return sets->first.count > 0 ? measure_gain(sets, gain) : (*gain = 1, 0);
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
    size_t mine = cores_of(sets, search->units, search->members[i]);
    for (size_t other = 0; other < search->count; other++) {
        bool same = search->group[other] == search->group[i] && other != i;
        size_t theirs = same ? cores_of(sets, search->units, search->members[other]) : 0;
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
        if (rc == 0 && taken && without < saturated_gain) {
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
    bool limited = rc == 0 && gain < saturated_gain;
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
    pass->outer = outer_of(sets, pass->units);
    int rc = probe_partition_copy(pass->units, &merged.partition);
    for (uint32_t o = 0; rc == 0 && o < (pass->outer ? pass->outer->count : 1); o++) {
        rc = search_domain(sets, pass, o, &merged);
    }
    merged.looked_at = merged.partition.count;
    merged.rounds = REPEAT_MEDIAN_LEAST;
    rc = rc == 0 && merged.partition.count < pass->units->count ? insert(sets, &merged) : rc;
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
static int search_upwards(struct sets *sets, const struct partition *units)
{
    struct partition now = {0};
    int rc = probe_partition_copy(units, &now), found = 1;
    while (rc == 0 && found && now.count > 2 && !probe_late(sets->probe)) {
        found = search_hidden(sets, &now);
        rc = found < 0 ? found : 0;
        const struct partition *outer = found > 0 ? outer_of(sets, &now) : NULL;
        if (outer) {
            probe_partition_free(&now);
            rc = probe_partition_copy(outer, &now);
        }
    }
    probe_partition_free(&now);
    return rc;
}

/* -- the whole machine, and pruning -- */

/* Do the largest domains, or all cores, get together what they get one after the other? */
static int look_at_machine(struct sets *sets)
{
    const struct partition *top =
        sets->count ? &sets->levels[sets->count - 1].partition : &sets->cores;
    double sum = 0, all = 0, one;
    if (top->count < 2 || top->count > ALL_UNITS_MOST) {
        return 0;
    }
    int rc = 0;
    for (uint32_t u = 0; rc == 0 && u < top->count; u++) {
        sets->first.count = 0;
        add_unit(sets, top, u, sets->pus->count, &sets->first);
        rc = total(sets, &sets->first, &one);
        sum += one;
    }
    sets->first.count = 0;
    for (uint32_t u = 0; u < top->count; u++) {
        add_unit(sets, top, u, sets->pus->count, &sets->first);
    }
    for (size_t round = 0; rc == 0 && round < REPEAT_MEDIAN_LEAST; round++) {
        rc = total(sets, &sets->first, &one);
        all = fmax(all, one); /* disturbance only takes bandwidth away */
    }
    if (rc < 0 || all >= overhead_share * sum) {
        return rc;
    }
    struct domain machine = {.of_pairs = -1,
                             .share = all / sum,
                             .spread = -1,
                             .looked_at = 1,
                             .rounds = REPEAT_MEDIAN_LEAST,
                             .workers = (uint32_t)sets->first.count};
    rc = probe_partition_one(sets->pus->count, &machine.partition);
    rc = rc < 0 ? rc : insert(sets, &machine);
    if (rc <= 0) {
        probe_partition_free(&machine.partition);
    }
    return rc < 0 ? rc : 0;
}

/* Levels that lose nothing against others within the next larger one; of pairs, too: a few of them
 * that speak for all may be the only ones of their level. */
static int prune(struct sets *sets)
{
    int rc = 0;
    for (size_t i = sets->count; rc == 0 && i > 0 && !probe_late(sets->probe); i--) {
        struct domain *level = &sets->levels[i - 1], again = {.share = 1};
        const struct partition *outer = outer_of(sets, &level->partition);
        uint32_t unit = group_from(sets, &level->partition, 0), siblings = 0;
        for (uint32_t u = 0; outer && u < level->partition.count; u++) {
            siblings +=
                outer->unit[level->partition.first[u]] == outer->unit[level->partition.first[unit]];
        }
        if (siblings < 2) {
            continue;
        }
        rc = look_at_group(sets, &level->partition, unit, &again);
        if (rc == 0 && again.rounds > 0 && again.share >= overhead_share) {
            drop(sets, i - 1);
        }
    }
    return rc;
}

/* -- from and to the profile's form -- */

static size_t largest_unit(const struct partition *of)
{
    size_t most = 0;
    for (uint32_t u = 0; u < of->count; u++) {
        size_t members = 0;
        for (size_t i = 0; i < of->pus; i++) {
            members += of->unit[i] == u;
        }
        most = members > most ? members : most;
    }
    return most;
}

static int take_pair_levels(struct sets *sets, const struct profile_memory *memory)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < memory->level_count; i++) {
        const struct profile_relation *collisions = &memory->levels[i].collisions;
        struct domain level = {.of_pairs = (ptrdiff_t)i, .loose = collisions->pair_count > 0};
        rc = probe_partition_make(sets->pus, collisions, &level.partition);
        sets->levels[sets->count++] = level;
        if (rc == 0 && i == 0 && !level.loose) {
            double share = memory->levels[i].bytes_per_s / memory->reference_bytes_per_s;
            rc = largest_unit(&level.partition) == 2 ? adopt_cores(sets, &level.partition, share)
                                                     : 0;
        }
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
        bool full = level->scaling[i - 1].bytes_per_s >= overhead_share * most;
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

/* Positions of the level's first group, one per inner domain first; the slower cores last, or the
 * curve would fall with the first of them. */
static int order_group(struct sets *sets, size_t index, struct workers *out)
{
    const struct partition *of = &sets->levels[index].partition;
    const uint32_t **inner = calloc(index + 1, sizeof *inner);
    uint32_t unit = group_from(sets, of, 0);
    if (!inner) {
        return -ENOMEM;
    }
    inner[0] = sets->cores.unit;
    for (size_t i = 0; i < index; i++) {
        inner[i + 1] = sets->levels[i].partition.unit;
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
    for (size_t i = memory->level_count; i > 1; i--) {
        struct profile_memory_level *level = &memory->levels[i - 2];
        if (sets->levels[i - 2].of_pairs < 0) {
            level->bytes_per_s = fmin(level->bytes_per_s, level[1].bytes_per_s);
        }
    }
    for (size_t i = 1; i < memory->level_count; i++) {
        struct profile_memory_level *level = &memory->levels[i];
        level->bytes_per_s = fmax(level->bytes_per_s, level[-1].bytes_per_s);
    }
}

static void free_levels(struct profile_memory *memory)
{
    struct probe_memory old = {
        .memory = {.levels = memory->levels, .level_count = memory->level_count}};
    probe_memory_free(&old);
}

/* Levels of pairs move over, those of sets come between them. */
static int assemble(struct sets *sets, struct probe_memory *found)
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

/* -- all of it -- */

static int by_units(const void *a, const void *b)
{
    const struct partition *x = a, *y = b;
    return (x->count < y->count) - (x->count > y->count);
}

static bool worth_trying(const struct sets *sets, const struct partition *of)
{
    bool worth =
        of->count > 1 && of->count < sets->cores.count && probe_partition_refines(&sets->cores, of);
    for (size_t i = 0; worth && i < sets->count; i++) {
        const struct partition *level = &sets->levels[i].partition;
        bool inside = probe_partition_refines(level, of),
             around = probe_partition_refines(of, level);
        worth = inside != around;
    }
    return worth;
}

static int measure(struct sets *sets, struct partition *candidates, size_t count)
{
    size_t before = sets->count;
    int rc = 0;
    qsort(candidates, count, sizeof *candidates, by_units); /* the inner ones first */
    for (size_t i = 0; rc >= 0 && i < count && !probe_late(sets->probe); i++) {
        bool again = i > 0 && probe_partition_refines(&candidates[i - 1], &candidates[i]) &&
                     probe_partition_refines(&candidates[i], &candidates[i - 1]);
        if (again) {
            continue;
        }
        rc = worth_trying(sets, &candidates[i]) ? try_candidate(sets, &candidates[i]) : 0;
        bool units = candidates[i].count < sets->cores.count &&
                     probe_partition_refines(&sets->cores, &candidates[i]);
        rc = rc >= 0 && units ? search_upwards(sets, &candidates[i]) : rc;
    }
    for (size_t i = 0; rc >= 0 && i < before; i++) {
        /* what lies around the levels of pairs */
        rc = outer_of(sets, &sets->levels[i].partition)
                 ? 0
                 : search_upwards(sets, &sets->levels[i].partition);
    }
    if (rc >= 0 && sets->count == 0 && !probe_late(sets->probe)) {
        rc = search_upwards(sets, &sets->cores);
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
    int rc = probe_partition_make(sets->pus, declared ? &declared->cores : &nothing, &sets->cores);
    return rc < 0 ? rc : take_pair_levels(sets, memory);
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

int probe_memory_sets(struct probe *probe, const struct profile_relation *const *candidates,
                      size_t count, struct probe_memory *found, struct servet_error *error)
{
    struct sets sets = {.probe = probe,
                        .pus = &probe->machine->pus,
                        .bytes = found->array_bytes,
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
    rc = rc != 0 ? rc : measure(&sets, partitions, made);
    rc = rc != 0 ? rc : assemble(&sets, found);
    for (size_t i = 0; i < made; i++) {
        probe_partition_free(&partitions[i]);
    }
    free(partitions);
    stop(&sets);
    return rc < 0 ? probe_error(error, rc, "measuring the memory bandwidth of sets of PUs") : 0;
}
