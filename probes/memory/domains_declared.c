/* Groups that may be domains, because they are declared or messages show them: all workers of one
 * against as many that are spread over the others (domains.h). */
#include "probes/memory/search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Random members of a candidate group that are tried beside others of it. */
enum { MEMBER_CHECKS = 4 };

/* One group against its siblings. share 1: they cannot be compared. */
int probe_sets_look_at_group(struct sets *sets, const struct partition *of, uint32_t unit,
                             struct domain *out)
{
    uint32_t *scratch = malloc(2 * (sets->pus->count + 1) * sizeof *scratch);
    out->share = 1;
    if (!scratch) {
        return -ENOMEM;
    }
    sets->first.count = 0;
    probe_sets_add_unit(sets, of, unit, sets->pus->count, &sets->first);
    bool comparable =
        sets->first.count > 1 && sets->first.count <= sets->at_once &&
        probe_sets_spread(sets, of, unit, probe_sets_around(sets, of, unit), scratch) &&
        probe_sets_same_kinds(sets);
    free(scratch);
    return comparable ? probe_sets_compare(sets, out) : 0;
}

/* Do the members of the group meet in one domain? Some fill it; a random one more then gets little.
 * Where no set of them leaves less than half for one more, nothing is said. */
static int check_members(struct sets *sets, const struct partition *of, uint32_t unit, bool *alike)
{
    const struct partition *inner = probe_sets_inner_of(sets, of);
    uint32_t *parts = malloc(inner->count * sizeof *parts);
    size_t count = parts ? probe_sets_units_in(inner, of, unit, parts) : 0, busy = 1;
    double gain = 1;
    int rc = parts ? 0 : -ENOMEM;
    *alike = true;
    for (size_t k = 1; rc == 0 && gain > sets_saturated_gain && k < count; k *= 2) {
        sets->first.count = sets->second.count = 0;
        for (size_t i = 0; i < k; i++) {
            probe_sets_add_unit(sets, inner, parts[i], sets->pus->count, &sets->first);
        }
        probe_sets_add_unit(sets, inner, parts[k], sets->pus->count, &sets->second);
        rc = probe_sets_gain(sets, &gain);
        busy = k;
    }
    const double inside = (gain + 1) / 2;
    for (size_t check = 0; rc == 0 && check < MEMBER_CHECKS && gain < sets_saturated_gain &&
                           busy + 1 < count && *alike && !probe_late(sets->probe);
         check++) {
        double again;
        uint32_t member = parts[busy + 1 + random_below(&sets->random, count - busy - 1)];
        sets->second.count = 0;
        probe_sets_add_unit(sets, inner, member, sets->pus->count, &sets->second);
        rc = probe_sets_gain(sets, &again);
        *alike = again < inside;
    }
    free(parts);
    return rc;
}

/* What the parts of the group get one after the other, by one look at each or the best of some. */
static int sum_of_parts(struct sets *sets, const struct partition *of, uint32_t unit, bool once,
                        double *sum)
{
    const struct partition *inner = probe_sets_inner_of(sets, of);
    uint32_t *parts = malloc(inner->count * sizeof *parts);
    const size_t count = parts ? probe_sets_units_in(inner, of, unit, parts) : 0;
    double one = 0;
    int rc = parts ? 0 : -ENOMEM;
    *sum = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        sets->first.count = 0;
        probe_sets_add_unit(sets, inner, parts[i], sets->pus->count, &sets->first);
        rc = once ? probe_sets_total(sets, &sets->first, &one)
                  : probe_sets_total_of(sets, &sets->first, &one);
        *sum += one;
    }
    free(parts);
    return rc;
}

/* Do the parts of the group get less together than one after the other? Where groups are not alike,
 * one of slow parts gets less than as many workers elsewhere, too, and is no domain. Parts may have
 * been disturbed: what says no is looked at again. */
static int loses_inside(struct sets *sets, const struct partition *of, uint32_t unit, bool *loses)
{
    double sum = 0, all = 0;
    sets->first.count = 0;
    probe_sets_add_unit(sets, of, unit, sets->pus->count, &sets->first);
    int rc = probe_sets_total_of(sets, &sets->first, &all);
    *loses = false;
    for (int again = 0; rc == 0 && !*loses && again < 2; again++) {
        rc = sum_of_parts(sets, of, unit, again == 0, &sum);
        *loses = rc == 0 && all < sets_overhead_share * sum;
    }
    return rc;
}

/* Divides groups that lose nothing into single PUs. Where a level lies inside all stay: those that
 * lose something would stand beside the small ones inside of the others as if they were alike. */
static int leave_out(struct sets *sets, struct partition *of, const bool *collides)
{
    const bool inside = probe_sets_inner_of(sets, of) != &sets->cores;
    return inside ? 0 : probe_partition_dissolve(of, collides);
}

/* Where groups disagree, all are looked at. share 1: none loses anything, or the members of that
 * which loses most do not meet in it. */
static int look_at_all(struct sets *sets, struct domain *domain)
{
    struct partition *of = &domain->partition;
    bool *collides = calloc(of->count, sizeof *collides), alike = true;
    struct domain found = {.share = 1}, worst = {.share = 1};
    uint32_t worst_unit = 0;
    int rc = collides ? 0 : -ENOMEM;
    for (uint32_t unit = 0; rc == 0 && unit < of->count && !probe_late(sets->probe); unit++) {
        rc = probe_sets_look_at_group(sets, of, unit, &found);
        if (rc == 0 && found.share < sets_overhead_share) {
            rc = loses_inside(sets, of, unit, &collides[unit]);
        }
        if (collides[unit] && found.share < worst.share) {
            worst = found;
            worst_unit = unit;
        }
    }
    worst.partition = *of;
    worst.of_pairs = -1;
    worst.looked_at = of->count;
    if (rc == 0 && worst.share < sets_overhead_share) {
        rc = check_members(sets, of, worst_unit, &alike);
    }
    if (!alike || probe_late(sets->probe)) { /* of some groups nothing can be said */
        worst.share = 1;
    }
    *domain = worst;
    rc = rc == 0 ? leave_out(sets, &domain->partition, collides) : rc;
    free(collides);
    return rc;
}

/* What the workers of a group get in all, by how many and of which kind they are. */
struct group_like {
    size_t workers, kind;
    double total; /* 0: not known yet */
};

/* That of the unit's like, which is the last one where there was none. */
static struct group_like *find_like(struct sets *sets, const struct partition *of, uint32_t unit,
                                    struct group_like *likes)
{
    const struct group_like mine = {probe_sets_cores_of(sets, of, unit),
                                    probe_sets_kind_of(sets, of, unit), 0};
    while (likes->workers > 0 && (likes->workers != mine.workers || likes->kind != mine.kind)) {
        likes++;
    }
    *likes = likes->workers > 0 ? *likes : mine;
    return likes;
}

/* Does the group get what those like it do? One look that says so is enough: disturbance only takes
 * bandwidth away. */
static int resembles(struct sets *sets, const struct partition *of, uint32_t unit,
                     struct group_like *like, bool *alike)
{
    double total = 0;
    sets->first.count = 0;
    probe_sets_add_unit(sets, of, unit, sets->pus->count, &sets->first);
    int rc = probe_sets_total(sets, &sets->first, &total);
    const bool first = like->total <= 0;
    if (rc == 0 && (first || total < sets_overhead_share * like->total)) {
        rc = probe_sets_total_of(sets, &sets->first, &total);
    }
    *alike = first || (total >= sets_overhead_share * like->total &&
                       sets_overhead_share * total <= like->total);
    like->total = first ? total : like->total;
    return rc;
}

/* Do all groups get what those like them get, and do others than the two that were looked at lose
 * as they do, or not? */
static int all_resemble(struct sets *sets, const struct partition *of, const uint32_t looked_at[2],
                        bool collide, bool *alike)
{
    struct group_like *likes = calloc(of->count + 1, sizeof *likes);
    int rc = likes ? 0 : -ENOMEM;
    *alike = true;
    for (uint32_t u = 0; rc == 0 && *alike && u < of->count && !probe_late(sets->probe); u++) {
        struct group_like *like = find_like(sets, of, u, likes);
        const bool known = like->total > 0 || u == looked_at[0] || u == looked_at[1];
        struct domain found = {.share = 1};
        if (like->workers < 2 || like->workers > sets->at_once) {
            continue;
        }
        rc = resembles(sets, of, u, like, alike);
        rc = rc == 0 && !known ? probe_sets_look_at_group(sets, of, u, &found) : rc;
        *alike &= found.rounds == 0 || (found.share < sets_overhead_share) == collide;
    }
    free(likes);
    return rc;
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

/* The first group and a random second: do they lose something, and do all others as they do?
 * `resemble`: what these two say is said of all. Two that get the same in all are on one side of
 * the margin, whatever each says for itself. */
static int look_at_two(struct sets *sets, const struct partition *of, struct domain *out,
                       bool *resemble)
{
    struct domain second = {.share = 1};
    const uint32_t unit = probe_sets_group_from(sets, of, 0);
    const uint32_t after = unit + 1 + (uint32_t)random_below(&sets->random, of->count - 1);
    const uint32_t looked_at[] = {unit, probe_sets_group_from(sets, of, after)};
    bool alike = true;
    int rc = probe_sets_look_at_group(sets, of, unit, out);
    rc = rc < 0 ? rc : probe_sets_look_at_group(sets, of, looked_at[1], &second);
    const bool of_one_size = out->workers == second.workers,
               two = second.share < sets_overhead_share;
    out->share = of_one_size ? (out->share + second.share) / 2 : out->share;
    const bool collide = out->share < sets_overhead_share;
    *resemble = of_one_size || collide == two;
    rc = rc == 0 && *resemble ? all_resemble(sets, of, looked_at, collide, resemble) : rc;
    if (rc == 0 && collide && *resemble) {
        rc = check_members(sets, of, unit, &alike);
    }
    out->share = alike ? out->share : 1;
    out->looked_at = looked_at[1] == unit ? 1 : 2;
    return rc;
}

int probe_sets_try(struct sets *sets, const struct partition *of)
{
    struct domain found = {.of_pairs = -1, .share = 1};
    bool resemble = true;
    int rc = look_at_two(sets, of, &found, &resemble);
    if (rc < 0 || probe_late(sets->probe) || (resemble && found.share >= sets_overhead_share)) {
        return rc;
    }
    rc = probe_partition_copy(of, &found.partition);
    rc = rc == 0 && !resemble ? look_at_all(sets, &found) : rc;
    const bool any = rc == 0 && found.share < sets_overhead_share;
    rc = any && found.workers == 2 ? probe_sets_adopt_cores(sets, of, found.share) : rc;
    rc = rc == 0 && any ? probe_sets_insert(sets, &found) : rc;
    if (rc <= 0) {
        probe_partition_free(&found.partition);
    } else {
        drop_parts(sets, &found.partition);
    }
    return rc;
}
