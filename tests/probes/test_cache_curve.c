/* Which samples count, and are more taken where the curve bends? */
#include "probes/cache/probe.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

static struct cache_samples samples;

static void take(double bytes, const double *seconds, size_t count)
{
    for (size_t i = 0; i < samples.count; i++) {
        struct cache_point *point = &samples.points[i];
        for (size_t j = 0; j < count && point->bytes == bytes; j++) {
            probe_cache_point_put(point, 0, seconds[j]);
        }
    }
}

TEST(points_are_kept_in_order_and_once)
{
    samples.count = 0;
    ck_assert(probe_cache_samples_add(&samples, 8 * KIB, false));
    ck_assert(probe_cache_samples_add(&samples, 32 * KIB, false));
    ck_assert(probe_cache_samples_add(&samples, 16 * KIB, true));
    ck_assert(!probe_cache_samples_add(&samples, 16 * KIB, false));
    ck_assert_uint_eq(samples.count, 3);
    ck_assert_double_eq(samples.points[1].bytes, 16 * KIB);
    ck_assert(samples.points[1].between);
}

TEST(points_between_those_of_the_grid_are_in_the_fine_curve_only)
{
    struct cache_curve even, fine;
    const double some[] = {3e-9, 2e-9, 4e-9}, more[] = {5e-9, 6e-9, 7e-9};
    samples.count = 0;
    probe_cache_samples_add(&samples, 8 * MIB, false);
    probe_cache_samples_add(&samples, 9 * MIB, true);
    probe_cache_samples_add(&samples, 10 * MIB, true); /* never measured */
    take(8 * MIB, some, 3);
    take(9 * MIB, more, 3);
    ck_assert_int_eq(probe_cache_samples_curve(&samples, false, &even), 0);
    ck_assert_int_eq(probe_cache_samples_curve(&samples, true, &fine), 0);
    ck_assert_uint_eq(even.count, 1);
    ck_assert_uint_eq(fine.count, 2);
    ck_assert_double_eq_tol(even.seconds[0], 2e-9, 1e-15); /* of three the fastest */
    ck_assert_double_eq_tol(fine.seconds[1], 5e-9, 1e-15);
    probe_cache_curve_free(&even);
    probe_cache_curve_free(&fine);
}

static void put(size_t at, const double *seconds, size_t places, size_t repeats)
{
    for (size_t i = 0; i < places * repeats; i++) {
        probe_cache_point_put(&samples.points[at], i / repeats, seconds[i]);
    }
}

/* The fastest of each place, the mean of the places, however small the working set: in a second
 * level of 128 KiB pages of 4 KiB collide from 20 of them on. */
TEST(lucky_places_do_not_stand_for_all)
{
    FREED_BY(probe_cache_curve_free) struct cache_curve curve;
    const double seconds[] = {3e-9, 9e-9, 4e-9, 4e-9, 8e-9, 5e-9, 5e-9, 5e-9, 7e-9};
    samples.count = 0;
    probe_cache_samples_add(&samples, 80 * KIB, false);
    put(0, seconds, 3, 3);
    ck_assert_int_eq(probe_cache_samples_curve(&samples, false, &curve), 0);
    ck_assert_double_eq_tol(curve.seconds[0], 4e-9, 1e-15);
}

/* Places that happen to be alike say nothing of how far places lie apart. */
TEST(what_few_places_differ_by_is_seen_beside_them)
{
    FREED_BY(probe_cache_curve_free) struct cache_curve curve;
    const double apart[] = {10e-9, 30e-9}, alike[] = {20e-9, 20e-9};
    samples.count = 0;
    for (size_t i = 0; i < 3; i++) {
        probe_cache_samples_add(&samples, (double)(i + 1) * MIB, false);
        put(i, i == 1 ? alike : apart, 2, 1);
    }
    ck_assert_int_eq(probe_cache_samples_curve(&samples, false, &curve), 0);
    /* standard error, relative: sqrt((0.5 + 0 + 0.5) / 3 / 2) */
    ck_assert_double_eq_tol(curve.error_s[1] / curve.seconds[1], sqrt(1.0 / 6), 1e-9);
}

/* Of the samples of a place; where each has one, of the places; of one sample it is not known. */
TEST(the_spread_is_that_of_the_samples_there_are)
{
    FREED_BY(probe_cache_curve_free) struct cache_curve curve;
    const double seconds[] = {4e-9, 5e-9, 5e-9};
    samples.count = 0;
    for (size_t i = 0; i < 4; i++) {
        probe_cache_samples_add(&samples, (double)(i + 1) * MIB, false);
    }
    put(0, seconds, 1, 3);
    put(1, seconds, 3, 1);
    put(2, seconds, 1, 1);
    put(3, seconds, 1, 3); /* and another place with one sample */
    probe_cache_point_put(&samples.points[3], 1, 4e-9);
    ck_assert_int_eq(probe_cache_samples_curve(&samples, false, &curve), 0);
    ck_assert_double_eq_tol(curve.spread[0], 0.2, 1e-9);
    ck_assert_double_eq_tol(curve.spread[1], 0.2, 1e-9);
    ck_assert_double_lt(curve.spread[2], 0);
    ck_assert_double_eq_tol(curve.spread[3], 0.2, 1e-9);
}

static size_t far, near_l2, near_l3, between;

TRAVERSE(counted_traverse)
{
    double bytes = (double)what->bytes, step = 8 * log2(bytes / (4 * KIB));
    if (what->order == MACHINE_CHASE && what->seed) {
        far += what->bytes == 8 * KIB;
        near_l2 += what->bytes == 256 * KIB;
        near_l3 += what->bytes == 8 * MIB;
        between += bytes > 4 * MIB && bytes < 16 * MIB && fabs(step - round(step)) > 0.4;
    }
    return honest->traverse(subject, what, pus, count, seconds);
}

TEST(knees_are_measured_in_more_detail)
{
    FREED_BY(probe_cache_free) struct probe_cache found;
    open_machine_of("two-packages"); /* 32 KiB, 256 KiB and 8 MiB */
    replace_operations()->traverse = counted_traverse;
    ck_assert_int_eq(probe_cache(&probe, 0, &found, NULL), 0);
    ck_assert_uint_eq(found.count, 3);
    ck_assert_uint_ge(near_l2, far + 10);
    ck_assert_uint_ge(near_l3, 12);
    ck_assert_uint_ge(between, 16 * 5);
}
