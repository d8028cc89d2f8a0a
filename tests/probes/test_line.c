/* Is the line size of the first cache measured rather than copied? */
#include "probes/cache/probe.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

static void assert_line(uint32_t kib, uint32_t ways, uint32_t line, const char *policy, size_t page)
{
    struct probe_cache caches = {
        .count = 2, .levels = {{.size_bytes = kib * 1024, .seconds = 1.2e-9}, {.seconds = 4.4e-9}}};
    struct servet_error error;
    open_machine_with(1,
                      "'pus': '0-1', 'page_bytes': %zu, 'page_mapping': 'random', 'caches': ["
                      "{'level': 1, 'declared_size_bytes': 0, 'size_bytes': %u, 'ways': %u, "
                      "'line_bytes': %u, 'policy': '%s', 'seconds': 1.2e-9},"
                      "{'level': 2, 'declared_size_bytes': 0, 'size_bytes': 1048576, 'ways': 16, "
                      "'line_bytes': %u, 'seconds': 4.4e-9}], "
                      "'memory': {'seconds': 9e-8, 'pu_bytes_per_s': 1e10}",
                      page, kib * 1024, ways, line, policy, line);
    ck_assert_int_eq(probe_cache_line(&probe, 0, &caches, &error), 0);
    const uint32_t found = caches.levels[0].line_bytes;
    ck_assert_msg(found == line, "%u KiB, %u ways, lines of %u, %s: found lines of %u", kib, ways,
                  line, policy, found);
}

TEST(lines_that_are_built_are_found)
{
    assert_line(32, 8, 64, "plru", 4096);
    assert_line(48, 12, 64, "lru", 4096);
    assert_line(16, 4, 32, "lru", 4096);
    assert_line(64, 2, 64, "lru", 4096);
    assert_line(64, 4, 256, "lru", 65536);
    assert_line(128, 8, 128, "plru", 16384);
    assert_line(32, 4, 64, "random", 4096);
}

/* -- latencies by distance: 8 bytes, 16 … 1 KiB -- */

static const double *told;

TRAVERSE(told_by_distance)
{
    *seconds = told[__builtin_ctzll(what->stride_bytes) - 3] * 1e-9;
    return 0;
}

static uint32_t line_told(const double *latencies, uint32_t declared)
{
    struct probe_cache caches = {
        .count = 2, .levels = {{.size_bytes = 32768, .seconds = 1.2e-9}, {.seconds = 4.4e-9}}};
    open_machine_with(1, "'pus': '0'");
    machine.declared->classes[0].caches[0].line_bytes = declared;
    replace_operations()->traverse = told_by_distance;
    told = latencies;
    ck_assert_int_eq(probe_cache_line(&probe, 0, &caches, NULL), 0);
    return caches.levels[0].line_bytes;
}

TEST(a_cache_that_costs_nothing_to_miss_tells_nothing)
{
    const double flat[] = {1.2, 1.2, 1.21, 1.2, 1.22, 1.2, 1.2, 1.2},
                 steep[] = {1.3, 1.4, 1.6, 2, 2.8, 4, 6, 9};
    ck_assert_uint_eq(line_told(flat, 64), 0);
    ck_assert_uint_eq(line_told(steep, 64), 0);
}

/* Half a line reaches half of the plateau; a disturbed one 0.88 of the last two distances. */
TEST(a_declared_line_decides_between_neighbours_that_latencies_hardly_tell_apart)
{
    const double disturbed[] = {1.3, 1.5, 2.2, 3.84, 4.15, 4.2, 4.2, 4.2};
    const double longer[] = {1.3, 1.4, 1.7, 2.6, 4.15, 4.2, 4.2, 4.2};
    ck_assert_uint_eq(line_told(disturbed, 0), 128);
    ck_assert_uint_eq(line_told(disturbed, 64), 64);
    ck_assert_uint_eq(line_told(disturbed, 32), 128);
    ck_assert_uint_eq(line_told(longer, 64), 128);
}
