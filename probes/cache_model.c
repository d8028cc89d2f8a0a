#include "cache_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- one set -- */

enum { WAYS_MAX = 32, LINES_MAX = 512 };

/* Random replacement, cyclic visits: a line survives the m * (X - 1) evictions until its next visit with
 * (1 - 1/K)^(m (X - 1)), and m = 1 - that. The fixed point, by iteration from above. */
static double random_fixed_point(double lines, uint32_t ways)
{
    double miss = 1, before = 0;
    for (int i = 0; i < 200 && fabs(miss - before) > 1e-6; i++) {
        before = miss;
        miss = 1 - pow(1 - 1.0 / ways, miss * (lines - 1));
    }
    return miss;
}

/* Asked millions of times for the same few arguments. */
static double random_miss(double lines, uint32_t ways)
{
    static double known[WAYS_MAX + 1][LINES_MAX + 1];
    if (lines > LINES_MAX || ways > WAYS_MAX) {
        return random_fixed_point(lines, ways);
    }
    double *miss = &known[ways][(size_t)lines];
    if (*miss == 0) {
        *miss = random_fixed_point(lines, ways);
    }
    return *miss;
}

/* -- pseudo-LRU: no formula is known, so one set is played through -- */

struct plru {
    uint32_t ways;
    uint64_t lines[WAYS_MAX]; /* number + 1; 0: empty */
    uint64_t bits;            /* of the tree's nodes, or of the ways */
    bool tree;
};

static void plru_touch(struct plru *set, uint32_t way)
{
    if (!set->tree) {
        set->bits |= UINT64_C(1) << way;
        if (set->bits == (UINT64_C(1) << set->ways) - 1) {
            set->bits = UINT64_C(1) << way;
        }
        return;
    }
    uint64_t node = 1;
    for (uint32_t half = set->ways / 2; half > 0; half /= 2) {
        bool right = way & half;
        set->bits = right ? set->bits & ~(UINT64_C(1) << node) : set->bits | UINT64_C(1) << node;
        node = 2 * node + right;
    }
}

static uint32_t plru_victim(const struct plru *set)
{
    uint32_t way = 0;
    if (!set->tree) {
        while (way + 1 < set->ways && set->bits >> way & 1) {
            way++;
        }
        return way;
    }
    uint64_t node = 1;
    for (uint32_t half = set->ways / 2; half > 0; half /= 2) {
        bool right = set->bits >> node & 1;
        way += right ? half : 0;
        node = 2 * node + right;
    }
    return way;
}

static bool plru_visit(struct plru *set, uint64_t line)
{
    uint32_t way = 0;
    while (way < set->ways && set->lines[way] != line) {
        way++;
    }
    bool hit = way < set->ways;
    if (!hit) {
        for (way = 0; way < set->ways && set->lines[way] != 0; way++) {
        }
        way = way < set->ways ? way : plru_victim(set);
        set->lines[way] = line;
    }
    plru_touch(set, way);
    return hit;
}

static bool plru_remove(struct plru *set, uint64_t line)
{
    for (uint32_t way = 0; way < set->ways; way++) {
        if (set->lines[way] == line) {
            set->lines[way] = 0;
            return true;
        }
    }
    return false;
}

/* Miss shares that were played through, by ways and lines; 0: not yet. */
typedef double played_table[WAYS_MAX + 1][LINES_MAX + 1];

static double remembered(played_table known, double (*play)(uint32_t lines, uint32_t ways), double lines, uint32_t ways)
{
    if (lines > 4.0 * ways || lines > LINES_MAX || ways > WAYS_MAX) {
        return 1;
    }
    double *miss = &known[ways][(size_t)lines];
    if (*miss == 0) {
        *miss = fmax(play((uint32_t)lines, ways), 1e-9);
    }
    return *miss;
}

/* In whatever order the lines of a set are visited, it is the same in every turn: they may be numbered by it. */
static double plru_played(uint32_t lines, uint32_t ways)
{
    enum { WARM_TURNS = 16, TURNS = 16 };
    struct plru set = {.ways = ways, .tree = (ways & (ways - 1)) == 0};
    uint32_t misses = 0;
    for (uint32_t turn = 0; turn < WARM_TURNS + TURNS; turn++) {
        for (uint64_t line = 1; line <= lines; line++) {
            misses += !plru_visit(&set, line) && turn >= WARM_TURNS;
        }
    }
    return (double)misses / ((double)lines * TURNS);
}

static double plru_miss(double lines, uint32_t ways)
{
    static played_table known;
    return remembered(known, plru_played, lines, ways);
}

/* A cache of victims loses a line by a hit and gets it back when the level before evicts it, which is here after one
 * more line of the set was visited: the line that is held there is not of the X. */
static double plru_victims_played(uint32_t lines, uint32_t ways)
{
    enum { WARM_TURNS = 16, TURNS = 16 };
    struct plru set = {.ways = ways, .tree = (ways & (ways - 1)) == 0};
    uint32_t misses = 0, all = lines + 1;
    for (uint32_t turn = 0; turn < WARM_TURNS + TURNS; turn++) {
        for (uint32_t line = 0; line < all; line++) {
            bool hit = plru_remove(&set, 1 + line);
            misses += !hit && turn >= WARM_TURNS;
            plru_visit(&set, 1 + (line + all - 1) % all);
        }
    }
    return (double)misses / ((double)all * TURNS);
}

static double plru_victims_miss(double lines, uint32_t ways)
{
    static played_table known;
    return remembered(known, plru_victims_played, lines, ways);
}

/* -- ages: played through as well -- */

enum { OLDEST = 3, AGE_OF_NEW = 1 };

struct aged {
    uint32_t ways;
    uint64_t lines[WAYS_MAX];
    uint8_t ages[WAYS_MAX];
};

static bool aged_visit(struct aged *set, uint64_t line)
{
    uint32_t way = 0;
    while (way < set->ways && set->lines[way] != line) {
        way++;
    }
    bool hit = way < set->ways;
    if (!hit) {
        for (way = 0; way + 1 < set->ways && set->ages[way] != OLDEST; way++) {
        }
        set->lines[way] = line;
    }
    set->ages[way] = hit ? 0 : AGE_OF_NEW;
    uint8_t oldest = 0;
    for (uint32_t i = 0; i < set->ways; i++) {
        oldest = set->ages[i] > oldest ? set->ages[i] : oldest;
    }
    for (uint32_t i = 0; i < set->ways; i++) {
        set->ages[i] = (uint8_t)(set->ages[i] + (i == way ? 0 : OLDEST - oldest));
    }
    return hit;
}

static double aged_played(uint32_t lines, uint32_t ways)
{
    enum { WARM_TURNS = 40, TURNS = 40 };
    struct aged set = {.ways = ways};
    uint32_t misses = 0;
    memset(set.ages, OLDEST, sizeof set.ages);
    for (uint32_t turn = 0; turn < WARM_TURNS + TURNS; turn++) {
        for (uint64_t line = 1; line <= lines; line++) {
            misses += !aged_visit(&set, line) && turn >= WARM_TURNS;
        }
    }
    return (double)misses / ((double)lines * TURNS);
}

static double aged_miss(double lines, uint32_t ways)
{
    static played_table known;
    return remembered(known, aged_played, lines, ways);
}

static double set_miss(const struct cache_shape *shape, double lines)
{
    const uint32_t ways = shape->ways;
    if (lines <= ways) {
        return 0;
    }
    switch (shape->policy) {
    case CACHE_LRU:
        return 1;
    case CACHE_PLRU:
        return shape->behind_bytes ? plru_victims_miss(lines, ways) : plru_miss(lines, ways);
    case CACHE_RANDOM:
        return random_miss(lines, ways);
    case CACHE_AGED:
        return aged_miss(lines, ways);
    case CACHE_LEAKY:
        return 0.5 * (1 + random_miss(lines, ways));
    default:
        return ways > 1 ? 1 - (ways - 1) / lines : 1;
    }
}

/* -- all sets -- */

static double contiguous_miss(const struct cache_shape *shape, double working_set)
{
    double lines = working_set / ((double)shape->bytes / shape->ways);
    double low = floor(lines), share = lines - low;
    double misses = (1 - share) * low * set_miss(shape, low) + share * (low + 1) * set_miss(shape, low + 1);
    return misses / lines;
}

/* E f(1 + B), B ~ B(n, p), summed outwards from the mode until the tails are below 1e-9. */
static double scattered_miss(const struct cache_shape *shape, double working_set, double piece_bytes)
{
    double p = (double)shape->ways * piece_bytes / (double)shape->bytes;
    double pages = working_set / piece_bytes;
    if (p >= 1 || pages < 2) { /* every page goes to every set */
        return contiguous_miss(shape, working_set);
    }
    double n = pages - 1;
    if (n * p > 64.0 * shape->ways) { /* every set is far too full */
        return set_miss(shape, n * p);
    }
    double mode = floor((n + 1) * p), odds = p / (1 - p);
    double peak = exp(lgamma(n + 1) - lgamma(mode + 1) - lgamma(n - mode + 1) + mode * log(p) + (n - mode) * log1p(-p));
    double sum = 0, mass = 0, weight = peak;
    for (double k = mode; k <= n && weight > 1e-9; k++) {
        sum += weight * set_miss(shape, 1 + k);
        mass += weight;
        weight *= (n - k) / (k + 1) * odds;
    }
    weight = peak;
    for (double k = mode; k >= 1; k--) {
        weight *= k / ((n - k + 1) * odds);
        if (weight < 1e-9) {
            break;
        }
        sum += weight * set_miss(shape, k);
        mass += weight;
    }
    return mass > 0 ? sum / mass : 0;
}

double cache_miss_share(const struct cache_shape *shape, uint64_t working_set, size_t page_bytes)
{
    if (working_set <= shape->behind_bytes) {
        return 0;
    }
    double bytes = (double)(working_set - shape->behind_bytes);
    if (shape->slices > 1) {
        return scattered_miss(shape, bytes, (double)shape->bytes / ((double)shape->ways * shape->slices));
    }
    return shape->scattered ? scattered_miss(shape, bytes, (double)page_bytes) : contiguous_miss(shape, bytes);
}

double cache_binomial_tail(uint64_t pages, uint32_t ways, size_t page_bytes, uint64_t cache_bytes)
{
    double p = (double)ways * (double)page_bytes / (double)cache_bytes, n = (double)pages, below = 0;
    if (p >= 1) {
        return pages > ways ? 1 : 0;
    }
    for (double k = 0; k <= ways && k <= n; k++) {
        below += exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p));
    }
    return below < 1 ? 1 - below : 0;
}

/* -- what is built -- */

/* Most caches are pseudo-LRU or LRU; what is neither must explain more. */
double cache_policy_disbelief(enum cache_policy policy)
{
    static const double disbelief[CACHE_POLICIES] = {
        [CACHE_LEAKY] = 0.3, [CACHE_RANDOM] = 0.4, [CACHE_AGED] = 0.2, [CACHE_ADAPTIVE] = 0.3};
    return disbelief[policy];
}

enum { SIZES_MAX = 512 };

static struct cache_size sizes[SIZES_MAX];
static size_t size_count;

static void add_size(double bytes, double disbelief)
{
    uint64_t whole = (uint64_t)bytes;
    for (size_t i = 0; i < size_count; i++) {
        if (sizes[i].bytes == whole) {
            sizes[i].disbelief = disbelief < sizes[i].disbelief ? disbelief : sizes[i].disbelief;
            return;
        }
    }
    if (size_count < SIZES_MAX) {
        sizes[size_count++] = (struct cache_size){whole, disbelief};
    }
}

static int by_bytes(const void *a, const void *b)
{
    uint64_t x = ((const struct cache_size *)a)->bytes, y = ((const struct cache_size *)b)->bytes;
    return (x > y) - (x < y);
}

/* What was ever built, roughly: powers of two; three times a power of two (24K, 48K, 96K, 192K, 3M, 6M, 12M, 24M, 96M);
 * 1.25M and 2.5M and their multiples; Intel's slices of 1.375, 1.875, 2.5 and 3 MiB by the number of cores; whole
 * megabytes. */
static void fill_sizes(void)
{
    const double kib = 1024, mib = 1024 * kib;
    for (double bytes = 4 * kib; bytes <= 512 * mib; bytes *= 2) {
        add_size(bytes, 0);
        if (bytes >= 8 * kib) {
            add_size(1.5 * bytes, bytes >= 256 * kib && bytes < 1 * mib   ? 6
                                  : bytes >= 128 * kib && bytes < 1 * mib ? 2
                                                                          : 1);
        }
        if (bytes >= 256 * kib && bytes <= 256 * mib) {
            add_size(1.25 * bytes, bytes >= 1 * mib ? 1 : 4);
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

const struct cache_size *cache_sizes(size_t *count)
{
    if (size_count == 0) {
        fill_sizes();
    }
    *count = size_count;
    return sizes;
}
