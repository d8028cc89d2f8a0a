/* Does the curve go on where a cache that nobody declared is larger than what it was to end at, and
 * only there? */
#include "probes/cache/probe.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

static const double mib = 1 << 20;

#define FIRST_TWO                                                                                  \
    "{'level': 1, 'size_bytes': 32768, 'ways': 8, 'seconds': 1.2e-9}, "                            \
    "{'level': 2, 'size_bytes': 1048576, 'ways': 16, 'seconds': 4e-9}"
#define LAST                                                                                       \
    ", {'level': 3, 'size_bytes': 94371840, 'ways': 15, 'slices': 24, 'policy': 'plru', "          \
    "'seconds': 1.5e-8, 'declared_size_bytes': %d}"
#define MACHINE                                                                                    \
    "{'servet_machine': 1, 'pus': '0', 'caches': [" FIRST_TWO "%s], 'tlbs': [%s], "                \
    "'memory': {'seconds': %g, 'pu_bytes_per_s': 1e10}}"

static struct machine machine;
static struct probe probe;
static struct probe_cache found;

static void measure(const char *last, const char *tlbs, double memory_s)
{
    open_machine_with(&machine, 1, MACHINE, last, tlbs, memory_s);
    probe.machine = &machine;
    probe.seed = 1;
    ck_assert_int_eq(probe_cache(&probe, 0, &found, NULL), 0);
}

static void assert_last(double bytes)
{
    ck_assert_uint_eq(found.count, 3);
    ck_assert_double_eq_tol((double)found.levels[2].size_bytes, bytes, 0.1 * bytes);
    ck_assert_double_ge((double)found.largest_bytes, 1.3 * bytes);
}

/* A last level that nobody declares, behind such a TLB. */
static void find_hidden(const char *tlb)
{
    char last[512];
    snprintf(last, sizeof last, LAST, 0);
    measure(last, tlb, 8e-8);
    assert_last(90 * mib);
    probe_cache_free(&found);
}

TEST(a_hidden_level_larger_than_the_curve_is_found)
{
    find_hidden("");
}

/* Three times what is declared is one and a half times what there is: the foot of the knee, and no
 * plateau behind it. */
TEST(a_level_declared_half_as_large_is_seen_to_its_plateau)
{
    measure(", {'level': 3, 'size_bytes': 73400320, 'ways': 10, 'slices': 14, 'policy': 'plru', "
            "'inclusion': 'inclusive', 'seconds': 2.6e-8, 'declared_size_bytes': 36851712}",
            "", 1.4e-7);
    assert_last(70 * mib);
    ck_assert_double_ge((double)found.largest_bytes, 2 * 70 * mib);
    probe_cache_free(&found);
}

TEST(a_curve_of_memory_does_not_go_on)
{
    measure("", "", 8e-8);
    ck_assert_uint_eq(found.count, 2);
    ck_assert_double_le((double)found.largest_bytes, 64 * mib);
    probe_cache_free(&found);
}

/* Page tables that fall out of the caches make every load slower the more memory is visited: as a
 * TLB of 120 MiB would. */
TEST(what_translation_takes_longer_is_no_level)
{
    measure("", "{'entries': 30720, 'seconds': 6e-8}", 8e-8);
    ck_assert_uint_eq(found.count, 2);
    ck_assert_double_le((double)found.largest_bytes, 64 * mib);
    probe_cache_free(&found);
}

/* Both at once: the level is found beside the rise. */
TEST(a_hidden_level_is_found_beside_what_translation_takes)
{
    find_hidden("{'entries': 2048, 'seconds': 8e-9}");
}

/* The user's limit is one. */
TEST(a_curve_ends_where_the_user_says)
{
    const char *last = formatted(LAST, 0);
    probe.largest_bytes = 16 << 20;
    measure(last, "", 8e-8);
    ck_assert_double_le((double)found.largest_bytes, 16 * mib);
    probe_cache_free(&found);
}

/* Nor does a look ask for more memory than there is. */
TEST(a_curve_ends_where_memory_does)
{
    open_machine_with(&machine, 1, MACHINE, formatted(LAST, 0), "", 8e-8);
    machine.memory_limit_bytes = 200 << 20;
    probe = (struct probe){.machine = &machine, .seed = 1};
    ck_assert_int_eq(probe_cache(&probe, 0, &found, NULL), 0);
    ck_assert_double_le((double)found.largest_bytes, 100 * mib);
    probe_cache_free(&found);
}

TESTS(.seconds = 100)
