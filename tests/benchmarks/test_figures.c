/* Do the tables and figures of the 2012 mapping paper come out of its machines, when these are
 * probed? */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "benchmarks/lab/lab.h"
#include "tests/base/runner.h"

/* Section 4.3 of the 2012 paper: "around 1000 MBytes/s" of two cores on one bus, "approximately
 * 1700" in one cell, "up to 2200" in different ones; between nodes messages take about twice as
 * long. Found by probing, to 3 %. */
TEST(the_finis_terrae_is_measured_as_the_paper_has_it)
{
    struct servet_profile *node, *pair;
    struct servet_error error = {""};
    ck_assert_msg(!bench_probed("finis-terrae", "memory,message", &node, &error), "%s", error.text);
    ck_assert_msg(!bench_probed("finis-terrae-2-nodes", "message", &pair, &error), "%s",
                  error.text);
    const struct profile_memory *memory = &node->classes[0].memory;
    ck_assert_double_eq_tol(memory->reference_bytes_per_s, 2.2e9, 0.03 * 2.2e9);
    ck_assert_uint_eq(memory->level_count, 2);
    ck_assert_double_eq_tol(memory->levels[0].bytes_per_s, 1.0e9, 0.03 * 1.0e9);
    ck_assert_double_eq_tol(memory->levels[1].bytes_per_s, 1.7e9, 0.03 * 1.7e9);
    ck_assert_uint_eq(memory->levels[0].collisions.group_count, 4);
    ck_assert_uint_eq(memory->levels[1].collisions.group_count, 2);
    double inside = node->classes[0].communication.layers[0].seconds;
    ck_assert_int_eq(bench_cluster(node, pair, 32), 0);
    ck_assert_uint_eq(profile_node_count(node), 32);
    ck_assert_double_eq_tol(node->network.layers[0].seconds / inside, 2.0, 0.5);
    uint32_t pus[33];
    ck_assert_int_eq(bench_default_placement(node, 33, pus), 0);
    ck_assert_uint_eq(pus[32], 32);
    ck_assert_int_eq(bench_cluster(node, pair, 32), -EINVAL); /* it is a cluster already */
    profile_free(pair);
    profile_free(node);
}

/* The last rows of the paper's Tables 1 and 2; '-' is 99. */
static void assert_tables(const json_t *figures)
{
    static const double last[2][16] = {
        {99, 99, 18, 18, 8, 8, 8, 8, 99, -1, 19, -1, 9, -1, 9, -1},
        {99, 99, -27, -28, 99, -29, -27, -29, 0, 0, 0, 0, 0, 0, 0, 0}};
    static const json_int_t chosen[2][4] = {{0, 1, 8, 9}, {0, 1, 4, 5}};
    for (size_t i = 0; i < 2; i++) {
        const json_t *rows = json_object_get(json_array_get(figures, i), "rows");
        for (size_t worker = 0; worker < 4; worker++) {
            const json_t *row = json_array_get(rows, worker);
            ck_assert_int_eq(json_integer_value(json_object_get(row, "chosen")), chosen[i][worker]);
        }
        const json_t *totals = json_object_get(json_array_get(rows, 3), "totals"), *total;
        size_t pu;
        ck_assert_uint_eq(json_array_size(totals), 16);
        json_array_foreach(totals, pu, total)
        {
            double found = json_is_null(total) ? 99 : json_number_value(total);
            ck_assert_double_eq_tol(found, last[i][pu], 1e-9);
        }
    }
}

/* The figure's point of that many cores under memory priority: nodes, and bandwidth over that of
 * the default. */
static double gain(const json_t *figure, json_int_t cores, json_int_t *nodes)
{
    double usual = 0, ours = 0;
    const json_t *point;
    size_t i;
    json_array_foreach(json_object_get(figure, "points"), i, point)
    {
        const char *placement = json_string_value(json_object_get(point, "placement"));
        double bytes = json_number_value(json_object_get(point, "bytes_per_s"));
        if (json_integer_value(json_object_get(point, "cores")) == cores) {
            usual = strcmp(placement, "default") == 0 ? bytes : usual;
            if (strcmp(placement, "servet-mem") == 0) {
                ours = bytes;
                *nodes = json_integer_value(json_object_get(point, "nodes"));
            }
        }
    }
    ck_assert_double_gt(usual, 0);
    return ours / usual;
}

/* What the paper says of its Figures 2 to 5, of machines that were probed. Programs gain at most
 * what the bandwidth does: over 85 % (FT, 16 cores of the x86_64 cluster), 60 % (IS, 32 cores). On
 * 128 cores of the Finis Terrae SP gained around 350 %, the bandwidth 300: to 20 %, for the rest
 * is not the memory's. Nodes are exact: one core a processor up to 16 cores, one an L3 on 32
 * (Section 4.2); one a bus (4.3); and a Superdome has one node (4.4). */
TEST(figures_of_the_paper_come_of_probed_machines)
{
    static const struct {
        size_t figure;
        json_int_t cores, nodes;
        double gain, tolerance;
    } expected[] = {
        {2, 4, 2, 1.5, 0.05},   {2, 16, 8, 3.0, 0.1},   {2, 32, 8, 2.0, 0.05},
        {2, 64, 8, 1.0, 0.02},  {3, 16, 8, 5.18, 0.1},  {3, 128, 32, 4.5, 0.9},
        {4, 16, 1, 5.18, 0.15}, {4, 32, 1, 4.0, 0.1},   {4, 64, 1, 2.0, 0.05},
        {5, 16, 8, 3.0, 0.1},   {5, 32, 8, 2.0, 0.05},  {6, 32, 16, 5.18, 0.1},
        {6, 64, 32, 5.18, 0.1}, {6, 128, 32, 4.5, 0.9},
    };
    struct servet_error error = {""};
    json_t *figures = NULL;
    FILE *text = fopen("/dev/null", "w");
    ck_assert_msg(bench_figures(text, NULL, &figures, &error) == 0, "%s", error.text);
    fclose(text);
    ck_assert_uint_eq(json_array_size(figures), 7);
    assert_tables(figures);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        json_int_t nodes = 0;
        double found = gain(json_array_get(figures, expected[i].figure), expected[i].cores, &nodes);
        ck_assert_msg(fabs(found - expected[i].gain) <= expected[i].tolerance,
                      "entry %zu, %lld cores: %g times the default, expected %g",
                      expected[i].figure, (long long)expected[i].cores, found, expected[i].gain);
        ck_assert_int_eq(nodes, expected[i].nodes);
    }
    for (size_t i = 2; i < 7; i++) {
        const json_t *origin = json_object_get(json_array_get(figures, i), "origin");
        ck_assert_ptr_nonnull(strstr(json_string_value(origin), "not measured"));
    }
    json_decref(figures);
}

/* of a busy machine, under a sanitizer */
TESTS(.seconds = 300)
