/* Does each model that a machine description may ask for (tests/fixtures/machines/README.md) change
 * what is measured, the way that the real thing does? */
#include "probes/cache/probe.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"
#include "tests/simulated/simulated.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* Seconds of a load, as described below. */
#define L1_S 1e-9
#define L2_S 1e-8
#define MEMORY_S 1e-7

#define MACHINE(fields, caches, more) "'pus': '0-1', " fields "'caches': [" caches "]" more
#define CONTIGUOUS "'page_mapping': 'contiguous', "
#define L1(fields)                                                                                 \
    "{'level': 1, 'size_bytes': 16384, 'ways': 4, 'seconds': 1e-9, 'policy': 'lru'" fields "}"
#define L2(fields) ", {'level': 2, 'size_bytes': 65536, 'ways': 8, 'seconds': 1e-8" fields "}"
#define POLICY(name) L2(", 'policy': '" name "'")
#define SHARED ", 'groups': ['0-1']"

static double chase(struct machine_traversal what)
{
    static const uint32_t pu = 0;
    double seconds;
    what.stride_bytes = what.stride_bytes ? what.stride_bytes : 64;
    what.warm_passes = 6;
    what.seed = what.seed ? what.seed : 3;
    ck_assert_int_eq(probe_machine_traverse(&machine, &what, &pu, 1, &seconds), 0);
    return seconds;
}

/* A load of a random cycle through so much of such a machine. */
static double load(const char *text, size_t bytes)
{
    open_machine_with(1, "%s", text);
    double seconds = chase((struct machine_traversal){.bytes = bytes});
    return seconds;
}

static void assert_near(double seconds, double expected)
{
    ck_assert_double_eq_tol(seconds, expected, 0.05 * expected);
}

#define TWO_LEVELS(policy) MACHINE(CONTIGUOUS, L1("") POLICY(policy), "")
#define PAGES(mapping, fields)                                                                     \
    MACHINE("'page_mapping': '" mapping "', ", L1("") L2(", 'policy': 'lru'" fields), "")
#define NOISY(noise) MACHINE(CONTIGUOUS, L1("") POLICY("lru"), ", 'noise': {" noise "}")
#define NEIGHBOUR NOISY("'neighbour_probability': 1, 'neighbour_lines': 0.3")

static const struct {
    const char *machine;
    size_t kib;
    double least_s, most_s;
} loads[] = {
    /* A load takes the time of the level that has it. */
    {TWO_LEVELS("lru"), 16, 0.95 * L1_S, 1.05 * L1_S},
    {TWO_LEVELS("lru"), 64, 0.95 * L2_S, 1.05 * L2_S},
    {TWO_LEVELS("lru"), 1024, 0.95 * MEMORY_S, 1.05 * MEMORY_S},
    /* A cycle an eighth larger than the cache: LRU keeps nothing of it, other policies some. */
    {TWO_LEVELS("lru"), 72, 0.95 * MEMORY_S, 1.05 * MEMORY_S},
    {TWO_LEVELS("random"), 72, 0, 0.8 * MEMORY_S},
    {TWO_LEVELS("aged"), 72, 0, 0.9 * MEMORY_S},
    {TWO_LEVELS("adaptive"), 72, 0, 0.6 * MEMORY_S},
    /* 64 KiB do not hold it, victims of 16 beside them do. */
    {PAGES("contiguous", ", 'inclusion': 'victim'"), 72, 0, 0.3 * MEMORY_S},
    /* 64 KiB in 64 KiB of a few ways: whether pages fall on one another. A hash does not give
     * every set as many lines. */
    {PAGES("random", ""), 64, 1.5 * L2_S, MEMORY_S},
    {MACHINE("'page_mapping': 'random', 'page_bytes': 65536, ", L1("") POLICY("lru"), ""), 64, 0,
     1.1 * L2_S},
    {PAGES("coloured", ""), 64, 0, 1.1 * L2_S},
    {PAGES("contiguous", ""), 64, 0, 1.1 * L2_S},
    {PAGES("random", ", 'indexing': 'virtual'"), 64, 0, 1.1 * L2_S},
    {PAGES("contiguous", ", 'slices': 4"), 64, 1.2 * L2_S, 0.8 * MEMORY_S},
    /* Others fill the last level, or a busy sibling the first. */
    {NEIGHBOUR, 60, 1.2 * L2_S, MEMORY_S},
    {NEIGHBOUR, 12, 0.95 * L1_S, 1.05 * L1_S},
    {NOISY("'sibling_probability': 1, 'sibling_lines': 0.3"), 15, 1.2 * L1_S, MEMORY_S},
};

TEST(each_model_changes_what_a_load_takes, .loops = sizeof loads / sizeof *loads)
{
    const double seconds = load(loads[_i].machine, loads[_i].kib * KIB);
    ck_assert_double_ge(seconds, loads[_i].least_s);
    ck_assert_double_le(seconds, loads[_i].most_s);
}

static struct sim_cache cache_of(uint32_t ways, uint32_t sets, enum sim_policy policy)
{
    return (struct sim_cache){.level = 1,
                              .ways = ways,
                              .line_bytes = 64,
                              .slices = 1,
                              .size_bytes = UINT64_C(64) * sets * ways,
                              .sets = sets,
                              .policy = policy};
}

/* The line that the second of two misses evicts from a full set of eight: the next oldest, or what
 * the tree points at, which is in the other half than the line that came last. */
static uint64_t second_victim(enum sim_policy policy)
{
    const struct sim_cache kind = cache_of(8, 1, policy);
    FREED_BY(probe_sim_ways_free) struct sim_ways ways = {0};
    probe_sim_ways_clear(&ways, &kind, 1);
    uint32_t slot = probe_sim_ways_reserve(&ways, 1);
    for (uint64_t line = 1; line <= 8; line++) {
        ck_assert_uint_eq(probe_sim_ways_fill(&ways, slot, line), 0);
    }
    ck_assert_uint_eq(probe_sim_ways_fill(&ways, slot, 9), 1);
    uint64_t evicted = probe_sim_ways_fill(&ways, slot, 10);
    return evicted;
}

/* A fixed cycle is the same to both in the end: no figure of a chase tells them apart for sure. */
TEST(a_tree_is_not_lru)
{
    ck_assert_uint_eq(second_victim(SIM_LRU), 2);
    ck_assert_uint_eq(second_victim(SIM_TREE_PLRU), 5);
}

static bool visit(struct sim_ways *ways, uint32_t slot, uint64_t line)
{
    bool hit = probe_sim_ways_hit(ways, slot, line);
    if (!hit) {
        probe_sim_ways_fill(ways, slot, line);
    }
    return hit;
}

/* Lines that come in before the first of a full set, hit just now, is evicted. */
static size_t outlasts(enum sim_policy policy, uint32_t seed)
{
    const struct sim_cache kind = cache_of(8, 1, policy);
    FREED_BY(probe_sim_ways_free) struct sim_ways ways = {0};
    probe_sim_ways_clear(&ways, &kind, seed);
    uint32_t slot = probe_sim_ways_reserve(&ways, 1);
    for (int turn = 0; turn < 3; turn++) { /* until nothing else is there */
        for (uint64_t first = 1; first <= 8; first++) {
            visit(&ways, slot, first);
        }
    }
    uint64_t line = 9;
    ck_assert(probe_sim_ways_hit(&ways, slot, 1));
    while (probe_sim_ways_fill(&ways, slot, line) != 1) {
        line++;
    }
    return line - 8;
}

TEST(an_age_tells_a_line_that_was_hit_from_one_that_came_in)
{
    ck_assert_uint_eq(outlasts(SIM_LRU, 1), 8);
    ck_assert_uint_gt(outlasts(SIM_AGED, 1), 8);
}

/* The share of visits that miss of so many lines in a set, over many sets. */
static double ages_miss(uint32_t count, uint32_t lines)
{
    enum { SETS = 256, WARM_TURNS = 16, TURNS = 16 };
    const struct sim_cache kind = cache_of(count, SETS, SIM_AGED);
    FREED_BY(probe_sim_ways_free) struct sim_ways ways = {0};
    size_t misses = 0;
    probe_sim_ways_clear(&ways, &kind, 7);
    for (uint64_t set = 0; set < SETS; set++) {
        uint32_t slot = probe_sim_ways_reserve(&ways, 1 + set);
        for (int turn = 0; turn < WARM_TURNS + TURNS; turn++) {
            for (uint64_t i = 0; i < lines; i++) {
                misses += !visit(&ways, slot, 1 + set + i * SETS) && turn >= WARM_TURNS;
            }
        }
    }
    return (double)misses / SETS / lines / TURNS;
}

/* A set of a real machine holds other processes' lines of any age beforehand, and ages remember:
 * from an empty set 17 lines in 16 ways miss a tenth more often. Is the cache of the simulator,
 * mean over its sets, the one that the sizes are inferred by? */
TEST(ages_of_a_simulated_cache_are_those_of_the_model)
{
    static const uint32_t tried[][2] = {{8, 9}, {8, 12}, {12, 18}, {16, 17}, {16, 22}, {20, 21}};
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        double simulated = ages_miss(tried[i][0], tried[i][1]);
        double model = probe_cache_set_miss(CACHE_AGED, tried[i][0], tried[i][1]);
        ck_assert_msg(fabs(simulated / model - 1) < 0.06, "%u lines in %u ways: %g, model %g",
                      tried[i][1], tried[i][0], simulated, model);
    }
}

TEST(random_evicts_any_line)
{
    size_t trials = 400, sum = 0;
    for (uint32_t seed = 1; seed <= trials; seed++) {
        sum += outlasts(SIM_RANDOM, seed * 7919);
    }
    double mean = (double)sum / (double)trials;
    ck_assert_msg(mean > 6.5 && mean < 9.5, "outlasts %g lines, not 8", mean);
}

/* 72 KiB in an LRU cache of 64: it evicts every line before it is asked for again, also from the
 * level before it, which would keep a part on its own. */
TEST(an_inclusive_cache_takes_lines_from_the_level_before)
{
#define L3(fields)                                                                                 \
    ", {'level': 3, 'size_bytes': 65536, 'ways': 8, 'seconds': 2e-8, 'policy': "                   \
    "'lru'" fields "}"
    double filled = load(MACHINE(CONTIGUOUS, L1("") POLICY("adaptive") L3(""), ""), 72 * KIB);
    double inclusive =
        load(MACHINE(CONTIGUOUS, L1("") POLICY("adaptive") L3(", 'inclusion': 'inclusive'"), ""),
             72 * KIB);
    ck_assert_double_gt(inclusive, 1.2 * filled);
}

/* Two PUs with 48 KiB each, in one cache of 64 or in one each. */
static double together(const char *text)
{
    const uint32_t pus[] = {0, 1};
    double seconds[2];
    const struct machine_traversal what = {
        .bytes = 48 * KIB, .stride_bytes = 64, .order = MACHINE_CHASE, .warm_passes = 6, .seed = 3};
    open_machine_with(1, "%s", text);
    ck_assert_int_eq(probe_machine_traverse(&machine, &what, pus, 2, seconds), 0);
    return seconds[0] > seconds[1] ? seconds[0] : seconds[1];
}

TEST(those_who_share_a_cache_disturb_one_another)
{
    assert_near(together(MACHINE(CONTIGUOUS, L1("") L2(", 'policy': 'lru'" SHARED), "")), MEMORY_S);
    ck_assert_double_lt(together(MACHINE(CONTIGUOUS, L1("") L2(", 'policy': 'lru'"), "")),
                        1.1 * L2_S);
}

/* A hash of 64 KiB in 64 KiB depends on their place; a seed is a place. The order of visits, which
 * the seed chooses as well, has no effect on LRU. */
TEST(pages_side_by_side_lie_where_the_seed_says)
{
    struct machine_traversal what = {.bytes = 64 * KIB};
    open_machine_with(1, "%s", PAGES("contiguous", ", 'slices': 4"));
    const double here = chase(what);
    ck_assert_double_eq(chase(what), here);
    unsigned elsewhere = 0;
    for (what.seed = 4; what.seed < 8; what.seed++) {
        elsewhere += fabs(chase(what) - here) > 0.01 * here;
    }
    ck_assert_uint_ge(elsewhere, 3);
}

TEST(huge_pages_spare_the_cache_and_the_tlb)
{
    open_machine_with(
        1, "%s",
        MACHINE("'page_mapping': 'random', 'huge_page_bytes': 2097152, ", L1("") POLICY("lru"),
                ", 'tlbs': [{'entries': 8, 'seconds': 2e-9}, {'entries': 12, 'seconds': 5e-8}]"));
    struct machine_traversal what = {.bytes = 64 * KIB};
    double ordinary = chase(what);
    what.pages = MACHINE_PAGES_HUGE;
    assert_near(chase(what), L2_S);
    ck_assert_double_gt(ordinary, L2_S + 5e-8 * 0.5);
    const char *tlb =
        MACHINE(CONTIGUOUS, L1("") POLICY("lru"),
                ", 'tlbs': [{'entries': 8, 'seconds': 2e-9}, {'entries': 12, 'seconds': 5e-8}]");
    assert_near(load(tlb, 16 * KIB), L1_S);
    ck_assert_double_gt(load(tlb, 40 * KIB), load(TWO_LEVELS("lru"), 40 * KIB) + 1e-10);
    ck_assert_double_lt(load(tlb, 40 * KIB), load(tlb, 64 * KIB) - 1e-8);
}

/* 512 MiB, as kernels with pages of 64 KiB have: all colours in one of them. */
TEST(huge_pages_may_be_larger_than_any_colour_is_apart)
{
    open_machine_with(
        1, MACHINE("'huge_page_bytes': 536870912, 'page_mapping': 'coloured', ", L1(""), ""));
    assert_near(chase((struct machine_traversal){.bytes = 8 * KIB, .pages = MACHINE_PAGES_HUGE}),
                L1_S);
}

/* Four lines of four pages that an L1 of four ways and a TLB of eight entries both hold. */
TEST(a_tlb_counts_the_pages_that_are_visited)
{
    open_machine_with(
        1, "%s",
        MACHINE(CONTIGUOUS, L1("") POLICY("lru"), ", 'tlbs': [{'entries': 8, 'seconds': 5e-8}]"));
    assert_near(chase((struct machine_traversal){.bytes = 64 * KIB, .stride_bytes = 16 * KIB}),
                L1_S);
}

/* Four loads to a page, of which one can miss the TLB. */
TEST(a_stride_misses_the_tlb_once_in_a_page)
{
    open_machine_with(
        1, "%s",
        MACHINE(CONTIGUOUS, L1("") POLICY("lru"), ", 'tlbs': [{'entries': 8, 'seconds': 4e-8}]"));
    assert_near(chase((struct machine_traversal){
                    .bytes = 64 * KIB, .stride_bytes = 1024, .order = MACHINE_STRIDE}),
                L2_S + 1e-8);
}

TEST(a_prefetcher_follows_strides_but_no_chase)
{
    struct machine_traversal what = {
        .bytes = 1 * MIB, .stride_bytes = 1024, .order = MACHINE_STRIDE};
    open_machine_with(
        1, "%s", MACHINE(CONTIGUOUS "'prefetched_stride_bytes': 1024, ", L1("") POLICY("lru"), ""));
    ck_assert_double_lt(chase(what), 0.5 * MEMORY_S);
    what.stride_bytes = 2048;
    assert_near(chase(what), MEMORY_S);
    what.stride_bytes = 1024;
    what.order = MACHINE_CHASE;
    assert_near(chase(what), MEMORY_S);
}

TEST(outliers_are_as_many_and_as_far_as_is_described)
{
    open_machine_with(1, "%s", NOISY("'outlier_probability': 0.2, 'outlier_factor': 4"));
    size_t outliers = 0, trials = 200;
    for (size_t i = 0; i < trials; i++) {
        double seconds = chase((struct machine_traversal){.bytes = 4 * KIB});
        ck_assert(seconds > 0.99 * L1_S && seconds < 4.01 * L1_S);
        outliers += seconds > 1.01 * L1_S;
    }
    ck_assert_msg(outliers > trials / 10 && outliers < trials * 3 / 10, "%zu outliers of %zu",
                  outliers, trials);
}

TEST(a_network_switches_protocol_at_the_eager_size)
{
    open_machine_with(
        1, "%s",
        MACHINE(CONTIGUOUS, L1(""),
                ", 'layers': [{'name': 'node', 'groups': ['0-1'], 'seconds': 1e-6, 'bytes_per_s': "
                "1e10, 'eager_bytes': 8192, 'rendezvous_seconds': 5e-6}]"));
    const struct profile_pair pair = {0, 1};
    struct machine_exchange what = {.bytes = 8191, .round_trips = 10, .batches = 1};
    double eager, rendezvous;
    ck_assert_int_eq(probe_machine_exchange(&machine, &what, &pair, 1, &eager), 0);
    what.bytes = 8192;
    ck_assert_int_eq(probe_machine_exchange(&machine, &what, &pair, 1, &rendezvous), 0);
    assert_near(eager, 1e-6 + 8191 / 1e10);
    assert_near(rendezvous - eager, 5e-6);
}
