/* Which NUMA nodes have the same kind of memory, by their figures alone? */
#include "profile/scope.h"
#include "profile/tiers.h"

#include "tests/base/runner.h"
#include "tests/profile/fixture.h"
#include "tests/profile/nodes.h"
#include "tests/profile/tree.h"

/* "0 0 1, capacity 1" */
static void expect_tiers(const struct profile_class *node_class, const char *expected)
{
    struct profile_tiers tiers;
    const char *text = "";
    ck_assert_int_eq(profile_tiers_make(node_class, &tiers), 0);
    for (size_t i = 0; i < node_class->numa_count; i++) {
        const uint32_t tier = tiers.nodes[i].tier;
        text = tier == PROFILE_NO_TIER ? formatted("%s- ", text) : formatted("%s%u ", text, tier);
    }
    text = formatted("%sof %u, capacity %u", text, tiers.count, tiers.capacity);
    profile_tiers_free(&tiers);
    ck_assert_str_eq(text, expected);
}

/* One worker gets as much from either; the firmware's figures are of all of them. */
TEST(hbm_is_faster_than_dram_by_what_is_declared)
{
    expect_tiers(CLASS_OF(xeon_max), "1 1 0 0 of 2, capacity 1");
}

/* As a kernel without HMAT shows it. */
TEST(hbm_is_faster_than_dram_by_what_all_pus_get)
{
    const struct node_figures nodes[] = {{"0-3", 64, 12, 110, 0, NULL},
                                         {"4-7", 64, 12, 110, 0, NULL},
                                         {"0-3", 16, 11, 130, 0, NULL},
                                         {"4-7", 16, 11, 130, 0, NULL}};
    static const double together[] = {150e9, 140e9, 400e9, 420e9};
    const struct profile_class *machine = CLASS_OF(nodes);
    FREED_BY(profile_tiers_free) struct profile_tiers tiers;
    expect_tiers(machine, "0 0 0 0 of 1, capacity 0");
    for (size_t i = 0; i < machine->numa_count; i++) {
        machine->numa[i].together_bytes_per_s = together[i];
    }
    expect_tiers(machine, "1 1 0 0 of 2, capacity 1");
    ck_assert_int_eq(profile_tiers_make(machine, &tiers), 0);
    ck_assert_double_eq(tiers.nodes[2].weight, 400e9);
}

TEST(cxl_is_slower_than_dram_by_what_is_measured)
{
    expect_tiers(CLASS_OF(with_cxl), "0 0 1 of 2, capacity 1");
}

TEST(nodes_that_are_alike_are_one_tier)
{
    expect_tiers(CLASS_OF(all_alike), "0 0 0 0 of 1, capacity 0");
}

static const struct {
    struct node_figures nodes[4];
    size_t count;
    const char *tiers;
} machines[] = {
    /* Latency alone is enough. */
    {{{"0-3", 8, 10, 300, 0, NULL}, {"4-7", 8, 10, 100, 0, NULL}}, 2, "1 0 of 2, capacity 1"},
    {{{.pus = "0", .gib = 8}}, 1, "0 of 1, capacity 0"},
    {{{.pus = "0"}}, 1, "- of 0, capacity 0"},
    /* The largest of those that are not the fastest: not the last. */
    {{{"0", 64, 12, 130, 900, "HBM"},
      {"0", 512, 12, 110, 300, "DRAM"},
      {"0", 256, 4, 270, 60, "CXL"},
      {"0", 0, 0, 0, 0, "empty"}},
     4,
     "0 1 2 - of 3, capacity 1"},
    /* The kernel's tiers count where nothing else is known. */
    {{{"0-3", 64, 0, 0, 0, "memory_tier4"}, {"", 512, 0, 0, 0, "memory_tier22"}},
     2,
     "0 1 of 2, capacity 1"},
    /* A figure that one node lacks tells nothing of the others. */
    {{{"0", 64, 12, 100, 0, NULL}, {"1", 64, 5, 200, 0, NULL}, {"2", 64, 0, 0, 0, NULL}},
     3,
     "0 0 0 of 1, capacity 0"},
};

TEST(tiers_are_of_nodes_that_figures_tell_apart, .loops = sizeof machines / sizeof *machines)
{
    expect_tiers(class_of_nodes(machines[_i].nodes, machines[_i].count), machines[_i].tiers);
}

/* hwloc's own example: nodes 0 and 1 are DRAM, 2 and 4 HBM, 6, 8 and 9 NVM. */
TEST(declared_tiers_are_those_of_hwloc)
{
    struct servet_profile *p = described(FIXTURES "/topologies/fakeheteromemtiers.xml");
    expect_tiers(&p->classes[0], "1 1 0 0 2 2 2 of 3, capacity 1");
    ck_assert_str_eq(p->classes[0].numa[2].kind, "HBM");
    ck_assert_double_eq(p->classes[0].numa[2].declared_bytes_per_s, 10000 * 0x1p20);
}

/* Node 2 has only memory, which the firmware says is node 1's; the kernel puts it below. */
TEST(sysfs_says_what_memory_does)
{
    put_smt_machine();
    put_file("/sys/devices/system/node/online", "0-2\n");
    put_file("/sys/devices/system/node/node2/cpulist", "\n");
    put_file("/sys/devices/system/node/node2/meminfo", "Node 2 MemTotal: 4194304 kB\n");
    put_file("/sys/devices/system/node/node2/access0/initiators/node1/cpulist", "2-3,6-7\n");
    put_file("/sys/devices/system/node/node2/access0/initiators/read_bandwidth", "40000\n");
    put_file("/sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0-1\n");
    put_file("/sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "2\n");
    struct servet_profile *p = of_sysfs(scratch_folder());
    const struct profile_numa *numa = &p->classes[0].numa[2];
    ck_assert_str_eq(list_of(&numa->pus), "2-3,6-7");
    ck_assert_str_eq(numa->kind, "memory_tier22");
    ck_assert_double_eq(numa->declared_bytes_per_s, 40000 * 0x1p20);
    expect_tiers(&p->classes[0], "0 0 1 of 2, capacity 1");
}

TEST(a_single_tier_is_no_kind_of_memory)
{
    put_smt_machine();
    put_file("/sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0-1\n");
    put_file("/sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "\n");
    struct servet_profile *p = of_sysfs(scratch_folder());
    ck_assert_ptr_null(p->classes[0].numa[0].kind);
}

TEST(weights_are_the_bandwidths_that_differ_more)
{
    struct profile_tiers tiers;
    ck_assert_int_eq(profile_tiers_make(CLASS_OF(xeon_max), &tiers), 0);
    ck_assert_double_eq(tiers.nodes[2].weight / tiers.nodes[0].weight, 3);
    profile_tiers_free(&tiers);
    ck_assert_int_eq(profile_tiers_make(CLASS_OF(with_cxl), &tiers), 0);
    ck_assert_double_eq(tiers.nodes[0].weight / tiers.nodes[2].weight, 3);
    profile_tiers_free(&tiers);
}

TESTS()
