#include "cache_candidates.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Chosen on measured and simulated curves (see PROBING in the README's sources): */
const double cache_relative_floor = 0.02;
static const double disbelief_weight = 10;      /* of an unusual size, against n * log(error) */
static const double tlb_disbelief = 0.3;        /* its shape, a slow rise, is seldom mistaken */
static const uint64_t adaptive_from = 2u << 20; /* bytes; policies that resist thrashing are for last level caches */
static const uint64_t aged_from = 128u << 10;   /* bytes; first levels are of (pseudo-)LRU or random replacement */

enum { KNOWN_MAX = 2, WAYS = 13 };

static bool power_of_two(uint64_t n)
{
    return n && (n & (n - 1)) == 0;
}

/* Large caches have many ways, and direct-mapped ones are a thing of the past. */
static double ways_disbelief(uint64_t bytes, uint32_t ways)
{
    if (ways == 1 || (bytes >= (256u << 10) && ways < 4) || (bytes >= (2u << 20) && ways < 8)) {
        return 1;
    }
    return ways == 5 || ways == 10 || ways == 15 || (ways == 6 && bytes > (128u << 10)) ? 0.3 : 0;
}

static void add_candidates_of_size(struct cache_terms *fit, const struct cache_size *size,
                                   const struct cache_curve *curve)
{
    /* Sets are selected by address bits, except in large sliced caches, where a hash chooses the slice. */
    const uint64_t sliced_from = 4u << 20;
    static const uint32_t ways[WAYS] = {1, 2, 4, 5, 6, 8, 10, 11, 12, 15, 16, 20, 24};
    for (size_t w = 0; w < WAYS; w++) {
        bool sets_fit = size->bytes % ways[w] == 0 && power_of_two(size->bytes / ways[w]);
        if (!sets_fit && (size->bytes < sliced_from || ways[w] < 11)) {
            continue;
        }
        for (int policy = 0; policy < CACHE_POLICIES; policy++) {
            if ((policy == CACHE_ADAPTIVE && size->bytes < adaptive_from) ||
                (policy == CACHE_AGED && size->bytes < aged_from)) {
                continue;
            }
            for (int scattered = sets_fit ? 0 : 1; scattered < 2; scattered++) {
                if (scattered && size->bytes / ways[w] <= curve->page_bytes) {
                    continue; /* the same as contiguous */
                }
                fit->candidates[fit->candidate_count++] = (struct cache_candidate){
                    .shape = {size->bytes, ways[w], (enum cache_policy)policy, scattered},
                    .price = disbelief_weight * (size->disbelief + cache_policy_disbelief((enum cache_policy)policy) +
                                                 ways_disbelief(size->bytes, ways[w])),
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
                .reach_bytes = (double)n * (double)page_bytes, .price = disbelief_weight * tlb_disbelief};
        }
    }
}

/* Pages are visited in random order, several times in each turn: the share of visits that finds its page is that of the
 * entries in the pages. */
static double tlb_miss_share(double reach_bytes, double bytes)
{
    return bytes > reach_bytes ? 1 - reach_bytes / bytes : 0;
}

static void list_candidates(struct cache_terms *fit, const struct cache_curve *curve)
{
    size_t size_count;
    const struct cache_size *sizes = cache_sizes(&size_count);
    for (fit->known = 0; fit->known < curve->tlb_count && fit->known < KNOWN_MAX; fit->known++) {
        fit->candidates[fit->candidate_count++] = (struct cache_candidate){
            .reach_bytes = curve->tlb_reach_bytes[fit->known], .miss_s = curve->tlb_seconds[fit->known]};
    }
    for (size_t i = 0; i < size_count; i++) {
        double bytes = (double)sizes[i].bytes;
        if (bytes > curve->bytes[0] && bytes < curve->bytes[curve->count - 1]) {
            add_candidates_of_size(fit, &sizes[i], curve);
        }
    }
    add_tlb_candidates(fit, curve->page_bytes);
}

double cache_candidate_miss_share(const struct cache_candidate *candidate, double bytes, size_t page_bytes)
{
    return candidate->reach_bytes > 0 ? tlb_miss_share(candidate->reach_bytes, bytes)
                                      : cache_miss_share(&candidate->shape, (uint64_t)bytes, page_bytes);
}

/* The miss shares of all candidates but the known ones depend on the grid alone, and their computation takes longer
 * than the fit: kept from call to call. */
static int miss_shares(const struct cache_terms *fit, const struct cache_curve *curve, const double **out)
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
            shares[c * points + i] = cache_candidate_miss_share(&candidates[c], grid[i], page_bytes);
        }
    }
    *out = shares;
    return 0;
}

static void weigh(struct cache_terms *fit, const struct cache_curve *curve)
{
    fit->base = fit->columns + fit->candidate_count * fit->points;
    fit->right = fit->base + fit->points;
    for (size_t i = 0; i < fit->points; i++) {
        double own = curve->error_s ? curve->error_s[i] / cache_relative_floor : 0;
        fit->base[i] = 1 / hypot(curve->seconds[i], own);
        fit->right[i] = curve->seconds[i] * fit->base[i];
        fit->total += fit->right[i] * fit->right[i];
    }
}

int cache_candidates_make(struct cache_terms *fit, const struct cache_curve *curve)
{
    size_t size_count;
    const double *shares;
    cache_sizes(&size_count);
    fit->candidates = malloc((size_count * WAYS * CACHE_POLICIES * 2 + 64) * sizeof *fit->candidates);
    if (!fit->candidates) {
        return -ENOMEM;
    }
    list_candidates(fit, curve);
    fit->columns = malloc((fit->candidate_count + 2) * fit->points * sizeof *fit->columns);
    int rc = fit->columns ? miss_shares(fit, curve, &shares) : -ENOMEM;
    if (rc < 0) {
        return rc;
    }
    weigh(fit, curve);
    for (size_t c = 0; c < fit->candidate_count; c++) {
        fit->candidates[c].column = fit->columns + c * fit->points;
        for (size_t i = 0; i < fit->points; i++) {
            double share = c < fit->known
                               ? cache_candidate_miss_share(&fit->candidates[c], curve->bytes[i], curve->page_bytes)
                               : shares[(c - fit->known) * fit->points + i];
            fit->candidates[c].column[i] = share * fit->base[i];
        }
    }
    return 0;
}

void cache_candidates_free(struct cache_terms *fit)
{
    free(fit->candidates);
    free(fit->columns);
}
