/* What a curve may be made of, and the second look at the last level. Candidates are listed once
 * and their miss shares kept, since computing them takes longer than the fit. The last level has a
 * search of its own because its shapes (slices, victims) would multiply every other level's.
 * Prices were chosen on the part "train" of benchmarks/probes/machines.py; what they do to a
 * machine is seen with `accuracy --list`. */
#include "probes/cache/cache.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Chosen on measured and simulated curves: */
const double probe_cache_relative_floor = 0.02;
static const double prior_weight = 10;     /* of an unusual size, against n * log(error) */
static const double near_prior_weight = 5; /* the same where finer steps say more */
/* What it takes to believe that a cache is as large as what a TLB reaches: such a rise has an
 * explanation already. Caches of that size are built (256 KiB behind 64 entries), so it is a price
 * and no ban; beside a load a 512 KiB L2 passed for 256 KiB by less. */
static const double coincidence_price = 20;
static const double coincidence = 1.1; /* times larger or smaller: half a step of tried reaches */
static const double near_reach = 1.35; /* times larger or smaller, sizes are near */
static const double tlb_prior = 0.3;   /* its shape, a slow rise, is seldom mistaken */
static const uint64_t adaptive_from =
    2u << 20; /* bytes; policies that resist thrashing are for last level caches */
static const uint64_t aged_from =
    128u << 10; /* bytes; first levels are of (pseudo-)LRU or random replacement */

enum { KNOWN_MAX = 2, WAYS = 24 };

static bool power_of_two(uint64_t n)
{
    return n && (n & (n - 1)) == 0;
}

/* Large caches have many ways, and direct-mapped ones are a thing of the past. */
static double ways_prior(uint64_t bytes, uint32_t ways)
{
    if (ways == 1 || (bytes >= (256u << 10) && ways < 4) || (bytes >= (2u << 20) && ways < 8)) {
        return 1;
    }
    return ways == 5 || ways == 10 || ways == 15 || (ways == 6 && bytes > (128u << 10)) ? 0.3 : 0;
}

static bool usual_of_slices(uint32_t ways)
{
    return ways == 11 || ways == 12 || ways == 15 || ways == 16 || ways == 20 || ways == 24;
}

static double size_price(const struct cache_terms *fit, const struct cache_size *size)
{
    double price = (fit->near_count > 0 ? near_prior_weight : prior_weight) * size->prior;
    for (size_t i = 0; i < fit->known; i++) {
        bool same =
            fabs(log((double)size->bytes / fit->candidates[i].reach_bytes)) < log(coincidence);
        price += same ? coincidence_price : 0;
    }
    return price;
}

static void add_candidates_of_size(struct cache_terms *fit, const struct cache_size *size,
                                   const struct cache_curve *curve)
{
    /* Sets are selected by address bits, except in large sliced caches, where a hash chooses the
     * slice. */
    const uint64_t sliced_from = 4u << 20;
    const double weight = fit->near_count > 0 ? near_prior_weight : prior_weight;
    const double of_size = size_price(fit, size);
    for (uint32_t ways = 1; ways <= WAYS; ways++) {
        bool sets_fit = size->bytes % ways == 0 && power_of_two(size->bytes / ways);
        if (!sets_fit && (size->bytes < sliced_from || !usual_of_slices(ways))) {
            continue;
        }
        for (int policy = 0; policy < CACHE_POLICIES; policy++) {
            if ((policy == CACHE_ADAPTIVE && size->bytes < adaptive_from) ||
                (policy == CACHE_AGED && size->bytes < aged_from)) {
                continue;
            }
            for (int scattered = sets_fit ? 0 : 1; scattered < 2; scattered++) {
                if (scattered && size->bytes / ways <= curve->page_bytes) {
                    continue; /* the same as contiguous */
                }
                fit->candidates[fit->candidate_count++] = (struct cache_candidate){
                    .shape = {.bytes = size->bytes,
                              .ways = ways,
                              .policy = (enum cache_policy)policy,
                              .scattered = scattered},
                    .price =
                        of_size + weight * (probe_cache_policy_prior((enum cache_policy)policy) +
                                            ways_prior(size->bytes, ways)),
                    .size_price = of_size,
                };
            }
        }
    }
}

static void add_tlb_candidates(struct cache_terms *fit, size_t page_bytes)
{
    for (uint32_t entries = 16; entries <= 1u << 16; entries *= 2) {
        for (uint32_t n = entries; n <= entries + entries / 2; n += entries / 2) {
            fit->candidates[fit->candidate_count++] = (struct cache_candidate){
                .reach_bytes = (double)n * (double)page_bytes, .price = prior_weight * tlb_prior};
        }
    }
}

/* Pages are visited in random order, several times in each turn: the share of visits that finds its
 * page is that of the entries in the pages. */
static double tlb_miss_share(double reach_bytes, double bytes)
{
    return bytes > reach_bytes ? 1 - reach_bytes / bytes : 0;
}

static bool is_near(const struct cache_terms *fit, double bytes)
{
    for (size_t i = 0; i < fit->near_count; i++) {
        if (fabs(log(bytes / (double)fit->near[i])) < log(near_reach)) {
            return true;
        }
    }
    return fit->near_count == 0;
}

static void list_candidates(struct cache_terms *fit, const struct cache_curve *curve)
{
    size_t size_count;
    const struct cache_size *sizes = probe_cache_sizes(&size_count);
    for (fit->known = 0; fit->known < curve->tlb_count && fit->known < KNOWN_MAX; fit->known++) {
        fit->candidates[fit->candidate_count++] =
            (struct cache_candidate){.reach_bytes = curve->tlb_reach_bytes[fit->known],
                                     .miss_s = curve->tlb_seconds[fit->known]};
    }
    for (size_t i = 0; i < size_count; i++) {
        double bytes = (double)sizes[i].bytes;
        /* Large sizes of any number of slices are for the second look, which knows slices. */
        if (bytes > curve->bytes[0] && bytes < curve->bytes[curve->count - 1] &&
            sizes[i].prior < probe_cache_free_prior && is_near(fit, bytes)) {
            add_candidates_of_size(fit, &sizes[i], curve);
        }
    }
    add_tlb_candidates(fit, curve->page_bytes);
}

double probe_cache_candidate_miss_share(const struct cache_candidate *candidate, double bytes,
                                        size_t page_bytes)
{
    return candidate->reach_bytes > 0
               ? tlb_miss_share(candidate->reach_bytes, bytes)
               : probe_cache_miss_share(&candidate->shape, (uint64_t)bytes, page_bytes);
}

/* The miss shares of all candidates but the known ones depend on the grid alone, and their
 * computation takes longer than the fit: kept from call to call. */
static int miss_shares(const struct cache_terms *fit, const struct cache_curve *curve,
                       const double **out)
{
    static double *shares, *grid;
    static size_t points, page_bytes;
    const struct cache_candidate *candidates = fit->candidates + fit->known;
    size_t count = fit->candidate_count - fit->known;
    if (shares && points == curve->count && page_bytes == curve->page_bytes &&
        memcmp(grid, curve->bytes, points * sizeof *grid) == 0) {
        *out = shares;
        return 0;
    }
    free(shares);
    free(grid);
    shares = malloc(count * curve->count * sizeof *shares);
    grid = malloc(curve->count * sizeof *grid);
    if (!shares || !grid) {
        free(shares);
        free(grid);
        shares = grid = NULL;
        return -ENOMEM;
    }
    points = curve->count;
    page_bytes = curve->page_bytes;
    memcpy(grid, curve->bytes, points * sizeof *grid);
    for (size_t c = 0; c < count; c++) {
        for (size_t i = 0; i < points; i++) {
            shares[c * points + i] =
                probe_cache_candidate_miss_share(&candidates[c], grid[i], page_bytes);
        }
    }
    *out = shares;
    return 0;
}

double probe_cache_point_share(const struct cache_curve *curve, size_t i)
{
    double before = curve->bytes[i > 0 ? i - 1 : i],
           after = curve->bytes[i + 1 < curve->count ? i + 1 : i];
    return fmin(1, log2(after / before) / 2 * CACHE_STEPS_PER_OCTAVE);
}

static void weigh(struct cache_terms *fit, const struct cache_curve *curve)
{
    fit->base = fit->columns + fit->candidate_count * fit->points;
    fit->right = fit->base + fit->points;
    for (size_t i = 0; i < fit->points; i++) {
        double own = curve->error_s ? curve->error_s[i] / probe_cache_relative_floor : 0;
        double share = fit->near_count > 0 ? probe_cache_point_share(curve, i) : 1;
        fit->base[i] = sqrt(share) / hypot(curve->seconds[i], own);
        fit->count += share;
        fit->right[i] = curve->seconds[i] * fit->base[i];
        fit->total += fit->right[i] * fit->right[i];
    }
}

int probe_cache_candidates_make(struct cache_terms *fit, const struct cache_curve *curve)
{
    size_t size_count;
    const double *shares = NULL;
    probe_cache_sizes(&size_count);
    fit->candidates =
        malloc((size_count * WAYS * CACHE_POLICIES * 2 + 64) * sizeof *fit->candidates);
    if (!fit->candidates) {
        return -ENOMEM;
    }
    list_candidates(fit, curve);
    fit->columns = malloc((fit->candidate_count + 2) * fit->points * sizeof *fit->columns);
    int rc = fit->columns ? 0 : -ENOMEM;
    size_t kept = fit->near_count > 0 ? fit->candidate_count : fit->known; /* not to be kept */
    rc = rc < 0 || fit->near_count > 0 ? rc : miss_shares(fit, curve, &shares);
    if (rc < 0) {
        return rc;
    }
    weigh(fit, curve);
    for (size_t c = 0; c < fit->candidate_count; c++) {
        fit->candidates[c].column = fit->columns + c * fit->points;
        for (size_t i = 0; i < fit->points; i++) {
            double share = c < kept ? probe_cache_candidate_miss_share(
                                          &fit->candidates[c], curve->bytes[i], curve->page_bytes)
                                    : shares[(c - kept) * fit->points + i];
            fit->candidates[c].column[i] = share * fit->base[i];
        }
    }
    return 0;
}

void probe_cache_candidates_free(struct cache_terms *fit)
{
    free(fit->candidates);
    free(fit->columns);
}

/* Chosen on simulated machines (the part "train" of benchmarks/probes/machines.py), in units of the
 * objective. Where sets, ways and slices make a size, it is built about as often as any other: a
 * power of two counts little. */
static const double size_weight = 2;    /* of the catalogue's prior; the search's own is 10 */
static const double policy_weight = 10; /* of a policy's */
static const double loose_policy = 4;   /* large caches are seldom leaky, or of four ages */
static const double unusual_ways = 2;   /* 8, 24 and 32 */
static const double odd_slices = 2;     /* slices come in pairs, told from the curve or not */
static const double victims = 1;        /* a cache that holds what another evicted, but */
static const double random_filled =
    1; /* of random replacement (Arm's and Apple's system level caches) those are usual */
static const double sets_no_power =
    10; /* sets of a slice that are no power of two in any number of slices */

/* Shapes are known to less than the 2 % of the first search. But what one is off, it is off all
 * along a knee: points that lie closer together than those of the even grid count the less. Points
 * of the levels before say little of this one, and what their shapes are off would hide it. */
static const double relative_floor = 0.01;
static const double earlier_up_to =
    4; /* times the level before, but no further than half way to this level */
static const double earlier_weight = 0.2;

static const uint64_t smallest_last =
    2u << 20; /* bytes; smaller caches are neither sliced nor shared by many */
static const double size_reach = 1.6;    /* sizes up to so many times smaller or larger are tried */
static const double least_distance = 2;  /* from the level before */
static const double never_misses = 0.25; /* of a cache's size: a smaller working set */

/* Sets of one slice times the line, bytes: powers of two, and three of them (AMD's stacked caches
 * of 96 MiB). */
static const uint64_t slice_ways_bytes[] = {64u << 10, 128u << 10, 256u << 10, 512u << 10,
                                            768u << 10};
enum {
    WAY_SIZES = sizeof slice_ways_bytes / sizeof *slice_ways_bytes,
    SLICES_MAX = 64,
    SLICES_TOLD = 24 /* more cannot be told from lines that are scattered at random */
};

/* All columns are weighted. */
struct search {
    const struct cache_last *last;
    double gram[CACHE_COLUMNS_MAX][CACHE_COLUMNS_MAX], right[CACHE_COLUMNS_MAX], total;
    double count;    /* of the points, by what they count */
    double *weights; /* 1 / error in units of `relative_floor` */
    double *fixed,
        *latencies; /* columns: the terms that stay, one after the other, and what was measured */
    double *column;
    double *best_of; /* by size of the catalogue: the least objective, without the size's prior */
    double best;
    struct cache_last_found found;
};

static void fill_column(const struct search *search, const struct cache_shape *shape)
{
    const struct cache_curve *curve = search->last->curve;
    for (size_t i = 0; i < curve->count; i++) {
        bool fits = curve->bytes[i] < never_misses * (double)shape->bytes;
        double share =
            fits ? 0 : probe_cache_miss_share(shape, (uint64_t)curve->bytes[i], curve->page_bytes);
        search->column[i] = share * search->weights[i];
    }
}

static void try_shape(struct search *search, const struct cache_shape *shape, double price,
                      double *best_of_size)
{
    const struct cache_last *last = search->last;
    const size_t n = last->fixed_count, points = last->curve->count;
    double x[CACHE_COLUMNS_MAX];
    fill_column(search, shape);
    for (size_t i = 0; i < n; i++) {
        search->gram[i][n] = search->gram[n][i] =
            probe_cache_dot(search->fixed + i * points, search->column, points);
    }
    search->gram[n][n] = probe_cache_dot(search->column, search->column, points);
    search->right[n] = probe_cache_dot(search->latencies, search->column, points);
    double rss = probe_cache_solve_positive(search->gram, search->right, search->total, n + 1, x);
    double objective =
        search->count * log(rss / search->count + relative_floor * relative_floor) + price;
    *best_of_size = fmin(*best_of_size, objective);
    if (objective < search->best) {
        search->best = objective;
        search->found.objective = objective;
        search->found.shape = *shape;
        memcpy(search->found.coefficients, x, sizeof x);
    }
}

/* Sets of one slice: a power of two or three of them. */
static bool one_slice(uint64_t way)
{
    way /= way % 3 == 0 ? 3 : 1;
    return (way & (way - 1)) == 0;
}

/* Lines side by side, over every number of slices that the sets allow, and by random pages. */
static void try_placements(struct search *search, struct cache_shape shape, double price,
                           double *best_of_size)
{
    const bool whole = shape.bytes % shape.ways == 0;
    const uint64_t way = shape.bytes / shape.ways;
    bool sets_fit = false, in_pairs = false;
    if (whole && one_slice(way)) {
        try_shape(search, &shape, price, best_of_size);
    }
    for (size_t i = 0; whole && i < WAY_SIZES; i++) {
        uint64_t slices = way / slice_ways_bytes[i];
        if (way % slice_ways_bytes[i] != 0 || slices > SLICES_MAX) {
            continue;
        }
        sets_fit = true;
        in_pairs |= slices % 2 == 0 || slices == 1;
        if (slices >= 2 && slices <= SLICES_TOLD) {
            shape.slices = (uint32_t)slices;
            try_shape(search, &shape, price + (slices % 2 ? odd_slices : 0), best_of_size);
        }
    }
    shape.slices = 0;
    shape.scattered = true;
    if (way > search->last->curve->page_bytes) {
        try_shape(search, &shape,
                  price + (in_pairs   ? 0
                           : sets_fit ? odd_slices
                                      : sets_no_power),
                  best_of_size);
    }
}

static void try_size(struct search *search, const struct cache_size *size, double *best_of_size)
{
    static const struct {
        uint32_t ways;
        bool unusual;
    } kinds[] = {{8, true},   {11, false}, {12, false}, {15, false},
                 {16, false}, {20, false}, {24, true},  {32, true}};
    for (size_t w = 0; w < sizeof kinds / sizeof *kinds; w++) {
        for (int policy = 0; policy < CACHE_POLICIES; policy++) {
            struct cache_shape shape = {
                .bytes = size->bytes, .ways = kinds[w].ways, .policy = (enum cache_policy)policy};
            double price = size_weight * size->prior +
                           policy_weight * probe_cache_policy_prior(shape.policy) +
                           (kinds[w].unusual ? unusual_ways : 0) +
                           (policy == CACHE_LEAKY || policy == CACHE_AGED ? loose_policy : 0);
            const bool at_random = policy == CACHE_RANDOM;
            try_placements(search, shape, price + (at_random ? random_filled : 0), best_of_size);
            if (policy != CACHE_ADAPTIVE) {
                shape.behind_bytes = search->last->before_bytes;
                try_placements(search, shape, price + (at_random ? 0 : victims), best_of_size);
            }
        }
    }
}

/* Columns in units of this search, and what is the same for all shapes. */
static void set_fixed(struct search *search)
{
    const struct cache_last *last = search->last;
    const size_t points = last->curve->count;
    const double before = (double)last->before_bytes, found = (double)last->found_bytes;
    const double earlier = last->earlier_bytes > 0
                               ? last->earlier_bytes
                               : fmin(earlier_up_to * before, sqrt(before * found));
    for (size_t i = 0; i < points; i++) {
        double own = last->curve->error_s ? last->curve->error_s[i] / relative_floor : 0;
        double counts = last->curve->bytes[i] < earlier
                            ? earlier_weight
                            : sqrt(probe_cache_point_share(last->curve, i));
        search->weights[i] = counts / hypot(last->curve->seconds[i], own);
        search->count += counts * counts;
        search->latencies[i] = search->weights[i] * last->curve->seconds[i];
        for (size_t j = 0; j < last->fixed_count; j++) {
            search->fixed[j * points + i] = last->fixed[j][i] * search->weights[i];
        }
    }
    search->total = probe_cache_dot(search->latencies, search->latencies, points);
    for (size_t i = 0; i < last->fixed_count; i++) {
        for (size_t j = 0; j < last->fixed_count; j++) {
            search->gram[i][j] =
                probe_cache_dot(search->fixed + i * points, search->fixed + j * points, points);
        }
        search->right[i] = probe_cache_dot(search->fixed + i * points, search->latencies, points);
    }
}

/* Sizes that explain the curve about as well as the best does, how often they are built aside; and
 * since not every size is listed, half way to the next ones. */
static void set_range(struct search *search, const struct cache_size *sizes, size_t count)
{
    struct cache_last_found *found = &search->found;
    size_t low = count, high = 0;
    double best = INFINITY;
    for (size_t i = 0; i < count; i++) {
        best = fmin(best, search->best_of[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (search->best_of[i] <= best + search->last->margin ||
            sizes[i].bytes == found->shape.bytes) {
            low = low == count ? i : low;
            high = i;
        }
    }
    if (low == count) {
        return;
    }
    found->low_bytes = (sizes[low].bytes + sizes[low > 0 ? low - 1 : low].bytes) / 2;
    found->high_bytes = (sizes[high].bytes + sizes[high + 1 < count ? high + 1 : high].bytes) / 2;
}

bool probe_cache_last_refine(const struct cache_last *last, struct cache_last_found *out)
{
    size_t count;
    const struct cache_size *sizes = probe_cache_sizes(&count);
    struct search search = {.last = last, .best = INFINITY};
    if (last->found_bytes < smallest_last) {
        return false;
    }
    const size_t points = last->curve->count;
    search.column = malloc((points * (3 + last->fixed_count) + count) * sizeof *search.column);
    if (!search.column) {
        return false;
    }
    search.weights = search.column + points;
    search.latencies = search.weights + points;
    search.fixed = search.latencies + points;
    search.best_of = search.fixed + points * last->fixed_count;
    set_fixed(&search);
    for (size_t i = 0; i < count; i++) {
        double ratio = (double)sizes[i].bytes / (double)last->found_bytes;
        search.best_of[i] = INFINITY;
        if (ratio < size_reach && ratio > 1 / size_reach &&
            (double)sizes[i].bytes >= least_distance * (double)last->before_bytes) {
            try_size(&search, &sizes[i], &search.best_of[i]);
            search.best_of[i] -= size_weight * sizes[i].prior;
        }
    }
    set_range(&search, sizes, count);
    free(search.column);
    if (search.best == INFINITY) {
        return false;
    }
    *out = search.found;
    return true;
}
