/* Are line size, ways and the size of a way of the first cache measured rather than copied? */
#include <stdio.h>
#include <stdlib.h>

#include "probes/cache/probe.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

/* `level`: what the latency curve is said to have given. */
static struct probe_line measure(uint32_t kib, uint32_t ways, uint32_t line, const char *policy,
                                 size_t page, const struct probe_line_level *level)
{
    struct machine machine;
    struct servet_error error;
    open_machine_with(
        &machine, 1,
        "{\"servet_machine\": 1, \"pus\": \"0-1\", \"page_bytes\": %zu, \"page_mapping\": "
        "\"random\", \"caches\": ["
        "{\"level\": 1, \"size_bytes\": %u, \"ways\": %u, \"line_bytes\": %u, \"policy\": "
        "\"%s\", \"seconds\": 1.2e-9},"
        "{\"level\": 2, \"size_bytes\": 1048576, \"ways\": 16, \"line_bytes\": %u, "
        "\"seconds\": 4.4e-9}],"
        "\"memory\": {\"seconds\": 9e-8, \"pu_bytes_per_s\": 1e10}}",
        page, kib * 1024, ways, line, policy, line);
    struct probe_line found;
    struct probe probe = {.machine = &machine, .seed = 1};
    ck_assert_int_eq(probe_line(&probe, 0, level, &found, &error), 0);
    probe_machine_close(&machine);
    return found;
}

static void assert_geometry(uint32_t kib, uint32_t ways, uint32_t line, const char *policy,
                            size_t page)
{
    const struct probe_line_level level = {kib * 1024, 1.2e-9, 4.4e-9, 0};
    struct probe_line found = measure(kib, ways, line, policy, page, &level);
    ck_assert_msg(found.line_bytes == line && found.ways == ways &&
                      found.way_bytes == kib * 1024 / ways,
                  "%u KiB, %u ways, lines of %u, %s: found %u ways of %llu, lines of %u", kib, ways,
                  line, policy, found.ways, (unsigned long long)found.way_bytes, found.line_bytes);
}

TEST(geometries_that_are_built_are_found)
{
    assert_geometry(32, 8, 64, "plru", 4096);
    assert_geometry(48, 12, 64, "lru", 4096);
    assert_geometry(16, 4, 32, "lru", 4096);
    assert_geometry(64, 2, 64, "lru", 4096);
    assert_geometry(64, 4, 256, "lru", 65536);
    assert_geometry(128, 8, 128, "plru", 16384);
    assert_geometry(32, 4, 64, "random", 4096);
}

/* A line too many of ten makes as many misses as a tenth of the loads, and of sixteen fewer: once
 * 20 KiB were told as eleven ways of 2 KiB, and most ways of random replacement not at all. */
TEST(many_ways_that_evict_at_random_are_counted)
{
    static const struct {
        uint32_t kib, ways;
    } caches[] = {{20, 10}, {104, 13}, {32, 16}, {20, 20}};
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        const struct probe_line_level level = {caches[i].kib * 1024, 1.2e-9, 4.4e-9, 0};
        struct probe_line found =
            measure(caches[i].kib, caches[i].ways, 64, "random", 4096, &level);
        ck_assert_uint_eq(found.ways, caches[i].ways);
        ck_assert_uint_eq(found.way_bytes, caches[i].kib * 1024 / caches[i].ways);
    }
}

TEST(a_cache_that_costs_nothing_to_miss_tells_nothing)
{
    const uint32_t distances[] = {8, 16, 32, 64, 128, 256};
    const double flat[] = {1.2, 1.2, 1.21, 1.2, 1.22, 1.2}, steep[] = {1.4, 1.6, 2, 2.8, 4, 6};
    const struct probe_line_curve nothing = {distances, flat, 6}, rising = {distances, steep, 6};
    ck_assert_uint_eq(probe_line_infer(&nothing, 1.2, 64), 0);
    ck_assert_uint_eq(probe_line_infer(&rising, 1.2, 64), 0);
}

/* Half a line reaches half of the plateau; a disturbed one 0.88 of the last two distances. */
TEST(a_declared_line_decides_between_neighbours_that_latencies_hardly_tell_apart)
{
    const uint32_t distances[] = {8, 16, 32, 64, 128, 256, 512};
    const double disturbed[] = {1.3, 1.5, 2.2, 3.84, 4.15, 4.2, 4.2};
    const double longer[] = {1.3, 1.4, 1.7, 2.6, 4.15, 4.2, 4.2};
    const struct probe_line_curve near = {distances, disturbed, 7}, far = {distances, longer, 7};
    ck_assert_uint_eq(probe_line_infer(&near, 1.2, 0), 128);
    ck_assert_uint_eq(probe_line_infer(&near, 1.2, 64), 64);
    ck_assert_uint_eq(probe_line_infer(&near, 1.2, 32), 128);
    ck_assert_uint_eq(probe_line_infer(&far, 1.2, 64), 128);
}

TEST(ways_that_go_on_halving_are_not_told)
{
    const uint64_t strides[] = {1024, 2048, 4096, 8192};
    const uint32_t halving[] = {64, 32, 16, 8}, ending[] = {32, 16, 8, 8};
    uint32_t ways;
    uint64_t way;
    probe_line_ways(strides, halving, 4, &ways, &way);
    ck_assert_uint_eq(ways, 0);
    probe_line_ways(strides, ending, 4, &ways, &way);
    ck_assert_uint_eq(ways, 8);
    ck_assert_uint_eq(way, 4096);
}

/* Every load takes longer than a hit did when the curve was measured: once this gave one way of 1
 * KiB. */
TEST(ways_and_the_size_of_one_follow_from_either_curve)
{
    static const struct {
        struct probe_line_level level;
        uint32_t ways;
        uint64_t way_bytes;
    } cases[] = {
        /* every load takes longer than a hit did in the curve: once one way of 1 KiB */
        {{32 << 10, 0.8e-9, 2.9e-9, 0}, 8, 4096},
        /* they do not make up the size */
        {{36 << 10, 1.2e-9, 4.4e-9, 0}, 0, 0},
        {{24 << 10, 1.2e-9, 4.4e-9, 0}, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct probe_line found = measure(32, 8, 64, "plru", 4096, &cases[i].level);
        ck_assert_uint_eq(found.ways, cases[i].ways);
        ck_assert_uint_eq(found.way_bytes, cases[i].way_bytes);
    }
}
