/* Do exact and noisy h-relations give back the g and l that they were made of, and are bends and
 * doubtful fits told? */
#include "probes/bsp/bsp.h"
#include "profile/base/random.h"
#include "tests/base/runner.h"
#include "tests/base/within.h"

/* Each is asked of every sixteenth h, and of every one (a long curve has shortcuts of its own). */
enum { HIGH = 2048, POINTS_MAX = HIGH + 1 };
static uint32_t step;

struct sample {
    uint32_t h[POINTS_MAX];
    double time[POINTS_MAX];
    struct bsp_curve curve;
};

static void make(struct sample *sample, double g, double l, double noise, uint64_t seed)
{
    struct random random = {seed};
    uint32_t points = HIGH / step + 1;
    for (uint32_t i = 0; i < points; i++) {
        sample->h[i] = i * step;
        sample->time[i] = (sample->h[i] * g + l) * (1 + noise * fabs(random_normal(&random)));
    }
    sample->curve = (struct bsp_curve){sample->h, sample->time, points};
}

/* g and l of the slides' machines, and in seconds */
static const struct bsp_line truths[] = {
    {455, 132618}, {199, 18408}, {309, 46224}, {2.5, 800}, {3.1e-9, 4.7e-6}};

TEST(exact_times_give_g_and_l_to_twelve_digits, .loops = 2 * sizeof truths / sizeof *truths)
{
    step = _i % 2 ? 1 : 16;
    struct sample sample;
    struct bsp_line line;
    const struct bsp_line *truth = &truths[_i / 2];
    make(&sample, truth->g, truth->l, 0, 1);
    ck_assert_int_eq(probe_bsp_least_squares(&sample.curve, &line), 0);
    assert_within(line.g, truth->g, 1e-12);
    assert_within(line.l, truth->l, 1e-12);
}

TEST(least_squares_is_where_both_derivatives_vanish, .loops = 2)
{
    step = _i % 2 ? 1 : 16;
    struct sample sample;
    struct bsp_line line;
    make(&sample, 100, 5000, 0.3, 7);
    ck_assert_int_eq(probe_bsp_least_squares(&sample.curve, &line), 0);
    double by_g = 0, by_l = 0, size = 0;
    for (size_t i = 0; i < sample.curve.count; i++) {
        double miss = sample.time[i] - (sample.h[i] * line.g + line.l);
        by_g += miss * sample.h[i];
        by_l += miss;
        size += sample.time[i] * sample.h[i];
    }
    ck_assert_double_lt(fabs(by_g), 1e-12 * size);
    ck_assert_double_lt(fabs(by_l), 1e-12 * size);
}

TEST(noise_of_some_percent_leaves_g_and_l_within_five, .loops = 2)
{
    step = _i % 2 ? 1 : 16;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct sample sample;
        struct bsp_line line;
        make(&sample, 455, 132618, 0.02, seed);
        ck_assert_int_eq(probe_bsp_least_squares(&sample.curve, &line), 0);
        assert_within(line.g, 455, 0.05);
        assert_within(line.l, 132618, 0.05);
    }
}

static void bend(struct sample *sample, uint32_t from_h, double g, double l, double noise)
{
    struct random random = {11};
    for (size_t i = 0; i < sample->curve.count; i++) {
        if (sample->h[i] >= from_h) {
            sample->time[i] = (sample->h[i] * g + l) * (1 + noise * fabs(random_normal(&random)));
        }
    }
}

TEST(a_switch_of_protocol_is_found_at_its_h, .loops = 2)
{
    step = _i % 2 ? 1 : 16;
    struct sample sample;
    struct bsp_bend found;
    make(&sample, 80, 9000, 0.01, 5);
    bend(&sample, 512, 50, 30000, 0.01);
    ck_assert_int_eq(probe_bsp_find_bend(&sample.curve, &found), 0);
    ck_assert_uint_ge(found.h, 512 - 16); /* to within a block of medians */
    ck_assert_uint_le(found.h, 512 + 16);
    assert_within(found.before.g, 80, 0.05);
    assert_within(found.after.g, 50, 0.05);
}

TEST(sending_more_in_less_time_is_a_bend_too, .loops = 2)
{
    step = _i % 2 ? 1 : 16;
    struct sample sample;
    struct bsp_bend found;
    make(&sample, 300, 200, 0.01, 5); /* the slides: packed too late, at h of some 170 */
    bend(&sample, 176, 190, 300, 0.01);
    ck_assert_int_eq(probe_bsp_find_bend(&sample.curve, &found), 0);
    ck_assert_uint_ge(found.h, 176 - 16);
    ck_assert_uint_le(found.h, 176 + 16);
}

TEST(a_straight_line_has_no_bend, .loops = 2)
{
    step = _i % 2 ? 1 : 16;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct sample sample;
        struct bsp_bend found;
        make(&sample, 199, 18408, seed % 2 ? 0.05 : 0, seed);
        sample.time[640 / step] *= seed % 5 ? 1 : 20; /* one stall */
        for (size_t i = sample.curve.count - 3;
             i < sample.curve.count && step == 1 && seed % 7 == 0; i++) {
            sample.time[i] *= 20; /* some at the end */
        }
        ck_assert_int_eq(probe_bsp_find_bend(&sample.curve, &found), 0);
        ck_assert_msg(found.h == 0, "seed %d: bend at h = %u", (int)seed, found.h);
    }
}

TEST(one_point_is_no_line)
{
    uint32_t h[] = {5};
    double time[] = {1};
    struct bsp_curve curve = {h, time, 1};
    struct bsp_line line = {-7, -7};
    ck_assert_int_lt(probe_bsp_least_squares(&curve, &line), 0);
    ck_assert(line.g == -7 && line.l == -7);
}

TEST(lines_differ_by_their_g_or_their_times)
{
    struct bsp_line a = {100, 1000}, b = {100, 1000}, c = {112, 1000}, d = {100, 40000};
    ck_assert(probe_bsp_difference(&a, &b, 0, 2048) <= 0);
    assert_within(probe_bsp_difference(&a, &c, 0, 2048), 0.238, 0.01); /* T(2048) over T(1024) */
    ck_assert_double_gt(probe_bsp_difference(&a, &d, 0, 2048), 0.3);
}
