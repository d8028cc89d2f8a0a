/* Does the note of a cache give a measured size that is not the declared one, and one of the three
 * reasons where it holds? Is a cache that kinds of cores share one where answers contradict? */
#include "probes/run/result.h"
#include "profile/codec/codec.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

/* One measured L3 of 11 MiB, declared for each of two pairs of PUs. */
struct measured {
    uint64_t size, high;
    const char *shared; /* one group of PUs; NULL: each PU has its own; "?": not measured */
    struct measured_on where;
};

static const char *note_of(const struct measured *of)
{
    struct profile_class node_class = {.cache_count = 1};
    node_class.caches = calloc(1, sizeof *node_class.caches);
    struct profile_cache *declared = &node_class.caches[0];
    *declared =
        (struct profile_cache){.level = 3, .size_bytes = 11 * MIB, .declared_size_bytes = 11 * MIB};
    declared->sharing = relation_of("0-1 2-3");
    const struct kinds kinds = {.pus = {set_of("0-3")}, .count = 1};
    struct kind_results results = {
        .caches =
            {.count = 1,
             .levels = {{.size_bytes = of->size, .low_bytes = of->size, .high_bytes = of->high}}},
        .sharing = {.count = 1, .levels = {{.measured = 1, .pairs = 1}}}};
    const bool asked = !of->shared || strcmp(of->shared, "?") != 0;
    if (of->shared && asked) {
        results.sharing.levels[0].sharing = relation_of(of->shared);
    }
    results.sharing.count = asked;
    ck_assert_int_eq(probe_result_set_caches(&node_class, &kinds, &results, &of->where), 0);
    ck_assert_uint_eq(node_class.caches[0].declared_size_bytes, 11 * MIB);
    ck_assert_uint_eq(node_class.caches[0].size_bytes, of->size);
    const char *note = node_class.caches[0].quality.note ? node_class.caches[0].quality.note : "";
    ck_assert_int_eq(node_class.caches[0].quality.pus_move, strstr(note, "PUs move") != NULL);
    note = kept(strdup(note));
    profile_class_free(&node_class);
    return note;
}

#define AS_DECLARED "; sharing as declared, not measured"

static const struct {
    struct measured of;
    const char *note;
} cases[] = {
    {{10 * MIB + 512 * KIB, 10 * MIB + 512 * KIB, "?", {2, true, true}},
     "sharing as declared, not measured"},
    {{22 * MIB, 22 * MIB, "?", {2, true, true}}, "measured 22 MiB, declared 11 MiB" AS_DECLARED},
    {{9 * MIB, 12 * MIB, "?", {2, true, false}},
     "measured 9 MiB, declared 11 MiB: the measurement leaves room for the declared "
     "size" AS_DECLARED},
    {{5632 * KIB, 5632 * KIB, NULL, {2, true, false}},
     "measured 5.5 MiB, declared 11 MiB: the declared size is the sum of 2 separate caches; "
     "shared by nobody as measured, by 0-1 2-3 as declared: a virtual machine's PUs move between "
     "those of its host, so a later run may find otherwise"},
    {{4 * MIB, 4 * MIB, "?", {2, true, false}},
     "measured 4 MiB, declared 11 MiB: the host's other guests may hold part of it" AS_DECLARED},
    {{4 * MIB, 4 * MIB, "?", {2, false, true}},
     "measured 4 MiB, declared 11 MiB: other programs may hold part of it" AS_DECLARED},
    {{4 * MIB, 4 * MIB, "?", {2, false, false}}, "measured 4 MiB, declared 11 MiB" AS_DECLARED},
    {{11 * MIB, 11 * MIB, "0-3", {2, false, false}},
     "shared by 0-3 as measured, by 0-1 2-3 as declared"},
};

TEST(a_size_that_is_not_the_declared_one_is_named, .loops = sizeof cases / sizeof *cases)
{
    ck_assert_str_eq(note_of(&cases[_i].of), cases[_i].note);
}

/* Nothing is declared of the cache, and no group of PUs shares it without a contradiction. */
TEST(a_cache_of_two_kinds_is_one_where_only_pairs_are_listed)
{
    struct profile_class node_class = {0};
    const struct kinds kinds = {.pus = {set_of("0-1"), set_of("2-3")}, .count = 2};
    const struct profile_pair pairs[] = {{0, 1}, {1, 2}, {2, 3}};
    struct kind_results results[] = {
        {.caches = {.count = 1, .levels = {{.size_bytes = 11 * MIB}}}, .sharing = {.count = 1}},
        {.caches = {.count = 1, .levels = {{.size_bytes = 11 * MIB}}}, .sharing = {.count = 1}}};
    struct profile_relation *sharing = &results[0].sharing.levels[0].sharing;
    sharing->pair_count = sizeof pairs / sizeof *pairs;
    sharing->pairs = memcpy(malloc(sizeof pairs), pairs, sizeof pairs);
    ck_assert_int_eq(
        probe_result_set_caches(&node_class, &kinds, results, &(struct measured_on){0}), 0);
    ck_assert_uint_eq(node_class.cache_count, 1);
    ck_assert_uint_eq(node_class.caches[0].pus.count, 0);
    ck_assert_uint_eq(node_class.caches[0].sharing.pair_count, sizeof pairs / sizeof *pairs);
    profile_class_free(&node_class);
}

TESTS()
