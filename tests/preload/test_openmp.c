/* Does an OpenMP program that knows nothing of us end with every worker on its own PU, in the
 * mapper's order, and still count all its processors? Run once with a program of gcc (libgomp) and
 * once with one of clang (libomp). */
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

static const char *program;

#define IN_ORDER "0.0=first 0.1=second"

TEST(workers_follow_the_mapper)
{
    uint32_t pus[2];
    here_order(MAP_COMMUNICATION, 2, pus);
    run_preloaded(CHANGES("OMP_NUM_THREADS=2", "SERVET_MEM_PRIOR=1"), ARGV(program), IN_ORDER);
    run_preloaded(CHANGES("OMP_NUM_THREADS=2", "SERVET_COMM_PRIOR=1"), ARGV(program), "silent");
    child_expect(&child, 0, 0, pus[0]);
    child_expect(&child, 0, 1, pus[1]);
}

TEST(servet_pin_does_the_same_without_the_path)
{
    run_plain(CHANGES("OMP_NUM_THREADS=2"), ARGV(SERVET_PIN, "--mem-prior", "--", program),
              IN_ORDER);
}

TEST(processors_are_still_counted)
{
    const char *expected = formatted("count 0 %zu\n", here_pus());
    child_run_preloaded(&child, CHANGES("OMP_NUM_THREADS=2"), ARGV(program));
    ck_assert_uint_eq(child_lines(child.out, "count "), 5);
    ck_assert_uint_eq(child_lines(child.out, expected), 5);
}

#define TWO "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMP_NUM_THREADS=2"

/* Two threads of each of two ranks on two PUs: the runtime has counted two, and would wait busily
 * on the PU of the thread that it waits for. */
TEST(a_rank_that_outgrows_its_part_is_left_alone)
{
    char pus[256];
    child_run(&plain, CHANGES(TWO), ARGV("taskset", "-c", order_pair, program));
    run_preloaded(CHANGES(TWO, "SERVET_VERBOSE=1"), ARGV("taskset", "-c", order_pair, program),
                  NULL);
    child_err_says("than PUs: nothing is placed");
    for (int thread = 0; thread < 2; thread++) {
        child_worker(&plain, 0, thread, pus, sizeof pus);
        child_says(&child, "worker 0 %d %s", thread, pus);
    }
    run_preloaded(CHANGES(TWO, "OMP_WAIT_POLICY=passive"),
                  ARGV("taskset", "-c", order_pair, program), "0.0=first");
}

/* What a thread computed, behind its PUs. */
static const char *result_of(const struct run *of, int thread)
{
    char pus[256];
    child_worker(of, 0, thread, pus, sizeof pus);
    const char *before = formatted("worker 0 %d %s ", thread, pus);
    const char *result = strstr(of->out, before) + strlen(before);
    return formatted("%.*s", (int)strcspn(result, "\n"), result);
}

TEST(results_are_unchanged)
{
    child_run(&plain, CHANGES("OMP_NUM_THREADS=2"), ARGV(program));
    child_run_preloaded(&child, CHANGES("OMP_NUM_THREADS=2"), ARGV(program));
    ck_assert_uint_eq(child_lines(child.out, ""), child_lines(plain.out, ""));
    for (int thread = 0; thread < 2; thread++) {
        ck_assert_str_eq(result_of(&child, thread), result_of(&plain, thread));
    }
    ck_assert_str_eq(child.err, plain.err);
    ck_assert_int_eq(child.status, plain.status);
}

TEST(a_users_own_places_win)
{
    const char *const *places =
        CHANGES("OMP_NUM_THREADS=2", "OMP_PROC_BIND=close", "OMP_PLACES={1},{0}");
    char pus[256];
    child_run(&plain, places, ARGV(program));
    child_run_preloaded(&child, places, ARGV(program));
    for (int thread = 0; thread < 2; thread++) {
        child_worker(&plain, 0, thread, pus, sizeof pus);
        child_expect_pus(&child, 0, thread, pus);
    }
}

#ifndef SANITIZERS
/* Does the line with `words` end so? An emulator has threads of its own. */
static bool is_by_user(const char *report, const char *words)
{
    static const char ending[] = " by user\n";
    const char *line = strstr(report, words), *found = line ? strstr(line, ending) : NULL;
    return found && found + strlen(ending) - 1 == strchr(line, '\n');
}
#endif

/* Seen red: "left to the kernel: the program gave a mask", by kernel and by others. */
TEST(the_users_variable_is_named_for_each_thread)
{
    static const char *const set[] = {"OMP_PROC_BIND=close", "OMP_PROC_BIND=spread",
                                      "OMP_PLACES=threads", "GOMP_CPU_AFFINITY=0-1"};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        child_run_preloaded(&child, CHANGES("OMP_NUM_THREADS=2", set[i], "SERVET_REPORT=stderr"),
                            ARGV(program));
        const char *expected = formatted(" nothing was placed: %.*s is set (--force",
                                         (int)strcspn(set[i], "="), set[i]);
        ck_assert_msg(strstr(child.err, expected) && !strstr(child.err, "left to the kernel"),
                      "no \"%s\" alone in\n%s", expected, child.err);
#ifndef SANITIZERS /* they start threads by a routine of their own, which hides whose it is */
        ck_assert_msg(is_by_user(child.err, " main PU ") && is_by_user(child.err, " worker PU "),
                      "%s", child.err);
#endif
    }
}

static void expect_loose(const char *why)
{
    char pus[256];
    child_worker(&child, 0, 1, pus, sizeof pus);
    ck_assert_msg(strpbrk(pus, ",-"), "%s: on PU %s", why, pus);
}

TEST(force_overrules_the_users_places)
{
    run_preloaded(CHANGES("OMP_NUM_THREADS=2", "OMP_PROC_BIND=false", "SERVET_FORCE=1"),
                  ARGV(program), IN_ORDER);
    child_run_preloaded(&child,
                        CHANGES("OMP_NUM_THREADS=2", "OMP_PROC_BIND=false", "SERVET_FORCE=0"),
                        ARGV(program));
    expect_loose("OMP_PROC_BIND=false");
}

TEST(verbose_says_one_line_for_each_thread)
{
    child_run_preloaded(&child, CHANGES("OMP_NUM_THREADS=2", "SERVET_VERBOSE=1"), ARGV(program));
    ck_assert_uint_eq(child_lines(child.err, "servet: "), 2);
    child_err_says("main thread on PU");
}

TEST(a_zero_is_off)
{
    run_preloaded(CHANGES("OMP_NUM_THREADS=2", "SERVET_DISABLE=0", "SERVET_VERBOSE=0"),
                  ARGV(program), IN_ORDER " silent");
    child_run_preloaded(&child, CHANGES("OMP_NUM_THREADS=2", "SERVET_DISABLE=1"), ARGV(program));
    expect_loose("SERVET_DISABLE=1");
}

TESTS(.begin = here_need_two_pus)

int main(int argc, char **argv)
{
    if (argc != 2) {
        return 2;
    }
    program = argv[1];
    return run_registered();
}
