/* Miss shares of caches by working set, and the sizes that are tried.
 * Binomial sums are cut where they stop to matter, because the fit asks for a hundred thousand of
 * them. Section III-A2 of the 2010 paper has the model; the size bias is ours (cache.h). To see
 * it: tests/probes/test_cache_model.c holds every policy against a cache that is played through. */
#include "probes/cache/cache.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/probe.h"

/* -- all sets -- */

/* The level before a cache of victims holds what was visited last: `held` of the working set. */
static double set_miss(const struct cache_shape *shape, double lines, double held)
{
    return held > 0 ? probe_cache_set_victims_miss(shape->policy, shape->ways, lines, held)
                    : probe_cache_set_miss(shape->policy, shape->ways, lines);
}

static double contiguous_miss(const struct cache_shape *shape, double working_set, double held)
{
    double lines = working_set / ((double)shape->bytes / shape->ways);
    double low = floor(lines), share = lines - low;
    double misses = (1 - share) * low * set_miss(shape, low, held) +
                    share * (low + 1) * set_miss(shape, low + 1, held);
    return misses / lines;
}

/* E f(1 + B), B ~ B(n, p), summed outwards from the mode until the tails are below 1e-9. */
static double scattered_miss(const struct cache_shape *shape, double working_set,
                             double piece_bytes, double held)
{
    double p = (double)shape->ways * piece_bytes / (double)shape->bytes;
    double pages = working_set / piece_bytes;
    if (p >= 1 || pages < 2) { /* every page goes to every set */
        return contiguous_miss(shape, working_set, held);
    }
    double n = pages - 1;
    if (n * p > 64.0 * shape->ways) { /* every set is far too full */
        return set_miss(shape, floor(n * p), held);
    }
    double mode = floor((n + 1) * p), odds = p / (1 - p);
    double peak = exp(lgamma(n + 1) - lgamma(mode + 1) - lgamma(n - mode + 1) + mode * log(p) +
                      (n - mode) * log1p(-p));
    double sum = 0, mass = 0, weight = peak;
    for (double k = mode; k <= n && weight > 1e-9; k++) {
        sum += weight * set_miss(shape, 1 + k, held);
        mass += weight;
        weight *= (n - k) / (k + 1) * odds;
    }
    weight = peak;
    for (double k = mode; k >= 1; k--) {
        weight *= k / ((n - k + 1) * odds);
        if (weight < 1e-9) {
            break;
        }
        sum += weight * set_miss(shape, k, held);
        mass += weight;
    }
    return mass > 0 ? sum / mass : 0;
}

double probe_cache_miss_share(const struct cache_shape *shape, uint64_t working_set,
                              size_t page_bytes)
{
    if (working_set <= shape->behind_bytes) {
        return 0;
    }
    double bytes = (double)working_set, held = (double)shape->behind_bytes / bytes;
    if (shape->policy != CACHE_PLRU &&
        shape->policy != CACHE_RANDOM) { /* what the level before holds does not count */
        bytes -= (double)shape->behind_bytes;
        held = 0;
    }
    if (shape->slices > 1) {
        return scattered_miss(shape, bytes,
                              (double)shape->bytes / ((double)shape->ways * shape->slices), held);
    }
    return shape->scattered ? scattered_miss(shape, bytes, (double)page_bytes, held)
                            : contiguous_miss(shape, bytes, held);
}

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

/* -- what is built -- */

/* Most caches are pseudo-LRU or LRU; what is neither must explain more. */
double probe_cache_policy_prior(enum cache_policy policy)
{
    static const double prior[CACHE_POLICIES] = {
        [CACHE_LEAKY] = 0.3, [CACHE_RANDOM] = 0.4, [CACHE_AGED] = 0.2, [CACHE_ADAPTIVE] = 0.3};
    return prior[policy];
}

enum { SIZES_MAX = 640 };

static struct cache_size sizes[SIZES_MAX];
static size_t size_count;

static void add_size(double bytes, double prior)
{
    uint64_t whole = (uint64_t)bytes;
    for (size_t i = 0; i < size_count; i++) {
        if (sizes[i].bytes == whole) {
            sizes[i].prior = fmin(prior, sizes[i].prior);
            return;
        }
    }
    if (size_count < SIZES_MAX) {
        sizes[size_count++] = (struct cache_size){whole, prior};
    }
}

static int by_bytes(const void *a, const void *b)
{
    uint64_t x = ((const struct cache_size *)a)->bytes, y = ((const struct cache_size *)b)->bytes;
    return (x > y) - (x < y);
}

/* Any size may be measured; how often it is built decides only between sizes that the curve cannot
 * tell apart. Sets are selected by address bits, so that a cache is its ways times a power of two:
 * sixteen sizes an octave hold all of up to 32 ways. Of large caches, sliced by hashes, the number
 * of slices is anything: 32 an octave, without a meaning of their own. The second look has so
 * sharp an eye that a knee 2 % off the next listed size would be explained by another shape. */
const double probe_cache_free_prior = 4;

static void fill_any(void)
{
    const double kib = 1024, mib = 1024 * kib;
    for (double way = kib / 4; way < 512 * kib; way *= 2) {
        for (int ways = 16; ways < 32; ways++) {
            static const double prior_of_odd[] = {0, 0.7, 1.5, 1.5, 2, 2, 2, 2}; /* 1, 3 … 15 */
            const int odd = ways >> __builtin_ctz((unsigned)ways);
            add_size(ways * way, odd < 16 ? prior_of_odd[odd / 2] : 2.5);
        }
    }
    for (double bytes = 4 * mib; bytes < 512 * mib; bytes *= exp2(1.0 / 32)) {
        add_size(floor(bytes / (64 * kib)) * 64 * kib, probe_cache_free_prior);
    }
}

/* What was built often: powers of two; three times a power of two (24K, 48K, 96K, 192K, 3M, 6M,
 * 12M, 24M, 96M); 1.25M and 2.5M and their multiples; Intel's slices of 1.375, 1.875, 2.5 and 3 MiB
 * by the number of cores; whole megabytes. */
static void fill_sizes(void)
{
    const double kib = 1024, mib = 1024 * kib;
    fill_any();
    for (double bytes = 4 * kib; bytes <= 512 * mib; bytes *= 2) {
        add_size(bytes, 0);
        if (bytes >= 8 * kib) {
            add_size(1.5 * bytes, 1);
        }
        if (bytes >= 1 * mib && bytes <= 256 * mib) {
            add_size(1.25 * bytes, 1);
        }
    }
    for (double megabytes = 3; megabytes <= 64; megabytes++) {
        add_size(megabytes * mib, 2.5);
    }
    for (double megabytes = 66; megabytes <= 128; megabytes += 2) {
        add_size(megabytes * mib, 2.5);
    }
    for (double megabytes = 132; megabytes <= 512; megabytes += 12) {
        add_size(megabytes * mib, 2.5);
    }
    for (double cores = 4; cores <= 28; cores++) {
        add_size(cores * 1.375 * mib, 2.5);
    }
    for (double cores = 8; cores <= 60; cores += 2) {
        add_size(cores * 1.875 * mib, 3);
    }
    qsort(sizes, size_count, sizeof *sizes, by_bytes);
}

const struct cache_size *probe_cache_sizes(size_t *count)
{
    if (size_count == 0) {
        fill_sizes();
    }
    *count = size_count;
    return sizes;
}
