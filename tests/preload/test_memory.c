/* Which policy and which nodes does SERVET_MEMBIND mean on a machine with several kinds of memory,
 * and how much of the fast one is there for each rank? */
#include "preload/place/memory.h"

#include <linux/mempolicy.h>

#include "tests/base/runner.h"
#include "tests/profile/fixture.h"
#include "tests/profile/nodes.h"

/* The root of a kernel with these weights; NULL: it does not weigh. */
static const char *weights_of(const struct profile_class *node_class, const uint32_t *weights)
{
    if (!weights) {
        return "/nowhere";
    }
    for (size_t i = 0; i < node_class->numa_count; i++) {
        scratch_file(formatted("sys/kernel/mm/mempolicy/weighted_interleave/node%u",
                               node_class->numa[i].os_index),
                     "%u\n", weights[i]);
    }
    return scratch_folder();
}

/* "mode nodes" for a plan on PUs first-last of the machine. */
static struct pin_memory decided(enum pin_membind membind, const struct profile_class *node_class,
                                 uint32_t first, uint32_t last, const uint32_t *weights)
{
    struct pin_memory memory;
    struct profile_mask own = {0};
    const struct pin_memory_request request = {
        .node_class = node_class, .own = &own, .ranks = 4, .root = weights_of(node_class, weights)};
    for (uint32_t pu = first; pu <= last; pu++) {
        profile_mask_add(&own, pu);
    }
    ck_assert_int_eq(pin_memory_plan(membind, &request, &memory), 0);
    return memory;
}

static void expect(struct pin_memory memory, int mode, const char *nodes)
{
    ck_assert_int_eq(memory.mode, mode);
    ck_assert_str_eq(memory.text, nodes);
    struct profile_mask expected = {0};
    ck_assert(!*nodes || profile_mask_parse(nodes, &expected));
    ck_assert(profile_mask_equal(&memory.nodes, &expected));
}

TEST(old_words_mean_the_nodes_of_the_plan)
{
    const struct profile_class *machine = CLASS_OF(all_alike);
    expect(decided(PIN_MEMBIND_NONE, machine, 0, 3, NULL), MPOL_DEFAULT, "");
    expect(decided(PIN_MEMBIND_LOCAL, machine, 2, 3, NULL), MPOL_LOCAL, "1");
    expect(decided(PIN_MEMBIND_INTERLEAVE, machine, 2, 7, NULL), MPOL_INTERLEAVE, "1-3");
}

TEST(a_tier_is_taken_where_it_is_near)
{
    const struct profile_class *machine = CLASS_OF(xeon_max);
    expect(decided(PIN_MEMBIND_FAST, machine, 4, 7, NULL), PIN_PREFERRED_MANY, "3");
    expect(decided(PIN_MEMBIND_FAST, machine, 3, 4, NULL), PIN_PREFERRED_MANY, "2-3");
    expect(decided(PIN_MEMBIND_CAPACITY, machine, 0, 1, NULL), PIN_PREFERRED_MANY, "0");
}

/* The CXL memory is the other package's. */
TEST(a_tier_that_is_not_near_is_taken_whole)
{
    expect(decided(PIN_MEMBIND_CAPACITY, CLASS_OF(with_cxl), 0, 1, NULL), PIN_PREFERRED_MANY, "2");
}

/* All ranks of the node share all of the tier. */
TEST(a_rank_has_its_share_of_the_tier)
{
    struct pin_memory memory = decided(PIN_MEMBIND_FAST, CLASS_OF(xeon_max), 4, 5, NULL);
    ck_assert_uint_eq(memory.share_bytes, (uint64_t)2 * 64 / 4 << 30);
    memory = decided(PIN_MEMBIND_CAPACITY, CLASS_OF(with_cxl), 4, 5, NULL);
    ck_assert_uint_eq(memory.share_bytes, (uint64_t)512 / 4 << 30);
    memory = decided(PIN_MEMBIND_INTERLEAVE, CLASS_OF(xeon_max), 4, 5, NULL);
    ck_assert_uint_eq(memory.share_bytes, 0);
}

/* The GPU's own NUMA node, 2, is beside PUs 0 to 3. */
TEST(memory_of_a_gpu_is_never_bound_to)
{
    const struct servet_profile *profile = described(FIXTURES "/topologies/devices.xml");
    expect(decided(PIN_MEMBIND_LOCAL, &profile->classes[0], 0, 3, NULL), MPOL_LOCAL, "0");
    expect(decided(PIN_MEMBIND_INTERLEAVE, &profile->classes[0], 0, 7, NULL), MPOL_INTERLEAVE,
           "0-1");
    expect(decided(PIN_MEMBIND_FAST, &profile->classes[0], 0, 3, NULL), MPOL_DEFAULT, "");
}

TEST(a_node_without_tiers_gets_no_policy)
{
    static const enum pin_membind by_tier[] = {PIN_MEMBIND_FAST, PIN_MEMBIND_CAPACITY};
    for (size_t i = 0; i < sizeof by_tier / sizeof *by_tier; i++) {
        struct pin_memory memory = decided(by_tier[i], CLASS_OF(all_alike), 0, 7, NULL);
        ck_assert(memory.no_tier);
        expect(memory, MPOL_DEFAULT, "");
    }
}

/* On PUs 4-7 the bandwidths are 3 : 1. */
TEST(weights_are_the_kernels_if_it_has_the_measured_ones)
{
    const struct profile_class *machine = CLASS_OF(with_cxl);
    struct pin_memory memory =
        decided(PIN_MEMBIND_WEIGHTED, machine, 4, 7, (const uint32_t[]){9, 3, 1});
    expect(memory, PIN_WEIGHTED_INTERLEAVE, "1-2");
    ck_assert_ptr_null(memory.instead);
    memory = decided(PIN_MEMBIND_WEIGHTED, machine, 4, 7, (const uint32_t[]){1, 1, 1});
    expect(memory, MPOL_INTERLEAVE, "1-2");
    ck_assert_ptr_nonnull(strstr(memory.instead, "other weights"));
    memory = decided(PIN_MEMBIND_WEIGHTED, machine, 4, 7, NULL);
    expect(memory, MPOL_INTERLEAVE, "1-2");
    ck_assert_ptr_nonnull(strstr(memory.instead, "no weighted interleave"));
}

/* Plain interleave is what is asked for where nodes are alike, whatever the kernel has. */
TEST(alike_nodes_need_no_weights)
{
    struct pin_memory memory =
        decided(PIN_MEMBIND_WEIGHTED, CLASS_OF(all_alike), 0, 7, (const uint32_t[]){9, 1, 1, 1});
    expect(memory, MPOL_INTERLEAVE, "0-3");
    ck_assert_ptr_null(memory.instead);
}

TEST(unknown_bandwidths_are_said)
{
    const struct node_figures nodes[] = {{.pus = "0-3", .gib = 8}, {.pus = "4-7", .gib = 8}};
    struct pin_memory memory =
        decided(PIN_MEMBIND_WEIGHTED, CLASS_OF(nodes), 0, 7, (const uint32_t[]){1, 1});
    expect(memory, MPOL_INTERLEAVE, "0-1");
    ck_assert_ptr_nonnull(strstr(memory.instead, "not known"));
}

TESTS()
