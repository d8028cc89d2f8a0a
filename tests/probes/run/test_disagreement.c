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

/* What was measured and what declared of a level, the most that was measured, and what else is
 * known. */
#define OF_LEVEL(which, measured, declared, most, ...)                                             \
    {                                                                                              \
        .level = (which), .measured_bytes = (measured), .declared_bytes = (declared),              \
        .low_bytes = (measured), .high_bytes = (most), __VA_ARGS__                                 \
    }
#define OF(measured, ...) OF_THIRD(measured, __VA_ARGS__, )
#define OF_THIRD(measured, declared, ...) OF_LEVEL(3, measured, declared, measured, __VA_ARGS__)
#define UNEXPLAINED "nothing that is known of the machine explains it"
#define ALLOCATED "4 of 11 ways are allocated to this task by resctrl: 20 MiB"
#define NEIGHBOURS                                                                                 \
    "a virtual machine is told the size of its host's cache, part of which neighbours may hold"
#define OTHERS "other programs ran on this machine and may hold part of it"
#define ROUNDED(one, other)                                                                        \
    "the " one " size is the power of two next to the " other " one and may be rounded"

static const struct {
    struct disagreement of;
    const char *says; /* the whole explanation; after "not ": this is not in it */
} cases[] = {
    {OF(20 * MIB, 36 * MIB), UNEXPLAINED},
    {OF(36 * MIB, 20 * MIB), UNEXPLAINED},
    /* a declared size within the error of the measurement is said to be */
    {OF_LEVEL(3, 20 * MIB, 24 * MIB, 25 * MIB, .virtual = true),
     "the measurement leaves room for the declared size"},
    {OF_LEVEL(3, 20 * MIB, 24 * MIB, 23 * MIB, .virtual = true), "not leaves room"},
    /* allocated ways account for as much as they are; of less than that somebody else has a part,
     * too; more than declared is not explained by a part of it */
    {OF(20 * MIB, 55 * MIB, .virtual = true, .share = {4, 11}), ALLOCATED},
    {OF(12 * MIB, 55 * MIB, .virtual = true, .share = {4, 11}), ALLOCATED "; " NEIGHBOURS},
    {OF(12 * MIB, 55 * MIB, .virtual = true, .share = {11, 11}), "not resctrl"},
    {OF(66 * MIB, 55 * MIB, .virtual = true, .share = {4, 11}), "not resctrl"},
    {OF(16 * MIB, 32 * MIB, .parts = 2), "declared is the sum of 2 caches, which were found apart"},
    {OF(16 * MIB, 32 * MIB, .parts = 1), "not sum"},
    {OF(16 * MIB, 32 * MIB, .parts = 4), "not sum"},
    {OF(48 * MIB, 16 * MIB, .merged = 3),
     "3 declared caches, of that size each, were found to be one"},
    {OF(48 * MIB, 16 * MIB, .merged = 2), "not found to be one"},
    /* sizes that were not tried cannot be found */
    {OF(32 * KIB, 48 * KIB, .next_bytes = 64 * KIB),
     "no size between the two was tried, only powers of two"},
    {OF(2 * MIB, 5 * MIB / 2, .next_bytes = 3 * MIB), "no size between the two was tried"},
    {OF(2 * MIB, 5 * MIB / 2, .next_bytes = 9 * MIB / 4), "not was tried"},
    {OF(64 * KIB, 48 * KIB, .next_bytes = 128 * KIB), "not was tried"},
    /* a declared size that no sets make; without ways; 35.75 MiB: 26 slices of 11 ways */
    {OF(1280 * KIB, 2000001, .line_bytes = 64, .ways = 20),
     "the declared size is no whole number of sets of 20 ways of 64 bytes, so one of them is not "
     "right"},
    {OF(1280 * KIB, 2000001, .line_bytes = 64), "not whole number"},
    {OF(24 * MIB, 143 * MIB / 4, .line_bytes = 64, .ways = 11), "not whole number"},
    /* the next power of two may be rounding: not where both are, or 16 lies between */
    {OF(24 * MIB, 32 * MIB), ROUNDED("declared", "measured")},
    {OF(20 * MIB, 16 * MIB), ROUNDED("declared", "measured")},
    {OF(32 * MIB, 36 * MIB), ROUNDED("measured", "declared")},
    {OF(8 * MIB, 32 * MIB), "not power of two"},
    {OF(12 * MIB, 32 * MIB), "not power of two"},
    /* neighbours need a virtual machine or load, and more than one core at the cache; they take and
     * do not give */
    {OF(20 * MIB, 36 * MIB, .virtual = true), NEIGHBOURS},
    {OF(20 * MIB, 36 * MIB, .virtual = true, .busy = true), NEIGHBOURS "; " OTHERS},
    {OF(20 * MIB, 36 * MIB, .busy = true), OTHERS},
    {OF_LEVEL(2, 20 * MIB, 36 * MIB, 20 * MIB, .busy = true), "not other programs"},
    {OF_LEVEL(2, 20 * MIB, 36 * MIB, 20 * MIB, .busy = true, .shared = true), OTHERS},
    {OF_LEVEL(2, 50 * MIB, 36 * MIB, 50 * MIB, .busy = true, .shared = true), "not other programs"},
    /* an exclusive cache holds as much as both; 32 KiB are too little to tell */
    {OF(6 * MIB, 5 * MIB, .before_bytes = MIB),
     "it is as much as the level before it and the declared size together, so it may be exclusive "
     "and hold what the 1 MiB do not"},
    {OF(10 * MIB, 5 * MIB, .before_bytes = MIB), "not exclusive"},
    {OF(5600 * KIB, 5 * MIB, .before_bytes = 32 * KIB), "not exclusive"},
    {OF(36 * MIB, 20 * MIB, .virtual = true),
     "a virtual machine may be told of other caches than its host has"},
};

TEST(an_explanation_has_evidence, .loops = sizeof cases / sizeof *cases)
{
    const char *found = why(cases[_i].of), *expected = cases[_i].says;
    if (strncmp(expected, "not ", 4) == 0) {
        ck_assert_msg(!strstr(found, expected + 4), "%s", found);
    } else {
        ck_assert_str_eq(found, expected);
    }
}

TEST(both_sizes_are_said)
{
    why((struct disagreement)OF(36 * MIB, 20 * MIB));
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
                     "found to be one; shared by 0-3 as measured, by 0-1 2-3 as declared");
    ck_assert_str_eq(note_of(5632 * KIB, &machine, true),
                     "measured 5.5 MiB, declared 11 MiB: declared is the sum of 2 caches, which "
                     "were found apart; shared by nobody as measured, by 0-1 2-3 as declared");
    machine.root = root;
    machine.task = 42;
    ck_assert_str_eq(note_of(2 * MIB, &machine, false),
                     "measured 2 MiB, declared 11 MiB: 2 of 11 ways are allocated to this task by "
                     "resctrl: 2 MiB; shared by 0-3 as measured, by 0-1 2-3 as declared");
}

/* A guest's PUs were siblings of one core when they were looked at. */
TEST(sharing_that_is_not_the_declared_one_is_named)
{
    struct disagreement_machine machine = {.pu = 2};
    ck_assert_str_eq(note_of(11 * MIB, &machine, false),
                     "shared by 0-3 as measured, by 0-1 2-3 as declared");
    machine.virtual = true;
    ck_assert_str_eq(
        note_of(11 * MIB, &machine, true),
        "shared by nobody as measured, by 0-1 2-3 as declared: a virtual machine's PUs "
        "move between those of its host, so a later run may find otherwise");
}
