/* Are similar values found similar, different ones different, and single outliers no cluster of
 * their own? */
#include "probes/pairs/layers.h"
#include "probes/pairs/partition.h"
#include "profile/base/random.h"
#include "tests/base/runner.h"

enum { MANY = 276 }; /* pairs of 24 PUs */

static double values[MANY];
static uint32_t cluster_of[MANY];
static struct clusters clusters;

static void cluster(const double *of, size_t count, double spread)
{
    ck_assert_int_eq(probe_layers_cluster(of, count, spread, cluster_of, &clusters), 0);
}

/* MANY values around 1, 1.35 and 1.9 with the given deviation between pairs; every `outlier`-th
 * twice too slow. */
static void fill(double deviation, size_t outlier, uint64_t seed)
{
    static const double centres[] = {1, 1.35, 1.9};
    struct random random = {seed};
    for (size_t i = 0; i < MANY; i++) {
        values[i] = centres[i % 3] * exp(deviation * random_normal(&random));
        if (outlier && i % outlier == 0) {
            values[i] *= 1 + 2 * random_unit(&random);
        }
    }
}

TEST(three_layers_a_third_apart_are_told_apart)
{
    int right = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        fill(0.03, 0, seed);
        cluster(values, MANY, 0.01);
        right += clusters.count == 3;
    }
    ck_assert_msg(right >= 49, "%d of 50", right);
    ck_assert_double_eq_tol(clusters.centre[1], 1.35, 0.03);
}

TEST(members_are_those_of_their_layer)
{
    fill(0.02, 0, 7);
    cluster(values, MANY, 0.01);
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(cluster_of[i], i % 3);
    }
}

TEST(one_layer_stays_one)
{
    struct random random = {3};
    for (size_t i = 0; i < MANY; i++) {
        values[i] = 5e-6 * exp(0.05 * random_normal(&random));
    }
    cluster(values, MANY, 0.01);
    ck_assert_uint_eq(clusters.count, 1);
    ck_assert_uint_eq(clusters.size[0], MANY);
}

TEST(a_few_outliers_are_no_layer)
{
    for (size_t i = 0; i < MANY; i++) {
        values[i] = 1 + 0.01 * (double)(i % 5);
    }
    values[10] = 3;
    values[200] = 40;
    cluster(values, MANY, 0.01);
    ck_assert_uint_eq(clusters.count, 1);
}

TEST(with_few_values_every_one_counts)
{
    const double some[] = {1.0, 1.01, 4.0};
    cluster(some, 3, 0.01);
    ck_assert_uint_eq(clusters.count, 2);
    ck_assert_uint_eq(cluster_of[2], 1);
}

/* Pairs that differ by far more than their measurement does: 91 of these 100 stay one layer, 74
 * without the joining of neighbours. */
TEST(scattered_pairs_of_one_layer_are_seldom_torn_apart)
{
    enum { FEW = 28, SEEDS = 100, LEAST = 85 };
    int right = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct random random = {seed};
        for (size_t i = 0; i < FEW; i++) {
            values[i] = exp(0.12 * random_normal(&random));
        }
        cluster(values, FEW, 0.01);
        right += clusters.count == 1;
    }
    ck_assert_msg(right >= LEAST, "%d of %d", right, SEEDS);
}

/* The threshold is the measured spread: what a quiet measurement tells apart, a noisy one does
 * not. */
TEST(noise_decides_what_is_similar)
{
    const double some[] = {1.0, 1.01, 1.2, 1.21};
    cluster(some, 4, 0.01);
    ck_assert_uint_eq(clusters.count, 2);
    ck_assert_uint_eq(cluster_of[1], 0);
    ck_assert_uint_eq(cluster_of[2], 1);
    cluster(some, 4, 0.08);
    ck_assert_uint_eq(clusters.count, 1);
}

TEST(the_spread_is_that_of_one_figure_and_bears_outliers)
{
    enum { RATIOS = 400 };
    double logs[RATIOS];
    struct random random = {11};
    for (size_t i = 0; i < RATIOS; i++) {
        logs[i] = 0.03 * (random_normal(&random) - random_normal(&random));
        logs[i] += i % 10 == 0 ? 1 : 0;
    }
    ck_assert_double_eq_tol(probe_layers_spread(logs, RATIOS), 0.03, 0.006);
    ck_assert_double_eq(probe_layers_spread(logs, 0), 0);
}

TEST(no_values_and_impossible_ones_are_refused)
{
    const double zero[] = {1, 0}, none[] = {NAN};
    ck_assert_int_eq(probe_layers_cluster(zero, 0, 0, cluster_of, &clusters), -EINVAL);
    ck_assert_int_eq(probe_layers_cluster(zero, 2, 0, cluster_of, &clusters), -EINVAL);
    ck_assert_int_eq(probe_layers_cluster(none, 1, 0, cluster_of, &clusters), -EINVAL);
}

/* -- layers of pairs -- */

enum { PUS_MOST = 256, PAIRS_MOST = PUS_MOST * (PUS_MOST - 1) / 2, LEVELS = 4 };

/* A machine of nested groups: level 0 holds `size[0]` PUs, level 1 `size[1]` of level 0, … */
struct nested {
    size_t pus, levels, size[LEVELS];
    double seconds[LEVELS], within; /* deviation of the pairs of a level */
    uint32_t number[PUS_MOST];      /* of a PU, as the system numbers them */
    double of[PAIRS_MOST];
    uint32_t truth[PAIRS_MOST], found[PAIRS_MOST];
};

static void measure(struct nested *m, struct random *random)
{
    for (size_t i = 0; i < m->pus; i++) {
        for (size_t j = i + 1; j < m->pus; j++) {
            size_t a = m->number[i], b = m->number[j], level = 0;
            while (a / m->size[level] != b / m->size[level]) {
                a /= m->size[level];
                b /= m->size[level++];
            }
            size_t pair = probe_pair_index(m->pus, i, j);
            m->truth[pair] = (uint32_t)level;
            m->of[pair] = m->seconds[level] * exp(m->within * (2 * random_unit(random) - 1)) *
                          (1 + 0.01 * fabs(random_normal(random)));
        }
    }
}

static struct nested m;

static void number_as_they_are(void)
{
    for (uint32_t i = 0; i < m.pus; i++) {
        m.number[i] = i;
    }
}

/* The machine, numbered and measured as it is. */
static void make(struct nested machine, uint64_t seed)
{
    m = machine;
    number_as_they_are();
    measure(&m, &(struct random){seed});
}

/* Sizes, times and numbering from ranges, not from a list. */
static void draw(uint64_t seed)
{
    struct random random = {seed};
    m = (struct nested){.levels = 1 + (size_t)(3.99 * random_unit(&random)), .pus = 1};
    m.within = 0.06 * random_unit(&random);
    double seconds = 5e-9 * (1 + random_unit(&random));
    for (size_t l = 0; l < m.levels; l++) {
        size_t most = m.levels == 1 ? 64 : l == 0 ? 2 : l + 1 == m.levels ? 4 : 6;
        m.size[l] = 2 + (size_t)((double)(most - 1) * 0.999 * random_unit(&random));
        m.pus *= m.size[l];
        m.seconds[l] = seconds;
        seconds *= 1.5 + 4 * random_unit(&random);
    }
    number_as_they_are();
    if (seed % 3 == 0) {
        random_shuffle(&random, m.number, m.pus, sizeof *m.number);
    } else if (seed % 3 == 1) { /* siblings half the machine apart */
        for (size_t i = 0; i < m.pus; i++) {
            m.number[i] = (uint32_t)(i % (m.pus / m.size[0]) * m.size[0] + i / (m.pus / m.size[0]));
        }
    }
    measure(&m, &random);
}

static size_t layers_of(void)
{
    ck_assert_int_eq(probe_layers_of_pairs(m.pus, m.of, 0.01, m.found, &clusters), 0);
    return clusters.count;
}

static bool layers_are_found(void)
{
    bool right = layers_of() == m.levels;
    for (size_t k = 0; k < probe_pair_count(m.pus) && right; k++) {
        right = m.found[k] == m.truth[k];
    }
    return right;
}

TEST(groups_are_layers_however_few_pairs_they_have)
{
    enum { MACHINES = 100 };
    size_t right = 0;
    for (uint64_t seed = 1; seed <= MACHINES; seed++) {
        draw(seed);
        right += layers_are_found();
    }
    ck_assert_msg(right >= 97, "%zu of %d", right, MACHINES);
}

/* 68 cores of two threads: their siblings are 0.7 % of the pairs. */
static const struct nested siblings = {
    .levels = 2, .pus = 136, .size = {2, 68}, .seconds = {8e-9, 40e-9}, .within = 0.05};

TEST(siblings_of_many_cores_stay_a_layer)
{
    make(siblings, 5);
    ck_assert(layers_are_found());
}

/* A clock that counts in steps of 5 ns. */
TEST(steps_of_a_clock_make_no_layers)
{
    make(siblings, 5);
    for (size_t k = 0; k < probe_pair_count(m.pus); k++) {
        m.of[k] = m.truth[k] > 0 ? m.of[k] : k % 3 ? 10e-9 : 5e-9;
    }
    ck_assert(layers_are_found());
}

TEST(single_odd_pairs_make_no_layer)
{
    make(siblings, 5);
    m.of[probe_pair_index(m.pus, 3, 70)] *= 3;
    m.of[probe_pair_index(m.pus, 9, 90)] *= 8;
    ck_assert_uint_eq(layers_of(), 2);
}

/* The other threads of their cores are offline. */
TEST(one_pair_that_is_clearly_nearer_is_a_layer)
{
    for (size_t pus = 8; pus <= 32; pus *= 2) {
        make((struct nested){.levels = 1, .pus = pus, .size = {pus}, .seconds = {20e-9}}, 9);
        size_t pair = probe_pair_index(pus, 1, 3);
        m.of[pair] /= 2.5;
        ck_assert_uint_eq(layers_of(), 2);
        ck_assert_uint_eq(m.found[pair], 0);
        m.of[pair] *= 2; /* a fourth is too little to separate groups */
        ck_assert_uint_eq(layers_of(), 1);
    }
}

TEST(a_disturbed_pair_is_of_the_layer_of_its_kind)
{
    make(siblings, 5);
    m.of[probe_pair_index(m.pus, 6, 7)] *= 3.2; /* one pair of siblings */
    ck_assert(layers_are_found());
    make((struct nested){.levels = 1, .pus = 4, .size = {4}, .seconds = {20e-9}}, 11);
    m.of[probe_pair_index(m.pus, 0, 2)] *= 3;
    ck_assert_uint_eq(layers_of(), 1);
}

/* Groups of 23 and of 25, as where part of a machine is offline. */
TEST(disturbed_pairs_of_unequal_groups_make_no_layer)
{
    struct random random = {13};
    m = (struct nested){
        .levels = 2, .pus = 48, .size = {25, 2}, .seconds = {60e-9, 170e-9}, .within = 0.05};
    number_as_they_are();
    for (uint32_t i = 23; i < m.pus; i++) {
        m.number[i] = i + 2;
    }
    measure(&m, &random);
    m.of[probe_pair_index(m.pus, 3, 11)] = m.of[probe_pair_index(m.pus, 30, 44)] = 80e-9;
    m.of[probe_pair_index(m.pus, 5, 19)] = m.of[probe_pair_index(m.pus, 27, 41)] = 105e-9;
    ck_assert(layers_are_found());
}

/* Distances on a line: they divide the PUs into no groups, and differ by less than layers do. */
TEST(values_without_groups_are_told_apart_only_where_they_are_far_apart)
{
    for (int far = 0; far <= 1; far++) {
        m.pus = 32;
        for (size_t i = 0; i < m.pus; i++) {
            for (size_t j = i + 1; j < m.pus; j++) {
                m.of[probe_pair_index(m.pus, i, j)] = j - i < 12 ? 1 : far ? 1.6 : 1.25;
            }
        }
        ck_assert_uint_eq(layers_of(), far ? 2 : 1);
    }
}
