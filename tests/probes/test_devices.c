/* Are copies between GPUs and memory found as they are, node by node, and missing where they cannot
 * be had? */
#include "probes/memory/memory.h"
#include "tests/base/runner.h"
#include "tests/base/within.h"
#include "tests/probes/open_fixture.h"

#define TRANSFER(node, to, from, seconds)                                                          \
    "{'node': " #node ", 'to_device_bytes_per_s': " #to ", 'from_device_bytes_per_s': " #from      \
    ", 'seconds': " #seconds "}"
#define NODES                                                                                      \
    "'nodes': [{'os_index': 0, 'pus': '0-3'}, {'os_index': 1, 'pus': '4-7'}, {'os_index': 2, "     \
    "'pus': ''}]"
#define NEAR_0                                                                                     \
    "{'name': 'cuda0', 'pus': '0-3', 'transfers': [" TRANSFER(0, 26e9, 24e9, 8e-6) ", " TRANSFER(  \
        1, 19e9, 15e9, 11e-6) "]}"
#define OUT_OF_REACH "{'name': 'ze0', 'pus': '4-7'}"

static void open_gpus(const char *nodes, const char *gpus)
{
    open_machine_with(1,
                      "'pus': '0-7', 'memory': {'seconds': 9e-8, 'pu_bytes_per_s': 1.2e10%s%s}, "
                      "'gpus': [%s], 'noise': {'relative': 0.02, 'outlier_probability': 0.03, "
                      "'outlier_factor': 3}",
                      *nodes ? ", " : "", nodes, gpus);
}

static struct probe_devices measure(double deadline_s)
{
    struct probe_devices found;
    probe.declared = &machine.declared->classes[0];
    probe.deadline = deadline_s;
    ck_assert_int_eq(probe_devices(&probe, &found, NULL), 0);
    ck_assert_uint_eq(found.count, probe.declared->device_count);
    kept(found.of);
    for (size_t i = 0; i < found.count && found.of[i].transfers; i++) {
        kept(found.of[i].transfers);
    }
    return found;
}

static void assert_row(const struct profile_transfer *row, uint32_t node, double to, double from,
                       double seconds)
{
    ck_assert_uint_eq(row->node, node);
    assert_within(row->to_device_bytes_per_s, to, 0.06);
    assert_within(row->from_device_bytes_per_s, from, 0.06);
    assert_within(row->seconds, seconds, 0.06);
    ck_assert_int_eq(row->quality.origin, PROFILE_MEASURED);
    ck_assert_uint_eq(row->quality.repetitions, MACHINE_TRANSFER_ROUNDS);
    ck_assert(row->quality.spread > 0);
}

TEST(each_node_has_its_own_copies_and_the_far_one_slower)
{
    open_gpus(NODES, NEAR_0);
    struct probe_devices found = measure(0);
    ck_assert_uint_eq(found.of[0].count, 2);
    assert_row(&found.of[0].transfers[0], 0, 26e9, 24e9, 8e-6);
    assert_row(&found.of[0].transfers[1], 1, 19e9, 15e9, 11e-6);
    ck_assert_str_eq(found.why, "cuda0: the description has no copies to node 2");
}

TEST(the_only_node_is_where_memory_falls)
{
    open_gpus("", "{'name': 'cuda0', 'transfers': [" TRANSFER(0, 26e9, 24e9, 8e-6) "]}");
    struct probe_devices found = measure(0);
    ck_assert_uint_eq(found.of[0].count, 1);
    assert_row(&found.of[0].transfers[0], 0, 26e9, 24e9, 8e-6);
    ck_assert_str_eq(found.why, "");
}

TEST(a_gpu_out_of_reach_has_no_rows_and_a_reason)
{
    open_gpus(NODES, OUT_OF_REACH ", " NEAR_0);
    struct probe_devices found = measure(0);
    ck_assert_uint_eq(found.of[0].count, 0);
    ck_assert_uint_eq(found.of[1].count, 2);
    ck_assert_str_eq(found.why, "ze0: the description has no copies to it");
}

/* PUs 4-7 alone: nothing of the run is near node 0. */
TEST(a_node_whose_pus_are_left_out_is_left_out)
{
    open_gpus(NODES, NEAR_0);
    profile_set_free(&machine.pus);
    machine.pus = set_of("4-7");
    struct probe_devices found = measure(0);
    ck_assert_uint_eq(found.of[0].count, 1);
    assert_row(&found.of[0].transfers[0], 1, 19e9, 15e9, 11e-6);
}

TEST(late_is_the_first_gpu_alone)
{
    open_gpus(NODES, NEAR_0 ", " NEAR_0);
    struct probe_devices found = measure(1e-9);
    ck_assert_uint_eq(found.of[0].count, 2);
    ck_assert_uint_eq(found.of[1].count, 0);
    ck_assert(found.cut_short);
}

TEST(a_run_puts_them_into_the_profile)
{
    open_gpus(NODES, NEAR_0 ", " OUT_OF_REACH);
    const struct servet_profile *profile = run_probes((struct probe_run){.probes = PROBE_DEVICE});
    const struct profile_class *node_class = &profile->classes[0];
    ck_assert_int_eq(profile_check(profile, NULL), 0);
    ck_assert_uint_eq(node_class->devices[0].transfer_count, 2);
    ck_assert_uint_eq(node_class->devices[1].transfer_count, 0);
    ck_assert_ptr_nonnull(profile_condition(profile, "devices"));
}

TEST(a_machine_without_gpus_has_no_such_step)
{
    open_gpus(NODES, "");
    const struct servet_profile *profile =
        run_probes((struct probe_run){.probes = PROBE_MEMORY | PROBE_DEVICE});
    ck_assert_ptr_null(profile_condition(profile, "devices"));
    ck_assert_uint_eq(progress_of_run.steps, 3); /* memory, its sets, repetitions */
}
