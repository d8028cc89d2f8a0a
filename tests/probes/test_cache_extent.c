/* Does the curve go on where a cache that nobody declared is larger than what it was to end at, and
 * only there? */
#include "probes/cache/probe.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

static const double mib = 1 << 20;

/* A level of 90 MiB that is not declared. */
static const char hidden[] =
    ", {'level': 3, 'size_bytes': 94371840, 'ways': 15, 'slices': 24, 'policy': 'plru', "
    "'seconds': 1.5e-8, 'declared_size_bytes': 0}";

static struct probe_cache found;

/* Behind two levels of 32 KiB and 1 MiB. */
static void open_behind(const char *last, const char *tlbs, double memory_s)
{
    open_machine_with(1,
                      "'pus': '0', 'caches': ["
                      "{'level': 1, 'size_bytes': 32768, 'ways': 8, 'seconds': 1.2e-9}, "
                      "{'level': 2, 'size_bytes': 1048576, 'ways': 16, 'seconds': 4e-9}%s], "
                      "'tlbs': [%s], 'memory': {'seconds': %g, 'pu_bytes_per_s': 1e10}",
                      last, tlbs, memory_s);
}

/* So many levels; the curve goes on from so many MiB to so many. */
static void measure(uint32_t levels, double least_mib, double most_mib)
{
    ck_assert_int_eq(probe_cache(&probe, 0, &found, NULL), 0);
    ck_assert(levels == 0 || found.count == levels);
    ck_assert_double_ge((double)found.largest_bytes, least_mib * mib);
    ck_assert_double_le((double)found.largest_bytes, most_mib * mib);
}

static void free_found(void)
{
    probe_cache_free(&found);
}

static void assert_last(double bytes)
{
    ck_assert_double_eq_tol((double)found.levels[2].size_bytes, bytes, 0.1 * bytes);
}

TEST(a_hidden_level_larger_than_the_curve_is_found)
{
    open_behind(hidden, "", 8e-8);
    measure(3, 1.3 * 90, INFINITY);
    assert_last(90 * mib);
}

/* Three times what is declared is one and a half times what there is: the foot of the knee, and no
 * plateau behind it. */
TEST(a_level_declared_half_as_large_is_seen_to_its_plateau)
{
    open_behind(
        ", {'level': 3, 'size_bytes': 73400320, 'ways': 10, 'slices': 14, 'policy': 'plru', "
        "'inclusion': 'inclusive', 'seconds': 2.6e-8, 'declared_size_bytes': 36851712}",
        "", 1.4e-7);
    measure(3, 2 * 70, INFINITY);
    assert_last(70 * mib);
}

TEST(a_curve_of_memory_does_not_go_on)
{
    open_behind("", "", 8e-8);
    measure(2, 0, 64);
}

/* Page tables that fall out of the caches make every load slower the more memory is visited: as a
 * TLB of 120 MiB would. */
TEST(what_translation_takes_longer_is_no_level)
{
    open_behind("", "{'entries': 30720, 'seconds': 6e-8}", 8e-8);
    measure(2, 0, 64);
}

/* Both at once: the level is found beside the rise. */
TEST(a_hidden_level_is_found_beside_what_translation_takes)
{
    open_behind(hidden, "{'entries': 2048, 'seconds': 8e-9}", 8e-8);
    measure(3, 1.3 * 90, INFINITY);
    assert_last(90 * mib);
}

/* The user's limit is one. */
TEST(a_curve_ends_where_the_user_says)
{
    open_behind(hidden, "", 8e-8);
    probe.largest_bytes = 16 << 20;
    measure(0, 0, 16);
}

/* Nor does a look ask for more memory than there is. */
TEST(a_curve_ends_where_memory_does)
{
    open_behind(hidden, "", 8e-8);
    machine.memory_limit_bytes = 200 << 20;
    measure(0, 0, 100);
}

TESTS(.seconds = 100, .teardown = free_found)
