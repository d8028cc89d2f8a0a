/* What is told of the levels that the search of fit.c found: their sizes, the interval of each, and
 * the last one's shape. The search takes whatever explains the curve best; what is told is weighed
 * again, because points of a knee that are off together are fewer than they look (doubt_of()), and
 * because the last level has shapes that the search does not know (last.c). To see it: `accuracy
 * --list --method default MACHINE.json` (benchmarks/probes). */
#include "probes/cache/cache.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/statistics.h"

/* Chosen on measured and simulated curves: */
static const double least_rise = 1.25;  /* a smaller step in latency is not a level */
static const size_t refined_levels = 3; /* of fewer levels the last is hardly a shared cache */
static const double alternative_margin =
    12; /* sizes within this of the best objective, how often they are built aside, are its range */

/* The same of the last level. Its shapes are off by more than what samples scatter by, and what a
 * shape is off, it is off at neighbouring points alike: two points say as much as one. */
static const double last_margin = 24;
/* Two last levels may be one where the second is at most so many times larger. */
static const double joined_up_to = 4;

/* What a shape is off the curve, it is off at neighbouring points alike, and each of them says less
 * than one that is off by chance: the share of what is off that goes on to the next point tells how
 * many points say what one would (the variance of the mean of a series with such a share). Where
 * all that is off is less than the errors that count anyway, it does not matter. Knees of Cascade
 * Lake's second level, whose policy is none of ours, make 2 to 4. */
static const double knee_from = 1 / 2.2, knee_to = 2.2; /* times the level's size */
static const double share_most = 0.67;                  /* more cannot be told from so few points */

static double off_by(const struct cache_terms *fit, const struct cache_solution *solution,
                     size_t point)
{
    double off = fit->right[point] - solution->coefficients[0] * fit->base[point];
    for (size_t j = 0; j < solution->count; j++) {
        off -= solution->coefficients[1 + j] * fit->candidates[solution->terms[j]].column[point];
    }
    return off;
}

static double doubt_of(const struct cache_terms *fit, const struct cache_curve *curve,
                       const struct cache_solution *solution, size_t at)
{
    const double size = (double)fit->candidates[solution->terms[at]].shape.bytes;
    const double floor = probe_cache_floor_of(fit);
    double before = 0, along = 0, here = 0, count = 0, all = 0;
    for (size_t i = 0; i < curve->count; i++) {
        const double off = off_by(fit, solution, i);
        all += off * off;
        if (curve->bytes[i] >= knee_from * size && curve->bytes[i] <= knee_to * size) {
            along += off * before;
            here += off * off;
            count += fit->near_count > 0 ? probe_cache_point_share(curve, i) : 1;
            before = off;
        }
    }
    if (here <= 0) {
        return 1;
    }
    const double share = fmin(fmax(along / here, 0), share_most);
    const double matters = fmin(1, here / count / (all / fit->count + floor * floor));
    return 1 + matters * ((1 + share) / (1 - share) - 1);
}

/* One level's sizes, looked at beside the others: what the curve says of each counts 1 / `doubt`,
 * how often it is built in full. */
struct outlook {
    double doubt;
    double least; /* objective, how often sizes are built aside */
    double best;  /* the two together */
    const struct cache_candidate *chosen;
    double limit; /* of the range */
    uint64_t low, high;
};

static void choose(const struct cache_candidate *candidate, double objective, void *argument)
{
    struct outlook *outlook = argument;
    const double data = objective - candidate->size_price;
    const double all = data / outlook->doubt + candidate->size_price;
    if (candidate->reach_bytes > 0) {
        return;
    }
    outlook->least = fmin(outlook->least, data);
    if (all < outlook->best) {
        outlook->best = all;
        outlook->chosen = candidate;
    }
}

static void widen(const struct cache_candidate *candidate, double objective, void *argument)
{
    struct outlook *outlook = argument;
    if (objective - candidate->size_price > outlook->limit || candidate->reach_bytes > 0) {
        return;
    }
    if (candidate->shape.bytes < outlook->low) {
        outlook->low = candidate->shape.bytes;
    }
    if (candidate->shape.bytes > outlook->high) {
        outlook->high = candidate->shape.bytes;
    }
}

/* Where lines fall into sets by random pages, a policy that is none of ours passes for another size
 * and all samples in the world do not tell: a hundred places of Cascade Lake's second level of 1
 * MiB were explained as well by 1,200 KiB (LRU) as by 1,008 (quad-age). */
static const double policy_leaves = 1.19; /* times larger or smaller */

static void allow_for_policy(struct outlook *outlook)
{
    const double bytes = (double)outlook->chosen->shape.bytes, whole = 1024;
    if (outlook->chosen->shape.scattered) {
        outlook->low =
            (uint64_t)fmin((double)outlook->low, floor(bytes / policy_leaves / whole) * whole);
        outlook->high =
            (uint64_t)fmax((double)outlook->high, ceil(bytes * policy_leaves / whole) * whole);
    }
}

/* Who uses a level beside us only takes of it, and not all the time: repeats at one place differ.
 * An idle machine's differ by less than 2 % at a knee; where other programs use a core's caches (a
 * virtual Zen 3, whose 512 KiB were told as 192 to 384), by 4 to 20 %. */
static const double others_from = 0.03;
/* Who streams as fast as a core can brings in a line in half the time that ours takes to hit one
 * (2.5 and 5 ns): where the least recently used goes, a third of the level is ours. */
static const uint64_t core_shares = 3;

/* The middle one of what repeats at a place differ by, at the points of a knee. */
static double knee_spread(const struct cache_curve *curve, double size)
{
    double *spreads = malloc(curve->count * sizeof *spreads), middle = 0;
    size_t count = 0;
    for (size_t i = 0; spreads && i < curve->count; i++) {
        if (curve->bytes[i] >= knee_from * size && curve->bytes[i] <= knee_to * size) {
            spreads[count++] = curve->spread[i];
        }
    }
    middle = count > 0 ? profile_median_value(spreads, count) : 0;
    free(spreads);
    return middle;
}

/* Not of the first level: what its ways make up says how large it is (geometry.c). */
static void allow_for_others(const struct cache_terms *fit, const struct cache_curve *curve,
                             const struct cache_solution *solution, size_t at,
                             struct outlook *outlook)
{
    const bool first = at == 0 || fit->candidates[solution->terms[at - 1]].reach_bytes > 0;
    if (!first && curve->spread &&
        knee_spread(curve, (double)outlook->chosen->shape.bytes) >= others_from) {
        const uint64_t whole = core_shares * outlook->chosen->shape.bytes;
        outlook->high = outlook->high > whole ? outlook->high : whole;
    }
}

/* Gives the level at `at` the size that is told, and finds those that explain the curve about as
 * well. */
static struct outlook look_at_sizes(const struct cache_terms *fit, const struct cache_curve *curve,
                                    struct cache_solution *solution, size_t at)
{
    struct outlook outlook = {.doubt = doubt_of(fit, curve, solution, at),
                              .least = INFINITY,
                              .best = INFINITY,
                              .chosen = &fit->candidates[solution->terms[at]]};
    struct cache_solution copy = *solution;
    probe_cache_best_at(fit, &copy, at, choose, &outlook);
    outlook.limit = outlook.least + alternative_margin * outlook.doubt;
    outlook.low = outlook.high = outlook.chosen->shape.bytes;
    copy = *solution;
    probe_cache_best_at(fit, &copy, at, widen, &outlook);
    allow_for_policy(&outlook);
    allow_for_others(fit, curve, solution, at, &outlook);
    solution->terms[at] = (size_t)(outlook.chosen - fit->candidates);
    probe_cache_solve_terms(fit, solution);
    return outlook;
}

/* Caches by size; TLBs first. */
static void sort_terms(const struct cache_terms *fit, struct cache_solution *solution)
{
    for (size_t i = 1; i < solution->count; i++) {
        for (size_t j = i; j > 0; j--) {
            size_t a = solution->terms[j - 1], b = solution->terms[j];
            if (fit->candidates[a].shape.bytes <= fit->candidates[b].shape.bytes) {
                break;
            }
            solution->terms[j - 1] = b;
            solution->terms[j] = a;
            double swap = solution->coefficients[j];
            solution->coefficients[j] = solution->coefficients[j + 1];
            solution->coefficients[j + 1] = swap;
        }
    }
}

/* How many of the first `count` terms are levels that show, and which of them is the last one. */
static size_t levels_among(const struct cache_terms *fit, const struct cache_solution *solution,
                           size_t count, size_t *last)
{
    size_t levels = 0;
    double latency = solution->coefficients[0];
    for (size_t i = 0; i < count; i++) {
        double rise = solution->coefficients[1 + i];
        if (fit->candidates[solution->terms[i]].reach_bytes > 0) {
            continue;
        }
        if (latency > 0 && (latency + rise) / latency >= least_rise) {
            levels++;
            *last = i;
        }
        latency += rise;
    }
    return levels;
}

/* The position of the last level that shows, if there are two before it; SIZE_MAX: none. */
static size_t last_level(const struct cache_terms *fit, const struct cache_solution *solution)
{
    size_t at = SIZE_MAX;
    return levels_among(fit, solution, solution->count, &at) < refined_levels ? SIZE_MAX : at;
}

/* The constant, and the miss shares of the first `count` candidates at every point of the curve.
 * Owned; NULL: no memory. */
static double *raw_columns(const struct cache_curve *curve, const struct cache_candidate *const *of,
                           size_t count)
{
    double *columns = malloc((1 + count) * curve->count * sizeof *columns);
    for (size_t i = 0; columns && i < curve->count; i++) {
        columns[i] = 1;
        for (size_t j = 0; j < count; j++) {
            columns[(1 + j) * curve->count + i] =
                probe_cache_candidate_miss_share(of[j], curve->bytes[i], curve->page_bytes);
        }
    }
    return columns;
}

/* The terms beside one that is looked at. */
struct others {
    const struct cache_candidate *terms[CACHE_TERMS_MAX];
    size_t count;
};

static struct others terms_before(const struct cache_terms *fit,
                                  const struct cache_solution *solution, size_t at)
{
    struct others others = {.count = at};
    for (size_t i = 0; i < at; i++) {
        others.terms[i] = &fit->candidates[solution->terms[i]];
    }
    return others;
}

/* A level in the finer shapes of last.c; false: it stays as it is. Of `last` the curve, the sizes
 * and the margin are set. */
static bool in_finer_shapes(const struct others *others, struct cache_last *last,
                            struct cache_last_found *found)
{
    double *columns = raw_columns(last->curve, others->terms, others->count);
    if (!columns) {
        return false;
    }
    for (last->fixed_count = 0; last->fixed_count < 1 + others->count; last->fixed_count++) {
        last->fixed[last->fixed_count] = columns + last->fixed_count * last->curve->count;
    }
    bool refined = probe_cache_last_refine(last, found);
    free(columns);
    return refined;
}

static double bytes_at(const struct cache_terms *fit, const struct cache_solution *solution,
                       size_t at)
{
    return (double)fit->candidates[solution->terms[at]].shape.bytes;
}

/* The rise of one cache of a shape that only last.c knows may pass for those of two levels side by
 * side (8 ways in 37 slices: 64 and 128 MiB for 74). If it explains the curve about as well, two
 * become one, and the levels before them stay. True: `solution` has a term less, and `at` is that
 * of the last. */
static bool join_last(const struct cache_terms *fit, const struct cache_curve *curve,
                      struct cache_solution *solution, size_t *at)
{
    if (*at < fit->known + 3 || bytes_at(fit, solution, *at - 3) == 0 ||
        bytes_at(fit, solution, *at) > joined_up_to * bytes_at(fit, solution, *at - 1)) {
        return false;
    }
    const double before = bytes_at(fit, solution, *at - 2);
    const double both = sqrt(bytes_at(fit, solution, *at - 1) * bytes_at(fit, solution, *at));
    struct cache_last one = {.curve = curve,
                             .before_bytes = (uint64_t)before,
                             .found_bytes = (uint64_t)both,
                             .joined_bytes = (uint64_t)bytes_at(fit, solution, *at),
                             .earlier_bytes = sqrt(before * both)};
    struct cache_last two = one;
    two.before_bytes = (uint64_t)bytes_at(fit, solution, *at - 1);
    two.found_bytes = (uint64_t)bytes_at(fit, solution, *at);
    two.joined_bytes = 0;
    struct cache_solution joined = *solution;
    joined.terms[*at - 1] = joined.terms[*at];
    struct cache_last_found as_one, as_two;
    const struct others beside_one = terms_before(fit, &joined, *at - 1),
                        beside_two = terms_before(fit, solution, *at);
    if (!in_finer_shapes(&beside_one, &one, &as_one) ||
        (in_finer_shapes(&beside_two, &two, &as_two) &&
         as_two.objective + last_margin < as_one.objective)) {
        return false;
    }
    joined.count = *at; /* what came after the last goes in any case */
    *solution = joined;
    *at -= 1;
    return true;
}

/* What last.c finds of the last level, and of a third one before a fourth. */
struct finer {
    struct cache_last_found last, third;
    size_t at; /* the last one's term; SIZE_MAX: it stays as it is */
    bool third_found;
};

/* The level before the last has shapes of last.c as well if it is the third. Each is looked at
 * beside what the other is so far. */
static void refine_third(const struct cache_terms *fit, const struct cache_solution *solution,
                         struct cache_last *last, struct finer *finer)
{
    const size_t at = finer->at;
    size_t third_at = SIZE_MAX;
    if (levels_among(fit, solution, at, &third_at) < refined_levels || third_at + 1 != at) {
        return;
    }
    const struct cache_candidate fourth = {.shape = finer->last.shape};
    const double size = bytes_at(fit, solution, at - 1);
    struct cache_last third = {.curve = last->curve,
                               .found_bytes = (uint64_t)size,
                               .before_bytes = (uint64_t)bytes_at(fit, solution, at - 2),
                               .later_bytes = sqrt(size * (double)fourth.shape.bytes),
                               .margin = last_margin};
    struct others others = terms_before(fit, solution, at - 1);
    others.terms[others.count++] = &fourth;
    finer->third_found = in_finer_shapes(&others, &third, &finer->third);
    const struct cache_candidate found = {.shape = finer->third.shape};
    if (finer->third_found) {
        others.terms[at - 1] = &found;
        last->before_bytes = found.shape.bytes;
        in_finer_shapes(&others, last, &finer->last);
    }
}

/* The last of three levels or more in the finer shapes of last.c. What came after it, too small a
 * rise to be a level, made up for its shape: it goes. */
static struct finer refine_last(const struct cache_terms *fit, const struct cache_curve *curve,
                                struct cache_solution *solution)
{
    struct finer finer = {.at = last_level(fit, solution)};
    if (finer.at == SIZE_MAX) {
        return finer;
    }
    struct cache_last last = {.curve = curve->fine ? curve->fine : curve,
                              .found_bytes = (uint64_t)bytes_at(fit, solution, finer.at),
                              .margin = last_margin};
    const double both =
        sqrt(bytes_at(fit, solution, finer.at - 1) * bytes_at(fit, solution, finer.at));
    if (join_last(fit, last.curve, solution, &finer.at)) {
        last.joined_bytes = last.found_bytes;
        last.found_bytes = (uint64_t)both;
    }
    last.before_bytes = (uint64_t)bytes_at(fit, solution, finer.at - 1);
    const struct others others = terms_before(fit, solution, finer.at);
    if (!in_finer_shapes(&others, &last, &finer.last)) {
        finer.at = SIZE_MAX;
        return finer;
    }
    refine_third(fit, solution, &last, &finer);
    solution->count = 1 + finer.at;
    memcpy(solution->coefficients, finer.last.coefficients, sizeof finer.last.coefficients);
    return finer;
}

/* Looks at the sizes of every cache but the one at `later`, and but those that were looked at. */
static void look_at_levels(const struct cache_terms *fit, const struct cache_curve *curve,
                           struct cache_solution *solution, size_t later, struct outlook *outlooks)
{
    const struct cache_curve *looked_at = fit->near_count > 0 ? curve->fine : curve;
    for (size_t i = fit->known; i < solution->count; i++) {
        const struct cache_candidate *term = &fit->candidates[solution->terms[i]];
        if (i != later && term->reach_bytes == 0 && outlooks[i].chosen != term) {
            outlooks[i] = look_at_sizes(fit, looked_at, solution, i);
        }
    }
}

size_t probe_cache_tell(const struct cache_terms *fit, const struct cache_curve *curve,
                        struct cache_solution *solution, struct cache_level_fit *levels,
                        double *beyond_s)
{
    size_t count = 0;
    struct finer finer = {.at = SIZE_MAX};
    struct outlook outlooks[CACHE_TERMS_MAX] = {0};
    sort_terms(fit, solution);
    /* the last level of several is looked at in last.c, after those before it */
    const size_t later = curve->quick ? SIZE_MAX : last_level(fit, solution);
    look_at_levels(fit, curve, solution, later, outlooks);
    if (later != SIZE_MAX) {
        finer = refine_last(fit, curve, solution);
    }
    if (later != SIZE_MAX && finer.at == SIZE_MAX) { /* it stays as it is */
        look_at_levels(fit, curve, solution, SIZE_MAX, outlooks);
    }
    double latency = solution->coefficients[0];
    for (size_t i = 0; i < solution->count; i++) {
        const struct cache_candidate *chosen = &fit->candidates[solution->terms[i]];
        const bool third = finer.third_found && i + 1 == finer.at;
        double next = latency + solution->coefficients[1 + i];
        if (chosen->reach_bytes > 0) {
            continue;
        }
        if (i == finer.at || third) {
            const struct cache_last_found *found = third ? &finer.third : &finer.last;
            levels[count++] = (struct cache_level_fit){found->shape, latency, next / latency,
                                                       found->low_bytes, found->high_bytes};
        } else if (latency > 0 && next / latency >= least_rise) {
            levels[count++] = (struct cache_level_fit){chosen->shape, latency, next / latency,
                                                       outlooks[i].low, outlooks[i].high};
        }
        latency = next;
    }
    if (beyond_s) {
        *beyond_s = latency;
    }
    return count;
}
