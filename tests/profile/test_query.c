/* Does every number between two measured ones follow from the measurements, in every room? */

#include "profile/query.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"

static const struct profile_message_point falling[] = {
    {64, 1e-6, 0, -1}, {1024, 2e-6, 0, -1}, {4096, 5e-6, 0, -1}, {16384, 4.5e-6, 0, -1}};

TEST(long_messages_never_take_less_than_the_longest_that_was_measured)
{
    struct profile_message_point points[4];
    memcpy(points, falling, sizeof points);
    struct profile_layer layer = {.seconds = 1e-6, .curve = points, .curve_count = 4};
    double last = 4.5e-6;
    for (double bytes = 16384; bytes < 1e12; bytes *= 2) {
        double seconds = profile_message_seconds(&layer, 1024, bytes);
        ck_assert_double_ge(seconds, last);
        last = seconds;
    }
    /* A rising last segment goes on with its bandwidth. */
    layer.curve_count = 3;
    ck_assert_double_eq_tol(profile_message_seconds(&layer, 1024, 7168), 8e-6, 1e-12);
    ck_assert_double_eq_tol(profile_message_seconds(&layer, 1024, 544), 1.5e-6, 1e-12);
    ck_assert_double_eq(profile_message_seconds(&layer, 1024, 0), 1e-6);
}

TEST(one_measured_size_is_a_latency_below_and_a_bandwidth_above)
{
    struct profile_message_point point = {4096, 4e-6, 0, -1};
    struct profile_layer layer = {.seconds = 1e-6};
    ck_assert_double_eq_tol(profile_message_seconds(&layer, 1024, 8), 1e-6, 1e-18);
    ck_assert_double_eq_tol(profile_message_seconds(&layer, 1024, 10240), 1e-5, 1e-15);
    ck_assert_double_eq_tol(profile_message_seconds(&layer, 0, 65536), 2e-6, 1e-15);
    layer.curve = &point;
    layer.curve_count = 1;
    ck_assert_double_eq_tol(profile_message_seconds(&layer, 1024, 8192), 8e-6, 1e-15);
    layer.seconds = 0; /* declared: its order is all that is known */
    ck_assert_double_eq(profile_message_seconds(&layer, 1024, 8192), 0);
}

TEST(bandwidth_starts_with_one_worker_and_with_the_pair)
{
    /* One worker 4 GB/s, four together 6: three get 5.33, not what four get. */
    struct profile_scaling_point points[] = {{4, 6e9, 0, -1}, {8, 7e9, 0, -1}};
    struct profile_memory memory = {.reference_bytes_per_s = 4e9};
    struct profile_memory_level level = {.scaling = points, .scaling_count = 2};
    ck_assert_double_eq(profile_memory_bandwidth(&memory, &level, 0), 0);
    ck_assert_double_eq(profile_memory_bandwidth(&memory, &level, 1), 4e9);
    ck_assert_double_eq_tol(profile_memory_bandwidth(&memory, &level, 3), 16e9 / 3, 1);
    ck_assert_double_eq(profile_memory_bandwidth(&memory, &level, 4), 6e9);
    ck_assert_double_eq_tol(profile_memory_bandwidth(&memory, &level, 6), 6.5e9, 1);
    ck_assert_double_eq(profile_memory_bandwidth(&memory, &level, 100), 7e9);
    /* The pair was measured: 5 GB/s together. */
    level.bytes_per_s = 2.5e9;
    ck_assert_double_eq(profile_memory_bandwidth(&memory, &level, 2), 5e9);
    ck_assert_double_eq_tol(profile_memory_bandwidth(&memory, &level, 3), 5.5e9, 1);
    /* Without a curve the pair is what saturates the level; without either nothing is known. */
    level.scaling_count = 0;
    ck_assert_double_eq(profile_memory_bandwidth(&memory, &level, 7), 5e9);
    level.bytes_per_s = 0;
    ck_assert_double_eq(profile_memory_bandwidth(&memory, &level, 7), 0);
}

TEST(messages_at_once_follow_the_concurrency_curve)
{
    struct profile_concurrency_point points[] = {
        {1, 2e-6, 0, -1}, {2, 3e-6, 0, -1}, {4, 4e-6, 0, -1}};
    struct profile_layer layer = {.concurrency = points, .concurrency_count = 3};
    ck_assert_double_eq(profile_messages_slower(&layer, 1), 1);
    ck_assert_double_eq_tol(profile_messages_slower(&layer, 3), 1.75, 1e-12);
    ck_assert_double_eq_tol(profile_messages_slower(&layer, 8), 4, 1e-12);
    layer.concurrency_count = 1;
    ck_assert_double_eq(profile_messages_slower(&layer, 8), 1);
}

TEST(what_was_not_measured_has_an_order_and_no_seconds)
{
    struct servet_profile *declared = described("package:2 l3:2 core:2 pu:2"),
                          *measured = loaded(NEHALEM);
    struct profile_communication *inside = &declared->classes[0].communication;
    ck_assert(!profile_latencies_known(declared) && profile_latencies_known(measured));
    for (size_t i = 0; i < inside->layer_count; i++) {
        ck_assert(inside->layers[i].seconds == 0);
        ck_assert_uint_eq(profile_layer_rank(declared, inside, i), i + 1);
        ck_assert_double_eq(profile_layer_distance(declared, inside, i), (double)i + 1);
    }
    ck_assert_uint_eq(profile_layer_rank(measured, &measured->network, 0), 2);
    ck_assert_double_eq(profile_layer_distance(measured, &measured->network, 0),
                        measured->network.layers[0].seconds);
    /* One latency that is not known, and the others cannot be weighed against it. */
    measured->classes[0].communication.layers[0].seconds = 0;
    ck_assert(!profile_latencies_known(measured));
    ck_assert_double_eq(profile_layer_distance(measured, &measured->network, 0), 2);
}

TEST(ranks_of_older_profiles_are_no_seconds)
{
    /* The layer inside a node as profiles had it where the message probe did not run. */
    char *text = read_text(NEHALEM), *at = strstr(text, "\"layers\""), *older;
    ck_assert(at != NULL);
    ck_assert_int_gt(
        asprintf(&older, "%.*s%s", (int)(at - text), text, replaced(at, "quoted", "declared")), 0);
    struct servet_profile *profile = parsed(kept(older));
    ck_assert(profile->classes[0].communication.layers[0].quality.origin == PROFILE_DECLARED);
    ck_assert(profile->classes[0].communication.layers[0].seconds == 0);
    ck_assert(profile->network.layers[0].seconds > 0);
    char *saved = in_json(profile);
    ck_assert(strstr(strstr(saved, "\"layers\""), "\"seconds\"") > strstr(saved, "\"network\""));
}

TEST(relations_are_of_pairs_whatever_the_order_of_their_groups)
{
    struct profile_pair far = {0, 5};
    const struct profile_relation halves = relation_of("0-3 4-7"), turned = relation_of("4-7 0-3"),
                                  one = relation_of("0-7"), across = relation_of("2-5"), none = {0};
    struct profile_relation more = relation_of("0-3 4-7");
    more.pairs = &far;
    more.pair_count = 1;
    ck_assert(profile_relation_equal(&halves, &turned));
    ck_assert(profile_relation_within(&halves, &one) && !profile_relation_within(&one, &halves));
    ck_assert(!profile_relation_equal(&halves, &one));
    ck_assert(!profile_relation_within(&across, &halves));
    ck_assert(profile_relation_within(&across, &one));
    ck_assert(profile_relation_within(&halves, &more) && !profile_relation_within(&more, &halves));
    ck_assert(profile_relation_within(&more, &one));
    ck_assert(profile_relation_within(&none, &none) && profile_relation_within(&none, &halves));
    ck_assert(!profile_relation_within(&halves, &none));
}

TEST(a_size_is_settled_when_several_looks_agree_within_a_factor_of_two, .loops = 13)
{
    static const struct {
        enum profile_origin origin;
        uint32_t repetitions;
        double spread;
        uint64_t low, high, declared;
        bool settled;
    } cases[] = {{PROFILE_MEASURED, 3, 0.01, 30, 34, 0, true},
                 {PROFILE_MEASURED, 3, 0.2, 32, 32, 0, true},
                 {PROFILE_MEASURED, 3, 0.21, 32, 32, 0, false},
                 {PROFILE_MEASURED, 1, 0.01, 32, 32, 0, false},
                 {PROFILE_INFERRED, 1, -1, 32, 32, 0, false},
                 {PROFILE_MEASURED, 3, 0.01, 17, 34, 0, true},
                 {PROFILE_MEASURED, 3, 0.01, 16, 34, 0, false},
                 {PROFILE_MEASURED, 0, -1, 0, 0, 0, true},
                 {PROFILE_DECLARED, 1, 0.9, 0, 0, 0, true},
                 {PROFILE_QUOTED, 1, 0.9, 10, 90, 0, true},
                 /* declared as it was measured, and otherwise */
                 {PROFILE_MEASURED, 3, 0.1, 16, 48, 32, true},
                 {PROFILE_MEASURED, 3, 0.1, 16, 48, 40, false},
                 {PROFILE_MEASURED, 3, 0.21, 16, 48, 32, false}};
    const struct profile_cache cache = {.size_bytes = 32,
                                        .size_low_bytes = cases[_i].low,
                                        .size_high_bytes = cases[_i].high,
                                        .declared_size_bytes = cases[_i].declared,
                                        .quality = {.origin = cases[_i].origin,
                                                    .repetitions = cases[_i].repetitions,
                                                    .spread = cases[_i].spread}};
    ck_assert_int_eq(profile_size_settled(&cache), cases[_i].settled);
}
