/* The candidates for a level, and minus twice the log of their prior.
 *
 * The first two levels belong to a core, and address bits select their sets: such a cache is its
 * ways times a power of two, and its lines lie side by side, or random pages deal them out. Later
 * levels are shared: hashes deal lines out to any number of slices, so that any size may be, and
 * they may hold the victims of the level before. */
#include "probes/cache/fit.h"

#include <math.h>

/* | constant         | unit     | source, and what breaks without it                              |
 * | reach            | times    | a start is off by less; more takes time                         |
 * | odd_price        | -2 log p | data sheets of 47 families: 3 * 2^n is seldom, 5 and 7 seldom-  |
 * |                  |          | er; none: a level whose policy is unknown is reported 6 % off   |
 * | few_ways         | -2 log p | since 1990 no cache of 256 KiB has fewer than 4 ways; of random |
 * |                  |          | pages few ways make a rise that stands for other sizes          |
 * | declared_price   | -2 log p | sizes declared for a core are right on all real machines we     |
 * |                  |          | know; against it a curve that says otherwise wins by 8          |
 * | policy, ways,    | -2 log p | Xeon, EPYC, Power, z, Arm's and Apple's: LRU-like or random, of |
 * | victims          |          | 11, 12, 15, 16 or 20 ways; none: twice as broad intervals       |
 * | any_size         | -2 log p | as sizes in steps of 2 % of which one in seven is built         |
 */
/* Times: closer levels than Power8's and Itanium's (3) are not built. */
const double probe_cache_apart = 2;
static const double reach = 1.6;
static const double odd_price[] = {0, 3.5, 7.5, 7.5, 10, 10, 10, 10, 12.5}; /* 1, 3 ... 15, more */
static const double few_ways = 15;
static const double declared_price = -8;
static const double shared_policy[CACHE_POLICIES] = {[CACHE_AGED] = 4, [CACHE_ADAPTIVE] = 3};
static const double core_policy[CACHE_POLICIES] = {[CACHE_RANDOM] = 1, [CACHE_AGED] = 1};
static const double unusual_ways = 2, victims = 1;
static const double any_size = 4, whole_mib = 2.5;
/* Bytes: of first levels all are LRU-like or random; smaller caches are not shared; sets of more
 * than 1 MiB side by side are not built. */
static const uint64_t aged_from = 128 << 10, shared_from = 2 << 20, largest_way = 1 << 20;
static const uint64_t many_ways_from = 256 << 10;
enum { WAYS_LISTED = 24, PARTS_MAX = 256, SMALLEST_WAY = 256, SHARED_STEPS = 32 };

struct cache_candidates_range {
    const struct cache_terms *terms;
    double low, high;
    bool coarse;
    cache_visit *visit;
    void *argument;
};

static bool cache_candidates_is_declared(const struct cache_curve *curve, uint64_t bytes)
{
    bool declared = false;
    for (size_t i = 0; i < curve->declared_count; i++) {
        declared |= curve->declared_bytes[i] == bytes;
    }
    return declared;
}

/* -- of a core -- */

static void cache_candidates_of_ways(const struct cache_candidates_range *range, uint64_t way,
                                     uint32_t ways)
{
    const struct cache_curve *curve = range->terms->curve;
    const uint64_t bytes = way * ways, odd = bytes >> __builtin_ctzll(bytes);
    const uint64_t pages = way / curve->page_bytes;
    /* how seldom a size is built counts where nobody says that it is */
    const double seldom =
        odd_price[odd < 16 ? odd / 2 : 8] + (bytes >= many_ways_from && ways < 4 ? few_ways : 0);
    const double price = cache_candidates_is_declared(curve, bytes) ? declared_price : seldom;
    for (int policy = 0; policy < CACHE_ADAPTIVE; policy++) {
        if (policy == CACHE_AGED && bytes < aged_from) {
            continue;
        }
        for (int dealt_out = 0; dealt_out < (pages > 1 ? 2 : 1); dealt_out++) {
            const struct cache_candidate candidate = {.shape = {.bytes = bytes,
                                                                .ways = ways,
                                                                .policy = (enum cache_policy)policy,
                                                                .parts = !dealt_out ? 1
                                                                         : pages < PARTS_MAX
                                                                             ? (uint32_t)pages
                                                                             : PARTS_MAX},
                                                      .price = price + core_policy[policy]};
            range->visit(&candidate, range->argument);
        }
    }
}

static void cache_candidates_of_core(const struct cache_candidates_range *range)
{
    for (uint64_t way = SMALLEST_WAY; way <= largest_way; way *= 2) {
        for (uint32_t ways = 2; ways <= 32; ways += ways < WAYS_LISTED ? 1 : 8) {
            const double bytes = (double)(way * ways);
            if (bytes >= range->low && bytes <= range->high) {
                cache_candidates_of_ways(range, way, ways);
            }
        }
    }
}

/* -- shared -- */

static const struct {
    uint32_t ways;
    bool coarse;
    bool unusual;
} cache_candidates_ways[] = {
    {8, true, true},   {9, false, true},  {10, false, true},  {11, false, false}, {12, true, false},
    {13, false, true}, {14, false, true}, {15, false, false}, {16, true, false},  {18, false, true},
    {20, true, false}, {22, false, true}, {24, false, true},  {32, true, true}};
enum { WAYS_COUNT = sizeof cache_candidates_ways / sizeof *cache_candidates_ways };
static const struct {
    uint32_t parts;
    bool coarse;
} cache_candidates_parts[] = {{1, true},  {2, false},  {3, true},  {4, false},
                              {6, true},  {8, false},  {12, true}, {16, false},
                              {24, true}, {48, false}, {256, true}};
enum { PARTS_COUNT = sizeof cache_candidates_parts / sizeof *cache_candidates_parts };

/* Whole MiB are built more often than what lies between, powers of two most of all. */
static double cache_candidates_size_price(uint64_t bytes)
{
    const uint64_t mib = 1 << 20, odd = bytes >> __builtin_ctzll(bytes);
    return odd == 1 ? 0 : odd == 3 || odd == 5 ? 1 : bytes % mib == 0 ? whole_mib : any_size;
}

/* One size in all shapes. */
static void cache_candidates_of_size(const struct cache_candidates_range *range, uint64_t bytes,
                                     uint64_t before)
{
    const double size_price = cache_candidates_size_price(bytes);
    struct cache_candidate candidate = {.shape = {.bytes = bytes}};
    for (size_t w = 0; w < WAYS_COUNT; w++) {
        const double ways_price = cache_candidates_ways[w].unusual ? unusual_ways : 0;
        for (size_t p = 0; p < PARTS_COUNT; p++) {
            if (range->coarse &&
                (!cache_candidates_ways[w].coarse || !cache_candidates_parts[p].coarse)) {
                continue;
            }
            candidate.shape.ways = cache_candidates_ways[w].ways;
            candidate.shape.parts = cache_candidates_parts[p].parts;
            for (int policy = 0; policy < CACHE_POLICIES; policy++) {
                candidate.shape.policy = (enum cache_policy)policy;
                candidate.shape.behind_bytes = 0;
                candidate.price = size_price + ways_price + shared_policy[policy];
                range->visit(&candidate, range->argument);
                if (policy != CACHE_ADAPTIVE) {
                    candidate.shape.behind_bytes = before;
                    candidate.price += victims;
                    range->visit(&candidate, range->argument);
                }
            }
        }
    }
}

static void cache_candidates_shared(const struct cache_candidates_range *range, uint64_t before)
{
    const uint64_t mib = 1 << 20, grain = 64 << 10;
    const double ratio = exp2(1.0 / SHARED_STEPS);
    uint64_t last = 0;
    for (double at = (double)shared_from; at <= range->high; at *= ratio) {
        const uint64_t whole = (uint64_t)(at * ratio) / mib * mib,
                       any = (uint64_t)at / grain * grain;
        /* the whole MiB in this step, where there is one */
        const uint64_t bytes = (double)whole >= at ? whole : any;
        if ((double)bytes >= range->low && (double)bytes <= range->high && bytes > last) {
            cache_candidates_of_size(range, bytes, before);
            last = bytes;
        }
    }
}

void probe_cache_candidates(const struct cache_terms *terms, const struct cache_solution *solution,
                            size_t at, bool coarse, cache_visit *visit, void *argument)
{
    const double size = (double)solution->levels[at].shape.bytes;
    const double end = terms->curve->bytes[terms->points - 1];
    struct cache_candidates_range range = {.terms = terms,
                                           .low = size / reach,
                                           .high = fmin(size * reach, end),
                                           .coarse = coarse,
                                           .visit = visit,
                                           .argument = argument};
    if (at > 0) {
        const double before = (double)solution->levels[at - 1].shape.bytes;
        range.low = fmax(range.low, probe_cache_apart * before);
    }
    if (at + 1 < solution->count) {
        const double behind = (double)solution->levels[at + 1].shape.bytes;
        range.high = fmin(range.high, behind / probe_cache_apart);
    }
    if (at < CACHE_CORE_LEVELS || size < (double)shared_from) {
        cache_candidates_of_core(&range);
    } else {
        cache_candidates_shared(&range, solution->levels[at - 1].shape.bytes);
    }
}
