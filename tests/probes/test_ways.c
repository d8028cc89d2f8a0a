/* Are the ways of the second cache measured, wherever its pages lie, and not told where they cannot
 * be? */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "probes/cache/cache.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

struct geometry {
    uint32_t first_kib, first_ways, kib, ways;
    const char *policy, *mapping;
    size_t page;
};

static const double first_s = 1.2e-9, second_s = 4.4e-9, near_s = 1.3e-8;
static double memory_s = 9e-8; /* of what is behind the second level */

static void open_machine(const struct geometry *of, const char *first_policy, const char *noise,
                         struct machine *machine)
{
    open_machine_with(
        machine, 1,
        "{\"servet_machine\": 1, \"pus\": \"0-1\", \"page_bytes\": %zu, \"page_mapping\": "
        "\"%s\", %s \"caches\": ["
        "{\"level\": 1, \"size_bytes\": %u, \"ways\": %u, \"line_bytes\": 64, \"policy\": \"%s\", "
        "\"seconds\": %g},"
        "{\"level\": 2, \"size_bytes\": %u, \"ways\": %u, \"line_bytes\": 64, \"policy\": "
        "\"%s\", \"seconds\": %g}],"
        "\"tlbs\": [{\"entries\": 64, \"seconds\": 2.5e-9}],"
        "\"memory\": {\"seconds\": %g, \"pu_bytes_per_s\": 1e10}}",
        of->page, of->mapping, noise, of->first_kib << 10, of->first_ways, first_policy, first_s,
        of->kib << 10, of->ways, of->policy, second_s, memory_s);
}

/* As beside other programs (benchmarks/probes/machines.py). */
static const char busy[] =
    "\"noise\": {\"relative\": 0.03, \"outlier_probability\": 0.08, \"outlier_factor\": 4, "
    "\"neighbour_probability\": 0.35, \"neighbour_lines\": 0.2, "
    "\"sibling_probability\": 0.1, \"sibling_lines\": 0.3},";

/* `believed_kib`: what the latency curve is said to have given. */
static struct probe_ways measure_behind(const struct geometry *of, const char *first_policy,
                                        uint32_t believed_kib, const char *noise)
{
    struct machine machine;
    struct servet_error error;
    struct probe_ways found;
    open_machine(of, first_policy, noise, &machine);
    struct probe probe = {.machine = &machine, .seed = 1};
    const struct probe_ways_level level = {
        believed_kib << 10, first_s,        second_s,
        memory_s,           of->first_ways, (of->first_kib << 10) / of->first_ways};
    ck_assert_int_eq(probe_ways(&probe, 0, &level, &found, &error), 0);
    probe_machine_close(&machine);
    return found;
}

static struct probe_ways measure(const struct geometry *of, uint32_t believed_kib,
                                 const char *noise)
{
    return measure_behind(of, "plru", believed_kib, noise);
}

static void assert_told(const struct geometry *of, const char *noise)
{
    struct probe_ways found = measure(of, of->kib, noise);
    ck_assert_msg(
        found.ways == of->ways && found.way_bytes == (of->kib << 10) / of->ways && !found.reason,
        "%u KiB, %u ways, %s, %s pages of %zu: found %u ways of %llu", of->kib, of->ways,
        of->policy, of->mapping, of->page, found.ways, (unsigned long long)found.way_bytes);
}

static const struct geometry built[] = {
    {32, 8, 1024, 16, "aged", "random", 4096},      {32, 8, 256, 8, "plru", "random", 4096},
    {48, 12, 1280, 10, "plru", "contiguous", 4096}, {32, 8, 256, 4, "lru", "random", 4096},
    {64, 2, 512, 16, "plru", "coloured", 4096},     {32, 8, 512, 8, "lru", "random", 65536},
    {16, 4, 128, 8, "plru", "random", 16384},       {64, 4, 256, 16, "lru", "random", 16384},
    {26, 13, 2560, 20, "aged", "random", 65536}, /* 1,920 lines, were they a way apart */
};

TEST(ways_of_built_caches_are_found, .loops = sizeof built / sizeof *built)
{
    assert_told(&built[_i], "");
}

TEST(noise_does_not_change_them)
{
    assert_told(
        &built[0],
        "\"noise\": {\"relative\": 0.01, \"outlier_probability\": 0.03, \"outlier_factor\": 3, "
        "\"sibling_probability\": 0.05, \"sibling_lines\": 0.3},");
}

/* Two ways are filled by two lines, and three are half as many again: none of them can be spared,
 * and there is no other to put in its place. */
TEST(a_pool_of_which_all_are_needed_tells_nothing)
{
    static const struct geometry small = {64, 1, 128, 2, "lru", "contiguous", 65536};
    struct probe_ways found = measure(&small, small.kib, "");
    ck_assert_uint_eq(found.ways, 0);
    ck_assert_ptr_nonnull(found.reason);
}

/* A size that is off must not make ways up. */
TEST(ways_that_the_size_contradicts_are_not_told, .loops = 5)
{
    static const uint32_t believed[] = {1152, 1536, 1280, 2048, 768};
    struct probe_ways found = measure(&built[0], believed[_i], "");
    ck_assert_msg(found.ways == 0 || found.ways == 16, "%u KiB: %u ways", believed[_i], found.ways);
    ck_assert_msg((found.ways == 0) == (found.reason != NULL), "%u KiB", believed[_i]);
    ck_assert(found.ways == 0 || believed[_i] == 2048);
    ck_assert(found.conflicting == 0 || found.conflicting == 17);
}

static struct probe_cache believed_caches(uint32_t kib, uint32_t low_kib, uint32_t high_kib)
{
    return (struct probe_cache){
        .levels = {{.size_bytes = 16 << 10, .policy = CACHE_PLRU},
                   {.size_bytes = (uint64_t)kib << 10,
                    .low_bytes = (uint64_t)low_kib << 10,
                    .high_bytes = (uint64_t)high_kib << 10,
                    .policy = CACHE_LRU}},
        .count = 2,
    };
}

static const struct probe_ways of_19_ways = {.conflicting = 20, .reason = "no number of ways"};

TEST(conflicting_lines_decide_between_sizes_of_the_interval)
{
    struct probe_cache caches = believed_caches(1280, 960, 1524);
    probe_cache_settle_second(&caches, &of_19_ways, false);
    ck_assert_uint_eq(caches.levels[1].size_bytes, 1216 << 10);
    ck_assert_uint_eq(caches.levels[1].ways, 19);
    ck_assert_uint_eq(caches.levels[1].way_bytes, 64 << 10);
    ck_assert_ptr_null(caches.levels[1].ways_unknown);
}

TEST(conflicting_lines_say_nothing_of_sizes_outside_it)
{
    struct probe_cache caches = believed_caches(1280, 1280, 1408);
    probe_cache_settle_second(&caches, &of_19_ways, false);
    ck_assert_uint_eq(caches.levels[1].size_bytes, 1280 << 10);
    ck_assert_uint_eq(caches.levels[1].ways, 0);
}

/* 18 lines of 16 ways conflict where one of 17 now and then survives. */
TEST(a_declared_size_stays_that_somewhat_fewer_ways_explain)
{
    const struct probe_ways found = {.conflicting = 18, .ways = 16, .way_bytes = 64 << 10};
    struct probe_cache caches = believed_caches(1024, 860, 1219);
    probe_cache_settle_second(&caches, &found, true);
    ck_assert_uint_eq(caches.levels[1].size_bytes, 1024 << 10);
    probe_cache_settle_second(&caches, &found, false);
    ck_assert_uint_eq(caches.levels[1].size_bytes, 1088 << 10);
}

/* Nine of ten curves of four ways in eight colours say less than the lines do. */
TEST(sets_that_were_counted_tell_a_size_outside_the_interval)
{
    const struct probe_ways found = {.conflicting = 5, .bytes = 2048 << 10, .reason = "none"};
    struct probe_cache caches = believed_caches(1280, 1075, 1536);
    probe_cache_settle_second(&caches, &found, false);
    ck_assert_uint_eq(caches.levels[1].size_bytes, 2048 << 10);
    ck_assert_uint_eq(caches.levels[1].high_bytes, 2048 << 10);
    ck_assert_uint_eq(caches.levels[1].ways, 4);
}

/* The first level, which is crowded, and the second evict at random, by ages, or by bits. */
TEST(lines_and_sets_are_counted_whatever_evicts, .loops = 5)
{
    static const struct {
        struct geometry of;
        const char *first_policy;
        uint32_t believed_kib;
    } counted[] = {
        {{24, 6, 272, 17, "lru", "random", 4096}, "random", 320},
        {{24, 12, 768, 6, "random", "random", 4096}, "plru", 832},
        {{32, 8, 1024, 8, "aged", "random", 4096}, "lru", 896},
        {{64, 16, 896, 7, "plru", "random", 4096}, "plru", 1024},
        {{48, 6, 1024, 4, "lru", "random", 16384}, "plru", 1280},
    };
    const struct geometry *of = &counted[_i].of;
    struct probe_ways found =
        measure_behind(of, counted[_i].first_policy, counted[_i].believed_kib, "");
    ck_assert_msg(found.conflicting == of->ways + 1, "%u KiB of %u ways: %u", of->kib, of->ways,
                  found.conflicting);
    ck_assert_msg(found.bytes == of->kib << 10, "%u KiB: %llu", of->kib,
                  (unsigned long long)found.bytes);
}

TEST(lines_are_counted_beside_a_load, .loops = 8)
{
    static const struct {
        struct geometry of;
        const char *first_policy;
    } counted[] = {
        {{112, 14, 832, 13, "plru", "contiguous", 4096}, "plru"},
        {{128, 16, 2176, 17, "plru", "contiguous", 4096}, "plru"},
        {{88, 11, 352, 11, "plru", "random", 4096}, "lru"},
        {{28, 7, 448, 14, "plru", "random", 4096}, "random"},
        {{160, 5, 4096, 16, "plru", "random", 4096}, "plru"},
        {{24, 12, 1024, 8, "aged", "random", 4096}, "random"},
        {{72, 9, 640, 10, "random", "random", 4096}, "plru"},
        {{32, 8, 1536, 12, "plru", "random", 4096}, "random"},
    };
    const struct geometry *of = &counted[_i].of;
    memory_s = near_s; /* a third level: to miss the second costs little */
    struct probe_ways found = measure_behind(of, counted[_i].first_policy, of->kib / 8 * 7, busy);
    ck_assert_msg(found.conflicting == of->ways + 1, "%u KiB of %u ways: %u", of->kib, of->ways,
                  found.conflicting);
}

TEST(conflicting_lines_are_a_number_of_ways)
{
    const uint64_t mib = 1 << 20;
    ck_assert_uint_eq(probe_ways_of(17, mib), 16);
    ck_assert_uint_eq(probe_ways_of(21, mib), 16); /* random replacement */
    ck_assert_uint_eq(probe_ways_of(22, mib), 0);
    ck_assert_uint_eq(probe_ways_of(16, mib), 0);
    ck_assert_uint_eq(probe_ways_of(21, mib / 4 * 5), 20);
    ck_assert_uint_eq(probe_ways_of(13, 3 * mib), 12);
    ck_assert_uint_eq(probe_ways_of(17, 3 * mib), 0);
    ck_assert_uint_eq(probe_ways_of(0, mib), 0);
}
