/* Do exact and noisy h-relations give back the g and l that they were made of, and are bends and
 * doubtful fits told? */
#include "probes/bsp/bsp.h"
#include "profile/base/random.h"
#include "tests/base/runner.h"
#include "tests/base/within.h"

/* Each is asked of every sixteenth h, and of every one (a long curve has shortcuts of its own). */
enum { HIGH = 2048, POINTS_MAX = HIGH + 1 };
#define STEP (_i % 2 ? 1 : 16)

static uint32_t h[POINTS_MAX];
static double times[POINTS_MAX];
static struct bsp_curve curve = {h, times, 0};

static void make(uint32_t step, struct bsp_line line, double noise, uint64_t seed)
{
    struct random random = {seed};
    curve.count = HIGH / step + 1;
    for (uint32_t i = 0; i < curve.count; i++) {
        h[i] = i * step;
        times[i] = (h[i] * line.g + line.l) * (1 + noise * fabs(random_normal(&random)));
    }
}

static struct bsp_line fitted(void)
{
    struct bsp_line line;
    ck_assert_int_eq(probe_bsp_least_squares(&curve, &line), 0);
    return line;
}

static struct bsp_bend bend_found(void)
{
    struct bsp_bend found;
    ck_assert_int_eq(probe_bsp_find_bend(&curve, &found), 0);
    return found;
}

/* g and l of the slides' machines, and in seconds */
static const struct bsp_line truths[] = {
    {455, 132618}, {199, 18408}, {309, 46224}, {2.5, 800}, {3.1e-9, 4.7e-6}};

TEST(exact_times_give_g_and_l_to_twelve_digits, .loops = 2 * sizeof truths / sizeof *truths)
{
    const struct bsp_line *truth = &truths[_i / 2];
    make(STEP, *truth, 0, 1);
    assert_within(fitted().g, truth->g, 1e-12);
    assert_within(fitted().l, truth->l, 1e-12);
}

TEST(least_squares_is_where_both_derivatives_vanish, .loops = 2)
{
    make(STEP, (struct bsp_line){100, 5000}, 0.3, 7);
    const struct bsp_line line = fitted();
    double by_g = 0, by_l = 0, size = 0;
    for (size_t i = 0; i < curve.count; i++) {
        double miss = times[i] - (h[i] * line.g + line.l);
        by_g += miss * h[i];
        by_l += miss;
        size += times[i] * h[i];
    }
    ck_assert_double_lt(fabs(by_g), 1e-12 * size);
    ck_assert_double_lt(fabs(by_l), 1e-12 * size);
}

static void bend(uint32_t from_h, double g, double l, double noise)
{
    struct random random = {11};
    for (size_t i = 0; i < curve.count; i++) {
        if (h[i] >= from_h) {
            times[i] = (h[i] * g + l) * (1 + noise * fabs(random_normal(&random)));
        }
    }
}

TEST(a_switch_of_protocol_is_found_at_its_h, .loops = 2)
{
    make(STEP, (struct bsp_line){80, 9000}, 0.01, 5);
    bend(512, 50, 30000, 0.01);
    const struct bsp_bend found = bend_found();
    ck_assert_double_eq_tol(found.h, 512, 16); /* to within a block of medians */
    assert_within(found.before.g, 80, 0.05);
    assert_within(found.after.g, 50, 0.05);
}

/* The slides: packed too late, at h of some 170. */
TEST(sending_more_in_less_time_is_a_bend_too, .loops = 2)
{
    make(STEP, (struct bsp_line){300, 200}, 0.01, 5);
    bend(176, 190, 300, 0.01);
    ck_assert_double_eq_tol(bend_found().h, 176, 16);
}

TEST(a_straight_line_has_no_bend, .loops = 2)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        make(STEP, (struct bsp_line){199, 18408}, seed % 2 ? 0.05 : 0, seed);
        times[640 / STEP] *= seed % 5 ? 1 : 20; /* one stall */
        for (size_t i = curve.count - 3; i < curve.count && _i && seed % 7 == 0; i++) {
            times[i] *= 20; /* some at the end */
        }
        const uint32_t at = bend_found().h;
        ck_assert_msg(at == 0, "seed %d: bend at h = %u", (int)seed, at);
    }
}

TEST(one_point_is_no_line)
{
    struct bsp_line line = {-7, -7};
    make(1, (struct bsp_line){1, 1}, 0, 1);
    curve.count = 1;
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
