/* Miss shares by working set (model.h), exact and in tables. Binomial sums are cut where they stop
 * to matter. tests/probes/test_cache_model.c compares every policy with a cache that is played
 * through. */
#include "probes/cache/model.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Relative: the shapes miss simulated curves by 0.3 to 1 %. If it were smaller, their error would
 * count as evidence, and sizes of 2 % off would seem certain. */
const double probe_cache_model_error = 0.01;

static double cache_model_side_by_side(const struct cache_shape *shape, double ratio)
{
    const double lines = ratio * shape->ways, low = floor(lines), share = lines - low;
    const double misses =
        (1 - share) * low * probe_cache_set_miss(shape->policy, shape->ways, low) +
        share * (low + 1) * probe_cache_set_miss(shape->policy, shape->ways, low + 1);
    return lines > 0 ? misses / lines : 0;
}

/* E f(1 + B), B ~ B(n, p), summed outwards from the mode until the tails are below this. */
static const double cache_model_tail = 1e-9;

static double cache_model_dealt_out(const struct cache_shape *shape, double ratio)
{
    const double p = 1.0 / shape->parts, pieces = ratio * shape->ways * shape->parts;
    if (shape->parts < 2 || pieces < 2) { /* every piece goes to every set */
        return cache_model_side_by_side(shape, ratio);
    }
    const double n = pieces - 1;
    const double mode = floor((n + 1) * p), odds = p / (1 - p);
    const double peak = exp(lgamma(n + 1) - lgamma(mode + 1) - lgamma(n - mode + 1) +
                            mode * log(p) + (n - mode) * log1p(-p));
    double sum = 0, mass = 0, weight = peak;
    for (double k = mode; k <= n && weight > cache_model_tail; k++) {
        sum += weight * probe_cache_set_miss(shape->policy, shape->ways, 1 + k);
        mass += weight;
        weight *= (n - k) / (k + 1) * odds;
    }
    weight = peak;
    for (double k = mode; k >= 1; k--) {
        weight *= k / ((n - k + 1) * odds);
        if (weight < cache_model_tail) {
            break;
        }
        sum += weight * probe_cache_set_miss(shape->policy, shape->ways, k);
        mass += weight;
    }
    return mass > 0 ? sum / mass : 0;
}

double probe_cache_miss_share(const struct cache_shape *shape, double working_set)
{
    const double bytes = working_set - (double)shape->behind_bytes;
    return bytes > 0 ? cache_model_dealt_out(shape, bytes / (double)shape->bytes) : 0;
}

/* -- tables -- */

/* By working set over size, from 1/4, where nothing misses, to 16. */
enum { TABLE_STEPS = 32, TABLE_FROM = -2, TABLE_TO = 4, TABLE_WAYS_MAX = 32 };
enum { TABLE_COUNT = (TABLE_TO - TABLE_FROM) * TABLE_STEPS + 1 };
static const uint32_t cache_model_parts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256};
enum { PARTS = sizeof cache_model_parts / sizeof *cache_model_parts };

static size_t cache_model_part(uint32_t parts)
{
    size_t i = 0;
    while (i + 1 < PARTS && cache_model_parts[i] < parts) {
        i++;
    }
    return i;
}

/* Kept from call to call: filling them takes longer than a fit. NULL: no memory. */
static const float *cache_model_table(const struct cache_shape *shape)
{
    static float *known[TABLE_WAYS_MAX + 1][CACHE_POLICIES][PARTS];
    const size_t part = cache_model_part(shape->parts);
    float **table = &known[shape->ways][shape->policy][part];
    if (!*table) {
        const struct cache_shape listed = {
            .ways = shape->ways, .policy = shape->policy, .parts = cache_model_parts[part]};
        *table = malloc(TABLE_COUNT * sizeof **table);
        for (int i = 0; *table && i < TABLE_COUNT; i++) {
            const double ratio = exp2(TABLE_FROM + (double)i / TABLE_STEPS);
            (*table)[i] = (float)cache_model_dealt_out(&listed, ratio);
        }
    }
    return *table;
}

/* Beyond the table what hits, hits at random: half as often in twice as large a cycle. */
static double cache_model_from_table(const float *table, double log2_ratio)
{
    const double at = (log2_ratio - TABLE_FROM) * TABLE_STEPS;
    const int i = (int)at;
    if (at <= 0) {
        return 0;
    }
    if (i + 1 >= TABLE_COUNT) {
        return 1 - (1 - (double)table[TABLE_COUNT - 1]) * exp2(TABLE_TO - log2_ratio);
    }
    return table[i] + (at - i) * (double)(table[i + 1] - table[i]);
}

/* Lines side by side make corners, which no table holds. */
int probe_cache_miss_shares(const struct cache_shape *shape, const double *working_sets,
                            size_t count, double *shares)
{
    const bool tabulated = shape->parts > 1 && shape->ways <= TABLE_WAYS_MAX;
    const float *table = tabulated ? cache_model_table(shape) : NULL;
    if (tabulated && !table) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const double bytes = working_sets[i] - (double)shape->behind_bytes;
        const double ratio = bytes / (double)shape->bytes;
        shares[i] = ratio < exp2(TABLE_FROM) ? 0
                    : table                  ? cache_model_from_table(table, log2(ratio))
                                             : cache_model_dealt_out(shape, ratio);
    }
    return 0;
}

/* -- the paper's -- */

double probe_cache_page_conflicts(uint64_t pages, uint32_t ways, size_t page_bytes,
                                  uint64_t cache_bytes)
{
    double p = (double)ways * (double)page_bytes / (double)cache_bytes, n = (double)pages - 1,
           below = 0;
    if (p >= 1) {
        return pages > ways ? 1 : 0;
    }
    for (double k = 0; k < ways && k <= n; k++) {
        below += exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) +
                     (n - k) * log1p(-p));
    }
    return below < 1 ? 1 - below : 0;
}
