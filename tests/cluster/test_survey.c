/* Are the layers of a network right although most of its pairs are never measured, and is it said
 * where they are not? */
#include "probes/network/network.h"
#include "probes/pairs/layers.h"
#include "probes/pairs/messages.h"
#include "profile/query.h"
#include "tests/base/runner.h"
#include "tests/cluster/fat_tree.h"

static struct fat_tree usual_tree(uint32_t nodes)
{
    return (struct fat_tree){.nodes = nodes,
                             .per_switch = 24,
                             .per_pod = 8,
                             .seconds = {2e-6, 3.2e-6, 5e-6},
                             .noise = 0.02,
                             .outliers = 0.03,
                             .slow = UINT32_MAX,
                             .random = {7}};
}

static struct fat_tree tree;
static struct {
    struct survey survey;
    struct survey_result result;
    struct machine machine;
    struct probe probe;
} done;

/* Surveys `tree`; what is found is in `done`. */
static void survey_tree(bool exhaustive, double until_s)
{
    ck_assert_int_eq(bench_fat_tree_open(&tree, &done.machine), 0);
    done.probe = (struct probe){.machine = &done.machine, .seed = 1};
    const struct survey_layout layout = bench_fat_tree_layout(&tree);
    const struct survey_options options = {32768, exhaustive, until_s};
    probe_survey_open(&done.survey, &done.probe, &layout, &options);
    ck_assert_int_eq(probe_survey_run(&done.survey, &done.result), 0);
}

static void finish(void)
{
    profile_communication_free(&done.result.network);
    probe_survey_close(&done.survey);
    bench_fat_tree_close(&tree, &done.machine);
}

/* Layer of every pair against the truth; how many are wrong. */
static size_t count_wrong(void)
{
    size_t wrong = 0;
    for (uint32_t a = 0; a < tree.nodes; a++) {
        for (uint32_t b = a + 1; b < tree.nodes; b++) {
            size_t layer = SIZE_MAX;
            profile_layer_of(&done.result.network, a, b, &layer);
            wrong += layer != bench_fat_tree_layer(&tree, a, b);
        }
    }
    return wrong;
}

TEST(a_fat_tree_is_found_from_few_of_its_pairs)
{
    tree = usual_tree(600);
    survey_tree(false, 0);
    ck_assert_uint_eq(done.result.network.layer_count, 3);
    ck_assert_uint_eq(count_wrong(), 0);
    ck_assert_uint_lt(done.result.measured_pairs, 15 * 600 + 600);
    ck_assert_uint_gt(done.result.checked, 100);
    ck_assert_uint_eq(done.result.unreached, 0);
    for (size_t i = 0; i < 3; i++) {
        ck_assert(fabs(done.result.network.layers[i].seconds / tree.seconds[i] - 1) < 0.05);
        ck_assert_int_eq(done.result.network.layers[i].quality.origin, PROFILE_INFERRED);
    }
}

TEST(exhaustive_measures_every_pair)
{
    tree = usual_tree(60);
    survey_tree(true, 0);
    ck_assert_uint_eq(done.result.measured_pairs, 60 * 59 / 2);
    ck_assert_uint_eq(count_wrong(), 0);
    ck_assert_int_eq(done.result.network.layers[0].quality.origin, PROFILE_MEASURED);
    ck_assert_uint_eq(done.result.network.measured.group_count, 1);
    ck_assert_uint_eq(done.result.network.measured.groups[0].count, 60);
}

/* Each measured pair is marked, and no other. */
TEST(marks_tell_measured_from_inferred)
{
    tree = usual_tree(200);
    survey_tree(false, 0);
    const struct profile_relation *marks = &done.result.network.measured;
    size_t marked = 0;
    for (uint32_t a = 0; a < tree.nodes; a++) {
        for (uint32_t b = a + 1; b < tree.nodes; b++) {
            bool mark = false;
            for (size_t i = 0; i < marks->group_count && !mark; i++) {
                mark =
                    profile_set_has(&marks->groups[i], a) && profile_set_has(&marks->groups[i], b);
            }
            for (size_t i = 0; i < marks->pair_count && !mark; i++) {
                mark = marks->pairs[i].a == a && marks->pairs[i].b == b;
            }
            ck_assert(mark == (probe_survey_find(&done.survey, a, b) != NULL));
            marked += mark;
        }
    }
    ck_assert_uint_eq(marked, done.result.measured_pairs);
    ck_assert_uint_lt(marked, 200 * 199 / 4);
}

TEST(layers_are_told_apart_by_the_spread_that_was_measured)
{
    static const double noise[] = {0.005, 0.02, 0.08};
    double spread[3];
    for (size_t i = 0; i < 3; i++) {
        tree = usual_tree(100);
        tree.noise = noise[i];
        survey_tree(true, 0);
        spread[i] = probe_survey_spread(&done.survey);
        ck_assert_uint_eq(done.result.network.layer_count, 2);
        ck_assert_uint_eq(count_wrong(), 0);
        finish();
    }
    /* Figures are repeated until the two least agree within 5 %: what is noisier differs by less
     * than a single one. */
    ck_assert_double_eq_tol(spread[0], noise[0], 0.2 * noise[0]);
    ck_assert_double_eq_tol(spread[1], noise[1], 0.3 * noise[1]);
    ck_assert_double_gt(spread[2], 1.2 * spread[1]);
    ck_assert_double_lt(spread[2], noise[2]);
    const struct survey nothing = {0};
    ck_assert_double_eq(probe_survey_spread(&nothing), 0);
}

TEST(a_node_with_a_slow_card_is_a_layer_of_its_own)
{
    tree = usual_tree(20);
    size_t layer = 0;
    tree.slow = 7;
    tree.seconds[0] = 2e-6;
    survey_tree(false, 0);
    ck_assert_uint_eq(done.result.network.layer_count, 2);
    for (uint32_t node = 0; node < 20; node++) {
        if (node != 7) {
            ck_assert(profile_layer_of(&done.result.network, node, 7, &layer) != NULL);
            ck_assert_uint_eq(layer, 1);
        }
    }
}

TEST(pairs_that_disturb_each_other_are_measured_apart)
{
    tree = usual_tree(600);
    tree.most_pairs = 10;
    survey_tree(false, 0);
    ck_assert_uint_le(done.survey.width, 10);
    ck_assert_uint_ge(done.survey.width, 5);
    ck_assert_uint_eq(count_wrong(), 0);
}

TEST(a_budget_ends_early_and_says_so)
{
    tree = usual_tree(600);
    tree.most_pairs = 1;
    survey_tree(false, 0.02);
    ck_assert(done.survey.out_of_time);
    ck_assert_uint_gt(done.result.unreached, 0);
    ck_assert(tree.elapsed_s < 0.03);
    ck_assert_uint_gt(done.result.network.layer_count, 0);
    ck_assert_int_eq(done.result.network.layers[0].quality.origin, PROFILE_INFERRED);
}

static void assert_hostlist(const char *expected, char **names, uint32_t count)
{
    FREED char *text = probe_network_hostlist(names, count);
    ck_assert_str_eq(text, expected);
}

TEST(names_are_written_as_batch_systems_do)
{
    assert_hostlist("node[1-3]", (char *[]){"node1", "node2", "node3"}, 3);
    assert_hostlist("node[9-11]", (char *[]){"node9", "node10", "node11"}, 3);
    assert_hostlist("n[098-100]-ib,login", (char *[]){"n098-ib", "n099-ib", "n100-ib", "login"}, 4);
    assert_hostlist("a1,b2", (char *[]){"a1", "b2"}, 2);
}

static struct servet_profile *synthetic(const char *description, double bytes_per_s)
{
    struct servet_profile *profile;
    ck_assert_int_eq(profile_from_hwloc(description, &profile, NULL), 0);
    profile->classes[0].memory.reference_bytes_per_s = bytes_per_s;
    return profile;
}

TEST(nodes_that_differ_are_named_with_the_reason)
{
    char *const names[] = {"node1", "node2", "node3", "node4"};
    struct servet_profile *const nodes[] = {
        synthetic("package:2 core:4 pu:1", 9e9), synthetic("package:2 core:4 pu:1", 8e9),
        synthetic("package:2 core:2 pu:1", 9e9), synthetic("package:2 core:4 pu:1", 3e9)};
    struct cluster_classes classes;
    ck_assert_int_eq(probe_network_classes_make(names, nodes, 4, &classes), 0);
    ck_assert_uint_eq(classes.profile->class_count, 3);
    ck_assert_uint_eq(classes.class_of[1], 0);
    ck_assert_str_eq(classes.profile->nodes[0].names, "node[1-2]");
    ck_assert_str_eq(classes.outliers, "node3: 4 PUs, not 8 as on node1\n"
                                       "node4: memory bandwidth 3 GB/s, not 9 as on node1\n");
    probe_network_classes_free(&classes);
    for (size_t i = 0; i < 4; i++) {
        profile_free(nodes[i]);
    }
}
