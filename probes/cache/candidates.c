/* What a curve may be made of. Candidates are listed once and their miss shares kept, since
 * computing them takes longer than the fit. Prices were chosen on the part "train" of
 * benchmarks/probes/machines.py; what they do to a machine is seen with `accuracy --list`. */
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
static const double near_reach = 1.5;  /* times larger or smaller, sizes are near: on the even grid
                                          17 ways of 64 KiB pass for six of 256 */
static const double tlb_prior = 0.3;   /* its shape, a slow rise, is seldom mistaken */
/* The same, where TLBs were looked for and none was seen: lines in pages of their own show a miss
 * of half a nanosecond. Without it, a TLB of 26 ns took the rise of an L2 of 4,352 KiB, a size that
 * is seldom built. */
static const double unseen_tlb_price = 30;
static const uint64_t adaptive_from =
    2u << 20; /* bytes; policies that resist thrashing are for last level caches */
static const uint64_t aged_from =
    128u << 10; /* bytes; first levels are of (pseudo-)LRU or random replacement */

/* What a miss of a measured TLB takes in the curve differs from what was measured by about so much
 * of it (page tables miss caches, too). Each such TLB is a point more, off by the floor where it
 * differs by this. A TLB that could take any time took that of a cache, 33 ns for 3.7. */
static const double miss_off = 0.5;
/* The same of a TLB behind which there is another: that one serves its misses, and no page table is
 * read. With a half, 9 ns for 2.2 took the rise of a second level that neighbours used too. */
static const double served_miss_off = 0.3;

enum { KNOWN_MAX = 2, WAYS = 24 };

static bool power_of_two(uint64_t n)
{
    return n && (n & (n - 1)) == 0;
}

/* Large caches have many ways, and direct-mapped ones are a thing of the past: of random pages few
 * ways make so slow a rise that it stands for other sizes and policies. From 2 MiB on less than
 * eight are seldom built, but they cost less than the level more that they would pass for. */
static double ways_prior(uint64_t bytes, uint32_t ways)
{
    if (ways == 1 || (bytes >= (256u << 10) && ways < 4)) {
        return 3;
    }
    if (bytes >= (2u << 20) && ways < 8) {
        return 0.5;
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

static void add_tlb_candidates(struct cache_terms *fit, const struct cache_curve *curve)
{
    for (uint32_t entries = 16; entries <= 1u << 16; entries *= 2) {
        for (uint32_t n = entries; n <= entries + entries / 2; n += entries / 2) {
            const double reach = (double)n * (double)curve->page_bytes;
            fit->candidates[fit->candidate_count++] = (struct cache_candidate){
                .reach_bytes = reach,
                .price = prior_weight * tlb_prior +
                         (reach <= curve->tlb_looked_bytes ? unseen_tlb_price : 0)};
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
    add_tlb_candidates(fit, curve);
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
    for (size_t i = 0; i < curve->count; i++) {
        double own = curve->error_s ? curve->error_s[i] / probe_cache_relative_floor : 0;
        double share = fit->near_count > 0 ? probe_cache_point_share(curve, i) : 1;
        fit->base[i] = sqrt(share) / hypot(curve->seconds[i], own);
        fit->count += share;
        fit->right[i] = curve->seconds[i] * fit->base[i];
        fit->total += fit->right[i] * fit->right[i];
    }
    for (size_t i = 0; i < fit->known; i++) {
        const bool costs = fit->candidates[i].miss_s > 0;
        const double off = i + 1 < fit->known ? served_miss_off : miss_off;
        fit->base[curve->count + i] = 0;
        fit->right[curve->count + i] = costs ? probe_cache_relative_floor / off : 0;
        fit->total += fit->right[curve->count + i] * fit->right[curve->count + i];
    }
}

/* What the candidate adds to what is seen of each TLB that was measured. */
static void fill_known(struct cache_terms *fit, size_t candidate, size_t points)
{
    for (size_t i = 0; i < fit->known; i++) {
        const double miss_s = fit->candidates[i].miss_s;
        fit->candidates[candidate].column[points + i] =
            candidate == i && miss_s > 0 ? fit->right[points + i] / miss_s : 0;
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
    fit->points = curve->count + fit->known;
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
        for (size_t i = 0; i < curve->count; i++) {
            double share = c < kept ? probe_cache_candidate_miss_share(
                                          &fit->candidates[c], curve->bytes[i], curve->page_bytes)
                                    : shares[(c - kept) * curve->count + i];
            fit->candidates[c].column[i] = share * fit->base[i];
        }
        fill_known(fit, c, curve->count);
    }
    return 0;
}

void probe_cache_candidates_free(struct cache_terms *fit)
{
    free(fit->candidates);
    free(fit->columns);
}
