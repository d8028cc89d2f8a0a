/* Where a measured cache size is not the declared one: is the explanation one that there is
 * evidence for, and is none given where there is none? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/run/run.h"
#include "tests/base/runner.h"
#include "tests/profile/tree.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static const char *root; /* of a captured /sys */

static char *said;

/* What is said of it, from the colon on. */
static const char *why(struct disagreement d)
{
    size_t length;
    free(said);
    FILE *stream = open_memstream(&said, &length);
    probe_disagreement_explain(&d, stream);
    fclose(stream);
    return strchr(said, ':') + 2;
}

static struct disagreement sizes(uint64_t measured, uint64_t declared)
{
    return (struct disagreement){.level = 3,
                                 .measured_bytes = measured,
                                 .declared_bytes = declared,
                                 .low_bytes = measured,
                                 .high_bytes = measured};
}

TEST(what_nothing_is_known_of_stays_unexplained)
{
    ck_assert_str_eq(why(sizes(20 * MIB, 36 * MIB)),
                     "nothing that is known of the machine explains it");
    ck_assert_str_eq(why(sizes(36 * MIB, 20 * MIB)),
                     "nothing that is known of the machine explains it");
    ck_assert_ptr_nonnull(strstr(said, "measured 36 MiB, declared 20 MiB: "));
}

TEST(sizes_as_near_as_measurements_are_do_not_disagree)
{
    ck_assert(!probe_disagreement_is_one(33 * MIB, 32 * MIB));
    ck_assert(!probe_disagreement_is_one(32 * MIB, 33 * MIB));
    ck_assert(!probe_disagreement_is_one(32 * MIB, 0));
    ck_assert(probe_disagreement_is_one(36 * MIB, 32 * MIB));
    ck_assert(probe_disagreement_is_one(28 * MIB, 32 * MIB));
}

TEST(a_declared_size_within_the_error_of_the_measurement_is_said_to_be)
{
    struct disagreement d = sizes(20 * MIB, 24 * MIB);
    d.virtual = true;
    d.high_bytes = 25 * MIB;
    ck_assert_str_eq(why(d), "the measurement leaves room for the declared size");
    d.high_bytes = 23 * MIB;
    ck_assert_ptr_null(strstr(why(d), "leaves room"));
}

TEST(allocated_ways_account_for_as_much_as_they_are)
{
    struct disagreement d = sizes(20 * MIB, 55 * MIB);
    d.virtual = true;
    d.share = (struct resctrl_share){4, 11};
    ck_assert_str_eq(why(d), "4 of 11 ways are allocated to this task by resctrl: 20 MiB");
    d.measured_bytes = 12 * MIB; /* less than that: somebody else, too */
    ck_assert_str_eq(
        why(d),
        "4 of 11 ways are allocated to this task by resctrl: 20 MiB; a virtual machine is told "
        "the size of its host's cache, part of which neighbours may hold");
    d.share.parts = 11;
    ck_assert_ptr_null(strstr(why(d), "resctrl"));
    d.share.parts = 4;
    d.measured_bytes = 66 * MIB; /* more than declared is not explained by a part of it */
    ck_assert_ptr_null(strstr(why(d), "resctrl"));
}

TEST(a_declared_sum_of_caches_that_were_found_apart)
{
    struct disagreement d = sizes(16 * MIB, 32 * MIB);
    d.parts = 2;
    ck_assert_str_eq(why(d), "declared is the sum of 2 caches, which were found apart");
    d.parts = 1;
    ck_assert_ptr_null(strstr(why(d), "sum"));
    d.parts = 4;
    ck_assert_ptr_null(strstr(why(d), "sum"));
}

TEST(declared_caches_that_were_found_to_be_one)
{
    struct disagreement d = sizes(48 * MIB, 16 * MIB);
    d.merged = 3;
    ck_assert_str_eq(why(d), "3 declared caches, of that size each, were found to be one");
    d.merged = 2;
    ck_assert_ptr_null(strstr(why(d), "found to be one"));
}

TEST(sizes_that_were_not_tried_cannot_be_found)
{
    struct disagreement d = sizes(32 * KIB, 48 * KIB);
    d.next_bytes = 64 * KIB;
    ck_assert_str_eq(why(d), "no size between the two was tried, only powers of two");
    d = sizes(2 * MIB, 5 * MIB / 2);
    d.next_bytes = 3 * MIB;
    ck_assert_str_eq(why(d), "no size between the two was tried");
    d.next_bytes = 9 * MIB / 4;
    ck_assert_ptr_null(strstr(why(d), "was tried"));
    d = sizes(64 * KIB, 48 * KIB);
    d.next_bytes = 128 * KIB;
    ck_assert_ptr_null(strstr(why(d), "was tried"));
}

TEST(a_declared_size_that_no_sets_make)
{
    struct disagreement d = sizes(1280 * KIB, 2000001);
    d.line_bytes = 64;
    d.ways = 20;
    ck_assert_str_eq(
        why(d),
        "the declared size is no whole number of sets of 20 ways of 64 bytes, so one of them is "
        "not right");
    d.ways = 0; /* not said */
    ck_assert_ptr_null(strstr(why(d), "whole number"));
    d = sizes(24 * MIB, 143 * MIB / 4); /* 35.75 MiB: 26 slices of 11 ways */
    d.line_bytes = 64;
    d.ways = 11;
    ck_assert_ptr_null(strstr(why(d), "whole number"));
}

TEST(the_next_power_of_two_may_be_rounding)
{
    ck_assert_str_eq(
        why(sizes(24 * MIB, 32 * MIB)),
        "the declared size is the power of two next to the measured one and may be rounded");
    ck_assert_str_eq(
        why(sizes(20 * MIB, 16 * MIB)),
        "the declared size is the power of two next to the measured one and may be rounded");
    ck_assert_str_eq(
        why(sizes(32 * MIB, 36 * MIB)),
        "the measured size is the power of two next to the declared one and may be rounded");
    ck_assert_ptr_null(strstr(why(sizes(8 * MIB, 32 * MIB)), "power of two")); /* both are */
    ck_assert_ptr_null(
        strstr(why(sizes(12 * MIB, 32 * MIB)), "power of two")); /* 16 lies between */
    ck_assert_ptr_null(strstr(why(sizes(20 * MIB, 36 * MIB)), "power of two"));
}

TEST(neighbours_need_a_virtual_machine_or_load)
{
    struct disagreement d = sizes(20 * MIB, 36 * MIB);
    d.virtual = true;
    ck_assert_str_eq(why(d), "a virtual machine is told the size of its host's cache, part of "
                             "which neighbours may hold");
    d.busy = true;
    ck_assert_ptr_nonnull(
        strstr(why(d), "; other programs ran on this machine and may hold part of it"));
    d.virtual = false;
    ck_assert_str_eq(why(d), "other programs ran on this machine and may hold part of it");
    d.level = 2; /* of one core alone */
    ck_assert_ptr_null(strstr(why(d), "other programs"));
    d.shared = true;
    ck_assert_ptr_nonnull(strstr(why(d), "other programs"));
    d.measured_bytes = 50 * MIB; /* neighbours take, they do not give */
    ck_assert_ptr_null(strstr(why(d), "other programs"));
}

TEST(an_exclusive_cache_holds_more_than_its_size)
{
    struct disagreement d = sizes(40 * MIB, 36 * MIB);
    d.measured_bytes = 6 * MIB;
    d.declared_bytes = 5 * MIB;
    d.before_bytes = MIB;
    ck_assert_str_eq(
        why(d), "it is as much as the level before it and the declared size together, so it may be "
                "exclusive and hold what the 1 MiB do not");
    d.measured_bytes = 10 * MIB;
    ck_assert_ptr_null(strstr(why(d), "exclusive"));
    d.before_bytes = 32 * KIB; /* too little to tell */
    d.measured_bytes = 5600 * KIB;
    ck_assert_ptr_null(strstr(why(d), "exclusive"));
}

TEST(a_virtual_machine_may_be_told_too_little)
{
    struct disagreement d = sizes(36 * MIB, 20 * MIB);
    d.virtual = true;
    ck_assert_str_eq(why(d), "a virtual machine may be told of other caches than its host has");
}

/* -- resctrl -- */

static struct resctrl_share share;

static void put_group(const char *name, const char *tasks, const char *cpus, const char *schemata)
{
    static const char *const files[] = {"tasks", "cpus_list", "schemata"};
    const char *const texts[] = {tasks, cpus, schemata};
    for (size_t i = 0; i < 3; i++) {
        char path[256];
        snprintf(path, sizeof path, "/sys/fs/resctrl/%s/%s", name, files[i]);
        put_file(root, path, texts[i]);
    }
}

static void put_resctrl(void)
{
    char path[128];
    root = scratch_folder();
    put_smt_machine(root);
    for (int pu = 0; pu < 8; pu++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index3/id", pu);
        put_file(root, path, pu % 4 < 2 ? "0\n" : "1\n");
    }
    put_file(root, "/sys/fs/resctrl/info/L3/cbm_mask", "7ff\n");
    put_group(".", "1\n40\n", "0,4-7\n", "    MB:0=100;1=100\n    L3:0=7ff;1=7ff\n");
    put_group("batch", "41\n420\n42\n", "\n", "    L3:0=00f;1=003\n");
    put_group("isolated", "\n", "1-3\n", "    L3:0=700;1=7e0\n");
    put_group("mon_groups", "40\n", "\n", "    L3:0=001;1=001\n");
}

TEST(the_group_of_the_task_comes_before_that_of_the_pu)
{
    put_resctrl();
    ck_assert_int_eq(probe_resctrl_share(root, 42, 0, 3, &share), 0);
    ck_assert(share.parts == 4 && share.of == 11);
    ck_assert_int_eq(probe_resctrl_share(root, 42, 3, 3, &share), 0); /* the other cache */
    ck_assert(share.parts == 2 && share.of == 11);
    ck_assert_int_eq(probe_resctrl_share(root, 40, 1, 3, &share), 0);
    ck_assert(share.parts == 3 && share.of == 11);
    ck_assert_int_eq(probe_resctrl_share(root, 40, 0, 3, &share), 0);
    ck_assert(share.parts == 11 && share.of == 11);
}

TEST(data_has_a_mask_of_its_own)
{
    put_resctrl();
    put_file(root, "/sys/fs/resctrl/info/L3DATA/cbm_mask", "fffff\n");
    put_file(root, "/sys/fs/resctrl/schemata", "L3DATA:0=0ffff;1=fffff\nL3CODE:0=f;1=f\n");
    char path[256];
    snprintf(path, sizeof path, "%s/sys/fs/resctrl/info/L3/cbm_mask", root);
    remove(path);
    ck_assert_int_eq(probe_resctrl_share(root, 40, 0, 3, &share), 0);
    ck_assert(share.parts == 16 && share.of == 20);
}

TEST(what_resctrl_does_not_say_is_not_known)
{
    put_resctrl();
    ck_assert_int_eq(probe_resctrl_share(root, 40, 0, 2, &share), -ENOENT);
    ck_assert_int_eq(probe_resctrl_share("/nonexistent", 40, 0, 3, &share), -ENOENT);
    put_file(root, "/sys/fs/resctrl/schemata", "L3:4=7ff\n");
    ck_assert_int_eq(probe_resctrl_share(root, 40, 0, 3, &share), -EINVAL);
}

/* -- where the evidence comes from -- */

static struct profile_class node_class;
static struct probe_cache caches;
static struct probe_sharing sharing;

/* One L3 of 11 MiB, declared for each of two pairs of PUs; `measured`, shared by all four. */
static const char *note_of(uint64_t measured, const struct disagreement_machine *machine,
                           bool pairs)
{
    static double tried[] = {4096, 8192};
    node_class =
        (struct profile_class){.caches = calloc(1, sizeof *node_class.caches), .cache_count = 1};
    struct profile_cache *declared = &node_class.caches[0];
    *declared =
        (struct profile_cache){.level = 3, .size_bytes = 11 * MIB, .declared_size_bytes = 11 * MIB};
    declared->sharing.groups = calloc(2, sizeof *declared->sharing.groups);
    declared->sharing.group_count = 2;
    ck_assert_int_eq(profile_set_parse("0-1", &declared->sharing.groups[0]), 0);
    ck_assert_int_eq(profile_set_parse("2-3", &declared->sharing.groups[1]), 0);
    caches = (struct probe_cache){.count = 1, .curve = {.bytes = tried, .count = 2}};
    caches.levels[0] = (struct probe_cache_level){
        .size_bytes = measured, .low_bytes = measured, .high_bytes = measured};
    sharing = (struct probe_sharing){.count = 1, .levels = {{.measured = 1, .pairs = 1}}};
    struct profile_relation *found = &sharing.levels[0].sharing;
    if (!pairs) {
        found->groups = calloc(1, sizeof *found->groups);
        found->group_count = 1;
        ck_assert_int_eq(profile_set_parse("0-3", &found->groups[0]), 0);
    }
    ck_assert_int_eq(probe_result_set_caches(&node_class, &caches, &sharing, machine), 0);
    ck_assert_uint_eq(node_class.caches[0].declared_size_bytes, 11 * MIB);
    ck_assert_uint_eq(node_class.caches[0].size_bytes, measured);
    free(said);
    said =
        node_class.caches[0].quality.note ? strdup(node_class.caches[0].quality.note) : strdup("");
    probe_result_free_cache(&node_class.caches[0]);
    free(node_class.caches);
    return said;
}

TEST(the_note_of_a_level_has_the_evidence)
{
    struct disagreement_machine machine = {.pu = 2};
    put_resctrl();
    ck_assert_str_eq(note_of(22 * MIB, &machine, false),
                     "measured 22 MiB, declared 11 MiB: 2 declared caches, of that size each, were "
                     "found to be one");
    ck_assert_str_eq(note_of(5632 * KIB, &machine, true),
                     "measured 5.5 MiB, declared 11 MiB: declared is the sum of 2 caches, which "
                     "were found apart");
    machine.root = root;
    machine.task = 42;
    ck_assert_str_eq(note_of(2 * MIB, &machine, false),
                     "measured 2 MiB, declared 11 MiB: 2 of 11 ways are allocated to this task by "
                     "resctrl: 2 MiB");
    ck_assert_str_eq(note_of(11 * MIB, &machine, false), "");
}
