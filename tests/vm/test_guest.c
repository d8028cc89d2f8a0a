/* On a machine with 2 packages x 4 cores x 2 threads and 4 NUMA nodes, does every thread of OpenMP,
 * MPI and hybrid programs get the PU that servet-map names, with no two workers on one core while
 * cores are free, ranks inside NUMA nodes, and nothing on an offline CPU or outside the process's
 * cpuset?
 *
 *     test_guest openmpi|mpich      whose ranks, those of Open MPI in memory priority, of MPICH in
 *                                   communication
 * priority
 *
 * Runs inside the guest (see `guest`), as root. */
#include <sys/stat.h>

#include "probes/machine.h"
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"
#include "tests/vm/truth.h"

enum { CORES = 8, PUS = 16, NODES = 4, PUS_OF_NODE = 4 };

/* Spawning takes 0.1 s and a launcher of 8 ranks 6 s in an emulated machine; this many times
 * more. */
#define TEST_LIMIT_SECONDS 120

static const char *library = "openmpi"; /* one for each boot: launchers are slow here */

static const struct {
    const char *option, *variable;
} priorities[] = {{"--mem-prior", "SERVET_MEM_PRIOR=1"}, {"--comm-prior", "SERVET_COMM_PRIOR=1"}};
enum { PRIORITIES = sizeof priorities / sizeof priorities[0] };

static const char *const openmp_programs[] = {PROGRAMS "/openmp_gcc", PROGRAMS "/openmp_clang"};
enum { RUNTIMES = sizeof openmp_programs / sizeof openmp_programs[0] };

static const char *number(size_t value)
{
    return formatted("%zu", value);
}

/* Runs an OpenMP program of `threads` threads; `prefix`, if not NULL, is a command that goes before
 * it. */
static void run_openmp(const char *program, size_t threads, const char *priority,
                       const char *const *prefix)
{
    const char *argv[8];
    size_t words = 0;
    const char *count = formatted("OMP_NUM_THREADS=%zu", threads);
    for (; prefix && prefix[words]; words++) {
        argv[words] = prefix[words];
    }
    argv[words++] = program;
    argv[words] = NULL;
    /* Threads that spin while they wait would take the few real CPUs from those that work. */
    child_run_preloaded(&child, ARGV(count, priority, "OMP_WAIT_POLICY=passive"), argv);
}

/* By /sys alone: no two workers share a core while cores are free, and two are in memory priority
 * on different packages, in communication priority in one NUMA node. */
static void expect_sense(const uint32_t *pus, size_t threads, size_t priority)
{
    const struct truth_place one = truth_place_of(pus[0]), other = truth_place_of(pus[1]);
    ck_assert_uint_eq(truth_cores(pus, threads), threads < CORES ? threads : CORES);
    ck_assert_msg(threads > 2 ||
                      (priority == 0 ? one.package != other.package : one.node == other.node),
                  "PUs %u and %u for two workers", pus[0], pus[1]);
}

static void expect_openmp(size_t runtime, size_t threads, size_t priority, const char *cpuset,
                          const char *const *prefix)
{
    struct truth_map map;
    if (!is_built(openmp_programs[runtime])) {
        return;
    }
    run_openmp(openmp_programs[runtime], threads, priorities[priority].variable, prefix);
    truth_ask_map(&map, ARGV("-n", number(threads), priorities[priority].option,
                             cpuset ? "--cpuset" : NULL, cpuset));
    truth_expect(&child, &map, 1, threads);
    if (!cpuset) {
        expect_sense(map.pus, threads, priority);
    }
}

/* -- the machine -- */

TEST(the_guest_is_the_machine_that_the_tests_need)
{
    uint32_t all[PUS];
    for (uint32_t i = 0; i < PUS; i++) {
        all[i] = i;
    }
    ck_assert_int_eq(sysconf(_SC_NPROCESSORS_ONLN), PUS);
    ck_assert_uint_eq(truth_cores(all, PUS), CORES);
    ck_assert_uint_eq(truth_nodes(all, PUS), NODES);
}

/* Two long texts: the first difference is printed, with what stands before it. */
static void expect_same(const char *a, const char *b)
{
    size_t same = 0;
    while (a[same] && a[same] == b[same]) {
        same++;
    }
    const size_t before = same < 300 ? same : 300;
    ck_assert_msg(strcmp(a, b) == 0, "expected %.500s\n\ngot %.500s", b + same - before,
                  a + same - before);
}

/* The shim reads /sys itself, the commands ask hwloc: without a profile both must see the same
 * machine, but for devices, which only hwloc reads. */
static void expect_one_topology(size_t pus)
{
    struct servet_profile *sysfs, *hwloc = described(NULL);
    struct servet_error error;
    ck_assert_msg(profile_from_sysfs("", &sysfs, &error) == 0, "%s", error.text);
    hwloc->classes[0].device_count = 0;
    expect_same(in_json(named(kept(sysfs))), in_json(hwloc));
    ck_assert_uint_eq(sysfs->classes[0].pus.count, pus);
}

TEST(without_a_profile_sysfs_and_hwloc_tell_the_same)
{
    expect_one_topology(PUS);
}

/* MiB of this process's memory on each node: the kernel's accounts of its mappings. */
static void count_memory(double *mib)
{
    char line[4096];
    FILE *file = fopen("/proc/self/numa_maps", "r");
    ck_assert_ptr_nonnull(file);
    memset(mib, 0, NODES * sizeof *mib);
    while (fgets(line, sizeof line, file)) {
        double page_kib = 4;
        const char *size = strstr(line, "kernelpagesize_kB=");
        if (size) {
            page_kib = strtod(size + strlen("kernelpagesize_kB="), NULL);
        }
        for (unsigned node = 0; node < NODES; node++) {
            const char *key = formatted(" N%u=", node);
            const char *count = strstr(line, key);
            mib[node] += count ? strtod(count + strlen(key), NULL) * page_kib / 1024 : 0;
        }
    }
    fclose(file);
}

/* From PU 0, of node 0, to each node. */
TEST(what_the_probes_measure_on_a_node_is_on_that_node)
{
    enum { MIB = 8 };
    FREED_BY(probe_machine_close) struct machine machine;
    struct servet_error error;
    FREED_BY(profile_set_free) struct profile_set pus;
    ck_assert_int_eq(profile_set_parse("0", &pus), 0);
    ck_assert_msg(probe_machine_open_native(&pus, NULL, &machine, &error) == 0, "%s", error.text);
    for (int32_t node = 0; node < NODES; node++) {
        const struct machine_copy copy = {.bytes = MIB << 20, .passes = 1, .numa = node};
        const struct machine_traversal chase = {.bytes = MIB << 20,
                                                .stride_bytes = 256,
                                                .order = MACHINE_CHASE,
                                                .on_node = true,
                                                .numa = node,
                                                .seed = 1};
        double value, before[NODES], after[NODES];
        count_memory(before);
        ck_assert_int_eq(probe_machine_copy(&machine, &copy, pus.ids, 1, &value), 0);
        ck_assert_int_eq(probe_machine_traverse(&machine, &chase, pus.ids, 1, &value), 0);
        count_memory(after);
        ck_assert_msg(after[node] - before[node] > MIB, "node %d: %g MiB, then %g", node,
                      before[node], after[node]);
    }
}

/* -- threads -- */

TEST(openmp_threads_are_where_servet_map_says, .loops = 4)
{
    static const size_t threads[] = {2, 5, CORES, PUS};
    for (size_t runtime = 0; runtime < RUNTIMES; runtime++) {
        for (size_t priority = 0; priority < PRIORITIES; priority++) {
            expect_openmp(runtime, threads[_i], priority, NULL, NULL);
        }
    }
}

TEST(posix_threads_are_where_servet_map_says)
{
    struct truth_map map;
    for (size_t priority = 0; priority < PRIORITIES; priority++) {
        child_run_preloaded(&child, ARGV(RANK, priorities[priority].variable),
                            ARGV(PROGRAMS "/pthreads", "11"));
        truth_ask_map(&map, ARGV("-n", "12", "--one-by-one", priorities[priority].option));
        truth_expect(&child, &map, 1, 12);
    }
}

/* -- what may be used -- */

static void switch_all_cpus_on(void)
{
    for (uint32_t cpu = 1; cpu < PUS; cpu++) { /* CPU 0 cannot be switched off */
        truth_write(formatted("/sys/devices/system/cpu/cpu%u/online", cpu), "1");
    }
}

/* Switches off a CPU that a team of 8 uses while it is there. */
static void switch_one_cpu_off(void)
{
    struct truth_map all;
    switch_all_cpus_on(); /* whatever became of the test before */
    truth_ask_map(&all, ARGV("-n", number(CORES)));
    truth_write(formatted("/sys/devices/system/cpu/cpu%u/online", all.pus[CORES / 2]), "0");
}

/* Not in one test with the others: hwloc leaves the process with a mask without that CPU, for when
 * it is back too. */
TEST(an_offline_cpu_is_in_no_topology)
{
    switch_one_cpu_off();
    expect_one_topology(PUS - 1);
    switch_all_cpus_on();
}

TEST(an_offline_cpu_gets_nobody)
{
    switch_one_cpu_off();
    for (size_t priority = 0; priority < PRIORITIES; priority++) {
        expect_openmp(priority, CORES, priority, NULL, NULL);
    }
    expect_openmp(0, PUS - 1, 0, NULL, NULL);
    switch_all_cpus_on();
    expect_openmp(0, CORES, 0, NULL, NULL);
}

TEST(an_affinity_mask_is_respected)
{
    const char *mask = "3,5-10";
    for (size_t priority = 0; priority < PRIORITIES; priority++) {
        expect_openmp(0, 3, priority, mask, ARGV("taskset", "-c", mask));
        expect_openmp(1, 7, priority, mask, ARGV("taskset", "-c", mask));
    }
}

TEST(a_cpuset_is_respected)
{
    const char *folder = "/sys/fs/cgroup/half", *cpus = "1-2,6-9,14";
    mkdir(folder, 0755);
    truth_write(formatted("%s/cpuset.cpus", folder), cpus);
    const char *enter = formatted("echo $$ >%s/cgroup.procs && exec \"$@\"", folder);
    for (size_t priority = 0; priority < PRIORITIES; priority++) {
        expect_openmp(0, 5, priority, cpus, ARGV("/bin/sh", "-c", enter, "sh"));
    }
}

/* -- ranks -- */

static bool is_open_mpi(void)
{
    return strcmp(library, "openmpi") == 0;
}

static const char *priority_of_ranks(void)
{
    return priorities[is_open_mpi() ? 0 : 1].option;
}

/* Runs `ranks` ranks of one of the library's programs, each below servet-pin; false where that was
 * not built. */
static bool run_ranks(const char *name, size_t ranks, size_t threads)
{
    const char *argv[24];
    size_t words = 0;
    const char *program = formatted("%s/%s_%s", PROGRAMS, library, name);
    const char *launcher = formatted("mpirun.%s", library);
    const char *count = formatted("OMP_NUM_THREADS=%zu", threads);
    if (!is_built(program)) {
        return false;
    }
    argv[words++] = launcher;
    if (is_open_mpi()) { /* what an emulated machine starts fastest with */
        const char *const faster[] = {"--mca",          "pml", "ob1", "--mca", "btl", "vader,self",
                                      "--oversubscribe"};
        memcpy(argv + words, faster, sizeof faster);
        words += sizeof faster / sizeof faster[0];
    }
    const char *const rest[] = {"-n", number(ranks), SERVET_PIN, priority_of_ranks(),
                                "--", program,       NULL};
    memcpy(argv + words, rest, sizeof rest);
    if (threads > 1) {
        child_run(&child, ARGV(count, "OMP_WAIT_POLICY=passive"), argv);
    } else {
        child_run(&child, NULL, argv);
    }
    return true;
}

/* The number of threads, helpers of the library too, that may use more than one PU. */
static size_t wide_masks(void)
{
    size_t wide = 0;
    for (const char *line = strstr(child.out, "mask "); line; line = strstr(line + 1, "mask ")) {
        char pus[256];
        if (sscanf(line, "mask %*d %*d %255s", pus) == 1 && strpbrk(pus, ",-")) {
            wide++;
        }
    }
    return wide;
}

/* Half as many ranks as cores, so that each has several PUs: its worker gets one, the helpers keep
 * all. */
TEST(ranks_are_where_servet_map_says)
{
    struct truth_map map;
    size_t ranks = CORES / 2;
    if (!run_ranks("ranks", ranks, 1)) {
        return;
    }
    truth_ask_map(&map, ARGV("-n", number(ranks), priority_of_ranks()));
    truth_expect(&child, &map, ranks, 1);
    ck_assert_uint_eq(truth_cores(map.pus, ranks), ranks);
    ck_assert_msg(wide_masks() >= ranks, "helpers are confined to one PU:\n%s", child.out);
}

TEST(domains_of_hybrid_ranks_are_inside_numa_nodes)
{
    struct truth_map map;
    /* All PUs, or two cores for each of three ranks. */
    size_t ranks = is_open_mpi() ? NODES : 3, threads = is_open_mpi() ? PUS_OF_NODE : 2;
    if (!run_ranks("hybrid", ranks, threads)) {
        return;
    }
    truth_ask_map(&map, ARGV("-r", number(ranks), "-t", number(threads), priority_of_ranks()));
    truth_expect(&child, &map, ranks, threads);
    for (size_t rank = 0; rank < ranks; rank++) {
        ck_assert_uint_eq(truth_nodes(map.pus + rank * threads, threads), 1);
    }
}

/* -- memory -- */

enum { PAGES = 256 }; /* as `pages` touches */

/* The kernel's own balancing takes pages away for a moment to see who wants them, and would move
 * them. */
static void switch_balancing_off(void)
{
    truth_write("/proc/sys/kernel/numa_balancing", "0");
}

/* Rank 1 of `ranks`, each with all PUs of a part of the machine, has touched memory on a node that
 * is none of its own; nodes[] gets those of its domain. */
static void run_pages(size_t ranks, const char *membind, uint32_t *nodes, uint32_t *foreign)
{
    struct truth_map map;
    size_t each = PUS / ranks, count = 0;
    switch_balancing_off();
    truth_ask_map(&map, ARGV("-r", number(ranks), "-t", number(each)));
    for (size_t i = 0; i < each; i++) {
        uint32_t node = truth_place_of(map.pus[each + i]).node;
        if (count == 0 || (nodes[0] != node && count < NODES / ranks)) {
            nodes[count++] = node;
        }
    }
    ck_assert_uint_eq(count, NODES / ranks);
    for (*foreign = 0; *foreign == nodes[0] || *foreign == nodes[count - 1];) {
        ++*foreign;
    }
    const char *size = formatted("OMPI_COMM_WORLD_LOCAL_SIZE=%zu", ranks);
    run_preloaded(
        ARGV("OMPI_COMM_WORLD_LOCAL_RANK=1", size, formatted("OMP_NUM_THREADS=%zu", each), membind),
        ARGV(PROGRAMS "/pages", number(*foreign)), "silent");
}

static void expect_pages(const char *what, uint32_t node, int count)
{
    child_says(&child, "%s %u:%d\n", what, node, count);
}

TEST(local_memory_follows_the_rank)
{
    uint32_t node[NODES], foreign;
    run_pages(NODES, "SERVET_MEMBIND=none", node, &foreign);
    expect_pages("early", foreign, PAGES);
    run_pages(NODES, "SERVET_MEMBIND=local", node, &foreign);
    expect_pages("early", node[0], PAGES);
    expect_pages("fresh", node[0], PAGES);
}

TEST(interleaved_memory_is_spread_over_the_domain)
{
    uint32_t node[NODES], foreign;
    run_pages(NODES / 2, "SERVET_MEMBIND=interleave", node, &foreign);
    expect_pages("early", foreign, PAGES);
    uint32_t low = node[0] < node[1] ? node[0] : node[1],
             high = node[0] < node[1] ? node[1] : node[0];
    child_says(&child, "fresh %u:%d %u:%d\n", low, PAGES / 2, high, PAGES / 2);
}

/* -- launchers that read what servet-map prints -- */

/* Neighbouring OS indices are far apart in the scattered machine: a launcher that reads them as
 * positions in the topology puts the ranks elsewhere. Each prints "NUMBER: … PU". */
static void expect_ranks(const char *separator, const struct truth_map *map)
{
    ck_assert_msg(child.status == 0, "exit status %d: %s%s", child.status, child.out, child.err);
    for (size_t rank = 0; rank < map->count; rank++) {
        child_says(&child, "%zu: Cpus_allowed_list:%s%u\n", rank, separator, map->pus[rank]);
    }
}

TEST(open_mpi_reads_a_rankfile_by_os_index)
{
    struct truth_map map;
    static const char script[] =
        "file=$(mktemp) && " SERVET_MAP " -n 4 --format rankfile >$file && "
        "mpirun.openmpi --mca rmaps_rank_file_physical 1 --rankfile $file -np 4 /bin/sh -c "
        "'echo \"$OMPI_COMM_WORLD_RANK: $(grep -w Cpus_allowed_list /proc/self/status | tr \"\\t\" "
        "\" \")\"'";
    if (is_open_mpi() || !is_built("/usr/bin/mpirun.openmpi")) {
        return; /* one boot is enough: that of the scattered machine */
    }
    child_run(&child, NULL, ARGV("/bin/sh", "-c", script));
    truth_ask_map(&map, ARGV("-n", "4"));
    expect_ranks(" ", &map);
}

#ifdef SPANK_SERVET
TEST(slurm_reads_map_cpu_by_os_index)
{
    struct truth_map map;
    static const char script[] =
        "srun --label -n 4 -c 4 $(" SERVET_MAP
        " -n 4 --format slurm-map) grep -w Cpus_allowed_list /proc/self/status";
    if (is_open_mpi()) {
        return;
    }
    child_run(&child, NULL, ARGV(SLURM_BED, "/bin/sh", "-c", script));
    if (child.status == 77) {
        fprintf(stderr, "not checked: %s", child.out);
        return;
    }
    truth_ask_map(&map, ARGV("-n", "4"));
    expect_ranks("\t", &map);
}

/* Four tasks with four threads each on 16 PUs: domains inside the step, each in a NUMA node,
 * threads in order. */
TEST(tasks_of_a_slurm_step_are_where_servet_map_says)
{
    struct truth_map map;
    static const char script[] =
        "echo required " SPANK_SERVET " shim=" SERVET_SHIM " >$BED_PLUGSTACK && "
        "OMP_NUM_THREADS=4 srun --label -n 4 -c 4 --servet=mem " PROGRAMS "/openmp_gcc";
    if (strcmp(library, "openmpi") != 0 || !is_built(PROGRAMS "/openmp_gcc")) {
        return; /* one boot is enough */
    }
    child_run(&child, ARGV("OMP_WAIT_POLICY=passive"), ARGV(SLURM_BED, "/bin/sh", "-c", script));
    if (child.status == 77) {
        fprintf(stderr, "not checked: %s", child.out);
        return;
    }
    ck_assert_msg(child.status == 0, "exit status %d: %s%s", child.status, child.out, child.err);
    truth_ask_map(&map, ARGV("-r", number(NODES), "-t", number(PUS_OF_NODE)));
    for (size_t i = 0; i < map.count; i++) {
        child_says(&child, "%zu: worker 0 %zu %u ", i / PUS_OF_NODE, i % PUS_OF_NODE, map.pus[i]);
    }
}
#endif

TESTS(.seconds = TEST_LIMIT_SECONDS)

int main(int argc, char **argv)
{
    if (argc > 1) {
        library = argv[1];
    }
    return run_registered();
}
