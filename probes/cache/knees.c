/* The start of a fit: a curve of one knee after the other, by an exact dynamic programme.
 *
 * Between two points of the curve lies one knee, whose size and shape come from a table; at its
 * ends it has the curve's own latency, so that knees join. Its error is a quadratic form of sums
 * over the points, which are kept as prefix sums. The state is the last point and the last size:
 * sizes of levels are `probe_cache_apart` times apart. */
#include "probes/cache/fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Shapes of a start, from the sharpest knee to the broadest; the fit has all others. */
static const struct cache_shape cache_knees_shapes[] = {
    {.ways = 8, .policy = CACHE_LRU},
    {.ways = 8, .policy = CACHE_PLRU, .parts = 16},
    {.ways = 16, .policy = CACHE_PLRU, .parts = 64},
    {.ways = 4, .policy = CACHE_PLRU, .parts = 256},
    {.ways = 12, .policy = CACHE_RANDOM, .parts = 8},
    {.ways = 16, .policy = CACHE_ADAPTIVE, .parts = 8},
};
enum { SHAPES = sizeof cache_knees_shapes / sizeof *cache_knees_shapes };
/* SIZE_STEPS: per octave, as the grid. LEAST_POINTS: fewer show no knee */
enum { SIZES_MAX = 192, SIZE_STEPS = CACHE_STEPS_PER_OCTAVE, LEAST_POINTS = 3 };
/* Relative; a smaller rise is noise. */
static const double least_step = 0.1;
/* Shares of misses at the two ends of a knee: less of it is seen by another's. */
static const double begun_up_to = 0.1, least_seen = 0.5;

/* Over the points before one: of the weights, with latency, and squared. */
struct cache_knees_base {
    double one, y, yy;
};

/* The same with miss shares. */
struct cache_knees_sums {
    double m, mm, my;
};

struct cache_knees_step {
    double cost;
    /* of all sizes up to this one, the least cost and its size */
    double least;
    uint8_t least_size;
    uint8_t from_point, shape;
};

struct cache_knees {
    size_t points, sizes, apart;
    const double *bytes;
    double *y;
    struct cache_knees_base *base;
    struct cache_knees_sums *sums;
    double *shares;
    /* by number of knees, last point, last size */
    struct cache_knees_step *steps;
};

static void cache_knees_free(struct cache_knees *knees)
{
    free(knees->y);
    free(knees->base);
    free(knees->sums);
    free(knees->shares);
    free(knees->steps);
}

static double cache_knees_size(const struct cache_knees *knees, size_t size)
{
    return knees->bytes[0] * exp2((double)(1 + size) / SIZE_STEPS);
}

static struct cache_knees_step *cache_knees_step(const struct cache_knees *knees, size_t count,
                                                 size_t point, size_t size)
{
    return &knees->steps[(count * knees->points + point) * knees->sizes + size];
}

/* What TLBs cost is taken off. */
static int cache_knees_set_base(struct cache_knees *knees, const struct cache_terms *terms)
{
    const struct cache_curve *curve = terms->curve;
    for (size_t i = 0; i < knees->points; i++) {
        knees->y[i] = curve->seconds[i];
        for (size_t t = 0; t < terms->tlbs; t++) {
            const double share = terms->columns[1 + t][i] / terms->weight[i];
            knees->y[i] -= share * curve->tlb_seconds[t];
        }
        knees->y[i] = fmax(knees->y[i], probe_cache_model_error * curve->seconds[i]);
    }
    int rc = probe_cache_isotonic(knees->y, NULL, knees->points);
    knees->base[0] = (struct cache_knees_base){0};
    for (size_t i = 0; i < knees->points; i++) {
        const struct cache_knees_base *before = &knees->base[i];
        const double w = terms->weight[i] * terms->weight[i], y = knees->y[i];
        knees->base[i + 1] =
            (struct cache_knees_base){before->one + w, before->y + w * y, before->yy + w * y * y};
    }
    return rc;
}

/* The error of a flat curve over the points between two. */
static double cache_knees_flat(const struct cache_knees_base *from,
                               const struct cache_knees_base *to, double y)
{
    return fmax(0, to->yy - from->yy - 2 * y * (to->y - from->y) + y * y * (to->one - from->one));
}

static int cache_knees_set_sums(struct cache_knees *knees, const struct cache_terms *terms)
{
    for (size_t k = 0; k < knees->sizes * SHAPES; k++) {
        struct cache_shape shape = cache_knees_shapes[k % SHAPES];
        struct cache_knees_sums *sums = knees->sums + k * (knees->points + 1);
        double *shares = knees->shares + k * knees->points;
        shape.bytes = (uint64_t)cache_knees_size(knees, k / SHAPES);
        TRY(probe_cache_miss_shares(&shape, knees->bytes, knees->points, shares));
        sums[0] = (struct cache_knees_sums){0};
        for (size_t i = 0; i < knees->points; i++) {
            const double w = terms->weight[i] * terms->weight[i], m = shares[i];
            sums[i + 1] = (struct cache_knees_sums){sums[i].m + w * m, sums[i].mm + w * m * m,
                                                    sums[i].my + w * m * knees->y[i]};
        }
    }
    return 0;
}

/* The error of points first + 1 to last with one knee between; INFINITY: it is not seen there. */
static double cache_knees_error(const struct cache_knees *knees, size_t knee, size_t first,
                                size_t last)
{
    const double *m = knees->shares + knee * knees->points;
    const struct cache_knees_sums *sums = knees->sums + knee * (knees->points + 1);
    const double span = m[last] - m[first];
    if (m[first] > begun_up_to || span < least_seen) {
        return INFINITY;
    }
    const double rise = (knees->y[last] - knees->y[first]) / span;
    const double low = knees->y[first] - rise * m[first];
    const struct cache_knees_base *to = &knees->base[last + 1], *from = &knees->base[first + 1];
    const struct cache_knees_sums *of = &sums[last + 1], *less = &sums[first + 1];
    return fmax(0, to->yy - from->yy - 2 * low * (to->y - from->y) -
                       2 * rise * (of->my - less->my) + low * low * (to->one - from->one) +
                       2 * low * rise * (of->m - less->m) + rise * rise * (of->mm - less->mm));
}

/* The last knee of a curve up to point `last` is of this size and begins at `first`. */
static void cache_knees_try(struct cache_knees *knees, size_t first, size_t last, size_t size)
{
    size_t shape = 0;
    double error = INFINITY;
    for (size_t k = 0; k < SHAPES; k++) {
        const double one = cache_knees_error(knees, size * SHAPES + k, first, last);
        shape = one < error ? k : shape;
        error = fmin(error, one);
    }
    for (size_t count = 1; error < INFINITY && count <= CACHE_KNEES_MAX; count++) {
        const bool free = count == 1;
        if (!free && size < knees->apart) {
            break;
        }
        const size_t up_to = free ? 0 : size - knees->apart;
        const double cost = cache_knees_step(knees, count - 1, first, up_to)->least + error;
        struct cache_knees_step *step = cache_knees_step(knees, count, last, size);
        if (cost < step->cost) {
            step->cost = cost;
            step->from_point = (uint8_t)first;
            step->shape = (uint8_t)shape;
        }
    }
}

static void cache_knees_conclude(struct cache_knees *knees, size_t point)
{
    for (size_t count = 1; count <= CACHE_KNEES_MAX; count++) {
        struct cache_knees_step *steps = cache_knees_step(knees, count, point, 0);
        for (size_t size = 0; size < knees->sizes; size++) {
            const bool here = size == 0 || steps[size].cost < steps[size - 1].least;
            steps[size].least = here ? steps[size].cost : steps[size - 1].least;
            steps[size].least_size = here ? (uint8_t)size : steps[size - 1].least_size;
        }
    }
}

static void cache_knees_programme(struct cache_knees *knees)
{
    for (size_t i = 0; i < knees->points; i++) {
        /* no knee: flat up to this point */
        const double flat = cache_knees_flat(&knees->base[0], &knees->base[i + 1], knees->y[i]);
        for (size_t size = 0; size < knees->sizes; size++) {
            for (size_t count = 0; count <= CACHE_KNEES_MAX; count++) {
                cache_knees_step(knees, count, i, size)->cost = count ? INFINITY : flat;
            }
            cache_knees_step(knees, 0, i, size)->least = flat;
        }
        for (size_t first = 0; first + LEAST_POINTS <= i; first++) {
            if (knees->y[i] < (1 + least_step) * knees->y[first]) {
                break;
            }
            for (size_t size = 0; size < knees->sizes; size++) {
                const double bytes = cache_knees_size(knees, size);
                if (bytes > knees->bytes[first] && bytes < knees->bytes[i]) {
                    cache_knees_try(knees, first, i, size);
                }
            }
        }
        cache_knees_conclude(knees, i);
    }
}

static int cache_knees_fill(struct cache_knees *knees, const struct cache_terms *terms)
{
    const double octaves = log2(terms->curve->bytes[terms->points - 1] / terms->curve->bytes[0]);
    knees->points = terms->points;
    knees->bytes = terms->curve->bytes;
    knees->sizes = (size_t)fmin(SIZES_MAX, fmax(1, octaves * SIZE_STEPS - 1));
    knees->apart = (size_t)ceil(log2(probe_cache_apart) * SIZE_STEPS);
    knees->y = malloc(knees->points * sizeof *knees->y);
    knees->base = malloc((knees->points + 1) * sizeof *knees->base);
    knees->sums = malloc(knees->sizes * SHAPES * (knees->points + 1) * sizeof *knees->sums);
    knees->shares = malloc(knees->sizes * SHAPES * knees->points * sizeof *knees->shares);
    knees->steps =
        calloc((CACHE_KNEES_MAX + 1) * knees->points * knees->sizes, sizeof *knees->steps);
    TRY(knees->y && knees->base && knees->sums && knees->shares && knees->steps ? 0 : -ENOMEM);
    TRY(cache_knees_set_base(knees, terms));
    TRY(cache_knees_set_sums(knees, terms));
    cache_knees_programme(knees);
    return 0;
}

/* The curve is flat from the last knee's last point on. */
static bool cache_knees_get(const struct cache_knees *knees, size_t count,
                            struct cache_solution *out)
{
    const struct cache_knees_base *all = &knees->base[knees->points];
    double least = INFINITY;
    size_t point = 0, size = knees->sizes - 1;
    for (size_t i = 0; i < knees->points; i++) {
        const double cost = cache_knees_step(knees, count, i, size)->least +
                            cache_knees_flat(&knees->base[i + 1], all, knees->y[i]);
        point = cost < least ? i : point;
        least = fmin(least, cost);
    }
    *out = (struct cache_solution){.count = count};
    for (size_t left = count; least < INFINITY && left > 0; left--) {
        size = cache_knees_step(knees, left, point, size)->least_size;
        const struct cache_knees_step *step = cache_knees_step(knees, left, point, size);
        out->levels[left - 1].shape = cache_knees_shapes[step->shape];
        out->levels[left - 1].shape.bytes = (uint64_t)cache_knees_size(knees, size);
        point = step->from_point;
        size -= left > 1 ? knees->apart : 0;
    }
    return least < INFINITY;
}

int probe_cache_knees(const struct cache_terms *terms,
                      struct cache_solution starts[CACHE_KNEES_MAX])
{
    FREED_BY(cache_knees_free) struct cache_knees knees = {0};
    TRY(cache_knees_fill(&knees, terms));
    for (size_t count = 1; count <= CACHE_KNEES_MAX; count++) {
        struct cache_solution *start = &starts[count - 1];
        start->count = cache_knees_get(&knees, count, start) ? count : 0;
    }
    return 0;
}
