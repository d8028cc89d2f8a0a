/* Do the probes find on the papers' machines the shared caches, memory overheads and communication
 * layers that the papers report? (2010 paper, Section IV; 2012 mapping paper, Sections 3 and 4.
 * Cache sizes: papers-machines.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/memory.h"
#include "probes/pairs/pairs.h"
#include "profile/query.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

static struct machine machine;
static struct probe probe;

static void open_fixture(const char *name)
{
    open_machine_of(name, &machine);
    probe =
        (struct probe){.machine = &machine, .seed = 1, .declared = &machine.declared->classes[0]};
}

/* "0-3 4-7": the groups, and no single pairs. */
static void assert_groups(const struct profile_relation *relation, const char *expected)
{
    char text[4096] = "";
    for (size_t i = 0; i < relation->group_count; i++) {
        char *group = profile_set_text(&relation->groups[i]);
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", group);
        free(group);
    }
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(relation->pair_count, 0);
}

/* Groups of `size` consecutive PUs, as far as `pus`. */
static const char *blocks(size_t pus, size_t size)
{
    static char text[2048];
    text[0] = '\0';
    for (size_t i = 0; i < pus; i += size) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%zu-%zu", i ? " " : "", i, i + size - 1);
    }
    return text;
}

/* 2010 paper, Figure 8: each measured pair's ratio says by itself whether it shares the cache. */
static void assert_ratios(const struct probe_sharing_level *level)
{
    ck_assert_uint_eq(level->ratio_count, level->measured);
    for (size_t i = 0; i < level->ratio_count; i++) {
        const struct profile_pair_figure *pair = &level->ratios[i];
        bool shared = profile_related(&level->sharing, pair->a, pair->b);
        ck_assert_double_ge(pair->value, shared ? 2 : 0.9);
        ck_assert_double_le(pair->value, shared ? 4 : 1.2);
    }
}

/* Sharing of the machine's caches, given their true sizes. */
static void expect_sharing(const char *const *groups)
{
    struct probe_cache caches = {0};
    struct probe_sharing found;
    const struct profile_class *declared = probe.declared;
    for (size_t i = 0; i < declared->cache_count; i++) {
        caches.levels[caches.count++].size_bytes = declared->caches[i].declared_size_bytes;
    }
    ck_assert_int_eq(probe_sharing(&probe, &caches, &found, NULL), 0);
    for (size_t i = 0; i < found.count; i++) {
        assert_groups(&found.levels[i].sharing, groups[i]);
        assert_ratios(&found.levels[i]);
    }
    probe_sharing_free(&found);
}

static void expect_memory(size_t last_level_bytes, size_t levels, const char *const *groups)
{
    struct probe_memory found;
    ck_assert_int_eq(probe_memory(&probe, last_level_bytes, &found, NULL), 0);
    ck_assert_uint_eq(found.memory.level_count, levels);
    for (size_t i = 0; i < levels; i++) {
        assert_groups(&found.memory.levels[i].collisions, groups[i]);
        ck_assert_double_lt(found.memory.levels[i].bytes_per_s,
                            0.9 * found.memory.reference_bytes_per_s);
    }
    probe_memory_free(&found);
}

/* `times`: the latency of each layer over that of the one before, at least. */
static void expect_layers(size_t bytes, size_t layers, const char *const *groups, double times)
{
    struct profile_communication found;
    ck_assert_int_eq(probe_message(&probe, bytes, &found, NULL), 0);
    ck_assert_uint_eq(found.layer_count, layers);
    for (size_t i = 0; i < layers; i++) {
        assert_groups(&found.layers[i].members, groups[i]);
        ck_assert(i == 0 || found.layers[i].seconds > times * found.layers[i - 1].seconds);
    }
    probe_message_free(&found);
}

/* 2012 paper, Figure 1: L3 by pairs of cores, one overhead level (the processor), one latency
 * within a node. */
TEST(a_nehalem_node)
{
    static const char *const caches[] = {"", "", "0,2 1,3 4,6 5,7"},
                             *const memory[] = {"0,2,4,6 1,3,5,7"}, *const layers[] = {"0-7"};
    open_fixture("nehalem");
    expect_sharing(caches);
    expect_memory(8 << 20, 1, memory);
    expect_layers(32 << 10, 1, layers, 1);
    probe_machine_close(&machine);
}

TEST(a_pair_of_nehalem_nodes)
{
    static const char *const caches[] = {"", "", "0,2 1,3 4,6 5,7 8,10 9,11 12,14 13,15"},
                             *const memory[] = {"0,2,4,6 1,3,5,7 8,10,12,14 9,11,13,15"},
                             *const layers[] = {"0-7 8-15", "0-15"};
    open_fixture("nehalem-2-nodes");
    expect_sharing(caches);
    expect_memory(8 << 20, 1, memory);
    expect_layers(32 << 10, 2, layers, 3);
    probe_machine_close(&machine);
}

/* 2010 paper, Figures 8b, 9 and 10: bus mates collide worst, cell mates less; nothing is shared. */
TEST(a_pair_of_finis_terrae_nodes)
{
    char buses[256], cells[256];
    static const char *const caches[] = {"", "", ""}, *const layers[] = {"0-15 16-31", "0-31"};
    snprintf(buses, sizeof buses, "%s", blocks(32, 4));
    snprintf(cells, sizeof cells, "%s", blocks(32, 8));
    const char *const memory[] = {buses, cells};
    open_fixture("finis-terrae-2-nodes");
    expect_sharing(caches);
    expect_memory(9 << 20, 2, memory);
    expect_layers(16 << 10, 2, layers, 2);
    probe_machine_close(&machine);
}

/* The same pairs in the same memory: a cache of 32 page colours, some of which get more pages than
 * it has ways, must not make pairs look as if they shared it. */
TEST(no_pair_of_private_caches_looks_shared)
{
    open_fixture("finis-terrae");
    probe.exhaustive = true;
    const struct probe_cache caches = {.levels = {{.size_bytes = 9 << 20}}, .count = 1};
    struct probe_sharing found;
    ck_assert_int_eq(probe_sharing(&probe, &caches, &found, NULL), 0);
    assert_groups(&found.levels[0].sharing, "");
    ck_assert_uint_eq(found.levels[0].measured, found.levels[0].pairs);
    ck_assert_uint_eq(found.levels[0].uncertain + found.levels[0].witnessed, 0);
    probe_sharing_free(&found);
    probe_machine_close(&machine);
}

/* 2012 paper, Section 4.4: the same memory access overheads as in the nodes of Finis Terrae, one
 * latency. */
TEST(the_superdome)
{
    char buses[1024], cells[1024];
    static const char *const layers[] = {"0-127"};
    snprintf(buses, sizeof buses, "%s", blocks(128, 4));
    snprintf(cells, sizeof cells, "%s", blocks(128, 8));
    const char *const memory[] = {buses, cells};
    open_fixture("superdome");
    expect_memory(9 << 20, 2, memory);
    expect_layers(16 << 10, 1, layers, 1);
    probe_machine_close(&machine);
}

/* 2010 paper, Figures 8a, 9 and 10: L2 by pairs, L3 by package, all cores collide, three layers. */
TEST(dunnington)
{
    static const char l2[] = "0,12 1,13 2,14 3,15 4,16 5,17 6,18 7,19 8,20 9,21 10,22 11,23",
                      l3[] = "0-2,12-14 3-5,15-17 6-8,18-20 9-11,21-23";
    static const char *const caches[] = {"", l2, l3}, *const memory[] = {"0-23"},
                             *const layers[] = {l2, l3, "0-23"};
    open_fixture("dunnington");
    expect_sharing(caches);
    expect_memory(12 << 20, 1, memory);
    expect_layers(32 << 10, 3, layers, 1.3);
    probe_machine_close(&machine);
}

TESTS(.seconds = 100)
