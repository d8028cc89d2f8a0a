/* Are domains of memory found that are declared wrongly, or not at all, and which PUs share a core?
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/base/runner.h"
#include "tests/probes/sets/machine.h"

static void pair_up(struct profile_relation *out, size_t count, uint32_t (*other)(uint32_t, size_t))
{
    out->groups = calloc(count, sizeof *out->groups);
    for (uint32_t pu = 0; pu < count; pu++) {
        const uint32_t pair[] = {pu, other(pu, count)};
        if (pair[0] < pair[1]) {
            struct profile_set *group = &out->groups[out->group_count++];
            ck_assert_int_eq(profile_set_from_array(pair, 2, group), 0);
        }
    }
}

static uint32_t neighbour(uint32_t pu, size_t count)
{
    (void)count;
    return pu ^ 1;
}

/* Half of the machine away, but for four pairs. */
static uint32_t far_one(uint32_t pu, size_t count)
{
    return pu % 32 < 2 ? pu ^ 1 : (uint32_t)((pu + count / 2) % count);
}

/* The one as far from the end. */
static uint32_t far_from(uint32_t pu, size_t count)
{
    return (uint32_t)count - 1 - pu;
}

static void mislead_caches(struct profile_class *declared)
{
    struct profile_relation *last = &declared->caches[declared->cache_count - 1].sharing;
    hide(declared);
    pair_up(last, declared->pus.count, neighbour);
}

/* Packages of every second PU, and caches of neighbours: as broken firmware says it. */
static void mislead(struct profile_class *declared)
{
    uint32_t ids[2][1024];
    size_t count[2] = {0};
    mislead_caches(declared);
    for (size_t i = 0; i < declared->pus.count; i++) {
        ids[i % 2][count[i % 2]++] = declared->pus.ids[i];
    }
    declared->packages.groups = calloc(2, sizeof *declared->packages.groups);
    declared->packages.group_count = 2;
    for (size_t p = 0; p < 2; p++) {
        ck_assert_int_eq(profile_set_from_array(ids[p], count[p], &declared->packages.groups[p]),
                         0);
    }
}

static void mislead_cores(struct profile_class *declared)
{
    hide(declared);
    pair_up(&declared->cores, declared->pus.count, far_one);
}

/* Cores and the last cache of PUs that lie apart. */
static void mislead_siblings(struct profile_class *declared)
{
    mislead_caches(declared);
    pair_up(&declared->cores, declared->pus.count, far_from);
}

/* Hidden and wrong topologies lead to the same bandwidth for every number of workers. */
TEST(structure_hidden_or_declared_wrongly_changes_no_bandwidth)
{
    static const char *const names[] = {"epyc-7402", "epyc-2-sockets", "xeon-snc4", "two-packages"};
    void (*const changes[])(struct profile_class *) = {hide, mislead};
    double expected[16];
    size_t counts[16];
    for (size_t m = 0; m < sizeof names / sizeof *names; m++) {
        size_t known = 0, pus;
        probe_it(names[m], NULL, PROBE_MEMORY | PROBE_MESSAGE);
        pus = machine.pus.count;
        for (size_t n = 1; n <= pus; n *= 2) {
            counts[known] = n;
            expected[known++] = mapped(n);
        }
        close_it();
        for (size_t change = 0; change < 2; change++) {
            probe_it(names[m], changes[change], PROBE_MEMORY | PROBE_MESSAGE);
            for (size_t k = 0; k < known; k++) {
                double found = mapped(counts[k]);
                ck_assert_msg(found > 0.99 * expected[k], "%s, %s: %zu workers get %.3g, not %.3g",
                              names[m], change ? "wrong" : "hidden", counts[k], found, expected[k]);
            }
            close_it();
        }
    }
}

/* Caches said to be shared by PUs of two packages are no parts of a domain. */
TEST(groups_that_cross_a_measured_level_make_no_level)
{
    probe_it("nehalem", mislead_caches, PROBE_MEMORY | PROBE_MESSAGE);
    ck_assert_uint_eq(profile->classes[0].memory.level_count, 1);
    ck_assert_ptr_nonnull(level_of("0,2,4,6"));
    close_it();
}

/* Few of the pairs declared as cores collide, or none of the sample does: then the declaration is
 * wrong for the others, too. */
TEST(a_class_of_pairs_that_fails_leaves_no_other_trusted)
{
    for (run_seed = 1; run_seed <= 8; run_seed++) {
        probe_it("superdome", mislead_cores, PROBE_MEMORY | PROBE_MESSAGE);
        const struct profile_memory_level *cells = level_of("0-3"), *outer = level_of("120-127");
        ck_assert_msg(cells && outer && profile->classes[0].memory.level_count == 2, "seed %d",
                      (int)run_seed);
        ck_assert_uint_eq(cells->collisions.group_count, 32);
        ck_assert_uint_eq(outer->collisions.group_count, 16);
        close_it();
    }
    run_seed = 1;
}

static void declare_neighbours(struct profile_class *declared)
{
    hide(declared);
    pair_up(&declared->cores, declared->pus.count, neighbour);
}

/* As a guest of two threads a core may say it: neighbours, who do not collide and share no core.
 * One worker of two filled no node of this Xeon, and of cells of four PUs none was a level. */
TEST(neighbours_whose_pairs_are_clear_are_no_threads_of_one_core)
{
    for (run_seed = 1; run_seed <= 4; run_seed++) {
        probe_it("xeon-snc4", declare_neighbours, PROBE_MEMORY | PROBE_MESSAGE);
        ck_assert_msg(level_of("0-7") && level_of("56-63"), "seed %d", (int)run_seed);
        ck_assert_double_ge(mapped(16), 0.99 * 2.24e11);
        close_it();
        probe_it("epyc-2-sockets", declare_neighbours, PROBE_MEMORY | PROBE_MESSAGE);
        ck_assert_msg(level_of("0-3") && level_of("60-63"), "seed %d", (int)run_seed);
        close_it();
    }
    run_seed = 1;
}

/* 60 cores of two PUs in two packages. One pair of siblings is among the few pairs that are
 * measured first. */
static void open_siblings(const char *core_bytes_per_s)
{
    enum { SIBLINGS = 60 };
    char cores[1 << 10] = "";
    for (size_t core = 0, used = 0; core < SIBLINGS; core++) {
        used +=
            (size_t)sprintf(cores + used, "%s'%zu,%zu'", core ? ", " : "", core, core + SIBLINGS);
    }
    open_machine_with(
        &machine, 1,
        "{'servet_machine': 1, 'pus': '0-119', " SOME_CACHE ", 'memory': {'seconds': 1e-7, "
        "'pu_bytes_per_s': 1.2e10, 'domains': [{'bytes_per_s': %s, 'groups': [%s]}, "
        "{'bytes_per_s': 1e11, 'groups': ['0-29,60-89', '30-59,90-119']}]}, 'layers': [{'seconds': "
        "1e-7, 'bytes_per_s': 2e10, 'groups': [%s]}, {'seconds': 9e-7, 'bytes_per_s': 5e9, "
        "'groups': ['0-119']}]}",
        core_bytes_per_s, cores, cores);
}

/* Returns the seconds that it took, on the machine's clock. */
static double all_siblings_are_found(void)
{
    probe_opened(PROBE_MEMORY | PROBE_MESSAGE);
    const struct profile_memory *memory = &profile->classes[0].memory;
    ck_assert_uint_eq(memory->level_count, 2);
    ck_assert_uint_eq(memory->levels[0].collisions.group_count, 60);
    ck_assert_uint_eq(memory->levels[1].collisions.group_count, 2);
    const double seconds = profile->seconds;
    close_it();
    return seconds;
}

TEST(one_pair_of_siblings_does_not_hide_the_others)
{
    open_siblings("1.2e10");
    all_siblings_are_found();
}

static uint32_t sibling(uint32_t pu, size_t count)
{
    return (uint32_t)((pu + count / 2) % count);
}

/* Two threads that get a third more than one collide: they are of one core, as declared. Twice as
 * many workers as cores took 4.4 s, and said the same. */
TEST(threads_that_add_something_are_of_one_core)
{
    for (run_seed = 1; run_seed <= 3; run_seed++) {
        open_siblings("1.6e10");
        pair_up(&machine.declared->classes[0].cores, machine.pus.count, sibling);
        ck_assert_double_le(all_siblings_are_found(), 3.8);
    }
    run_seed = 1;
}

/* Threads of cores are declared of PUs that are not together, and none of the few pairs that are
 * measured happens to say so (with these seeds): what the messages tell is tried all the same. */
TEST(messages_that_cross_the_declared_cores_are_believed)
{
    for (run_seed = 1; run_seed <= 3; run_seed++) {
        open_siblings("1.2e10");
        struct profile_class *declared = &machine.declared->classes[0];
        hide(declared);
        pair_up(&declared->cores, declared->pus.count, far_from);
        all_siblings_are_found();
    }
    run_seed = 1;
}

/* 4 fast and 8 slow cores of two PUs, whose threads are declared of other PUs. Where no pair of
 * siblings is among those that are measured first, as with the last of these seeds, the fast cores'
 * L3 is a level before the siblings are tried, of which messages tell those of all cores. */
TEST(siblings_of_fast_cores_are_found_inside_their_cache)
{
    static const char cores[] = "'0,12', '1,13', '2,14', '3,15', '4,16', '5,17', '6,18', '7,19', "
                                "'8,20', '9,21', '10,22', '11,23'";
    for (run_seed = 14; run_seed <= 16; run_seed++) {
        open_machine_with(
            &machine, run_seed,
            "{'servet_machine': 1, 'pus': '0-23', 'caches': [{'level': 1, 'size_bytes': 32768, "
            "'ways': 8, 'seconds': 1e-9}, {'level': 3, 'pus': '0-3,12-15', 'size_bytes': 16777216, "
            "'ways': 16, 'seconds': 1e-8, 'groups': ['0-3,12-15']}], 'memory': {'seconds': 1e-7, "
            "'pu_bytes_per_s': 4e10, 'domains': [{'bytes_per_s': 4e10, 'groups': [%s]}, "
            "{'bytes_per_s': 6e10, 'groups': ['0-3,12-15', '4-11,16-23']}]}, 'kinds': [{'pus': "
            "'0-3,12-15', 'efficiency': 1, 'pu_bytes_per_s': 4e10}, {'pus': '4-11,16-23', "
            "'efficiency': 0, 'pu_bytes_per_s': 2.4e10}], 'layers': [{'seconds': 1e-7, "
            "'bytes_per_s': 2e10, 'groups': [%s]}, {'seconds': 2e-7, 'bytes_per_s': 1e10, "
            "'groups': ['0-3,12-15', '4-11,16-23']}, {'seconds': 9e-7, 'bytes_per_s': 3e9, "
            "'groups': ['0-23']}]}",
            cores, cores);
        pair_up(&machine.declared->classes[0].cores, 24, far_from);
        probe_opened(PROBE_MEMORY | PROBE_MESSAGE);
        ck_assert_ptr_nonnull(level_of("0,12"));
        ck_assert_ptr_nonnull(level_of("0-3,12-15"));
        ck_assert_double_ge(mapped(2), 0.99 * 60e9);
        close_it();
    }
    run_seed = 1;
}

/* Threads of a core that their pairs showed are no workers of their own, whatever is declared: as
 * such they took a third longer than where nothing is, and parts of dies were a level. */
TEST(siblings_that_pairs_show_are_cores_though_others_are_declared)
{
    double hidden = 0, wrong = 0;
    for (run_seed = 2; run_seed <= 6; run_seed++) {
        probe_it("epyc-7402", hide, PROBE_MEMORY | PROBE_MESSAGE);
        hidden += profile->seconds;
        close_it();
        probe_it("epyc-7402", mislead_siblings, PROBE_MEMORY | PROBE_MESSAGE);
        wrong += profile->seconds;
        ck_assert_msg(profile->classes[0].memory.level_count == 3, "seed %d", (int)run_seed);
        ck_assert_uint_eq(level_of("0-5,24-29")->collisions.group_count, 4);
        close_it();
    }
    ck_assert_double_le(wrong, 1.1 * hidden);
    run_seed = 1;
}

/* Four packages of eight cores of two threads, of which only wrong cores are declared. A search
 * among all PUs before what messages tell was tried left no level of the cores with one of these
 * seeds. */
TEST(what_messages_tell_comes_before_a_search_though_others_are_declared)
{
    static const char packages[] = "'0-7,32-39', '8-15,40-47', '16-23,48-55', '24-31,56-63'";
    char cores[512] = "";
    for (unsigned core = 0, at = 0; core < 32; core++) {
        at += (unsigned)sprintf(cores + at, "%s'%u,%u'", core ? ", " : "", core, core + 32);
    }
    for (run_seed = 1; run_seed <= 4; run_seed++) {
        open_machine_with(
            &machine, run_seed,
            "{'servet_machine': 1, 'pus': '0-63', " SOME_CACHE ", 'memory': {'seconds': 1e-7, "
            "'pu_bytes_per_s': 1.2e10, 'domains': [{'bytes_per_s': 1.2e10, 'groups': [%s]}, "
            "{'bytes_per_s': 6.6e10, 'groups': [%s]}]}, 'layers': [{'seconds': 1e-7, "
            "'bytes_per_s': 2e10, 'groups': [%s]}, {'seconds': 5e-7, 'bytes_per_s': 8e9, "
            "'groups': [%s]}, {'seconds': 9e-7, 'bytes_per_s': 5e9, 'groups': ['0-63']}], 'noise': "
            "{'relative': 0.02, 'outlier_probability': 0.03, 'outlier_factor': 3}}",
            cores, packages, cores, packages);
        pair_up(&machine.declared->classes[0].cores, machine.pus.count, far_from);
        probe_opened(PROBE_MEMORY | PROBE_MESSAGE);
        ck_assert_msg(level_of("0,32") && level_of("0-7,32-39"), "seed %d", (int)run_seed);
        ck_assert_uint_eq(profile->classes[0].memory.level_count, 2);
        close_it();
    }
    run_seed = 1;
}

TESTS(.seconds = 100)
