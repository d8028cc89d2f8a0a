#include "probe_tlb.h"

#include <math.h>
#include <stdlib.h>

enum {
    STEPS_PER_OCTAVE = 4,
    WARM_PASSES = 8,
    LINE = 64,           /* the smallest line in use: shorter steps would visit one line twice */
    CANDIDATE_STEPS = 4, /* tried reaches per octave */
};
static const double first_pages = 8, last_pages = 16384;
static const double least_share = 0.15; /* of the reference latency, for a miss to count as a level */
static const double sharpness = 4;      /* a cycle 4/3 as long as the reach misses always: LRU within sets */

static double miss_share(double reach, double pages)
{
    return pages > reach ? fmin(1, sharpness * (1 - reach / pages)) : 0;
}

/* Least squares of the extra time, relative to the latency, over one or two knees, coefficients >= 0. */
static double residual(const double *pages, const double *extra, const double *reference, size_t count,
                       const double *reach, size_t knees, double *cost)
{
    double aa = 0, ab = 0, bb = 0, ay = 0, by = 0, yy = 0;
    for (size_t i = 0; i < count; i++) {
        double weight = 1 / (reference[i] + fmax(0, extra[i]));
        double a = weight * miss_share(reach[0], pages[i]), b = knees > 1 ? weight * miss_share(reach[1], pages[i]) : 0;
        double y = weight * extra[i];
        aa += a * a, ab += a * b, bb += b * b, ay += a * y, by += b * y, yy += y * y;
    }
    double det = aa * bb - ab * ab;
    cost[0] = knees > 1 && det > 1e-12 ? (ay * bb - by * ab) / det : aa > 0 ? ay / aa : 0;
    cost[1] = knees > 1 && det > 1e-12 ? (by * aa - ay * ab) / det : 0;
    if (cost[0] < 0 || cost[1] < 0) {
        return INFINITY;
    }
    return yy - cost[0] * ay - cost[1] * by;
}

struct best {
    double reach[TLB_LEVELS_MAX], cost[TLB_LEVELS_MAX], residual;
};

static struct best search(const double *pages, const double *extra, const double *reference, size_t count, size_t knees)
{
    struct best best = {.residual = INFINITY};
    double step = exp2(1.0 / CANDIDATE_STEPS), cost[TLB_LEVELS_MAX];
    for (double first = first_pages; first < last_pages / 1.5; first *= step) {
        for (double second = knees > 1 ? 2 * first : 0; knees == 1 ? second == 0 : second < last_pages / 1.5;
             second = second * step + (knees == 1)) {
            const double reach[] = {first, second};
            double r = residual(pages, extra, reference, count, reach, knees, cost);
            if (r < best.residual) {
                best = (struct best){{first, second}, {cost[0], cost[1]}, r};
            }
        }
    }
    return best;
}

/* Reference latency at a number of pages. */
static double reference_at(const double *pages, const double *reference, size_t count, double at)
{
    size_t i = 0;
    while (i + 1 < count && pages[i] < at) {
        i++;
    }
    return reference[i];
}

size_t probe_tlb_infer(const double *pages, const double *extra_s, const double *reference_s, size_t count,
                       double reach_pages[TLB_LEVELS_MAX], double seconds[TLB_LEVELS_MAX])
{
    const double floor = 1e-4 * (double)count; /* squares of errors of 1 % are no evidence */
    struct best one = search(pages, extra_s, reference_s, count, 1);
    struct best two = search(pages, extra_s, reference_s, count, 2);
    bool second = two.residual + floor < 0.6 * (one.residual + floor);
    const struct best *best = second ? &two : &one;
    size_t found = 0;
    for (size_t i = 0; i < (second ? 2u : 1u); i++) {
        if (best->cost[i] > least_share * reference_at(pages, reference_s, count, best->reach[i])) {
            reach_pages[found] = best->reach[i];
            seconds[found++] = best->cost[i];
        }
    }
    return found;
}

/* One measurement; `*seconds` becomes it if it is less, or was 0. */
static int measure(struct probe *probe, uint32_t pu, enum machine_pages kind, size_t pages, bool spread,
                   double *seconds)
{
    size_t page = probe->machine->page_bytes;
    const struct machine_traversal what = {
        .bytes = pages * (spread ? page : LINE),
        .stride_bytes = spread ? page : LINE,
        .order = spread ? MACHINE_SPREAD : MACHINE_CHASE,
        .pages = kind,
        .warm_passes = WARM_PASSES,
        .seed = ++probe->seed,
    };
    double once;
    int rc = machine_traverse(probe->machine, &what, &pu, 1, &once);
    if (rc == 0) {
        *seconds = *seconds > 0 ? fmin(*seconds, once) : once;
    }
    return rc;
}

static bool fits(const struct probe *probe, double bytes)
{
    return (!probe->largest_bytes || bytes <= (double)probe->largest_bytes) &&
           bytes <= (double)probe->machine->memory_limit_bytes / 4;
}

int probe_tlb_pass(struct probe *probe, uint32_t pu, enum machine_pages kind, struct probe_tlb_times *times,
                   struct servet_error *error)
{
    for (size_t i = 0; i < TLB_POINTS_MAX; i++) {
        double pages = floor(first_pages * exp2((double)i / STEPS_PER_OCTAVE));
        if (pages > last_pages || !fits(probe, pages * (double)probe->machine->page_bytes)) {
            break;
        }
        int rc = measure(probe, pu, kind, (size_t)pages, true, &times->spread_s[i]);
        rc = rc < 0 ? rc : measure(probe, pu, kind, (size_t)pages, false, &times->reference_s[i]);
        if (rc < 0) {
            return probe_error(error, rc, "measuring the TLB");
        }
        times->pages[i] = pages;
        times->count = i + 1 > times->count ? i + 1 : times->count;
    }
    times->passes++;
    return 0;
}

void probe_tlb_conclude(const struct probe *probe, const struct probe_tlb_times *times, struct probe_tlb *out)
{
    double extra[TLB_POINTS_MAX], reach[TLB_LEVELS_MAX], cost[TLB_LEVELS_MAX];
    for (size_t i = 0; i < times->count; i++) {
        extra[i] = times->spread_s[i] - times->reference_s[i];
    }
    *out = (struct probe_tlb){.count =
                                  probe_tlb_infer(times->pages, extra, times->reference_s, times->count, reach, cost)};
    out->repetitions = times->passes;
    for (size_t i = 0; i < out->count; i++) {
        out->levels[i].reach_bytes = (uint64_t)(reach[i] * (double)probe->machine->page_bytes);
        out->levels[i].seconds = cost[i];
    }
}
