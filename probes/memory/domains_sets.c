/* Sets of workers: which PUs work, and what they get.
 *
 * Everything is measured by turns and compared within a round, so that a drift of the machine meets
 * both sides, and a figure is the median of its rounds. The total of a set is compared, not
 * the rate of one of its workers: a saturated link is not always shared evenly. */
#include "probes/memory/search.h"
#include "probes/pairs/stopping.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A unit that adds so much needs no other round; in a first one the others may have been disturbed. */
static const double surely_free = 0.9;
enum { GAIN_ROUNDS_LEAST = 2, GAIN_ROUNDS_MOST = 6 };

/* -- measuring -- */

int probe_sets_total(struct sets *sets, const struct workers *workers, double *bytes_per_s)
{
    size_t room = sets->probe->machine->memory_limit_bytes / (3 * workers->count);
    for (size_t i = 0; i < workers->count; i++) {
        sets->ids[i] = sets->pus->ids[workers->at[i]];
    }
    int rc = probe_memory_copy(sets->probe, sets->bytes < room ? sets->bytes : room, sets->ids,
                               workers->count, sets->rates);
    sets->copies++;
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
    const double made = (double)sets->copies;
    probe_tell(sets->probe, made / (made + sets->ahead + sets->ahead_here + 1),
               "memory of %zu PUs together", workers);
}

/* What sets->first gets in all, of what sets->second (as many) gets. */
int probe_sets_compare(struct sets *sets, struct domain *out)
{
    double shares[REPEAT_MEDIAN_MOST];
    size_t done = 0;
    tell(sets, sets->first.count);
    while (!probe_repeat_side_settled(shares, done, sets_overhead_share) && !is_late(sets, done)) {
        double packed, spread;
        int rc = probe_sets_total(sets, &sets->first, &packed);
        rc = rc < 0 ? rc : probe_sets_total(sets, &sets->second, &spread);
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

/* Both sets, in sets->both; false: more workers than a quota allows, which would show the quota. */
static bool put_together(struct sets *sets)
{
    struct workers *both = &sets->both;
    memcpy(both->at, sets->first.at, sets->first.count * sizeof *both->at);
    memcpy(both->at + sets->first.count, sets->second.at, sets->second.count * sizeof *both->at);
    both->count = sets->first.count + sets->second.count;
    return both->count <= sets->at_once;
}

/* Slow workers beside fast ones: one disturbed worker of these takes as much as a slow one gets
 * alone, and what it adds looks like all. */
static bool is_slower(const struct sets *sets, double before, double alone)
{
    return alone / (double)sets->second.count <
           sets_overhead_share * before / (double)sets->first.count;
}

/* What sets->second adds to sets->first at work, of what it gets alone. Disturbance only takes
 * bandwidth away, and a difference of totals suffers from it more than each of them: the best of
 * the rounds counts, and what is neither little nor all gets more rounds. */
int probe_sets_gain(struct sets *sets, double *gain)
{
    double before = 0, after = 0, alone = 0;
    size_t done = 0;
    *gain = 1;
    if (!put_together(sets)) {
        return 0;
    }
    tell(sets, sets->both.count);
    for (bool settled = false; !settled; settled = settled || is_late(sets, done)) {
        double now;
        int rc = probe_sets_total(sets, &sets->first, &now);
        before = fmax(before, now);
        rc = rc < 0 ? rc : probe_sets_total(sets, &sets->both, &now);
        after = fmax(after, now);
        rc = rc < 0 ? rc : probe_sets_total(sets, &sets->second, &now);
        alone = fmax(alone, now);
        if (rc < 0) {
            return rc;
        }
        *gain = (after - before) / alone;
        done++;
        settled =
            (done >= GAIN_ROUNDS_LEAST && *gain > surely_free && !is_slower(sets, before, alone)) ||
            done == GAIN_ROUNDS_MOST ||
            (done >= REPEAT_MEDIAN_LEAST && *gain < sets_saturated_gain);
    }
    return 0;
}

int probe_sets_gain_known(struct sets *sets, double before, double alone, double *gain)
{
    double after = 0, now;
    *gain = 1;
    if (!put_together(sets)) {
        return 0;
    }
    tell(sets, sets->both.count);
    for (size_t looks = 0; looks < REPEAT_MEDIAN_LEAST && !is_late(sets, looks); looks++) {
        int rc = probe_sets_total(sets, &sets->both, &now);
        if (rc < 0) {
            return rc;
        }
        after = fmax(after, now);
        *gain = (after - before) / alone;
        if (*gain > surely_free) {
            return 0;
        }
    }
    return *gain < sets_surely_full ? 0 : probe_sets_gain(sets, gain);
}

/* -- choosing workers -- */

/* Adds one PU of each core of the unit, up to `most` workers in all. */
void probe_sets_add_unit(const struct sets *sets, const struct partition *of, uint32_t unit,
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

size_t probe_sets_cores_of(struct sets *sets, const struct partition *of, uint32_t unit)
{
    sets->both.count = 0;
    probe_sets_add_unit(sets, of, unit, sets->pus->count, &sets->both);
    return sets->both.count;
}

/* Does the unit of `of` lie in a larger one of `outer`? */
bool probe_sets_is_part(const struct partition *of, uint32_t unit, const struct partition *outer)
{
    bool part = false;
    for (size_t i = 0; i < of->pus && !part; i++) {
        part = outer->unit[i] == outer->unit[of->first[unit]] && of->unit[i] != unit;
    }
    return part;
}

/* The largest level inside of the partition; the cores when there is none. */
const struct partition *probe_sets_inner_of(const struct sets *sets, const struct partition *of)
{
    const struct partition *inner = &sets->cores;
    for (size_t i = 0; i < sets->count; i++) {
        const struct partition *level = &sets->levels[i].partition;
        inner = level->count > of->count && probe_partition_refines(level, of) ? level : inner;
    }
    return inner;
}

/* The smallest level around it, or NULL. */
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

/* The smallest level of which the unit is a part, or NULL. */
const struct partition *probe_sets_around(const struct sets *sets, const struct partition *of,
                                          uint32_t unit)
{
    for (size_t i = 0; i < sets->count; i++) {
        const struct partition *level = &sets->levels[i].partition;
        if (level->count < of->count && probe_partition_refines(of, level) &&
            probe_sets_is_part(of, unit, level)) {
            return level;
        }
    }
    return NULL;
}

/* Units of `inner` in that unit of `of`, by their first PUs; how many. */
size_t probe_sets_units_in(const struct partition *inner, const struct partition *of, uint32_t unit,
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

static size_t workers_in(const struct workers *workers, const struct partition *of, uint32_t unit)
{
    size_t count = 0;
    for (size_t i = 0; i < workers->count; i++) {
        count += of->unit[workers->at[i]] == unit;
    }
    return count;
}

/* The first unit of `inner` in that unit of `of` of which nobody works, or inner->count. */
static uint32_t next_idle(const struct workers *workers, const struct partition *inner,
                          const struct partition *of, uint32_t unit)
{
    uint32_t u = 0;
    while (u < inner->count &&
           (of->unit[inner->first[u]] != unit || workers_in(workers, inner, u) > 0)) {
        u++;
    }
    return u;
}

size_t probe_sets_kind_of(const struct sets *sets, const struct partition *of, uint32_t unit)
{
    const struct kinds *kinds = sets->probe->kinds;
    return kinds ? probe_kinds_find(kinds, sets->pus->ids[of->first[unit]]) : 0;
}

bool probe_sets_spread(struct sets *sets, const struct partition *of, uint32_t unit,
                       const struct partition *outer, uint32_t *scratch)
{
    const struct partition *inner = probe_sets_inner_of(sets, of);
    struct workers *spread = &sets->second;
    uint32_t *siblings = scratch, *parts = scratch + of->count, next = 0;
    size_t count = 0;
    const size_t wanted = probe_sets_units_in(inner, of, unit, parts),
                 kind = probe_sets_kind_of(sets, of, unit);
    for (uint32_t u = 0; u < of->count; u++) {
        const bool around = !outer || outer->unit[of->first[u]] == outer->unit[of->first[unit]];
        if (around && probe_sets_kind_of(sets, of, u) == kind) {
            siblings[count++] = u;
        }
    }
    const size_t used = wanted < count ? wanted : count;
    spread->count = 0;
    while (count > 1 && next < inner->count && spread->count < sets->first.count) {
        size_t fewest = SIZE_MAX;
        next = inner->count;
        for (size_t s = 0; s < used; s++) {
            const uint32_t sibling = siblings[s * count / used],
                           idle = next_idle(spread, inner, of, sibling);
            const size_t have = workers_in(spread, of, sibling);
            next = idle < inner->count && have < fewest ? idle : next;
            fewest = idle < inner->count && have < fewest ? have : fewest;
        }
        if (next < inner->count) {
            probe_sets_add_unit(sets, inner, next, sets->first.count, spread);
        }
    }
    return count > 1 && spread->count == sets->first.count;
}

/* Kinds of cores do not copy equally fast: sets of other kinds cannot be compared. */
bool probe_sets_same_kinds(const struct sets *sets)
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

/* The first group of at least two units of what lies inside, from `from` on, round to the
 * beginning. */
uint32_t probe_sets_group_from(const struct sets *sets, const struct partition *of, uint32_t from)
{
    const struct partition *inner = probe_sets_inner_of(sets, of);
    uint32_t unit = from % of->count;
    while (!probe_sets_is_part(inner, inner->unit[of->first[unit]], of) &&
           (unit + 1) % of->count != from % of->count) {
        unit = (unit + 1) % of->count;
    }
    return unit;
}
