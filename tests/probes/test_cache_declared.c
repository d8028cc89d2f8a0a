/* Which measured level is taken for which declared one? */
#include "probes/cache/probe.h"
#include "tests/base/runner.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

static struct profile_cache zen4[] = {{.level = 1, .declared_size_bytes = 32 * KIB},
                                      {.level = 2, .declared_size_bytes = 1 * MIB},
                                      {.level = 3, .declared_size_bytes = 32 * MIB}};
static const struct profile_class declared = {.caches = zen4, .cache_count = 3};
static const uint32_t pu = 0;

static struct probe_cache_level level(uint64_t kib, uint64_t low_kib, uint64_t high_kib)
{
    return (struct probe_cache_level){
        .size_bytes = kib * KIB, .low_bytes = low_kib * KIB, .high_bytes = high_kib * KIB};
}

/* Measured on a virtual Zen 4 once in 26 runs. */
static struct probe_cache with_one_too_many(void)
{
    return (struct probe_cache){.levels = {level(32, 28, 32), level(1024, 768, 1219),
                                           level(4200, 3442, 4875), level(32768, 20800, 40288)},
                                .count = 4};
}

TEST(a_level_is_paired_with_the_declared_one_it_equals_whatever_lies_before)
{
    struct probe_cache_pairing pairs;
    const struct probe_cache caches = with_one_too_many();
    probe_cache_pair(&caches, &declared, &pu, &pairs);
    ck_assert_ptr_eq(pairs.declared[0], &zen4[0]);
    ck_assert_ptr_eq(pairs.declared[1], &zen4[1]);
    ck_assert_ptr_null(pairs.declared[2]);
    ck_assert_ptr_eq(pairs.declared[3], &zen4[2]);
    ck_assert(pairs.equal[3] && !pairs.equal[2]);
    for (uint32_t i = 0; i < caches.count; i++) {
        ck_assert_uint_eq(pairs.numbers[i], i + 1);
    }
}

/* What others leave of a level leaves room for the whole of it, which was seen as well. */
TEST(of_two_levels_that_leave_room_for_a_declared_one_the_nearer_equals_it)
{
    struct probe_cache_pairing pairs;
    struct probe_cache caches = with_one_too_many();
    caches.levels[1] = level(384, 300, 1152);
    caches.levels[2] = level(1024, 768, 3072);
    probe_cache_pair(&caches, &declared, &pu, &pairs);
    ck_assert(!pairs.equal[1] && pairs.equal[2] && pairs.equal[3]);
    ck_assert_ptr_eq(pairs.declared[2], &zen4[1]);
}

/* A second level that was not seen keeps its number. */
TEST(a_level_of_another_size_is_paired_with_the_nearest_that_is_left)
{
    struct probe_cache_pairing pairs;
    const struct probe_cache caches = {
        .levels = {level(32, 32, 32), level(12 * KIB, 11 * KIB, 13 * KIB)}, .count = 2};
    probe_cache_pair(&caches, &declared, NULL, &pairs);
    ck_assert_ptr_eq(pairs.declared[1], &zen4[2]);
    ck_assert(!pairs.equal[1]);
    ck_assert_uint_eq(pairs.numbers[1], 3);
}

TEST(what_nothing_is_declared_of_is_counted)
{
    struct probe_cache_pairing pairs;
    const struct probe_cache caches = with_one_too_many();
    probe_cache_pair(&caches, NULL, NULL, &pairs);
    for (uint32_t i = 0; i < caches.count; i++) {
        ck_assert_ptr_null(pairs.declared[i]);
        ck_assert_uint_eq(pairs.numbers[i], i + 1);
    }
}
