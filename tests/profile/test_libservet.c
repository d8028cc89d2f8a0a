/* Does the public library, linked alone, tell a program what the profile says? */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/servet.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

static servet_profile *opened(const char *path)
{
    servet_profile *profile;
    struct servet_error error;
    ck_assert_msg(servet_profile_open(path, &profile, &error) == 0, "%s", error.text);
    ck_assert_str_eq(error.text, "");
    return kept(profile);
}

static bool about(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* "measured 5 0.25": how sure a figure is; without a spread "-", without the figure "none". */
static const char *said(int rc, const struct servet_quality *quality)
{
    static const char *const origins[] = {[SERVET_DECLARED] = "declared",
                                          [SERVET_MEASURED] = "measured",
                                          [SERVET_INFERRED] = "inferred"};
    ck_assert(rc == 0 || rc == -ENOENT);
    return rc < 0 ? "none"
           : quality->spread < 0
               ? formatted("%s %u -", origins[quality->origin], quality->repetitions)
               : formatted("%s %u %g", origins[quality->origin], quality->repetitions,
                           quality->spread);
}

TEST(a_profile_has_to_have_a_place)
{
    struct servet_error error;
    ck_assert_int_eq(servet_profile_open(NULL, NULL, &error), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error.text, "NULL"));
    ck_assert_int_eq(servet_topology_open(NULL, NULL), -EINVAL);
}

TEST(the_two_node_machine_answers)
{
    servet_profile *p = opened(FIXTURES "/nehalem-2-nodes.json");
    uint32_t pus[20];
    ck_assert_str_eq(servet_version(), SERVET_VERSION);
    ck_assert_int_eq(servet_measured(p), 1);
    ck_assert_uint_eq(servet_node_count(p), 2);
    ck_assert_uint_eq(servet_pu_count(p), 16);
    ck_assert_uint_eq(servet_pus(p, pus, 3), 16);
    ck_assert_uint_eq(servet_pus(p, pus, 20), 16);
    ck_assert_uint_eq(pus[0], 0);
    ck_assert_uint_eq(pus[15], 15);
    ck_assert_uint_eq(servet_cache_levels(p), 3);
    ck_assert_uint_eq(servet_cache_bytes(p, 2, 9), 256 << 10);
    ck_assert_uint_eq(servet_cache_line_bytes(p, 1, 0), 64);
    ck_assert_uint_eq(servet_cache_sharers(p, 3, 12), 2);
    ck_assert_uint_eq(servet_cache_sharers(p, 1, 12), 1);
    ck_assert_int_eq(servet_cache_shared(p, 3, 0, 2), 1);
    ck_assert_int_eq(servet_cache_shared(p, 3, 0, 4), 0);
    ck_assert_int_eq(servet_cache_shared(p, 3, 8, 10), 1);
    ck_assert_int_eq(servet_cache_shared(p, 3, 0, 10), 0); /* the same places of two nodes */
    ck_assert_int_eq(servet_cache_shared(p, 1, 5, 5), 1);
    ck_assert(about(servet_memory_bandwidth(p, 3, 1), 9e9));
    ck_assert(about(servet_memory_bandwidth(p, 3, 2), 12e9));
    ck_assert_int_eq(servet_message_layer(p, 0, 7), 0);
    ck_assert_int_eq(servet_message_layer(p, 0, 8), 1);
    ck_assert(about(servet_message_seconds(p, 15, 8, 1), 1.2e-5));
    ck_assert(about(servet_message_seconds(p, 0, 8, 32768), 6.4e-5));
}

TEST(curves_are_followed_between_and_beyond_their_points)
{
    servet_profile *p = opened(FIXTURES "/every-field.json");
    ck_assert(about(servet_message_seconds(p, 9, 0, 0), 1e-9));
    ck_assert(about(servet_message_seconds(p, 0, 9, 4), 1 + 0.5e-9));
    ck_assert(about(servet_message_seconds(p, 0, 9, 16), 4 - 1e-9));
    ck_assert(about(servet_memory_bandwidth(p, 0, 2), 8));
    ck_assert(about(servet_memory_bandwidth(p, 0, 100), 8));
    ck_assert(about(servet_memory_bandwidth(p, 0, 1), 7.5));
    ck_assert(about(servet_numa_seconds(p, 3, 2), 1.5e-7));  /* a node that is memory only */
    ck_assert(about(servet_numa_bandwidth(p, 10, 0), 7.25)); /* node 1, PU 0 */
    ck_assert_int_eq(servet_cache_shared(p, 1, 1, 9), 1);    /* a pair */
    ck_assert_int_eq(servet_cache_shared(p, 1, 2, 9), 0);
    ck_assert_uint_eq(servet_pu_count(p), 15);
}

TEST(tuners_get_what_was_measured_and_what_is_declared)
{
    servet_profile *p = opened(FIXTURES "/every-field.json");
    ck_assert_uint_eq(servet_cache_ways(p, 1, 0), 4);
    ck_assert_uint_eq(servet_cache_ways(p, 2, 0), 0);
    ck_assert_int_eq(servet_numa_node(p, 3), 0);
    ck_assert_int_eq(servet_numa_node(p, 13), 0); /* of node 1 */
    ck_assert_int_eq(servet_numa_node(p, 5), -1); /* a gap in the PU numbers */
    ck_assert_int_eq(servet_overhead_level(p, 0, 3), 0);
    ck_assert(about(servet_overhead_bandwidth(p, 0, 3), 6.5));
    ck_assert_int_eq(servet_overhead_level(p, 0, 9), -1);
    ck_assert(about(servet_overhead_bandwidth(p, 0, 9), 7.5)); /* as one alone */
    ck_assert_int_eq(servet_overhead_level(p, 0, 13), -1);     /* the same place of two nodes */
    ck_assert_int_eq(servet_overhead_level(p, 3, 3), -1);
    ck_assert(servet_overhead_bandwidth(p, 3, 3) == 0);
    ck_assert_uint_eq(servet_cache_declared_bytes(p, 1, 0), 2);
    ck_assert_uint_eq(servet_cache_bytes(p, 1, 19), 0); /* node 1, PU 9: looks lay 25 % apart */
    uint64_t low = 7, high = 8;
    ck_assert_int_eq(servet_cache_interval(p, 1, 5, &low, &high), -ENOENT); /* no such PU */
    ck_assert_uint_eq(low + high, 15);
    /* one of the two may be all that is wanted */
    ck_assert_int_eq(servet_cache_interval(p, 1, 9, &low, NULL), 0);
    ck_assert_int_eq(servet_cache_interval(p, 1, 9, NULL, &high), 0);
    ck_assert_uint_eq(low, 1);
    ck_assert_uint_eq(high, 2);
    ck_assert_uint_eq(servet_tlb_bytes(p, 1, 12, 0), 13);
    ck_assert_uint_eq(servet_tlb_bytes(p, 2, 12, 0), 0);
    ck_assert_uint_eq(servet_tlb_bytes(p, 0, 12, 0), 0);
    ck_assert_uint_eq(servet_tlb_bytes(p, 1, 4096, 0), 0);
    ck_assert(servet_messages_slower(p, 3, 3, 2) == 0);
    p = opened(FIXTURES "/nehalem-2-nodes.json");
    ck_assert_int_eq(servet_cache_interval(p, 1, 0, &low, &high), -ENOENT); /* without one */
    ck_assert(servet_messages_slower(p, 0, 1, 2) == 0);                     /* not measured */
    ck_assert_int_eq(servet_overhead_level(p, 0, 2), 0);
    ck_assert_int_eq(servet_overhead_level(p, 0, 1), -1);
    ck_assert(about(servet_overhead_bandwidth(p, 0, 2), 6e9));
    ck_assert(about(servet_overhead_bandwidth(p, 0, 1), 9e9));
}

TEST(tuners_walk_through_overhead_levels_and_numa_nodes)
{
    servet_profile *p = opened(FIXTURES "/every-field.json");
    uint32_t nodes[2] = {77, 77};
    ck_assert_uint_eq(servet_overhead_levels(p), 1);
    ck_assert(about(servet_level_bandwidth(p, 0, 3, 2), 8));
    ck_assert(about(servet_level_bandwidth(p, 0, 3, 1), 7.5));
    ck_assert(servet_level_bandwidth(p, 0, 3, 0) == 0);
    ck_assert(servet_level_bandwidth(p, 0, 5, 2) == 0); /* a gap in the PU numbers */
    ck_assert(servet_level_bandwidth(p, 1, 3, 2) == 0);
    ck_assert_uint_eq(servet_numa_nodes(p, 3, NULL, 0), 2);
    ck_assert_uint_eq(servet_numa_nodes(p, 13, nodes, 1), 2); /* of node 1 */
    ck_assert_uint_eq(nodes[1], 77);
    ck_assert_uint_eq(servet_numa_nodes(p, 3, nodes, 2), 2);
    ck_assert_uint_eq(nodes[0], 0);
    ck_assert_uint_eq(nodes[1], 2); /* memory only */
    ck_assert_uint_eq(servet_numa_nodes(p, 5, nodes, 2), 0);
    p = opened(FIXTURES "/nehalem-2-nodes.json");
    ck_assert(about(servet_level_bandwidth(p, 0, 3, 2), servet_memory_bandwidth(p, 3, 2)));
}

TEST(devices_near_a_pu_come_with_the_nearest_first)
{
    servet_profile *p = opened(FIXTURES "/every-field.json");
    struct servet_device device = {.kind = 77};
    ck_assert_uint_eq(servet_devices_near(p, 3, SERVET_GPU, NULL, 0), 1);
    ck_assert_uint_eq(servet_devices_near(p, 13, SERVET_GPU, &device, 1), 1); /* of node 1 */
    ck_assert_int_eq(device.kind, SERVET_GPU);
    ck_assert_str_eq(device.name, "cuda1");
    ck_assert_str_eq(device.uuid, "GPU-7");
    ck_assert_int_eq(device.number, 1);
    ck_assert_int_eq(device.numa_node, 2);
    ck_assert_uint_eq(servet_devices_near(p, 9, SERVET_GPU, &device, 1), 0);
    ck_assert_uint_eq(servet_devices_near(p, 5, SERVET_GPU, &device, 1), 0); /* no such PU */
    ck_assert_uint_eq(servet_devices_near(p, 9, SERVET_NIC, &device, 1), 1);
    ck_assert_int_eq(device.numa_node, -1);
    ck_assert_ptr_null(device.bus_id);
    p = opened(FIXTURES "/devices/tioga.json");
    struct servet_device near[3];
    ck_assert_uint_eq(servet_devices_near(p, 8, SERVET_NIC, near, 3), 2);
    ck_assert_str_eq(near[0].name, "hsi2"); /* of its L3 */
    ck_assert_str_eq(near[1].name, "ens2"); /* of its NUMA node */
}

TEST(copies_to_a_device_are_those_of_the_node_that_is_asked_for)
{
    servet_profile *p = opened(FIXTURES "/every-field.json");
    struct servet_transfer got = {0};
    ck_assert_int_eq(servet_device_transfer(p, 13, "cuda1", 0, &got), -ENOENT);
    ck_assert_int_eq(servet_device_transfer(p, 13, "mlx5_0", 2, &got), -ENOENT);
    ck_assert_int_eq(servet_device_transfer(p, 5, "cuda1", 2, &got), -ENOENT); /* no such PU */
    ck_assert_double_eq(got.seconds, 0);
    ck_assert_int_eq(servet_device_transfer(p, 13, "cuda1", 2, &got), 0);
    ck_assert_double_eq(got.to_device_bytes_per_s, 26.5e9);
    ck_assert_double_eq(got.from_device_bytes_per_s, 13.25e9);
    ck_assert_double_eq(got.seconds, 7.5e-6);
    ck_assert_double_eq(got.spread, 0.125);
}

TEST(pairs_have_figures_of_their_own_where_they_were_measured)
{
    servet_profile *p = opened(FIXTURES "/every-field.json");
    struct servet_quality q;
    uint64_t bytes = 1;
    ck_assert(about(servet_pair_bandwidth(p, 1, 0), 6.25));
    ck_assert(about(servet_pair_bandwidth(p, 11, 13), 6.75)); /* 1 and 3 of node 1 */
    ck_assert(servet_pair_bandwidth(p, 0, 2) == 0);
    ck_assert(servet_pair_bandwidth(p, 0, 11) == 0); /* 0 and 1, but of two nodes */
    ck_assert(about(servet_pair_seconds(p, 0, 1, &bytes), 1.25e-7));
    ck_assert_uint_eq(bytes, 11);
    bytes = 1;
    ck_assert(servet_pair_seconds(p, 0, 2, &bytes) == 0);
    ck_assert(servet_pair_seconds(p, 0, 11, &bytes) == 0); /* 0.4 is one of the nodes */
    ck_assert_uint_eq(bytes, 1);
    ck_assert(about(servet_line_seconds(p, 9, 0), 2.75e-8)); /* its own, not the layer's */
    ck_assert(about(servet_line_seconds(p, 0, 3), 2.25e-8)); /* in no layer */
    ck_assert(servet_line_seconds(p, 0, 1) == 0);            /* neither */
    ck_assert(servet_line_seconds(p, 0, 10) == 0);           /* of two nodes */
    ck_assert(servet_line_seconds(p, 3, 3) == 0);
    ck_assert_str_eq(said(servet_line_quality(p, 9, 0, &q), &q), "measured 15 0.125");
    /* no layer says how sure it is */
    ck_assert_str_eq(said(servet_line_quality(p, 0, 3, &q), &q), "measured 0 -");
    ck_assert_str_eq(said(servet_line_quality(p, 0, 1, &q), &q), "none");
}

TEST(loops_over_memory_have_bandwidths_of_their_own)
{
    servet_profile *p = opened(FIXTURES "/every-field.json");
    struct servet_quality q;
    uint32_t workers = 7;
    ck_assert(about(servet_kernel_bandwidth(p, 0, SERVET_TRIAD, NULL), 5.5));
    ck_assert(about(servet_kernel_bandwidth(p, 12, SERVET_NT_COPY, NULL), 7.5));
    ck_assert(servet_kernel_bandwidth(p, 0, SERVET_READ, &workers) == 0);
    ck_assert(servet_kernel_bandwidth(p, 5, SERVET_TRIAD, &workers) == 0); /* no such PU */
    ck_assert_uint_eq(workers, 7);
    ck_assert(about(servet_kernel_bandwidth(p, 9, SERVET_TRIAD, &workers), 18.5));
    ck_assert_uint_eq(workers, 4);
    ck_assert_str_eq(said(servet_kernel_quality(p, 3, SERVET_NT_COPY, &q), &q),
                     "measured 3 0.0625");
    ck_assert_str_eq(said(servet_kernel_quality(p, 9, SERVET_NT_COPY, &q), &q),
                     "inferred 3 0.0625");
    ck_assert_str_eq(said(servet_kernel_quality(p, 9, SERVET_COPY, &q), &q), "none");
    ck_assert_uint_eq(servet_numa_memory_bytes(p, 10, 0), 9007199254740993);
    ck_assert_uint_eq(servet_numa_memory_bytes(p, 0, 2), 0); /* not said */
    ck_assert_uint_eq(servet_numa_memory_bytes(p, 0, 1), 0); /* no such node */
}

TEST(what_is_not_known_is_zero)
{
    servet_profile *p = opened(FIXTURES "/every-field.json");
    ck_assert_uint_eq(servet_cache_bytes(p, 1, 5), 0); /* a gap in the PU numbers */
    ck_assert_uint_eq(servet_cache_bytes(p, 1, 4000000000), 0);
    ck_assert_uint_eq(servet_cache_bytes(p, 1, 30), 0); /* one behind the last PU */
    ck_assert_uint_eq(servet_cache_bytes(p, 2, 0), 0);
    ck_assert_uint_eq(servet_cache_sharers(p, 2, 0), 0);
    ck_assert_int_eq(servet_cache_shared(p, 2, 0, 0), 0);
    ck_assert(servet_memory_bandwidth(p, 0, 0) == 0);
    ck_assert(servet_memory_bandwidth(p, 9, 2) == 0); /* in no collision group */
    ck_assert(servet_numa_seconds(p, 9, 0) == 0);     /* in no row */
    ck_assert(servet_numa_bandwidth(p, 0, 1) == 0);
    ck_assert(servet_message_seconds(p, 3, 3, 8) == 0);
    ck_assert_int_eq(servet_message_layer(p, 3, 3), -1);
    ck_assert_int_eq(servet_message_layer(p, 2, 3), -1);
}

TEST(a_profile_is_closed_and_none_is_as_well)
{
    servet_profile *profile;
    ck_assert_int_eq(servet_profile_open(FIXTURES "/every-field.json", &profile, NULL), 0);
    servet_profile_close(profile);
    servet_profile_close(NULL);
}

TEST(of_a_profile_that_is_null_nothing_is_known)
{
    struct servet_quality quality;
    struct servet_bsp bsp;
    struct servet_worth worth;
    struct servet_transfer transfer;
    struct servet_error error;
    const struct servet_map_request request = {.ranks = 1};
    uint32_t pu = 0;
    ck_assert(!servet_measured(NULL));
    ck_assert_uint_eq(servet_node_count(NULL) + servet_pu_count(NULL), 0);
    ck_assert_uint_eq(servet_cache_levels(NULL) + servet_overhead_levels(NULL), 0);
    ck_assert_uint_eq(servet_cache_bytes(NULL, 1, 0) + servet_tlb_bytes(NULL, 1, 4096, 0), 0);
    ck_assert_uint_eq(servet_devices_near(NULL, 0, SERVET_GPU, NULL, 0), 0);
    ck_assert_int_eq(servet_cache_quality(NULL, 1, 0, &quality), -ENOENT);
    ck_assert_int_eq(servet_memory_quality(NULL, 0, 1, &quality), -ENOENT);
    ck_assert_int_eq(servet_message_layer(NULL, 0, 1), -1);
    ck_assert(!(servet_message_seconds(NULL, 0, 1, 8) > 0));
    ck_assert(!(servet_overhead_bandwidth(NULL, 0, 1) > 0) && !servet_condition(NULL, "smt"));
    ck_assert_int_eq(servet_bsp_parameters(NULL, NULL, 2, &bsp), -ENOENT);
    ck_assert_int_eq(servet_device_transfer(NULL, 0, NULL, 0, &transfer), -ENOENT);
    ck_assert_int_eq(servet_workers_worth(NULL, 0, SERVET_NODE, NULL, &worth, &error), -ENOENT);
    ck_assert_int_eq(servet_rank_order(NULL, &pu, 1, NULL, &pu, &error), -EINVAL);
    ck_assert_int_eq(servet_map(NULL, &request, &pu, &error), -EINVAL);
    ck_assert_str_eq(error.text, "profile: expected one, got NULL");
}

/* Can a program tell what was measured from what was taken over or only declared, and how sure it
 * is? */
TEST(figures_say_how_sure_they_are)
{
    servet_profile *p = opened(FIXTURES "/every-field.json");
    struct servet_quality q;
    ck_assert_str_eq(said(servet_cache_quality(p, 1, 0, &q), &q), "inferred 5 0.25");
    ck_assert_str_eq(said(servet_sharing_quality(p, 1, 0, &q), &q), "measured 6 0.5");
    ck_assert_str_eq(said(servet_memory_quality(p, 0, 2, &q), &q), "measured 5 0.25");
    ck_assert_str_eq(said(servet_numa_quality(p, 0, 2, &q), &q), "measured 0 -");
    /* PU 0 stands for it; of the layer, but not of the measured pairs; no layer has them */
    ck_assert_str_eq(said(servet_numa_quality(p, 3, 2, &q), &q), "inferred 0 -");
    ck_assert_str_eq(said(servet_message_quality(p, 0, 9, &q), &q), "inferred 0 -");
    ck_assert_str_eq(said(servet_message_quality(p, 0, 3, &q), &q), "none");
    ck_assert_str_eq(said(servet_cache_quality(p, 7, 0, &q), &q), "none");
    ck_assert_str_eq(said(servet_memory_quality(p, 0, 0, &q), &q), "none");
    ck_assert_ptr_null(servet_condition(p, "no-such"));
}

/* The reference is what a fast core gets; the row of its own is another look at the same. */
TEST(a_lesser_core_has_its_own_bandwidth)
{
    servet_profile *p = opened(scratch_file(
        "kinds.json", "%s",
        quoted(
            "{'servet_profile': 1, 'host': {'name': 'h'}, 'measurement': {'measured': true}, "
            "'node_classes': [{'pus': '0-3', 'caches': [], 'kinds': [{'efficiency': 1, 'pus': "
            "'0-1'}, {'efficiency': 0, 'pus': '2-3'}], 'numa': [{'os_index': 0, 'pus': '0-3'}], "
            "'memory': {'reference_bytes_per_s': 20e9, 'quality': {'origin': 'measured', "
            "'repetitions': 9}, 'levels': [{'bytes_per_s': 7e9, 'collisions': {'groups': ['2-3']}, "
            "'quality': {'origin': 'measured'}}, {'bytes_per_s': 16e9, 'collisions': {'groups': "
            "['0,2-3']}, 'quality': {'origin': 'measured'}}]}, 'numa_access': [{'pus': '0-1', "
            "'node': 0, 'seconds_per_access': 1e-7, 'bytes_per_s': 19e9, 'quality': {'origin': "
            "'measured'}}, {'pus': '2-3', 'node': 0, 'seconds_per_access': 1e-7, 'bytes_per_s': "
            "12e9, 'quality': {'origin': 'measured', 'repetitions': 4}}], 'communication': "
            "{'layers': []}}], 'nodes': [{'names': 'h', 'count': 1, 'class_index': 0}]}")));
    struct servet_quality q;
    ck_assert_double_eq(servet_memory_bandwidth(p, 1, 1), 20e9);
    ck_assert_double_eq(servet_memory_bandwidth(p, 2, 1), 12e9);
    ck_assert_double_eq(servet_level_bandwidth(p, 0, 3, 1), 12e9);
    ck_assert_double_eq(servet_overhead_bandwidth(p, 0, 1), 20e9);
    ck_assert_double_eq(servet_overhead_bandwidth(p, 1, 2), 12e9);
    ck_assert_double_eq(servet_overhead_bandwidth(p, 2, 3), 7e9);
    ck_assert_double_eq(servet_overhead_bandwidth(p, 0, 2), 12e9); /* more than it gets alone */
    ck_assert_str_eq(said(servet_memory_quality(p, 0, 1, &q), &q), "measured 9 -");
    /* PU 2 stands for it */
    ck_assert_str_eq(said(servet_memory_quality(p, 3, 1, &q), &q), "inferred 4 -");
}

/* A profile in which some probes did not run: a declared order of layers must not pass for
 * seconds. */
TEST(a_partial_profile_gives_no_declared_figure_as_a_measured_one)
{
    servet_profile *p = opened(scratch_file(
        "partial.json", "%s",
        quoted("{'servet_profile': 1, 'host': {'name': 'h'}, 'measurement': {'measured': true, "
               "'conditions': {'budget': 'used up'}}, 'node_classes': [{'pus': '0-1', 'caches': "
               "[{'level': 1, 'size_bytes': 32768, 'sharing': {'groups': ['0-1']}, 'quality': "
               "{'origin': 'measured', 'repetitions': 3}}], 'memory': {'quality': {'origin': "
               "'declared'}, 'levels': []}, 'communication': {'layers': [{'seconds': 1, 'members': "
               "{'groups': ['0-1']}, 'quality': {'origin': 'declared'}}]}}], 'nodes': [{'names': "
               "'h', 'count': 1, 'class_index': 0}]}")));
    struct servet_quality q;
    ck_assert_double_eq(servet_message_seconds(p, 0, 1, 8), 0);
    ck_assert_int_eq(servet_message_layer(p, 0, 1), 0); /* the order is known */
    ck_assert_str_eq(said(servet_message_quality(p, 0, 1, &q), &q), "declared 0 -");
    ck_assert_str_eq(said(servet_cache_quality(p, 1, 1, &q), &q), "measured 3 -");
    ck_assert_str_eq(said(servet_sharing_quality(p, 1, 1, &q), &q), "declared 0 -");
    ck_assert_str_eq(said(servet_memory_quality(p, 0, 1, &q), &q), "none");
    ck_assert_str_eq(servet_condition(p, "budget"), "used up");
}

/* Whatever figures a profile has. */
TEST(figures_of_a_profile_that_was_not_measured_do_not_count)
{
    char *text = read_text(FIXTURES "/nehalem-2-nodes.json"),
         *at = strstr(text, "\"measured\": true");
    ck_assert_ptr_nonnull(at);
    memcpy(at, "\"measured\":false", strlen("\"measured\": true"));
    servet_profile *p = opened(scratch_file("p.json", "%s", text));
    ck_assert_int_eq(servet_measured(p), 0);
    ck_assert(servet_memory_bandwidth(p, 0, 1) == 0);
    ck_assert(servet_message_seconds(p, 0, 1, 8) == 0);
    ck_assert_int_eq(servet_message_layer(p, 0, 1), 0);
}

TEST(a_superstep_costs_work_words_and_a_synchronisation)
{
    servet_profile *p = opened(FIXTURES "/cartesius-bsp.json");
    struct servet_bsp bsp;
    ck_assert(about(servet_bsp_cost(p, 32, 1e6, 2048), 1e6 + 2048 * 455.0 + 132618));
    ck_assert(about(servet_bsp_cost(p, 8, 0, 1), 274 + 49655));
    ck_assert(about(servet_bsp_cost(p, 1, 10, 100),
                    10 + 100 * 197.0 + 294)); /* no l: T(0) stands for it */
    ck_assert(about(servet_bsp_cost(p, 10, 0, 10), 10 * (274 + 300) / 2.0 + (49655 + 82374) / 2.0));
    ck_assert(servet_bsp_cost(p, 33, 1, 1) == 0);
    ck_assert(servet_bsp_cost(p, 0, 1, 1) == 0);
    ck_assert(servet_bsp_cost(p, 32, -1, 1) == 0);
    ck_assert_int_eq(servet_bsp_parameters(p, NULL, 16, &bsp), 0);
    ck_assert(about(bsp.r_flop_per_s, 5.711e9) && about(bsp.g_flops, 330) &&
              about(bsp.t0_flops, 52653));
    ck_assert_int_eq(servet_bsp_parameters(p, "mpi", 16, &bsp), -ENOENT);
    ck_assert_int_eq(servet_bsp_parameters(p, NULL, 64, &bsp), -ENOENT);
}

TEST(without_a_profile_this_machine_is_described_as_not_measured)
{
    unsetenv("SERVET_PROFILE");
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    if (access("/etc/servet", F_OK) == 0) {
        return; /* this system has a profile of its own */
    }
    servet_profile *p = opened(NULL);
    uint32_t pu;
    ck_assert_int_eq(servet_measured(p), 0);
    ck_assert_uint_ge(servet_pu_count(p), 1);
    ck_assert_uint_ge(servet_pus(p, &pu, 1), 1);
    ck_assert(servet_memory_bandwidth(p, pu, 1) == 0);
    ck_assert(servet_message_seconds(p, pu, pu + 1, 8) == 0); /* a rank is no latency */
}

TEST(bad_profiles_are_refused_with_their_reason)
{
    servet_profile *profile = NULL;
    struct servet_error error;
    ck_assert_int_eq(servet_profile_open("/nonexistent.json", &profile, &error), -ENOENT);
    ck_assert_int_eq(servet_profile_open("/nonexistent.json", &profile, NULL), -ENOENT);
    ck_assert_int_eq(servet_profile_open("/dev/null", &profile, &error), -EINVAL);
    ck_assert_msg(strncmp(error.text, "/dev/null:", 10) == 0, "%s", error.text);
    setenv("SERVET_PROFILE", FIXTURES "/nehalem-2-nodes.json", 1);
    ck_assert_int_eq(servet_profile_open(NULL, &profile, &error), -ESTALE);
    ck_assert_msg(strstr(error.text, "the profile is of node[1-2], not of this host") != NULL, "%s",
                  error.text);
    setenv("SERVET_PROFILE", "/nonexistent.json", 1); /* the user meant it: no falling back */
    ck_assert_int_eq(servet_profile_open(NULL, &profile, &error), -ENOENT);
    ck_assert_ptr_null(profile);
}

static void assert_maps(const servet_profile *p, const struct servet_map_request *request,
                        size_t count, const uint32_t *expected)
{
    uint32_t pus[16];
    struct servet_error error;
    ck_assert_msg(servet_map(p, request, pus, &error) == 0, "%s", error.text);
    ck_assert_mem_eq(pus, expected, count * sizeof *pus);
}

TEST(programs_get_the_mapping_that_the_command_prints)
{
    servet_profile *p = opened(FIXTURES "/nehalem-2-nodes.json");
    struct servet_map_request request = {.ranks = 4};
    assert_maps(p, &request, 4, (const uint32_t[]){0, 1, 8, 9}); /* 2012 paper, Table 1 */
    request.priority = SERVET_COMMUNICATION;
    assert_maps(p, &request, 4, (const uint32_t[]){0, 1, 4, 5}); /* Table 2 */
    const uint32_t allowed[] = {9, 4, 3, 2};
    request = (struct servet_map_request){.ranks = 3, .allowed = allowed, .allowed_count = 4};
    assert_maps(p, &request, 3, (const uint32_t[]){2, 3, 9});
    const uint32_t taken[] = {0, 1};
    request = (struct servet_map_request){.ranks = 1, .taken = taken, .taken_count = 2};
    assert_maps(p, &request, 1, (const uint32_t[]){8});
    const uint32_t threads[] = {2, 2}; /* a rank does not leave its node */
    request = (struct servet_map_request){.ranks = 2, .threads = threads};
    assert_maps(p, &request, 4, (const uint32_t[]){0, 1, 8, 9});
    p = opened(FIXTURES "/finis-terrae-2-nodes.json");
    request = (struct servet_map_request){.ranks = 4, .one_by_one = 1};
    assert_maps(p, &request, 4, (const uint32_t[]){0, 8, 16, 24});
}

TEST(a_mapping_that_cannot_be_is_refused_in_words)
{
    servet_profile *p = opened(FIXTURES "/nehalem-2-nodes.json");
    struct servet_error error;
    const uint32_t absent[] = {3, 16}, none[] = {1, 0};
    uint32_t pus[4] = {7, 7, 7, 7};
    const struct {
        struct servet_map_request request;
        const char *text;
    } cases[] = {
        {{.ranks = 0}, "workers"},
        {{.ranks = 2, .allowed = absent, .allowed_count = 2}, "allowed"},
        {{.ranks = 2, .taken = absent, .taken_count = 2}, "taken"},
        {{.ranks = 2, .allowed = absent, .allowed_count = 0}, "allowed"},
        {{.ranks = 2, .threads = none}, "rank 1"},
        {{.ranks = 2, .priority = (enum servet_priority)7}, "priority"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(servet_map(p, &cases[i].request, pus, &error), -EINVAL);
        ck_assert_msg(strstr(error.text, cases[i].text), "%zu: %s", i, error.text);
        ck_assert_uint_eq(pus[0], 7);
    }
}

TEST(programs_learn_how_many_workers_are_worth_it)
{
    servet_profile *p = opened(FIXTURES "/finis-terrae-2-nodes.json");
    struct servet_error error;
    struct servet_worth worth;
    uint32_t pus[32];
    ck_assert_int_eq(servet_workers_worth(p, 17, SERVET_NODE, pus, &worth, &error), 0);
    ck_assert_uint_eq(worth.workers, 4);
    ck_assert_uint_eq(worth.measured_workers, 2);
    ck_assert(about(worth.bytes_per_s, 4 * 1.7e9));
    ck_assert_mem_eq(pus, ((const uint32_t[]){16, 20, 24, 28}), 4 * sizeof *pus);
    ck_assert_int_eq(servet_workers_worth(p, 17, 0, NULL, &worth, &error), 0);
    ck_assert_uint_eq(worth.workers, 1);
    ck_assert_int_eq(servet_workers_worth(p, 17, 1, pus, &worth, &error), 0);
    ck_assert_uint_eq(worth.workers, 2);
    ck_assert_int_eq(servet_workers_worth(p, 17, 2, pus, &worth, &error), -ENOENT);
    ck_assert_int_eq(servet_workers_worth(p, 17, SERVET_PACKAGE, pus, &worth, &error), -ENOENT);
    ck_assert_int_eq(servet_workers_worth(p, 32, SERVET_NODE, pus, &worth, &error), -ENOENT);
    ck_assert_uint_eq(servet_messages_worth(p, 0, 1), 0);
    p = opened(FIXTURES "/two-packages-256.json");
    ck_assert_uint_eq(servet_messages_worth(p, 0, 64), 105);
    ck_assert_uint_eq(servet_messages_worth(p, 0, 0), 0);
    p = opened(FIXTURES "/cartesius-bsp.json");
    ck_assert_int_eq(servet_workers_worth(p, 0, SERVET_NODE, pus, &worth, &error), -ENODATA);
}
