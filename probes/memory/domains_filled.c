/* The domain of one unit: a smallest set of others that leaves nothing for it, and who else gets
 * nothing beside that set. Which units are tried, and what becomes of the groups, is in
 * domains_hidden.c. */
#include "probes/memory/search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_unit(const struct sets_search *search, size_t position, struct workers *out)
{
    probe_sets_add_unit(search->sets, search->units, search->members[position],
                        out->count + search->workers, out);
}

/* Looks at a total, and at one of many workers that many comparisons rest on. Of three looks at one
 * worker all are disturbed once in tens of thousands, of two at one of 128 in every tenth run; of a
 * dozen workers one is disturbed in every third look. */
enum { LOOKS = 3, BASE_LOOKS = 6 };

/* The units at that distance in number, the later one first; how many there are. */
static size_t at_distance(const struct sets_search *search, size_t one, size_t distance,
                          size_t ends[2])
{
    size_t count = 0;
    if (one + distance < search->count) {
        ends[count++] = one + distance;
    }
    if (one >= distance) {
        ends[count++] = one - distance;
    }
    return count;
}

/* The best of so many looks: disturbance only takes bandwidth away. */
static int best_of(struct sets *sets, const struct workers *workers, size_t looks, double *best)
{
    double now;
    int rc = 0;
    *best = 0;
    for (size_t look = 0; look < looks && rc == 0; look++) {
        rc = probe_sets_total(sets, workers, &now);
        *best = rc == 0 ? fmax(*best, now) : *best;
    }
    return rc;
}

int probe_sets_total_of(struct sets *sets, const struct workers *workers, double *bytes_per_s)
{
    return best_of(sets, workers, LOOKS, bytes_per_s);
}

/* The rate of the unit alone, which is measured once. sets->second: the unit. */
static int know_alone(struct sets_search *search, size_t unit, double *alone)
{
    struct sets *sets = search->sets;
    double *known = &search->alone[unit];
    sets->second.count = 0;
    add_unit(search, unit, &sets->second);
    int rc = *known > 0 ? 0 : probe_sets_total_of(sets, &sets->second, known);
    *alone = *known;
    return rc;
}

/* sets->first: the busy units but the one; how many, and (unless NULL) the last of them. */
static size_t put_busy(struct sets_search *search, const bool *busy, size_t one, size_t *last)
{
    struct sets *sets = search->sets;
    size_t units = 0;
    sets->first.count = 0;
    for (size_t i = 0; i < search->count; i++) {
        if (busy[i] && i != one) {
            add_unit(search, i, &sets->first);
            if (last) {
                *last = i;
            }
            units++;
        }
    }
    return units;
}

/* What sets->second, the unit, adds to sets->first, the busy units: `units`, or the one other.
 * Most units add all that they get alone: what each side gets is measured first, once where it is
 * asked again, and then one look at both does. */
static int gain_once(struct sets_search *search, size_t units, size_t other, size_t one,
                     double *gain)
{
    struct sets *sets = search->sets;
    double now = 0, *before = units == 1           ? &search->alone[other]
                              : search->before > 0 ? &search->before
                                                   : &now;
    int rc = *before > 0 ? 0 : probe_sets_total_of(sets, &sets->first, before);
    if (rc == 0 && search->alone[one] <= 0) {
        rc = probe_sets_total_of(sets, &sets->second, &search->alone[one]);
    }
    return rc < 0 ? rc : probe_sets_gain_known(sets, *before, search->alone[one], gain);
}

static int gain_beside(struct sets_search *search, const bool *busy, size_t one, double *gain)
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

/* On a large machine what little looks say is asked again: three of them are disturbed once in some
 * thousand times, which is as often as pairs are asked there. */
int probe_sets_gain_beside(struct sets_search *search, const bool *busy, size_t one, double limit,
                           double *gain)
{
    double again = -INFINITY;
    int rc = gain_beside(search, busy, one, gain);
    if (rc == 0 && *gain < limit && probe_memory_is_large(search->sets->probe)) {
        rc = gain_beside(search, busy, one, &again);
    }
    *gain = fmax(*gain, again);
    return rc;
}

/* Makes one group of the two units' groups. */
void probe_sets_join(struct sets_search *search, size_t first, size_t other, double gain)
{
    uint32_t from = search->group[other], to = search->group[first];
    for (size_t i = 0; i < search->count; i++) {
        search->group[i] = search->group[i] == from ? to : search->group[i];
    }
    search->known[first] = search->known[other] = true;
    search->worst = fmin(search->worst, gain);
    search->best = fmax(search->best, gain);
}

/* Tries to do without `chunk` of the busy units, the farthest in number first. `nearest`: the one,
 * then all others. */
static int do_without(struct sets_search *search, const size_t *nearest, size_t chunk, bool *busy,
                      double *gain)
{
    const size_t most = search->count;
    bool *fewer = malloc(most * sizeof *fewer);
    int rc = fewer ? 0 : -ENOMEM;
    for (size_t left = most; rc == 0 && left > 1 && !probe_late(search->sets->probe);) {
        size_t taken = 0;
        double without = 1;
        memcpy(fewer, busy, most * sizeof *fewer);
        for (; left > 1 && taken < chunk; left--) {
            taken += fewer[nearest[left - 1]];
            fewer[nearest[left - 1]] = false;
        }
        rc = taken
                 ? probe_sets_gain_beside(search, fewer, nearest[0], sets_saturated_gain, &without)
                 : 0;
        if (rc == 0 && without < sets_saturated_gain) {
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
static int shrink(struct sets_search *search, size_t one, bool *busy, double *gain)
{
    size_t *nearest = malloc((search->count + 1) * sizeof *nearest), listed = 1, left = 0;
    if (!nearest) {
        return -ENOMEM;
    }
    nearest[0] = one;
    for (size_t distance = 1; distance < search->count; distance++) {
        listed += at_distance(search, one, distance, &nearest[listed]);
    }
    for (size_t i = 0; i < search->count; i++) {
        left += busy[i];
    }
    int rc = 0;
    for (size_t chunk = (left + 1) / 2; rc == 0 && chunk > 0;
         chunk = chunk > 1 ? (chunk + 1) / 2 : 0) {
        rc = do_without(search, nearest, chunk, busy, gain);
    }
    free(nearest);
    return rc;
}

/* Has no domain so far, whether one was looked for or not: it may have been disturbed. */
static bool is_single(const struct sets_search *search, size_t i)
{
    size_t members = 0;
    for (size_t k = 0; k < search->count && members < 2; k++) {
        members += search->group[k] == search->group[i];
    }
    return members == 1;
}

/* As many of the nearest units in number as filled another domain, in `busy`; false: there are not
 * so many without a domain. */
static bool put_nearest(const struct sets_search *search, size_t one, bool *busy)
{
    size_t wanted = search->fill;
    memset(busy, 0, search->count * sizeof *busy);
    for (size_t distance = 1; distance < search->count && wanted > 0; distance++) {
        size_t ends[2], count = at_distance(search, one, distance, ends);
        for (size_t e = 0; e < count && wanted > 0; e++) {
            if (is_single(search, ends[e])) {
                busy[ends[e]] = true;
                wanted--;
            }
        }
    }
    return search->fill > 0 && wanted == 0;
}

/* A smallest set of others that leaves less than half to the one: of those that the last domain
 * would lead one to expect, or of all. gain >= sets_saturated_gain: there is none. */
static int fill_domain(struct sets_search *search, size_t one, bool *busy, double *gain)
{
    int rc = 0;
    *gain = 1;
    if (put_nearest(search, one, busy)) {
        rc = probe_sets_gain_beside(search, busy, one, sets_saturated_gain, gain);
    }
    if (rc == 0 && *gain >= sets_saturated_gain) {
        for (size_t i = 0; i < search->count; i++) {
            busy[i] = i != one && is_single(search, i);
        }
        rc = probe_sets_gain_beside(search, busy, one, sets_saturated_gain, gain);
    }
    return rc == 0 && *gain < sets_saturated_gain ? shrink(search, one, busy, gain) : rc;
}

static const uint32_t all_units = UINT32_MAX; /* in place of a group */

/* Do the units of that group get less together than one after the other? What one adds to many is a
 * small difference of large sums, of which a single disturbed worker takes as much as the one adds:
 * of 60 PUs with a link each such differences alone make a domain. */
static int is_domain(struct sets_search *search, uint32_t group, bool *less)
{
    struct sets *sets = search->sets;
    double sum = 0, alone, all;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < search->count; i++) {
        if (group == all_units || search->group[i] == group) {
            rc = know_alone(search, i, &alone);
            sum += alone;
        }
    }
    sets->first.count = 0;
    for (size_t i = 0; i < search->count; i++) {
        if (group == all_units || search->group[i] == group) {
            add_unit(search, i, &sets->first);
        }
    }
    rc = rc < 0 ? rc : probe_sets_total_of(sets, &sets->first, &all);
    *less = rc == 0 && all < sets_overhead_share * sum;
    return rc;
}

/* The state before the domain of the one was looked for; it has none. */
static void disband(struct sets_search *search, size_t one, double worst, double best)
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

/* The units that fill the domain of a unit, and those that are asked whether they are in it, too. */
struct asking {
    size_t one;
    bool *busy;     /* units that fill it */
    double gain;    /* what they leave to the one; others of the domain get at most this, or half */
    size_t *others; /* in the order in which they are asked */
    size_t count;
};

/* So many units are asked at a time at most; of more some are disturbed in every other look. */
enum { ASKED_MOST = 8, ASKED_LOOKS = 2 };

/* Neighbours in number first, as they mostly are of the domain, then any: units side by side may
 * be of one other domain, and collide. */
static void order_others(const struct sets_search *search, struct asking *asking)
{
    size_t near = 0;
    for (size_t distance = 1; distance < search->count; distance++) {
        size_t ends[2], count = at_distance(search, asking->one, distance, ends);
        for (size_t e = 0; e < count; e++) {
            if (!asking->busy[ends[e]] && is_single(search, ends[e])) {
                asking->others[asking->count++] = ends[e];
            }
        }
        near = distance <= ASKED_MOST ? asking->count : near;
    }
    random_shuffle(&search->sets->random, asking->others + near, asking->count - near,
                   sizeof *asking->others);
}

/* Does each of these units beside the busy ones get what it gets alone? What one does not get is
 * what they miss together. */
static int ask_together(struct sets_search *search, const struct asking *asking,
                        const size_t *units, size_t count, bool *apart)
{
    struct sets *sets = search->sets;
    double sum = 0, alone, least = INFINITY, after;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = know_alone(search, units[i], &alone);
        sum += alone;
        least = fmin(least, alone);
    }
    put_busy(search, asking->busy, asking->one, NULL);
    for (size_t i = 0; i < count; i++) {
        add_unit(search, units[i], &sets->first);
    }
    *apart = false;
    for (size_t look = 0; rc == 0 && look < ASKED_LOOKS && !*apart; look++) {
        rc = probe_sets_total(sets, &sets->first, &after);
        *apart = rc == 0 && search->before + sum - after < (1 - asking->gain) / 2 * least;
    }
    return rc;
}

/* The total of the busy ones, which all that are asked are compared with. */
static int look_at_busy(struct sets_search *search, const struct asking *asking)
{
    put_busy(search, asking->busy, asking->one, NULL);
    return best_of(search->sets, &search->sets->first, BASE_LOOKS, &search->before);
}

/* Joins the unit where it is of the domain. Where the busy ones leave something, the first of them
 * works as well: what others add is then so little that it is seen at once. */
static int ask_alone(struct sets_search *search, struct asking *asking, size_t unit, bool *apart)
{
    const double inside = (asking->gain + 1) / 2;
    double here;
    int rc = probe_sets_gain_beside(search, asking->busy, unit, inside, &here);
    *apart = rc == 0 && here >= inside;
    if (rc < 0 || *apart) {
        return rc;
    }
    probe_sets_join(search, asking->one, unit, asking->gain);
    if (search->before > 0 && here > sets_surely_full) {
        asking->busy[unit] = true;
        rc = look_at_busy(search, asking);
    }
    return rc;
}

/* Twice as many at a time where all were apart from the domain, half as many where they were not;
 * one by one where each look is a comparison of its own. */
static int ask_others(struct sets_search *search, struct asking *asking)
{
    const size_t most = search->before > 0 ? ASKED_MOST : 1;
    size_t together = 1;
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < asking->count && !probe_late(search->sets->probe);) {
        const size_t left = asking->count - at, asked = together < left ? together : left;
        const size_t *units = &asking->others[at];
        bool apart;
        rc = asked > 1 ? ask_together(search, asking, units, asked, &apart)
                       : ask_alone(search, asking, *units, &apart);
        at += asked == 1 || apart ? asked : 0;
        together = !apart ? (asked + 1) / 2 : asked < most ? 2 * asked : most;
    }
    return rc;
}

/* Members of the domain beside the unit, those first that did not fill it; one more than did. */
static void put_members(const struct sets_search *search, const struct asking *asking, size_t unit,
                        bool *out)
{
    size_t wanted = 1;
    for (size_t i = 0; i < search->count; i++) {
        wanted += asking->busy[i];
        out[i] = false;
    }
    for (int filled = 0; filled < 2; filled++) {
        for (size_t i = 0; i < search->count && wanted > 0; i++) {
            const bool member = search->group[i] == search->group[asking->one] && i != unit;
            if (member && asking->busy[i] == filled) {
                out[i] = true;
                wanted--;
            }
        }
    }
}

/* A set that fills a domain and seems to be the smallest may hold a unit of another one: beside
 * other members it adds what it gets. */
static int ask_busy(struct sets_search *search, const struct asking *asking)
{
    const double inside = (asking->gain + 1) / 2;
    bool *members = malloc(search->count * sizeof *members);
    int rc = members ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < search->count && !probe_late(search->sets->probe); i++) {
        double here = 0;
        put_members(search, asking, i, members);
        rc = asking->busy[i] ? probe_sets_gain_beside(search, members, i, inside, &here) : 0;
        if (rc == 0 && here >= inside) {
            search->group[i] = (uint32_t)i;
            search->known[i] = false;
        }
    }
    free(members);
    return rc;
}

/* The unit's domain, by a smallest set of others that leaves it little, and every other unit in its
 * place. Pairs have been tried: so it is of three units at least. */
static int find_domain(struct sets_search *search, size_t one)
{
    struct asking asking = {.one = one,
                            .busy = calloc(search->count, sizeof *asking.busy),
                            .others = calloc(search->count, sizeof *asking.others),
                            .gain = 1};
    const double worst = search->worst, best = search->best;
    bool less = true;
    int rc = asking.busy && asking.others ? fill_domain(search, one, asking.busy, &asking.gain)
                                          : -ENOMEM;
    search->known[one] = true;
    if (rc == 0 && asking.gain < sets_saturated_gain) {
        if (probe_memory_is_large(search->sets->probe)) {
            search->fill = put_busy(search, asking.busy, one, NULL);
            rc = look_at_busy(search, &asking);
        }
        order_others(search, &asking);
        for (size_t i = 0; i < search->count; i++) {
            if (asking.busy[i]) {
                probe_sets_join(search, one, i, asking.gain);
            }
        }
        rc = rc < 0 ? rc : ask_others(search, &asking);
        search->before = 0;
        rc = rc < 0 ? rc : ask_busy(search, &asking);
        rc = rc < 0 ? rc : is_domain(search, search->group[one], &less);
    }
    free(asking.busy);
    free(asking.others);
    if (!less || probe_late(search->sets->probe)) { /* nobody knows who else is in there */
        disband(search, one, worst, best);
    }
    return rc;
}

/* Units in a row that no domain is found for, any after the first one: where one of four is in a
 * domain, all are missed in one search of a hundred. */
enum { SCOUTS = 16 };

/* The rest of the search is expected to cost as much per unit as its first part. */
static void expect(struct sets_search *search, size_t begun, size_t open)
{
    struct sets *sets = search->sets;
    const double known = (double)(search->count - open);
    sets->ahead_here = known > 0 ? (double)(sets->copies - begun) / known * (double)open
                                 : PROBE_MEMORY_SEARCHED_COPIES * (double)open;
}

/* A domain for each unit, from the first one that has none on: what it was filled by then lies
 * beside it. On a large machine where all get together what they get alone there is none. */
int probe_sets_search_domains(struct sets_search *search)
{
    size_t *open = malloc(search->count * sizeof *open), failed = 0, count = 1;
    bool less = true;
    expect(search, 0, search->count);
    int rc = !open                                        ? -ENOMEM
             : probe_memory_is_large(search->sets->probe) ? is_domain(search, all_units, &less)
                                                          : 0;
    const size_t begun = search->sets->copies;
    while (rc == 0 && less && count > 0 && failed < SCOUTS && !probe_late(search->sets->probe)) {
        count = 0;
        for (size_t i = 0; i < search->count; i++) {
            open[count] = i;
            count += !search->known[i];
        }
        expect(search, begun, count);
        const size_t one = failed ? random_below(&search->sets->random, count + !count) : 0;
        rc = count > 0 ? find_domain(search, open[one]) : 0;
        failed = count > 0 && is_single(search, open[one]) ? failed + 1 : 0;
    }
    search->sets->ahead_here = 0;
    free(open);
    return rc;
}
