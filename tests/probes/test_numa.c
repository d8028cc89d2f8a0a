/* Is the memory of 16 nodes seen from all 16 as it is, even where only copies show it? */
#include "probes/memory/memory.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

enum { NODES = 16, PUS_OF_NODE = 2, NODES_OF_PACKAGE = 4, ARRAY = 64 << 20 };

/* Nodes of four packages. The link out of the package of node `slow` (NODES: none) has a third of
 * the others' bandwidth, at their latency. */
static double rate(size_t from, size_t node, size_t slow)
{
    bool package = from / NODES_OF_PACKAGE == node / NODES_OF_PACKAGE;
    return from == node ? 1.2e10 : package ? 8e9 : node == slow ? 1.7e9 : 5e9;
}

static double latency(size_t from, size_t node)
{
    bool package = from / NODES_OF_PACKAGE == node / NODES_OF_PACKAGE;
    return from == node ? 9e-8 : package ? 1.4e-7 : 2.2e-7;
}

static void open_nodes(size_t slow)
{
    const char *nodes = "";
    for (size_t node = 0; node < NODES; node++) {
        const char *others = "";
        for (size_t from = 0; from < NODES; from++) {
            others = from == node
                         ? others
                         : formatted("%s%s{'pus': '%zu-%zu', 'seconds': %g, 'bytes_per_s': %g}",
                                     others, *others ? ", " : "", from * PUS_OF_NODE,
                                     (from + 1) * PUS_OF_NODE - 1, latency(from, node),
                                     rate(from, node, slow));
        }
        nodes = formatted("%s%s{'os_index': %zu, 'pus': '%zu-%zu', 'from': [%s]}", nodes,
                          node ? ", " : "", node, node * PUS_OF_NODE, (node + 1) * PUS_OF_NODE - 1,
                          others);
    }
    open_machine_with(1,
                      "'pus': '0-%d', 'memory': {'seconds': 9e-8, 'pu_bytes_per_s': 1.2e10, "
                      "'nodes': [%s]}, 'noise': {'relative': 0.02, 'outlier_probability': 0.03, "
                      "'outlier_factor': 3}",
                      NODES * PUS_OF_NODE - 1, nodes);
}

/* All cells, each as it is. */
static void measure(size_t slow)
{
    FREED_BY(probe_numa_free) struct probe_numa found;
    open_nodes(slow);
    probe.declared = &machine.declared->classes[0];
    ck_assert_int_eq(probe_numa(&probe, ARRAY, &found, NULL), 0);
    ck_assert_uint_eq(found.count, NODES * NODES);
    for (size_t i = 0; i < found.count; i++) {
        const struct profile_numa_access *row = &found.rows[i];
        const size_t from = i / NODES, node = i % NODES;
        ck_assert_uint_eq(row->node, node);
        ck_assert(profile_set_has(&row->pus, (uint32_t)(from * PUS_OF_NODE)));
        ck_assert_msg(fabs(log(row->bytes_per_s / rate(from, node, slow))) < 0.1,
                      "from %zu to %zu: %g", from, node, row->bytes_per_s);
        ck_assert_msg(fabs(log(row->seconds_per_access / latency(from, node))) < 0.15,
                      "from %zu to %zu: %g", from, node, row->seconds_per_access);
        ck_assert_int_eq(row->quality.origin, PROFILE_MEASURED);
    }
}

/* GB/s of the PUs near each node together, within 5 %. */
static void expect_together(const char *description, const double *expected)
{
    FREED_BY(probe_numa_free) struct probe_numa found;
    open_machine_with(1,
                      "'pus': '0-7', 'memory': {'seconds': 9e-8, 'pu_bytes_per_s': 1.2e10, "
                      "'nodes': [%s]}, 'noise': {'relative': 0.02}",
                      description);
    probe.declared = &machine.declared->classes[0];
    ck_assert_int_eq(probe_numa(&probe, ARRAY, &found, NULL), 0);
    for (size_t node = 0; node < probe.declared->numa_count; node++) {
        const double got = found.together_bytes_per_s[node] / 1e9;
        ck_assert_msg(fabs(got - expected[node]) <= 0.05 * expected[node], "node %zu: %g GB/s",
                      node, got);
    }
}

/* One PU gets as much from either. */
TEST(memory_of_high_bandwidth_is_seen_by_all_pus_together)
{
    expect_together("{'os_index': 0, 'pus': '0-7', 'together_bytes_per_s': 3e10}, "
                    "{'os_index': 1, 'pus': '0-7', 'together_bytes_per_s': 9e10}",
                    (const double[]){30, 90});
}

/* The second has one PU that may be used: as many work on the first. */
TEST(nodes_are_compared_by_as_many_pus)
{
    expect_together("{'os_index': 0, 'pus': '0-6', 'together_bytes_per_s': 8e10}, "
                    "{'os_index': 1, 'pus': '7', 'together_bytes_per_s': 8e10}",
                    (const double[]){12, 12});
}

/* It lies by the first, as its latency tells. */
TEST(memory_without_pus_is_used_by_the_nearest)
{
    expect_together("{'os_index': 0, 'pus': '0-3', 'from': [{'pus': '4-7', 'seconds': 2e-7, "
                    "'bytes_per_s': 6e9}]}, "
                    "{'os_index': 1, 'pus': '4-7', 'from': [{'pus': '0-3', 'seconds': 2e-7, "
                    "'bytes_per_s': 6e9}]}, "
                    "{'os_index': 2, 'pus': '', 'from': [{'pus': '0-3', 'seconds': 3e-7, "
                    "'bytes_per_s': 5e9}, {'pus': '4-7', 'seconds': 4e-7, 'bytes_per_s': 2e9}]}",
                    (const double[]){48, 48, 20});
}

TEST(one_node_is_the_memory_probes)
{
    expect_together("{'os_index': 0, 'pus': '0-7'}", (const double[]){0});
}

TEST(a_slow_link_that_latency_does_not_show_is_found)
{
    measure(5);
}
