/* Do the launchers and runtimes that are installed understand what servet-map prints, and put
 * processes and threads there? Each is run for real and asked where it ended; one that is not
 * installed is left out by name. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

#define WHERE "grep Cpus_allowed_list /proc/self/status"
#define SLOW "timeout 60 "
/* As --format help says it. */
#define RANKFILE                                                                                   \
    "mpirun.openmpi --use-hwthread-cpus --mca rmaps_rank_file_physical 1 --rankfile $FILE"

/* Two PUs that this process may use. */
static int pus[2];

static int find_pus(void)
{
    cpu_set_t set;
    int count = 0;
    if (sched_getaffinity(0, sizeof set, &set) < 0) {
        return 0;
    }
    for (unsigned i = 0; i < CPU_SETSIZE && count < 2; i++) {
        if (CPU_ISSET(i, &set)) {
            pus[count++] = (int)i;
        }
    }
    return count;
}

struct consumer {
    const char *needs;  /* a command; an absolute path must exist */
    const char *format; /* of servet-map */
    const char *line;   /* $MAP: what servet-map printed; $FILE: a file with it */
};

/* Runs the line by the shell with servet-map's mapping of the PUs `map_options` selects. */
static void assert_ends_on(const struct consumer *consumer, const char *map_options,
                           const char *expected)
{
    if (!is_installed(consumer->needs) ||
        (strncmp(consumer->needs, "mpirun", strlen("mpirun")) == 0 && !has_loopback())) {
        return;
    }
    struct run run = run_command("/bin/sh -c 'FILE=$(mktemp); MAP=$(" SERVET_MAP
                                 " %s --format %s 2>/dev/null); echo \"$MAP\" >$FILE; %s; "
                                 "rm $FILE'",
                                 map_options, consumer->format, consumer->line);
    ck_assert_msg(strstr(run.out, expected) != NULL, "%s: expected '%s', got:\n%s%s\nof: %s",
                  consumer->format, expected, run.out, run.err, map_options);
}

TEST(processes_end_where_the_mapping_says)
{
    static const struct consumer consumers[] = {
        {"taskset", "taskset", "$MAP " WHERE},
        {"numactl", "numactl", "$MAP " WHERE},
        {"hwloc-bind", "hwloc-bind", "$MAP " WHERE},
        {"likwid-pin", "likwid-pin", SLOW "$MAP " WHERE},
        {"mpirun.openmpi", "rankfile", SLOW RANKFILE " -np 1 " WHERE},
        {"mpirun.openmpi", "cpu-list", SLOW "mpirun.openmpi -np 1 $MAP " WHERE},
        {"mpirun.mpich", "hydra", SLOW "mpirun.mpich -n 1 $MAP " WHERE},
    };
    for (size_t c = 0; c < sizeof consumers / sizeof *consumers; c++) {
        for (int i = 0; i < 2; i++) {
            assert_ends_on(&consumers[c], formatted("-n 1 --cpuset %d", pus[i]),
                           formatted("Cpus_allowed_list:\t%d\n", pus[i]));
        }
    }
}

TEST(ranks_end_where_the_mapping_says)
{
    static const struct consumer consumers[] = {
        {"mpirun.openmpi", "rankfile",
         SLOW RANKFILE " -np 2 "
                       "/bin/sh -c \"echo \\$OMPI_COMM_WORLD_RANK \\$(" WHERE ")\""},
        {"mpirun.openmpi", "cpu-list",
         SLOW "mpirun.openmpi -np 2 $MAP /bin/sh -c \"echo \\$OMPI_COMM_WORLD_RANK \\$(" WHERE
              ")\""},
        {"mpirun.mpich", "hydra",
         SLOW "mpirun.mpich -n 2 $MAP /bin/sh -c \"echo \\$PMI_RANK \\$(" WHERE ")\""},
        {"flux", "flux",
         SLOW "flux start flux run -n 2 $MAP /bin/sh -c \"echo \\$FLUX_TASK_RANK \\$(" WHERE ")\""},
    };
    for (size_t c = 0; c < sizeof consumers / sizeof *consumers; c++) {
        for (int rank = 0; rank < 2; rank++) {
            assert_ends_on(&consumers[c], formatted("-n 2 --cpuset %d,%d", pus[0], pus[1]),
                           formatted("%d Cpus_allowed_list: %d\n", rank, pus[rank]));
        }
    }
}

/* Open MPI believes the file. Where hwloc counts otherwise than the kernel, and where a slot is
 * half of a core, each rank is on the PU that was planned all the same. */
TEST(open_mpi_keeps_to_the_kernels_numbers_and_to_single_threads)
{
    static const char *const machines[] = {"core:2 pu:1(indexes=1,0)", "core:1 pu:2"};
    if (pus[0] != 0 || pus[1] != 1 || !is_installed("lstopo-no-graphics")) {
        return;
    }
    const char *xml = scratch_path("two.xml");
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        struct run made =
            run_command("lstopo-no-graphics -i '%s' --of xml --force %s", machines[m], xml);
        ck_assert_msg(made.status == 0, "%s", made.err);
        struct consumer consumer = {
            "mpirun.openmpi", "rankfile",
            formatted(SLOW "env HWLOC_XMLFILE=%s HWLOC_THISSYSTEM=1 " RANKFILE " -np 1 " WHERE,
                      xml)};
        for (int i = 0; i < 2; i++) {
            assert_ends_on(&consumer, formatted("-n 1 --topology %s --cpuset %d", xml, pus[i]),
                           formatted("Cpus_allowed_list:\t%d\n", pus[i]));
        }
    }
}

TEST(openmp_threads_end_where_the_mapping_says)
{
    static const struct consumer consumers[] = {
        {OMP_GCC, "omp-places", "env $MAP " OMP_GCC},
        {OMP_GCC, "gomp", "env $MAP " OMP_GCC},
        {OMP_CLANG, "omp-places", "env $MAP " OMP_CLANG},
        {OMP_CLANG, "kmp", "env $MAP " OMP_CLANG},
    };
    for (size_t c = 0; c < sizeof consumers / sizeof *consumers; c++) {
        assert_ends_on(&consumers[c], formatted("-n 2 --cpuset %d,%d", pus[0], pus[1]),
                       formatted("%d,%d\n", pus[0], pus[1]));
        assert_ends_on(&consumers[c], formatted("-n 2 --cpuset %d", pus[1]),
                       formatted("%d,%d\n", pus[1], pus[1]));
    }
}

static void begin(void)
{
    if (find_pus() < 2) {
        printf("skipped: needs two PUs\n");
        exit(77);
    }
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1); /* no profile: the topology */
    unsetenv("SERVET_PROFILE");
}

TESTS(.seconds = 300, .begin = begin)
