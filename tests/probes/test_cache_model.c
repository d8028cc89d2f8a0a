/* Do the miss shapes agree with what is known of caches? */
#include "probes/cache/probe.h"
#include "profile/base/random.h"
#include "tests/base/runner.h"
#include "tests/simulated/simulated.h"

enum { PAGE = 4096, KIB = 1024, LINE = 64 };

static double miss(uint64_t bytes, uint32_t ways, enum cache_policy policy, bool scattered,
                   uint64_t set)
{
    const struct cache_shape shape = {.bytes = bytes,
                                      .ways = ways,
                                      .policy = policy,
                                      .parts = scattered ? (uint32_t)(bytes / ways / PAGE) : 1};
    return probe_cache_miss_share(&shape, (double)set);
}

TEST(a_set_that_fits_does_not_miss)
{
    for (int policy = 0; policy < CACHE_POLICIES; policy++) {
        ck_assert_double_eq_tol(miss(32 * KIB, 8, (enum cache_policy)policy, false, 32 * KIB), 0,
                                1e-9);
    }
}

TEST(lru_loses_everything_one_way_too_many)
{
    ck_assert_double_eq_tol(miss(32 * KIB, 8, CACHE_LRU, false, 36 * KIB), 1, 1e-9);
    /* half a way too many: half of the sets hold nine lines */
    ck_assert_double_eq_tol(miss(32 * KIB, 8, CACHE_LRU, false, 34 * KIB), 9.0 / 17, 1e-9);
}

TEST(gentler_policies_lose_less)
{
    double lru = miss(32 * KIB, 8, CACHE_LRU, false, 40 * KIB);
    double random = miss(32 * KIB, 8, CACHE_RANDOM, false, 40 * KIB);
    double adaptive = miss(4096 * KIB, 16, CACHE_ADAPTIVE, false, 5120 * KIB);
    ck_assert(lru > random && random > 0.1 && adaptive < random);
    ck_assert_double_eq_tol(adaptive, 1 - 15.0 / 20, 0.04);
}

TEST(ages_keep_some_of_a_set_that_is_a_little_too_large)
{
    double little = miss(1024 * KIB, 16, CACHE_AGED, false, 1088 * KIB);
    double more = miss(1024 * KIB, 16, CACHE_AGED, false, 1280 * KIB);
    ck_assert_double_eq_tol(miss(1024 * KIB, 16, CACHE_LRU, false, 1088 * KIB), 1, 1e-9);
    ck_assert_msg(little > 0.1 && little < 0.4 && more > little && more < 0.8, "%g and %g", little,
                  more);
    ck_assert_double_eq_tol(miss(1024 * KIB, 16, CACHE_AGED, false, 8192 * KIB), 1, 1e-9);
}

TEST(random_pages_miss_before_the_cache_is_full_and_hit_beyond)
{
    double before = miss(1024 * KIB, 16, CACHE_LRU, true, 768 * KIB);
    double beyond = miss(1024 * KIB, 16, CACHE_LRU, true, 1280 * KIB);
    ck_assert(before > 0.02 && before < 0.4);
    ck_assert(beyond > 0.6 && beyond < 0.98);
}

/* -- against the simulator, set by set -- */

/* Line numbers + 1 in random order. */
static uint64_t *random_cycle(size_t count)
{
    uint64_t *lines = malloc(count * sizeof *lines);
    for (size_t i = 0; i < count; i++) {
        lines[i] = 1 + i;
    }
    random_shuffle(&(struct random){11}, lines, count, sizeof *lines);
    return lines;
}

/* Visits one line: misses of the last cache. `before` (NULL: none) holds what it gave back. */
static unsigned visit(struct sim_ways *before, struct sim_ways *last, uint64_t line)
{
    uint32_t slot = probe_sim_ways_reserve(last, line);
    if (!before) {
        bool hit = probe_sim_ways_hit(last, slot, line);
        if (!hit) {
            probe_sim_ways_fill(last, slot, line);
        }
        return !hit;
    }
    uint32_t first = probe_sim_ways_reserve(before, line);
    if (probe_sim_ways_hit(before, first, line)) {
        return 0;
    }
    bool hit = probe_sim_ways_hit(last, slot, line);
    if (hit) {
        probe_sim_ways_remove(last, slot, line);
    }
    uint64_t evicted = probe_sim_ways_fill(before, first, line);
    if (evicted) {
        probe_sim_ways_fill(last, probe_sim_ways_reserve(last, evicted), evicted);
    }
    return !hit;
}

/* Misses per visit in the twelfth turn through `bytes` side by side. */
static double simulated_miss(const struct sim_cache *before, const struct sim_cache *last,
                             uint64_t bytes)
{
    enum { TURNS = 12 };
    struct sim_ways first = {0}, second = {0};
    size_t count = bytes / LINE, misses = 0;
    FREED uint64_t *lines = random_cycle(count);
    if (before) {
        probe_sim_ways_clear(&first, before, 1);
    }
    probe_sim_ways_clear(&second, last, 2);
    for (int turn = 0; turn < TURNS; turn++) {
        misses = 0;
        for (size_t i = 0; i < count; i++) {
            misses += visit(before ? &first : NULL, &second, lines[i]);
        }
    }
    probe_sim_ways_free(&first);
    probe_sim_ways_free(&second);
    return (double)misses / (double)count;
}

static void assert_agree(const struct cache_shape *shape, uint64_t set, double expected,
                         double tolerance)
{
    double share = probe_cache_miss_share(shape, (double)set);
    ck_assert_msg(share > expected - tolerance && share < expected + tolerance,
                  "policy %d, %llu KiB: %g instead of %g", (int)shape->policy,
                  (unsigned long long)(set / KIB), share, expected);
}

/* Two slices spread lines much less than random pages do. */
TEST(slices_spread_lines_as_the_simulated_hash_does)
{
    const struct sim_cache cache = {
        .ways = 16, .line_bytes = LINE, .slices = 2, .sets = 4096, .policy = SIM_LRU};
    const struct cache_shape shape = {
        .bytes = 8192 * KIB, .ways = 16, .policy = CACHE_LRU, .parts = 2};
    double furthest = 0;
    for (uint64_t set = 5120 * KIB; set <= 11264 * KIB; set += 1024 * KIB) {
        double expected = simulated_miss(NULL, &cache, set),
               by_pages = miss(8192 * KIB, 16, CACHE_LRU, true, set);
        assert_agree(&shape, set, expected, 0.015);
        furthest = fmax(furthest, fabs(by_pages - expected));
    }
    ck_assert_double_gt(furthest, 0.05);
}

/* Which lines the level before holds differs from set to set and from time to time. Without the
 * level before the shape would be far off. */
TEST(victims_add_to_the_level_before)
{
    static const struct {
        enum sim_policy simulated;
        enum cache_policy policy;
        uint32_t ways;
    } kinds[] = {
        {SIM_LRU, CACHE_LRU, 16}, {SIM_TREE_PLRU, CACHE_PLRU, 16}, {SIM_TREE_PLRU, CACHE_PLRU, 11}};
    const struct sim_cache before = {
        .ways = 8, .line_bytes = LINE, .slices = 1, .sets = 1024, .policy = SIM_LRU}; /* 512 KiB */
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct sim_cache last = {.ways = kinds[i].ways,
                                       .line_bytes = LINE,
                                       .slices = 8,
                                       .sets = 256,
                                       .policy = kinds[i].simulated};
        const struct cache_shape shape = {.bytes = kinds[i].ways * UINT64_C(128) * KIB,
                                          .ways = kinds[i].ways,
                                          .policy = kinds[i].policy,
                                          .parts = 8,
                                          .behind_bytes = 512 * KIB};
        double further = 0; /* sum over five sizes */
        ck_assert_double_eq(probe_cache_miss_share(&shape, 512 * KIB), 0);
        for (uint64_t set = shape.bytes; set <= shape.bytes + 1024 * KIB; set += 256 * KIB) {
            double expected = simulated_miss(&before, &last, set);
            assert_agree(&shape, set, expected, 0.07);
            struct cache_shape alone = shape;
            alone.behind_bytes = 0;
            further += probe_cache_miss_share(&alone, (double)set) - expected;
        }
        ck_assert_double_gt(further, 5 * 0.15);
    }
}

/* Set dueling: nearly all sets take to the policy that keeps what fits. */
TEST(resistance_to_thrashing_is_that_of_dueling_sets)
{
    const struct sim_cache cache = {
        .ways = 16, .line_bytes = LINE, .slices = 1, .sets = 2048, .policy = SIM_ADAPTIVE};
    const struct cache_shape shape = {.bytes = 2048 * KIB, .ways = 16, .policy = CACHE_ADAPTIVE};
    for (uint64_t set = 2304 * KIB; set <= 4096 * KIB; set += 256 * KIB) {
        assert_agree(&shape, set, simulated_miss(NULL, &cache, set), 0.03);
    }
}

TEST(shares_rise_with_the_working_set)
{
    for (int policy = 0; policy < CACHE_POLICIES; policy++) {
        double last = 0;
        for (uint64_t set = 256 * KIB; set <= 4096 * KIB; set += 64 * KIB) {
            double now = miss(1024 * KIB, 16, (enum cache_policy)policy, true, set);
            ck_assert_double_ge(now, last - 1e-6);
            last = now;
        }
    }
}

TEST(the_papers_binomial_model_is_reproduced)
{
    /* two others, X ~ B(2, 1/2), K = 1: P(1 + X > 1) = 3/4 */
    ck_assert_double_eq_tol(probe_cache_page_conflicts(3, 1, PAGE, 2 * PAGE), 0.75, 1e-12);
    /* one page set: every page meets every other */
    ck_assert_double_eq_tol(probe_cache_page_conflicts(9, 8, PAGE, 8 * PAGE), 1, 1e-12);
    ck_assert_double_eq_tol(probe_cache_page_conflicts(8, 8, PAGE, 8 * PAGE), 0, 1e-12);
}

/* By table and by formula: of tables every share is within a hundredth, and beyond their ends. */
TEST(tables_hold_what_the_formula_gives)
{
    enum { SETS = 64 };
    double sets[SETS], shares[SETS];
    for (size_t i = 0; i < SETS; i++) {
        sets[i] = 256 * KIB * exp2((double)i / 9);
    }
    for (int policy = 0; policy < CACHE_POLICIES; policy++) {
        for (uint32_t parts = 1; parts <= 64; parts *= 4) {
            const struct cache_shape shape = {.bytes = 2048 * KIB,
                                              .ways = 16,
                                              .policy = (enum cache_policy)policy,
                                              .parts = parts,
                                              .behind_bytes = parts > 16 ? 512 * KIB : 0};
            ck_assert_int_eq(probe_cache_miss_shares(&shape, sets, SETS, shares), 0);
            for (size_t i = 0; i < SETS; i++) {
                const double expected = probe_cache_miss_share(&shape, sets[i]);
                ck_assert_double_eq_tol(shares[i], expected, 0.012);
            }
        }
    }
}
