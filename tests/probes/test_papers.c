/* Do the probes find on the papers' machines the shared caches, memory overheads and communication
 * layers that the papers report? (2010 paper, Section IV; 2012 mapping paper, Sections 3 and 4.
 * Cache sizes: papers-machines.) */
#include "probes/memory/memory.h"
#include "probes/pairs/messages.h"
#include "probes/pairs/sharing.h"
#include "profile/query.h"
#include "tests/base/runner.h"
#include "tests/probes/open_fixture.h"

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

static void expect_sharing(const char *const *groups)
{
    struct probe_cache caches = {0};
    FREED_BY(probe_sharing_free) struct probe_sharing found;
    const struct profile_class *declared = probe.declared;
    for (size_t i = 0; i < declared->cache_count; i++) {
        caches.levels[caches.count++].size_bytes = declared->caches[i].declared_size_bytes;
    }
    ck_assert_int_eq(probe_sharing(&probe, &caches, &found, NULL), 0);
    for (size_t i = 0; i < found.count; i++) {
        ck_assert_str_eq(lists_of(&found.levels[i].sharing), groups[i]);
        assert_ratios(&found.levels[i]);
    }
}

static void expect_memory(size_t last_level_bytes, const char *const *groups)
{
    FREED_BY(probe_memory_free) struct probe_memory found;
    ck_assert_int_eq(probe_memory(&probe, last_level_bytes, &found, NULL), 0);
    for (size_t i = 0; i < found.memory.level_count; i++) {
        ck_assert_ptr_nonnull(groups[i]);
        ck_assert_str_eq(lists_of(&found.memory.levels[i].collisions), groups[i]);
        ck_assert_double_lt(found.memory.levels[i].bytes_per_s,
                            0.9 * found.memory.reference_bytes_per_s);
    }
    ck_assert_ptr_null(groups[found.memory.level_count]);
}

/* `times`: the latency of each layer over that of the one before, at least. */
static void expect_layers(size_t bytes, const char *const *groups, double times)
{
    FREED_BY(profile_communication_free) struct profile_communication found;
    ck_assert_int_eq(probe_message(&probe, bytes, &found, NULL), 0);
    for (size_t i = 0; i < found.layer_count; i++) {
        ck_assert_ptr_nonnull(groups[i]);
        ck_assert_str_eq(lists_of(&found.layers[i].members), groups[i]);
        ck_assert(i == 0 || found.layers[i].seconds > times * found.layers[i - 1].seconds);
    }
    ck_assert_ptr_null(groups[found.layer_count]);
}

#define DUNNINGTON_L2 "0,12 1,13 2,14 3,15 4,16 5,17 6,18 7,19 8,20 9,21 10,22 11,23"
#define DUNNINGTON_L3 "0-2,12-14 3-5,15-17 6-8,18-20 9-11,21-23"
#define FT_BUSES "0-3 4-7 8-11 12-15 16-19 20-23 24-27 28-31"
#define FT_CELLS "0-7 8-15 16-23 24-31"

/* Groups, with the true sizes of the caches given. */
static const struct {
    const char *name, *caches[3];
    size_t last_level_bytes;
    const char *memory[3];
    size_t message_bytes;
    const char *layers[4];
    double times;
} machines[] = {
    /* 2012 paper, Figure 1: L3 by pairs of cores, one overhead level (the processor), one latency
     * within a node. */
    {"nehalem", {"", "", "0,2 1,3 4,6 5,7"}, 8 << 20, {"0,2,4,6 1,3,5,7"}, 32 << 10, {"0-7"}, 1},
    {"nehalem-2-nodes",
     {"", "", "0,2 1,3 4,6 5,7 8,10 9,11 12,14 13,15"},
     8 << 20,
     {"0,2,4,6 1,3,5,7 8,10,12,14 9,11,13,15"},
     32 << 10,
     {"0-7 8-15", "0-15"},
     3},
    /* 2010 paper, Figures 8b, 9 and 10: bus mates collide worst, cell mates less; nothing is
     * shared. */
    {"finis-terrae-2-nodes",
     {"", "", ""},
     9 << 20,
     {FT_BUSES, FT_CELLS},
     16 << 10,
     {"0-15 16-31", "0-31"},
     2},
    /* 2010 paper, Figures 8a, 9 and 10: L2 by pairs, L3 by package, all cores collide, three
     * layers. */
    {"dunnington",
     {"", DUNNINGTON_L2, DUNNINGTON_L3},
     12 << 20,
     {"0-23"},
     32 << 10,
     {DUNNINGTON_L2, DUNNINGTON_L3, "0-23"},
     1.3},
};

TEST(the_papers_machines, .loops = sizeof machines / sizeof *machines)
{
    open_machine_of(machines[_i].name);
    probe.declared = &machine.declared->classes[0];
    expect_sharing(machines[_i].caches);
    expect_memory(machines[_i].last_level_bytes, machines[_i].memory);
    expect_layers(machines[_i].message_bytes, machines[_i].layers, machines[_i].times);
}

/* The same pairs in the same memory: a cache of 32 page colours, some of which get more pages than
 * it has ways, must not make pairs look as if they shared it. */
TEST(no_pair_of_private_caches_looks_shared)
{
    open_machine_of("finis-terrae");
    probe.declared = &machine.declared->classes[0];
    probe.exhaustive = true;
    const struct probe_cache caches = {.levels = {{.size_bytes = 9 << 20}}, .count = 1};
    FREED_BY(probe_sharing_free) struct probe_sharing found;
    ck_assert_int_eq(probe_sharing(&probe, &caches, &found, NULL), 0);
    ck_assert_str_eq(lists_of(&found.levels[0].sharing), "");
    ck_assert_uint_eq(found.levels[0].measured, found.levels[0].pairs);
    ck_assert_uint_eq(found.levels[0].undecided, 0);
}

/* 2012 paper, Section 4.4: the same memory access overheads as in the nodes of Finis Terrae, one
 * latency. */
TEST(the_superdome)
{
    open_machine_of("superdome");
    expect_memory(9 << 20,
                  (const char *const[]){blocks_of(128, 4, " "), blocks_of(128, 8, " "), NULL});
    expect_layers(16 << 10, (const char *const[]){"0-127", NULL}, 1);
}

TESTS(.seconds = 100)
