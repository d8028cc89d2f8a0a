/* Do the kernels compute what NASA published, in each form, and do they say so only then?
 * Class S of every kernel is run as OpenMP, MPI and hybrid program. */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"

static const char *const published[] = {"ep", "cg", "mg", "ft", "is"};
static const char *const others[] = {"mz", "triad", "random_access", "halo"};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static struct run run_line(const char *format, ...)
{
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    ck_assert_int_lt(length, (int)sizeof line);
    return run_command(line);
}

static void expect(struct run *run, const char *verdict)
{
    ck_assert_msg(run->status == 0 && strstr(run->out, verdict), "status %d\n%s%s", run->status,
                  run->out, run->err);
    run_free(run);
}

#define THREADS "/usr/bin/env OMP_NUM_THREADS=2 "
/* Ranks share the CPUs of a small machine: they must sleep while they wait. MPI libraries leak by
 * design. */
#define RANKS                                                                                      \
    "/usr/bin/env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "                      \
    "OMPI_MCA_mpi_yield_when_idle=1 "                                                              \
    "ASAN_OPTIONS=detect_leaks=0 OMP_NUM_THREADS=2 "

START_TEST(openmp_kernels_get_the_published_values)
{
    struct run run = run_line(THREADS KERNELS "/%s_omp S", published[_i]);
    expect(&run, "\nVERIFICATION SUCCESSFUL\n");
}
END_TEST

START_TEST(openmp_kernels_without_published_values_do_not_claim_them)
{
    struct run run = run_line(THREADS KERNELS "/%s_omp S", others[_i]);
    ck_assert_ptr_null(strstr(run.out, "VERIFICATION"));
    expect(&run, "\nCHECK PASSED: ");
}
END_TEST

/* A random number generator that is not the published one: the same programs must refuse their
 * results. */
START_TEST(other_random_numbers_do_not_verify)
{
    struct run run = run_line(THREADS WRONG "/%s_wrong S", published[_i]);
    ck_assert_msg(run.status == 1 && strstr(run.out, "\nVERIFICATION FAILED\n"), "status %d\n%s",
                  run.status, run.out);
    ck_assert_ptr_null(strstr(run.out, "SUCCESSFUL"));
    run_free(&run);
}
END_TEST

START_TEST(usage_errors_are_one_line)
{
    static const char *const lines[] = {"/ep_omp X", "/ep_omp", "/ep_omp S S"};
    static const int statuses[] = {2, 0, 2};
    struct run run = run_line(THREADS KERNELS "%s", lines[_i]);
    ck_assert_int_eq(run.status, statuses[_i]);
    ck_assert_uint_eq(count_lines(run.err), statuses[_i] ? 1 : 0);
    run_free(&run);
}
END_TEST

#ifdef MPIRUN
START_TEST(mpi_kernels_get_the_published_values)
{
    struct run run =
        run_line(RANKS MPIRUN " --oversubscribe -n 2 " KERNELS "/%s_mpi S", published[_i]);
    expect(&run, "\nVERIFICATION SUCCESSFUL\n");
}
END_TEST

START_TEST(hybrid_kernels_get_the_published_values)
{
    struct run run =
        run_line(RANKS MPIRUN " --oversubscribe -n 2 " KERNELS "/%s_hybrid S", published[_i]);
    expect(&run, "\nVERIFICATION SUCCESSFUL\n");
}
END_TEST

/* More ranks than planes on the coarse grids of MG, uneven shares of rows, keys and batches. */
START_TEST(numbers_of_ranks_do_not_matter)
{
    static const char *const programs[] = {"4 " KERNELS "/mg_mpi", "3 " KERNELS "/is_mpi",
                                           "3 " KERNELS "/ep_mpi"};
    struct run run = run_line(RANKS MPIRUN " --oversubscribe -n %s S", programs[_i]);
    expect(&run, "\nVERIFICATION SUCCESSFUL\n");
}
END_TEST

START_TEST(kernels_without_published_values_hold_over_ranks)
{
    struct run run =
        run_line(RANKS MPIRUN " --oversubscribe -n 2 " KERNELS "/%s_hybrid S", others[_i]);
    expect(&run, "\nCHECK PASSED: ");
    run = run_line(RANKS MPIRUN " --oversubscribe -n 3 " KERNELS "/%s_mpi S", others[_i]);
    expect(&run, "\nCHECK PASSED: ");
}
END_TEST

START_TEST(ranks_that_do_not_fit_are_refused_in_one_line)
{
    struct run run = run_line(RANKS MPIRUN " --oversubscribe -n 3 " KERNELS "/ft_mpi S");
    ck_assert_int_eq(run.status, 2);
    ck_assert_ptr_nonnull(strstr(run.err, "FT: expected a power of two of ranks"));
    run_free(&run);
}
END_TEST

static char *line_with(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    ck_assert_ptr_nonnull(at);
    return strndup(at, strcspn(at, "\n"));
}

/* Zones are independent within a step: ranks and threads must not change a bit of the result. */
START_TEST(multi_zone_results_do_not_depend_on_ranks_or_threads)
{
    struct run alone = run_line("/usr/bin/env OMP_NUM_THREADS=1 " KERNELS "/mz_omp S");
    char *expected = line_with(alone.out, "disturbance");
    static const char *const programs[] = {"2 " KERNELS "/mz_hybrid", "3 " KERNELS "/mz_mpi"};
    for (size_t i = 0; i < COUNT(programs); i++) {
        struct run run = run_line(RANKS MPIRUN " --oversubscribe -n %s S", programs[i]);
        char *got = line_with(run.out, "disturbance");
        ck_assert_str_eq(got, expected);
        free(got);
        run_free(&run);
    }
    free(expected);
    run_free(&alone);
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("kernels");
    TCase *threads = tcase_create("threads");
    tcase_add_loop_test(threads, openmp_kernels_get_the_published_values, 0, (int)COUNT(published));
    tcase_add_loop_test(threads, openmp_kernels_without_published_values_do_not_claim_them, 0,
                        (int)COUNT(others));
    tcase_add_loop_test(threads, other_random_numbers_do_not_verify, 0, (int)COUNT(published));
    tcase_add_loop_test(threads, usage_errors_are_one_line, 0, 3);
    suite_add_tcase(suite, threads);
#ifdef MPIRUN
    TCase *ranks = tcase_create("ranks");
    tcase_add_loop_test(ranks, mpi_kernels_get_the_published_values, 0, (int)COUNT(published));
    tcase_add_loop_test(ranks, hybrid_kernels_get_the_published_values, 0, (int)COUNT(published));
    tcase_add_loop_test(ranks, numbers_of_ranks_do_not_matter, 0, 3);
    tcase_add_loop_test(ranks, kernels_without_published_values_hold_over_ranks, 0,
                        (int)COUNT(others));
    tcase_add_test(ranks, ranks_that_do_not_fit_are_refused_in_one_line);
    tcase_add_test(ranks, multi_zone_results_do_not_depend_on_ranks_or_threads);
    suite_add_tcase(suite, ranks);
#endif
    return run_suite(suite);
}
