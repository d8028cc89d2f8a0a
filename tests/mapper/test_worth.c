/* Is the smallest number of workers found that gets nearly all of a memory's bandwidth, and the
 * number of messages from which on a layer only queues; and is nothing said of what was not
 * measured? */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "mapper/worth/worth.h"
#include "tests/base/runner.h"

#define PUS 8

/* One domain of eight PUs whose bandwidth peaks at four workers and falls behind. */
struct machine {
    uint32_t ids[PUS];
    struct profile_set all;
    struct profile_scaling_point points[5];
    struct profile_memory_level level;
    struct profile_class node;
};

static struct machine m;
static uint32_t pus[PUS];

static void make_machine(void)
{
    static const struct profile_scaling_point points[] = {{.workers = 1, .bytes_per_s = 10e9},
                                                          {.workers = 2, .bytes_per_s = 19e9},
                                                          {.workers = 3, .bytes_per_s = 24e9},
                                                          {.workers = 4, .bytes_per_s = 25e9},
                                                          {.workers = 8, .bytes_per_s = 20e9}};
    m = (struct machine){.ids = {0, 1, 2, 3, 4, 5, 6, 7}, .all = {m.ids, PUS}};
    memcpy(m.points, points, sizeof points);
    m.level = (struct profile_memory_level){.bytes_per_s = 9.5e9,
                                            .collisions = {.groups = &m.all, .group_count = 1},
                                            .scaling = m.points,
                                            .scaling_count = 5};
    m.node = (struct profile_class){
        .pus = m.all,
        .memory = {.reference_bytes_per_s = 10e9, .levels = &m.level, .level_count = 1}};
}

static struct map_worth worth_of(const struct profile_set *allowed)
{
    struct map_worth worth;
    struct servet_error error;
    ck_assert_msg(map_worth(&m.node, allowed, pus, &worth, &error) == 0, "%s", error.text);
    return worth;
}

TEST(the_smallest_number_near_the_peak_is_taken)
{
    struct map_worth worth = worth_of(&m.all);
    ck_assert_uint_eq(worth.workers, 3); /* 24 of 25 GB/s are 96 % */
    ck_assert(fabs(worth.bytes_per_s - 24e9) < 1);
    ck_assert(fabs(worth.most_bytes_per_s - 25e9) < 1);
    ck_assert_uint_eq(worth.measured_workers, 8);
    ck_assert_uint_eq(pus[0], 0);
    ck_assert_uint_eq(pus[2], 2);
}

/* Siblings of two were measured to the end: the level of all eight was, too. */
TEST(a_level_of_small_groups_is_no_bound)
{
    struct profile_set siblings[] = {{m.ids, 2}, {m.ids + 2, 2}, {m.ids + 4, 2}, {m.ids + 6, 2}};
    struct profile_memory_level levels[] = {
        {.bytes_per_s = 8e9, .collisions = {.groups = siblings, .group_count = 4}}, m.level};
    m.node.memory.levels = levels;
    m.node.memory.level_count = 2;
    struct map_worth worth = worth_of(&m.all);
    ck_assert_uint_eq(worth.measured_workers, 8);
    levels[1].scaling_count = 4;
    worth = worth_of(&m.all);
    ck_assert_uint_eq(worth.measured_workers, 4);
}

TEST(fewer_pus_are_judged_by_themselves)
{
    struct profile_set some = {m.ids + 6, 2};
    struct map_worth worth = worth_of(&some);
    ck_assert_uint_eq(worth.workers, 2);
    ck_assert_uint_eq(pus[0], 6);
    ck_assert_uint_eq(pus[1], 7);
    struct profile_set one = {m.ids + 5, 1};
    worth = worth_of(&one);
    ck_assert_uint_eq(worth.workers, 1);
    ck_assert_uint_eq(worth.measured_workers, 0); /* none to share with */
}

/* The reference is what a PU of the most capable kind copies alone. */
TEST(a_lesser_core_is_predicted_no_more_than_it_gets_alone)
{
    struct profile_set fast = {m.ids, 6}, slow = {m.ids + 6, 2};
    struct profile_kind kinds[] = {{.efficiency = 1, .pus = fast}, {.pus = slow}};
    struct profile_numa_access rows[] = {{.pus = fast, .bytes_per_s = 10e9},
                                         {.pus = slow, .bytes_per_s = 6e9}};
    m.node.kinds = kinds;
    m.node.numa_access = rows;
    m.node.kind_count = m.node.numa_access_count = 2;
    struct map_worth worth = worth_of(&slow);
    ck_assert_uint_eq(worth.workers, 2);
    ck_assert(fabs(worth.bytes_per_s - 12e9) < 1); /* the level's two fast ones get 19 */
    worth = worth_of(&fast);
    ck_assert(fabs(worth.bytes_per_s - 24e9) < 1);
}

TEST(places_are_spread_over_the_domains)
{
    struct profile_set halves[] = {{m.ids, 4}, {m.ids + 4, 4}};
    m.level.collisions = (struct profile_relation){.groups = halves, .group_count = 2};
    struct map_worth worth = worth_of(&m.all);
    /* 25 GB/s each: 49 with four and three, 48 with three each, which are 96 %. */
    ck_assert_uint_eq(worth.workers, 6);
    ck_assert(fabs(worth.bytes_per_s - 48e9) < 1);
    const uint32_t expected[] = {0, 1, 2, 4, 5, 6};
    ck_assert_mem_eq(pus, expected, sizeof expected);
}

TEST(nothing_is_said_of_what_was_not_measured)
{
    struct map_worth worth = {.workers = 77};
    struct servet_error error;
    m.level.scaling_count = 0;
    m.level.bytes_per_s = 0;
    ck_assert_int_eq(map_worth(&m.node, &m.all, pus, &worth, &error), -ENODATA);
    ck_assert_ptr_nonnull(strstr(error.text, "overhead level 0"));
    struct profile_pair pair = {0, 1};
    make_machine();
    m.level.collisions = (struct profile_relation){.pairs = &pair, .pair_count = 1};
    ck_assert_int_eq(map_worth(&m.node, &m.all, pus, &worth, &error), -ENODATA);
    ck_assert_ptr_nonnull(strstr(error.text, "single pairs"));
    make_machine();
    m.node.memory.reference_bytes_per_s = 0;
    ck_assert_int_eq(map_worth(&m.node, &m.all, pus, &worth, &error), -ENODATA);
    ck_assert_uint_eq(worth.workers, 77);
}

TEST(messages_are_worth_it_until_they_queue)
{
    /* Two at a time take as long as one; from four on, each one more adds its own time. */
    struct profile_concurrency_point points[] = {{.messages = 1, .seconds = 1e-6},
                                                 {.messages = 2, .seconds = 1e-6},
                                                 {.messages = 4, .seconds = 1.25e-6},
                                                 {.messages = 16, .seconds = 5e-6}};
    struct profile_layer layer = {.concurrency = points, .concurrency_count = 4};
    uint32_t most;
    ck_assert_uint_eq(map_messages_worth(&layer, &most), 4);
    ck_assert_uint_eq(most, 16);
    layer.concurrency_count = 1;
    ck_assert_uint_eq(map_messages_worth(&layer, &most), 0);
    ck_assert_uint_eq(most, 0);
}

/* All that were measured are worth it, and maybe more: not 95 % of them. */
TEST(messages_that_never_queue_are_worth_it_to_the_end_of_the_curve)
{
    struct profile_concurrency_point points[] = {{.messages = 1, .seconds = 1e-6},
                                                 {.messages = 8, .seconds = 1.02e-6},
                                                 {.messages = 64, .seconds = 1.03e-6}};
    struct profile_layer layer = {.concurrency = points, .concurrency_count = 3};
    uint32_t most;
    ck_assert_uint_eq(map_messages_worth(&layer, &most), 64);
    ck_assert_uint_eq(most, 64);
}

TESTS(.setup = make_machine)
