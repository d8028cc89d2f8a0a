/* Do the probes find out the truth about machines that are described to the simulated backend? */
#include "probes/cache/probe.h"
#include "probes/memory/memory.h"
#include "probes/pairs/messages.h"
#include "probes/pairs/sharing.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

TEST(cache_sizes_and_groups_are_found)
{
    FREED_BY(probe_cache_free) struct probe_cache caches;
    FREED_BY(probe_sharing_free) struct probe_sharing sharing;
    open_machine_of("two-packages");
    ck_assert_int_eq(probe_cache(&probe, 0, &caches, NULL), 0);
    ck_assert_uint_eq(caches.count, 3);
    ck_assert_uint_eq(caches.levels[0].size_bytes, 32 << 10);
    ck_assert_uint_eq(caches.levels[1].size_bytes, 256 << 10);
    ck_assert_uint_eq(caches.levels[2].size_bytes, 8 << 20);
    ck_assert_int_eq(probe_sharing(&probe, &caches, &sharing, NULL), 0);
    ck_assert_str_eq(lists_of(&sharing.levels[0].sharing), "");
    ck_assert_str_eq(lists_of(&sharing.levels[1].sharing), "");
    ck_assert_str_eq(lists_of(&sharing.levels[2].sharing), "0-3 4-7");
}

TEST(memory_overhead_and_saturation_are_found)
{
    FREED_BY(probe_memory_free) struct probe_memory found;
    open_machine_of("two-packages");
    ck_assert_int_eq(probe_memory(&probe, 8 << 20, &found, NULL), 0);
    ck_assert_double_eq_tol(found.memory.reference_bytes_per_s, 1.2e10, 0.05 * 1.2e10);
    ck_assert_uint_eq(found.memory.level_count, 1);
    const struct profile_memory_level *level = &found.memory.levels[0];
    ck_assert_str_eq(lists_of(&level->collisions), "0-3 4-7");
    ck_assert_uint_eq(level->scaling_count, 4);
    ck_assert_uint_eq(level->scaling[3].workers, 4);
    ck_assert_double_eq_tol(level->scaling[3].bytes_per_s, 2e10, 0.1 * 2e10);
}

/* -- another program at work while pairs are measured, injected at the seam -- */

static size_t pairs_copied, disturbed_pairs;

COPY(disturbed_copy)
{
    int rc = honest->copy(subject, what, pus, count, rates);
    for (size_t i = 0; i < count && count == 2 && pairs_copied < disturbed_pairs; i++) {
        rates[i] /= 2;
    }
    pairs_copied += count == 2;
    return rc;
}

TEST(pairs_that_were_disturbed_are_measured_again_and_agree_with_the_scaling)
{
    FREED_BY(probe_memory_free) struct probe_memory found;
    open_machine_of("dempsey");
    replace_operations()->copy = disturbed_copy;
    pairs_copied = 0;
    disturbed_pairs = 3; /* all rounds of the only pair */
    ck_assert_int_eq(probe_memory(&probe, 2 << 20, &found, NULL), 0);
    ck_assert_uint_eq(found.memory.level_count, 1);
    const struct profile_memory_level *level = &found.memory.levels[0];
    ck_assert_double_eq_tol(level->bytes_per_s, 2e9, 0.05 * 2e9);
    ck_assert_uint_eq(level->scaling[1].workers, 2);
    ck_assert_double_eq_tol(level->scaling[1].bytes_per_s, 4e9, 0.05 * 4e9);
}

static size_t exchanges[8][8]; /* messages of 32 KiB, by pair */

EXCHANGE(counted)
{
    for (size_t k = 0; k < count && what->bytes == 32 << 10; k++) {
        exchanges[pairs[k].a][pairs[k].b]++;
    }
    return honest->exchange(subject, what, pairs, count, seconds);
}

TEST(every_pair_is_measured_in_two_sweeps)
{
    FREED_BY(profile_communication_free) struct profile_communication found;
    open_machine_of("two-packages");
    replace_operations()->exchange = counted;
    memset(exchanges, 0, sizeof exchanges);
    probe.exhaustive = true;
    ck_assert_int_eq(probe_message(&probe, 32 << 10, &found, NULL), 0);
    for (size_t a = 0; a < 8; a++) {
        for (size_t b = a + 1; b < 8; b++) {
            ck_assert_uint_ge(exchanges[a][b], 2);
        }
    }
}

/* A value of the layer's curve, at the size that the layers were measured with. */
static double of_curve(const struct profile_layer *layer)
{
    size_t i = 0;
    while (i + 1 < layer->curve_count && layer->curve[i].bytes < 32 << 10) {
        i++;
    }
    return layer->curve[i].seconds;
}

TEST(layers_curves_and_concurrency_are_found)
{
    FREED_BY(profile_communication_free) struct profile_communication found;
    open_machine_of("two-packages");
    ck_assert_int_eq(probe_message(&probe, 32 << 10, &found, NULL), 0);
    ck_assert_uint_eq(found.layer_count, 2);
    ck_assert_str_eq(lists_of(&found.layers[0].members), "0-3 4-7");
    ck_assert_str_eq(lists_of(&found.layers[1].members), "0-7");
    ck_assert_double_lt(found.layers[0].seconds, found.layers[1].seconds);
    for (size_t i = 0; i < found.layer_count; i++) {
        const struct profile_layer *layer = &found.layers[i];
        ck_assert_uint_gt(layer->curve_count, 10);
        ck_assert_double_lt(layer->curve[0].seconds, layer->curve[layer->curve_count - 1].seconds);
        ck_assert_double_eq_tol(of_curve(layer), layer->seconds, 0.2 * layer->seconds);
        ck_assert_uint_ge(layer->concurrency_count, 2);
    }
    /* the link between the packages carries one message at a time */
    const struct profile_layer *node = &found.layers[1];
    ck_assert_double_gt(node->concurrency[node->concurrency_count - 1].seconds,
                        3 * node->concurrency[0].seconds);
}

static void assert_row(const struct profile_numa_access *row, const char *pus, uint32_t node,
                       double seconds, double bytes_per_s)
{
    ck_assert_str_eq(list_of(&row->pus), pus);
    ck_assert_uint_eq(row->node, node);
    /* the caches hold a part of the cycle: 8 MiB of 32 */
    ck_assert_msg(row->seconds_per_access > 0.75 * seconds &&
                      row->seconds_per_access < 1.15 * seconds,
                  "%g", row->seconds_per_access);
    ck_assert_double_eq_tol(row->bytes_per_s, bytes_per_s, 0.1 * bytes_per_s);
    ck_assert_int_eq(row->quality.origin, PROFILE_MEASURED);
    ck_assert_uint_ge(row->quality.repetitions, 3);
    ck_assert_uint_le(row->quality.repetitions, 9);
}

TEST(memory_of_every_node_is_measured_from_every_group)
{
    FREED_BY(probe_numa_free) struct probe_numa found;
    open_machine_of("numa-nodes");
    probe.declared = &machine.declared->classes[0];
    ck_assert_int_eq(probe_numa(&probe, 64 << 20, &found, NULL), 0);
    ck_assert_uint_eq(found.count, 6);
    assert_row(&found.rows[0], "0-3", 0, 9e-8, 1.2e10);
    assert_row(&found.rows[1], "0-3", 1, 1.5e-7, 7e9);
    assert_row(&found.rows[2], "0-3", 4, 3.5e-7, 2e9); /* memory only */
    assert_row(&found.rows[3], "4-7", 0, 1.5e-7, 7e9);
    assert_row(&found.rows[4], "4-7", 1, 9e-8, 1.2e10);
    assert_row(&found.rows[5], "4-7", 4, 2.6e-7, 4e9);
    ck_assert_str_eq(found.why, "");
}

TEST(a_machine_of_one_node_has_one_row)
{
    FREED_BY(probe_numa_free) struct probe_numa found;
    open_machine_of("two-packages");
    probe.declared = &machine.declared->classes[0];
    ck_assert_int_eq(probe_numa(&probe, 64 << 20, &found, NULL), 0);
    ck_assert_uint_eq(found.count, 1);
    assert_row(&found.rows[0], "0-7", 0, 9e-8, 1.2e10);
}

/* Memory on a node whose number the machine does not have: as a control group's limits make it. */
TEST(a_node_out_of_reach_leaves_its_rows_out_and_says_so)
{
    FREED_BY(probe_numa_free) struct probe_numa found;
    open_machine_of("numa-nodes");
    machine.declared->classes[0].numa[2].os_index = 9;
    probe.declared = &machine.declared->classes[0];
    ck_assert_int_eq(probe_numa(&probe, 64 << 20, &found, NULL), 0);
    ck_assert_uint_eq(found.count, 4);
    ck_assert_str_eq(found.why, "node 9 from PU 0: not allowed to place memory on this NUMA node");
}

/* Asked for in huge pages; what the operating system gave says `huge_bytes`. */
static size_t pages_of_caches(size_t huge_bytes)
{
    const size_t asked = 64 << 20;
    FREED_BY(probe_cache_free) struct probe_cache found;
    open_machine_of("numa-nodes");
    probe.largest_bytes = 4 << 20;
    machine.grant = (struct machine_grant){asked, huge_bytes};
    ck_assert_int_eq(probe_cache(&probe, 0, &found, NULL), 0);
    size_t page = found.page_bytes;
    bool ordinary = page == machine.page_bytes;
    ck_assert_msg(!ordinary || found.ordinary_tlb.repetitions == 0,
                  "the TLB is measured on ordinary pages twice");
    return page;
}

TEST(memory_that_came_in_ordinary_pages_is_said_to_be_of_those)
{
    ck_assert_uint_eq(pages_of_caches(60 << 20), 2 << 20);
    ck_assert_uint_eq(pages_of_caches(4 << 20), 4096);
}

TEST(the_same_seed_gives_the_same_figures)
{
    const struct machine_traversal what = {
        .bytes = 1 << 20, .stride_bytes = 256, .order = MACHINE_CHASE, .warm_passes = 8, .seed = 5};
    const uint32_t pu = 3;
    double seconds[2];
    for (size_t i = 0; i < 2; i++) {
        open_machine_of("two-packages");
        ck_assert_int_eq(probe_machine_traverse(&machine, &what, &pu, 1, &seconds[i]), 0);
    }
    ck_assert_double_eq(seconds[0], seconds[1]);
}

TESTS(.seconds = 100)
