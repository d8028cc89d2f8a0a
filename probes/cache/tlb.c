/* Reaches of the TLBs. They have to be known before sizes are fitted: a reach bends the latency
 * curve as a cache does. */
#include "probes/cache/probe.h"

#include <errno.h>
#include <math.h>

/* Per octave: of tried reaches, and where a budget has to hold the passes too; of reaches around
 * the best ones. */
enum { FEW_STEPS = CACHE_STEPS_PER_OCTAVE / CACHE_FEW_EACH, FINE_STEPS = 32 };
static const double first_pages = 8, last_pages = 16384;
/* A miss counts as a level from this share of the reference latency on. */
static const double least_share = 0.15;
/* Pages side by side fill the sets of a TLB evenly. One more than fits puts one too many into one
 * set, and under LRU all of that set miss: of w ways, w + 1 pages for each that does not fit. What
 * is tried at first, 3 ways, is right of no TLB and near to random replacement; around the best
 * reaches, up to 16, and 64 as fully associative ones have. */
static const double sharpnesses[] = {2, 3, 4, 5, 7, 9, 13, 17, 65};

static double miss_share(double reach, double sharpness, double pages)
{
    return pages > reach ? fmin(1, sharpness * (1 - reach / pages)) : 0;
}

/* Extra time by number of pages, and the latency without it. */
struct curve {
    const double *pages, *extra_s, *reference_s;
    size_t count;
};

/* One or two reaches, what a miss of each costs, and how well that explains a curve. */
struct knees {
    double reach[CACHE_TLBS_MAX], sharpness[CACHE_TLBS_MAX], cost[CACHE_TLBS_MAX], residual;
    size_t count;
};

/* Least squares of the extra time, relative to the latency, over the knees, costs >= 0: sets cost
 * and residual, which is infinite where a cost would be negative. */
static void fit_costs(const struct curve *curve, struct knees *knees)
{
    double aa = 0, ab = 0, bb = 0, ay = 0, by = 0, yy = 0;
    for (size_t i = 0; i < curve->count; i++) {
        const double pages = curve->pages[i], extra_s = curve->extra_s[i];
        const double weight = 1 / (curve->reference_s[i] + fmax(0, extra_s));
        const double a = weight * miss_share(knees->reach[0], knees->sharpness[0], pages);
        const double b =
            knees->count > 1 ? weight * miss_share(knees->reach[1], knees->sharpness[1], pages) : 0;
        const double y = weight * extra_s;
        aa += a * a, ab += a * b, bb += b * b, ay += a * y, by += b * y, yy += y * y;
    }
    const double det = aa * bb - ab * ab;
    const bool both = knees->count > 1 && det > 1e-12;
    knees->cost[0] = both ? (ay * bb - by * ab) / det : aa > 0 ? ay / aa : 0;
    knees->cost[1] = both ? (by * aa - ay * ab) / det : 0;
    knees->residual = knees->cost[0] < 0 || knees->cost[1] < 0
                          ? INFINITY
                          : yy - knees->cost[0] * ay - knees->cost[1] * by;
}

static void keep_better(const struct curve *curve, struct knees tried, struct knees *best)
{
    fit_costs(curve, &tried);
    if (tried.residual < best->residual) {
        *best = tried;
    }
}

static struct knees search(const struct curve *curve, size_t count)
{
    struct knees best = {.residual = INFINITY};
    const double step = exp2(1.0 / FEW_STEPS), end = last_pages / 1.5;
    for (double first = first_pages; first < end; first *= step) {
        /* of one knee the second is not looked at: any will do, once */
        for (double second = count > 1 ? 2 * first : end / step; second < end; second *= step) {
            keep_better(curve,
                        (struct knees){.reach = {first, second},
                                       .sharpness = {sharpnesses[2], sharpnesses[2]},
                                       .count = count},
                        &best);
        }
    }
    return best;
}

/* The best reach of one knee around the one it has, the others as they are. Where there is no point
 * between, many explain a curve as well: the one in the middle of those. */
static struct knees refine_one(const struct curve *curve, const struct knees *from, size_t which)
{
    enum { AROUND = FINE_STEPS / FEW_STEPS, TRIED = 2 * AROUND + 1 };
    const double as_good = 1e-5 * (double)curve->count; /* squares of errors of 0.3 % */
    struct knees tried[TRIED], best = {.residual = INFINITY};
    size_t low = TRIED, high = 0;
    for (size_t i = 0; i < TRIED; i++) {
        struct knees one = *from;
        tried[i] = (struct knees){.residual = INFINITY};
        one.reach[which] *= exp2(((double)i - AROUND) / FINE_STEPS);
        for (size_t s = 0; s < sizeof sharpnesses / sizeof *sharpnesses; s++) {
            one.sharpness[which] = sharpnesses[s];
            keep_better(curve, one, &tried[i]);
        }
        best = tried[i].residual < best.residual ? tried[i] : best;
    }
    for (size_t i = 0; i < TRIED; i++) {
        if (tried[i].residual <= best.residual + as_good) {
            low = low < i ? low : i;
            high = i;
        }
    }
    return low <= high ? tried[(low + high) / 2] : *from;
}

/* All reaches by turns, as long as that explains the curve better. */
static struct knees refine_knees(const struct curve *curve, struct knees best)
{
    double before = INFINITY;
    while (best.residual < before) {
        before = best.residual;
        for (size_t i = 0; i < best.count; i++) {
            best = refine_one(curve, &best, i);
        }
    }
    return best;
}

static double reference_at(const struct curve *curve, double pages)
{
    size_t i = 0;
    while (i + 1 < curve->count && curve->pages[i] < pages) {
        i++;
    }
    return curve->reference_s[i];
}

struct reaches {
    double pages[CACHE_TLBS_MAX], seconds[CACHE_TLBS_MAX]; /* smallest first */
    size_t count;
};

/* Knees of the extra time by number of pages. */
static struct reaches infer_reaches(const struct curve *curve)
{
    const double floor = 1e-4 * (double)curve->count; /* squares of errors of 1 % are no evidence */
    const struct knees one = search(curve, 1), two = search(curve, 2);
    const bool second = two.residual + floor < 0.6 * (one.residual + floor);
    const struct knees best = refine_knees(curve, second ? two : one);
    struct reaches found = {.count = 0};
    for (size_t i = 0; i < best.count; i++) {
        if (best.cost[i] > least_share * reference_at(curve, best.reach[i])) {
            found.pages[found.count] = best.reach[i];
            found.seconds[found.count++] = best.cost[i];
        }
    }
    return found;
}

/* A line in each of so many pages; or, for reference, as many lines, one every `apart` bytes. */
struct visits {
    enum machine_pages kind;
    size_t pages;
    size_t apart; /* 0: a page */
};

static int measure_pages(struct probe *probe, uint32_t pu, const struct visits *visits,
                         double *seconds)
{
    const size_t stride = visits->apart ? visits->apart : probe->machine->page_bytes;
    const struct machine_traversal what = {.bytes = visits->pages * stride,
                                           .stride_bytes = stride,
                                           .order = visits->apart ? MACHINE_CHASE : MACHINE_SPREAD,
                                           .pages = visits->kind};
    return probe_cache_load(probe, pu, what, seconds);
}

/* The same number of lines is compared: of shorter steps than a line several would be one, and the
 * first level, which holds more of them then, would pass for a TLB. */
static int measure_both(struct probe *probe, uint32_t pu, struct visits visits, uint32_t line_bytes,
                        double *spread_s, double *reference_s)
{
    visits.apart = 0;
    TRY(measure_pages(probe, pu, &visits, spread_s));
    visits.apart = line_bytes > 0 ? line_bytes : MACHINE_LINE_BYTES;
    return measure_pages(probe, pu, &visits, reference_s);
}

int probe_tlb_extra(struct probe *probe, uint32_t pu, size_t bytes, uint32_t line_bytes,
                    double *seconds)
{
    const struct visits visits = {.kind = machine_pages(probe->machine),
                                  .pages = bytes / probe->machine->page_bytes};
    double spread_s, reference_s;
    TRY(measure_both(probe, pu, visits, line_bytes, &spread_s, &reference_s));
    *seconds = spread_s - reference_s;
    return 0;
}

static bool fits_memory(const struct probe *probe, double bytes)
{
    return (!probe->largest_bytes || bytes <= (double)probe->largest_bytes) &&
           bytes <= (double)probe->machine->memory_limit_bytes / 4;
}

int probe_tlb_pass(struct probe *probe, uint32_t pu, enum machine_pages kind,
                   struct probe_tlb_times *times, struct servet_error *error)
{
    const int steps = probe->deadline > 0 ? FEW_STEPS : CACHE_STEPS_PER_OCTAVE;
    size_t count = 0;
    TRY(probe_error(error, times->passes < TLB_PASSES_MAX ? 0 : -ENOSPC, "measuring the TLB"));
    double *spread_s = times->spread_s[times->passes],
           *reference_s = times->reference_s[times->passes];
    for (size_t i = 0; i < TLB_POINTS_MAX; i++) {
        double pages = floor(first_pages * exp2((double)i / steps));
        if (pages > last_pages || !fits_memory(probe, pages * (double)probe->machine->page_bytes)) {
            break;
        }
        const struct visits visits = {.kind = kind, .pages = (size_t)pages};
        TRY(probe_error(
            error,
            measure_both(probe, pu, visits, times->line_bytes, &spread_s[i], &reference_s[i]),
            "measuring the TLB"));
        times->pages[i] = pages;
        count = i + 1;
    }
    times->count = count;
    times->passes++;
    return 0;
}

/* Out of the passes from `first` on. The least time of the lines spread over pages, and the middle
 * one of the same lines side by side: those lie in few pages, and as these fall, caches hold more
 * or fewer of them. The least of both made levels up out of the best of several falls. */
static struct reaches infer_of(const struct probe_tlb_times *times, uint32_t first, uint32_t end)
{
    double extra[TLB_POINTS_MAX], reference[TLB_POINTS_MAX], side_by_side[TLB_PASSES_MAX];
    for (size_t i = 0; i < times->count; i++) {
        double spread = INFINITY;
        for (uint32_t pass = first; pass < end; pass++) {
            spread = fmin(spread, times->spread_s[pass][i]);
            side_by_side[pass - first] = times->reference_s[pass][i];
        }
        reference[i] = profile_median_value(side_by_side, end - first);
        extra[i] = spread - reference[i];
    }
    return infer_reaches(&(struct curve){times->pages, extra, reference, times->count});
}

/* Of the reach of each pass that is nearest to `pages`, if it is of the same level. Not known where
 * all are one of the tried reaches: those are steps of 2 %. */
static double spread_of_reach(const struct reaches *passes, uint32_t count, double pages)
{
    double seen[TLB_PASSES_MAX];
    size_t seen_count = 0;
    for (uint32_t pass = 0; pass < count; pass++) {
        double nearest = 0, distance = log(probe_cache_apart);
        for (size_t i = 0; i < passes[pass].count; i++) {
            double d = fabs(log(passes[pass].pages[i] / pages));
            nearest = d < distance ? passes[pass].pages[i] : nearest;
            distance = fmin(distance, d);
        }
        if (nearest > 0) {
            seen[seen_count++] = nearest;
        }
    }
    const double spread = probe_spread(seen, seen_count);
    return spread > 0 ? spread : -1;
}

void probe_tlb_conclude(const struct probe *probe, const struct probe_tlb_times *times,
                        struct probe_tlb *out)
{
    struct reaches all = infer_of(times, 0, times->passes), alone[TLB_PASSES_MAX];
    for (uint32_t pass = 0; pass < times->passes; pass++) {
        alone[pass] = infer_of(times, pass, pass + 1);
    }
    *out = (struct probe_tlb){.count = all.count, .repetitions = times->passes};
    for (size_t i = 0; i < out->count; i++) {
        out->levels[i].reach_bytes = (uint64_t)(all.pages[i] * (double)probe->machine->page_bytes);
        out->levels[i].seconds = all.seconds[i];
        out->levels[i].spread = spread_of_reach(alone, times->passes, all.pages[i]);
    }
}
