/* Do the kernels compute what NASA published, in each form, and do they say so only then?
 * Class S of every kernel is run as OpenMP, MPI and hybrid program. */
#include <string.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"

static const char *const published[] = {"ep", "cg", "mg", "ft", "is"};
static const char *const others[] = {"mz", "triad", "random_access", "halo"};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static void expect(struct run run, const char *verdict)
{
    ck_assert_msg(run.status == 0 && strstr(run.out, verdict), "status %d\n%s%s", run.status,
                  run.out, run.err);
}

#define VERIFIED "\nVERIFICATION SUCCESSFUL\n"
#define CHECKED "\nCHECK PASSED: "
#define THREADS "/usr/bin/env OMP_NUM_THREADS=2 "
/* Ranks share the CPUs of a small machine: they must sleep while they wait. MPI libraries leak by
 * design. */
#define RANKS                                                                                      \
    "/usr/bin/env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "                      \
    "OMPI_MCA_mpi_yield_when_idle=1 "                                                              \
    "ASAN_OPTIONS=detect_leaks=0 OMP_NUM_THREADS=2 " MPIRUN " --oversubscribe -n "

TEST(openmp_kernels_get_the_published_values, .loops = COUNT(published))
{
    expect(run_command(THREADS KERNELS "/%s_omp S", published[_i]), VERIFIED);
}

TEST(openmp_kernels_without_published_values_do_not_claim_them, .loops = COUNT(others))
{
    struct run run = run_command(THREADS KERNELS "/%s_omp S", others[_i]);
    ck_assert_ptr_null(strstr(run.out, "VERIFICATION"));
    expect(run, CHECKED);
}

/* A random number generator that is not the published one: the same programs must refuse their
 * results. */
TEST(other_random_numbers_do_not_verify, .loops = COUNT(published))
{
    struct run run = run_command(THREADS WRONG "/%s_wrong S", published[_i]);
    ck_assert_msg(run.status == 1 && strstr(run.out, "\nVERIFICATION FAILED\n"), "status %d\n%s",
                  run.status, run.out);
    ck_assert_ptr_null(strstr(run.out, "SUCCESSFUL"));
}

TEST(usage_errors_are_one_line)
{
    expect_refused("", THREADS KERNELS "/ep_omp X");
    expect_refused("", THREADS KERNELS "/ep_omp S S");
    struct run run = run_command(THREADS KERNELS "/ep_omp");
    ck_assert_int_eq(run.status, 0);
    ck_assert_str_eq(run.err, "");
}

#ifdef MPIRUN
TEST(mpi_and_hybrid_kernels_get_the_published_values, .loops = COUNT(published))
{
    expect(run_command(RANKS "2 " KERNELS "/%s_mpi S", published[_i]), VERIFIED);
    expect(run_command(RANKS "2 " KERNELS "/%s_hybrid S", published[_i]), VERIFIED);
}

/* More ranks than planes on the coarse grids of MG, uneven shares of rows, keys and batches. */
TEST(numbers_of_ranks_do_not_matter)
{
    expect(run_command(RANKS "4 " KERNELS "/mg_mpi S"), VERIFIED);
    expect(run_command(RANKS "3 " KERNELS "/is_mpi S"), VERIFIED);
    expect(run_command(RANKS "3 " KERNELS "/ep_mpi S"), VERIFIED);
}

TEST(kernels_without_published_values_hold_over_ranks, .loops = COUNT(others))
{
    expect(run_command(RANKS "2 " KERNELS "/%s_hybrid S", others[_i]), CHECKED);
    expect(run_command(RANKS "3 " KERNELS "/%s_mpi S", others[_i]), CHECKED);
}

TEST(ranks_that_do_not_fit_are_refused_in_one_line)
{
    struct run run = run_command(RANKS "3 " KERNELS "/ft_mpi S");
    ck_assert_int_eq(run.status, 2);
    ck_assert_ptr_nonnull(strstr(run.err, "FT: expected a power of two of ranks"));
}

static const char *disturbance(struct run run)
{
    char *line = strstr(run.out, "disturbance");
    ck_assert_msg(line, "%s%s", run.out, run.err);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* Zones are independent within a step: ranks and threads must not change a bit of the result. */
TEST(multi_zone_results_do_not_depend_on_ranks_or_threads)
{
    const char *alone =
        disturbance(run_command("/usr/bin/env OMP_NUM_THREADS=1 " KERNELS "/mz_omp S"));
    ck_assert_str_eq(disturbance(run_command(RANKS "2 " KERNELS "/mz_hybrid S")), alone);
    ck_assert_str_eq(disturbance(run_command(RANKS "3 " KERNELS "/mz_mpi S")), alone);
}
#endif
