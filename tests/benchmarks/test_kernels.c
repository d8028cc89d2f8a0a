/* Do the kernels pass their own checks, in each form and on any number of ranks? */
#include "tests/base/command.h"
#include "tests/base/runner.h"

static const char *const kernels[] = {"cg", "triad", "random_access", "halo"};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static void expect_checked(struct run run)
{
    ck_assert_msg(run.status == 0 && strstr(run.out, "\nCHECK PASSED: "), "status %d\n%s%s",
                  run.status, run.out, run.err);
}

#define THREADS "/usr/bin/env OMP_NUM_THREADS=2 "
/* Ranks share the CPUs of a small machine: they must sleep while they wait. MPI libraries leak by
 * design. */
#define RANKS                                                                                      \
    "/usr/bin/env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "                      \
    "OMPI_MCA_mpi_yield_when_idle=1 "                                                              \
    "ASAN_OPTIONS=detect_leaks=0 OMP_NUM_THREADS=2 " MPIRUN " --oversubscribe -n "

TEST(threads_pass_the_check, .loops = COUNT(kernels))
{
    expect_checked(run_command(THREADS KERNELS "/%s_omp S", kernels[_i]));
}

TEST(usage_errors_are_one_line)
{
    expect_refused("", THREADS KERNELS "/cg_omp X");
    expect_refused("", THREADS KERNELS "/cg_omp S S");
    struct run run = run_command(THREADS KERNELS "/cg_omp");
    ck_assert_int_eq(run.status, 0);
    ck_assert_str_eq(run.err, "");
}

#ifdef MPIRUN
/* Three ranks have uneven shares of the rows. */
TEST(ranks_pass_the_check, .loops = COUNT(kernels))
{
    expect_checked(run_command(RANKS "2 " KERNELS "/%s_hybrid S", kernels[_i]));
    expect_checked(run_command(RANKS "3 " KERNELS "/%s_mpi S", kernels[_i]));
}
#endif

TESTS(.seconds = 100)
