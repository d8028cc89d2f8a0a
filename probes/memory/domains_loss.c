/* Are groups domains that are declared, or that messages or caches show? The parts of a domain get
 * less together than separately, and each of them gets little beside a set of others that saturates
 * it. A group around hidden domains has the first in common with them, and not the second. */
#include "probes/memory/search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MEMBER_CHECKS: parts; 0.4 % miss three of four elsewhere. Without it groups around hidden domains
 * pass. */
enum { MEMBER_CHECKS = 4 };

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
        TRY(works[u] ? probe_sets_alone(sets, inner, u, &one) : 0);
        if (works[u] && isnan(one)) {
            return 0;
        }
        sum += works[u] ? one : 0;
    }
    /* a total of many that seems to lose something may have been disturbed */
    for (int again = 0; again < 2 && all < PROBE_MEMORY_COLLISION * sum; again++) {
        TRY(probe_sets_total(sets, inner, works, false, &one));
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
    FREED_BY(probe_search_stop) struct search search = {0};
    FREED bool *busy = calloc(inner->count, sizeof *busy);
    double gain = 1;
    *all = *none = true;
    TRY(busy ? probe_search_start(&search, sets, inner, of, unit) : -ENOMEM);
    TRY(probe_search_fill(&search, search.list[0], busy, &gain));
    if (outer && gain >= search.limit) {
        /* no part is left little, but some lose: so may others of the domain around */
        search.limit = SETS_PAIR_GAIN;
        memset(busy, 0, inner->count * sizeof *busy);
        TRY(probe_search_fill(&search, search.list[0], busy, &gain));
    }
    for (size_t check = 0; gain < search.limit && check < MEMBER_CHECKS; check++) {
        const uint32_t part = random_part(sets, inner, from, around, outer ? of : NULL, unit);
        bool member;
        if (!busy[part] && part != search.list[0]) {
            TRY(probe_search_ask(&search, busy, gain, part, &member));
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

/* Levels inside of the new one with groups as large as its own: some of its groups, which pairs
 * showed. */
static void drop_parts(struct sets *sets, const struct partition *of)
{
    const size_t largest = probe_partition_largest(of);
    for (size_t i = sets->count; i > 0; i--) {
        const struct partition *level = &sets->levels[i - 1].partition;
        if (level->count > of->count && probe_partition_refines(level, of) &&
            probe_partition_largest(level) == largest) {
            probe_sets_drop(sets, i - 1);
        }
    }
}

static int accept(struct sets *sets, const struct partition *of, const double *shares,
                  uint32_t least)
{
    FREED_BY(probe_partition_free) struct partition groups = {0};
    TRY(probe_partition_copy(of, &groups));
    /* Where a level lies inside all groups stay: one large one would stand beside the small ones
     * inside of the others as their like. */
    if (probe_sets_inner_of(sets, of) == &sets->cores) {
        TRY(keep_groups(&groups, shares));
    }
    if (probe_partition_largest(of) == 2) {
        TRY(probe_sets_adopt_cores(sets, of, shares[least]));
    }
    const struct partition kept = groups;
    if (probe_sets_insert(sets, &groups, shares[least])) {
        drop_parts(sets, &kept);
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
