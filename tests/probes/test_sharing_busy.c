/* Does a cache that others keep full come out as what it is, or as not known, but never as measured
 * and wrong? */
#include "probes/pairs/sharing.h"
#include "probes/run/result.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

/* A hog on another PU fills the third level anew while they work, always or in part of the runs. */
static const char with_hog[] =
    "'pus': '0-3', 'huge_page_bytes': 2097152, 'caches': ["
    "{'level': 1, 'size_bytes': 32768, 'ways': 8, 'seconds': 1.6e-9%s},"
    "{'level': 2, 'size_bytes': 131072, 'ways': 8, 'seconds': 5e-9%s},"
    "{'level': 3, 'size_bytes': 2097152, 'ways': 16, 'seconds': 2e-8, 'groups': [%s]%s}],"
    "'memory': {'seconds': 9e-8, 'pu_bytes_per_s': 1e10},"
    "'noise': {'relative': 0.02, 'neighbour_probability': %g, 'neighbour_lines': 10}";
static const char one_cache[] = "'0-3'", two_caches[] = "'0-1', '2-3'";
static const char undeclared[] = ", 'declared_size_bytes': 0";

enum { PUS = 4, LAST = 2 };
static const double always = 1, half = 0.5;

static struct probe_cache caches;

static void open_hog(const char *groups, bool declared, double share, uint64_t seed)
{
    const char *said = declared ? "" : undeclared;
    open_machine_with(seed, with_hog, said, said, groups, said, share);
    caches = (struct probe_cache){.count = 3,
                                  .levels = {{.size_bytes = 32 << 10, .seconds = 1.6e-9},
                                             {.size_bytes = 128 << 10, .seconds = 5e-9},
                                             {.size_bytes = 2 << 20, .seconds = 2e-8}},
                                  .memory_seconds = 9e-8};
    probe.exhaustive = probe.one_by_one = true;
    probe.declared = declared ? &machine.declared->classes[0] : NULL;
}

/* The last level as the profile has it. */
static struct profile_cache *put_into_profile(struct probe_sharing *found)
{
    const struct measured_on elsewhere = {.busy = true};
    struct profile_class *node_class = &machine.declared->classes[0];
    const struct kinds kinds = {.pus = {machine.pus}, .count = 1};
    struct kind_results results = {.caches = caches, .sharing = *found};
    ck_assert_int_eq(probe_result_set_caches(node_class, &kinds, &results, &elsewhere), 0);
    *found = results.sharing;
    return &node_class->caches[LAST];
}

TEST(beside_a_hog_sharing_is_as_declared_and_says_so)
{
    FREED_BY(probe_sharing_free) struct probe_sharing found;
    open_hog(one_cache, true, always, 1);
    ck_assert_int_eq(probe_sharing(&probe, &caches, &found, NULL), 0);
    ck_assert_uint_eq(found.levels[LAST].as_declared, PUS * (PUS - 1) / 2);
    ck_assert_uint_eq(found.levels[1].as_declared,
                      0); /* other processes leave the second level alone */
    const struct profile_cache *cache = put_into_profile(&found);
    ck_assert_str_eq(lists_of(&cache->sharing), "0-3");
    ck_assert_int_eq(cache->sharing_quality.origin, PROFILE_DECLARED);
    ck_assert_msg(
        strstr(cache->quality.note, "as declared (6 of 6 pairs): other processes used the cache"),
        "%s", cache->quality.note);
}

TEST(beside_a_hog_and_with_nothing_declared_it_is_not_known)
{
    FREED_BY(probe_sharing_free) struct probe_sharing found;
    open_hog(one_cache, false, always, 1);
    ck_assert_int_eq(probe_sharing(&probe, &caches, &found, NULL), 0);
    ck_assert_uint_eq(found.levels[LAST].as_declared, 0);
    ck_assert_uint_eq(found.levels[LAST].undecided, PUS * (PUS - 1) / 2);
    const struct profile_cache *cache = put_into_profile(&found);
    ck_assert_int_eq(cache->sharing_quality.origin, PROFILE_INFERRED);
    ck_assert_msg(strstr(cache->quality.note, "sharing of 6 of 6 pairs is undecided"), "%s",
                  cache->quality.note);
}

TEST(a_hog_that_rests_now_and_then_costs_time_only)
{
    enum { MACHINES = 20 };
    for (uint64_t seed = 1; seed <= MACHINES; seed++) {
        FREED_BY(probe_sharing_free) struct probe_sharing found;
        open_hog(one_cache, true, half, seed);
        ck_assert_int_eq(probe_sharing(&probe, &caches, &found, NULL), 0);
        ck_assert_str_eq(lists_of(&found.levels[LAST].sharing), "0-3");
        ck_assert_uint_eq(found.levels[1].sharing.group_count, 0);
        ck_assert_uint_lt(found.levels[LAST].as_declared, PUS * (PUS - 1) / 2);
    }
}

/* -- one PU whose caches are never left alone, on a machine of two pairs -- */

TRAVERSE(disturbed_first)
{
    int rc = honest->traverse(subject, what, pus, count, seconds);
    for (size_t i = 0; i < count && rc == 0; i++) {
        seconds[i] = pus[i] == 0 ? fmax(seconds[i], caches.memory_seconds) : seconds[i];
    }
    return rc;
}

TEST(a_pu_that_is_never_left_alone_is_undecided)
{
    FREED_BY(probe_sharing_free) struct probe_sharing found;
    open_hog(two_caches, false, 0, 1);
    replace_operations()->traverse = disturbed_first;
    ck_assert_int_eq(probe_sharing(&probe, &caches, &found, NULL), 0);
    ck_assert_uint_eq(found.levels[LAST].undecided, PUS - 1);
    ck_assert_uint_eq(found.levels[LAST].as_declared, 0);
    ck_assert_str_eq(lists_of(&found.levels[LAST].sharing), "2-3");
}

TESTS(.seconds = 100)
