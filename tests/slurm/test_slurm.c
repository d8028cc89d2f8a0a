/* Does `srun --servet=mem|comm|off` put the threads and tasks of a step where the mapper says,
 * inside the step's PUs, without losing what the user has asked for himself?
 *
 * Runs below `bed`, which gives it a Slurm of one node, with the plugin in the file that
 * $BED_PLUGSTACK names.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A step starts within a second or two, later when the one before it has not been cleared away
 * yet. */
#define TEST_LIMIT_SECONDS 120

static struct child child;

static void run(const char *const *changes, const char *const *argv)
{
    child_run(&child, changes, argv);
    ck_assert_msg(child.status == 0, "exit status %d: %s%s", child.status, child.out, child.err);
}

/* Fails unless the environment that `env` printed has this line. */
static void expect_line(const char *line)
{
    char with_end[8192];
    snprintf(with_end, sizeof with_end, "\n%s\n", line);
    ck_assert_msg(strstr(child.out, with_end), "no %s in:\n%s", line, child.out);
}

static void expect_no_shim(void)
{
    ck_assert_msg(!strstr(child.out, SERVET_SHIM), "%s", child.out);
}

/* "TASK: worker 0 THREAD PUS …" of `srun --label`. */
static void expect_of_task(unsigned task, unsigned thread, uint32_t pu)
{
    char line[64];
    snprintf(line, sizeof line, "%u: worker 0 %u %u ", task, thread, pu);
    ck_assert_msg(strstr(child.out, line), "no \"%s\" in:\n%s%s", line, child.out, child.err);
}

START_TEST(threads_of_one_task_follow_the_mapper)
{
    uint32_t order[2];
    if (!is_built(PROGRAMS "/openmp_gcc")) {
        return;
    }
    run(LIST("OMP_NUM_THREADS=2"),
        LIST("srun", "-n", "1", "-c", "2", "--servet=mem", PROGRAMS "/openmp_gcc"));
    here_order(MAP_MEMORY, 2, order);
    child_expect(&child, 0, 0, order[0]);
    child_expect(&child, 0, 1, order[1]);
}
END_TEST

START_TEST(several_tasks_of_a_node_follow_the_mapper)
{
    uint32_t order[2];
    run(NULL, LIST("srun", "-l", "-n", "2", "--servet=comm", PROGRAMS "/pthreads", "1"));
    here_order(MAP_COMMUNICATION, 2, order);
    for (unsigned task = 0; task < 2; task++) {
        for (unsigned thread = 0; thread < 2; thread++) {
            expect_of_task(task, thread, order[task]);
        }
    }
}
END_TEST

START_TEST(ranks_follow_the_mapper)
{
    uint32_t order[2];
    if (!is_built(PROGRAMS "/mpich_ranks")) {
        return;
    }
    run(NULL, LIST("srun", "--mpi=pmi2", "-n", "2", "--servet=mem", PROGRAMS "/mpich_ranks"));
    here_order(MAP_MEMORY, 2, order);
    child_expect(&child, 0, 0, order[0]);
    child_expect(&child, 1, 0, order[1]);
}
END_TEST

/* Slurm's own binding leaves the order of the two cores to the kernel; the profile makes the last
 * one the better, and the first worker gets it. (Of two known workers each would have one core, and
 * their numbers follow the machine: nothing to see.) */
START_TEST(a_binding_that_nobody_asked_for_gives_way)
{
    char path[] = "/tmp/servet-test-XXXXXX", variable[64];
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    uint32_t better = here_write_uneven_profile(path);
    snprintf(variable, sizeof variable, "SERVET_PROFILE=%s", path);
    run(LIST(variable),
        LIST("srun", "-l", "-n", "1", "-c", "2", "--servet=mem", PROGRAMS "/pthreads", "1"));
    expect_of_task(0, 0, better);
    expect_of_task(0, 1, 1 - better);
    /* A step of one core has no other, however good it is. */
    run(LIST(variable), LIST("srun", "-l", "-n", "1", "--servet=mem", PROGRAMS "/pthreads", "1"));
    expect_of_task(0, 0, 0);
    expect_of_task(0, 1, 0);
    unlink(path);
}
END_TEST

START_TEST(a_binding_that_the_user_asked_for_stays)
{
    run(NULL, LIST("srun", "-l", "-n", "2", "--cpu-bind=map_cpu:1,0", "--servet=mem",
                   PROGRAMS "/pthreads", "1"));
    for (unsigned task = 0; task < 2; task++) {
        for (unsigned thread = 0; thread < 2; thread++) {
            expect_of_task(task, thread, 1 - task);
        }
    }
}
END_TEST

/* How often `says` stands in what two traced ranks report that send all the time. */
static size_t judged(const char *option, const char *says)
{
    size_t count = 0;
    run(LIST("SERVET_AUTO=1", "SERVET_REPORT=stderr", "XDG_CACHE_HOME=/mnt/cache"),
        LIST("srun", "--mpi=pmi2", "-n", "2", option, SERVET_PIN, PROGRAMS "/mpich_traffic",
             "talk"));
    for (const char *at = child.err; (at = strstr(at, says)); at++) {
        count++;
    }
    return count;
}

/* Slurm binds every task to PUs of its own: what the ranks of a node share is the step's. Two
 * ranks on one PU wait for it and not for messages. */
START_TEST(a_verdict_counts_the_pus_of_the_step)
{
    if (!is_built(PROGRAMS "/mpich_traffic")) {
        return;
    }
    size_t found = judged("--cpu-bind=map_cpu:0,1", " auto: communication intensive");
    ck_assert_msg(found == 1, "%zu verdicts:\n%s", found, child.err);
    found = judged("--cpu-bind=map_cpu:0,0", " auto: undecided: more ranks than PUs");
    ck_assert_msg(found == 1, "%zu refusals:\n%s", found, child.err);
}
END_TEST

START_TEST(without_the_option_nothing_is_loaded)
{
    run(NULL, LIST("srun", "env"));
    expect_no_shim();
    ck_assert_ptr_null(strstr(child.out, "_PRIOR="));
}
END_TEST

START_TEST(off_is_off)
{
    char pus[256];
    run(LIST("LD_PRELOAD=" CHILD_PRELOAD),
        LIST("srun", "-n", "1", "-c", "2", "--servet=off", PROGRAMS "/pthreads", "1"));
    child_worker(&child, 0, 1, pus, sizeof pus);
    ck_assert_str_eq(pus, "0-1");
}
END_TEST

START_TEST(a_preload_of_the_user_is_kept)
{
    run(LIST("LD_PRELOAD=libpthread.so.0"), LIST("srun", "--servet=mem", "env"));
    expect_line("LD_PRELOAD=" SERVET_SHIM ":libpthread.so.0");
    expect_line("SERVET_MEM_PRIOR=1");
    expect_line("SERVET_COMM_PRIOR=0");
}
END_TEST

START_TEST(a_wrong_value_is_refused_at_submission)
{
    static const char *const commands[][2] = {
        {"srun", "/bin/true"}, {"sbatch", "--wrap=true"}, {"salloc", "true"}};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        child_run(&child, NULL, LIST(commands[i][0], "--servet=fast", commands[i][1]));
        ck_assert_int_ne(child.status, 0);
        ck_assert_msg(strstr(child.err, "--servet=fast: expected mem, comm or off"), "%s",
                      child.err);
        ck_assert_msg(child_lines(child.err, "") == 1, "more than one line:\n%s", child.err);
    }
}
END_TEST

/* The steps of a batch script inherit its option and its LD_PRELOAD. */
START_TEST(a_batch_script_hands_the_option_to_its_steps)
{
    run(NULL, LIST("sbatch", "--quiet", "--wait", "-n", "2", "--servet=comm", "-o", "/mnt/batch",
                   "--wrap", "srun -n 1 env"));
    run(NULL, LIST("cat", "/mnt/batch"));
    expect_line("LD_PRELOAD=" CHILD_PRELOAD);
    expect_line("SERVET_COMM_PRIOR=1");
}
END_TEST

static void write_plugstack(const char *arguments)
{
    FILE *file = fopen(getenv("BED_PLUGSTACK"), "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "required %s shim=%s %s\n", SPANK_SERVET, SERVET_SHIM, arguments);
    ck_assert_int_eq(fclose(file), 0);
}

static void plain_plugstack(void)
{
    write_plugstack("");
}

START_TEST(an_administrators_default_leaves_users_their_choice)
{
    write_plugstack("default=mem");
    run(NULL, LIST("srun", "env"));
    expect_line("LD_PRELOAD=" CHILD_PRELOAD);
    expect_line("SERVET_MEM_PRIOR=1");
    run(LIST("SERVET_COMM_PRIOR=1"), LIST("srun", "env"));
    expect_line("SERVET_COMM_PRIOR=1");
    ck_assert_ptr_null(strstr(child.out, "SERVET_MEM_PRIOR"));
    run(NULL, LIST("srun", "--servet=off", "env"));
    expect_no_shim();
    expect_line("SERVET_DISABLE=1");
}
END_TEST

START_TEST(a_wrong_line_in_plugstack_is_told)
{
    write_plugstack("default=best");
    child_run(&child, NULL, LIST("srun", "env"));
    ck_assert_int_ne(child.status, 0);
    ck_assert_msg(strstr(child.err, "'default=best' in plugstack.conf: expected"), "%s", child.err);
}
END_TEST

static Suite *suite(void)
{
    Suite *all = suite_create("slurm");
    TCase *steps = tcase_create("steps"), *site = tcase_create("site");
    tcase_add_unchecked_fixture(steps, plain_plugstack, NULL);
    tcase_add_test(steps, threads_of_one_task_follow_the_mapper);
    tcase_add_test(steps, several_tasks_of_a_node_follow_the_mapper);
    tcase_add_test(steps, ranks_follow_the_mapper);
    tcase_add_test(steps, a_binding_that_nobody_asked_for_gives_way);
    tcase_add_test(steps, a_binding_that_the_user_asked_for_stays);
    tcase_add_test(steps, a_verdict_counts_the_pus_of_the_step);
    tcase_add_test(steps, without_the_option_nothing_is_loaded);
    tcase_add_test(steps, off_is_off);
    tcase_add_test(steps, a_preload_of_the_user_is_kept);
    tcase_add_test(steps, a_wrong_value_is_refused_at_submission);
    tcase_add_test(steps, a_batch_script_hands_the_option_to_its_steps);
    tcase_add_unchecked_fixture(site, NULL, plain_plugstack);
    tcase_add_test(site, an_administrators_default_leaves_users_their_choice);
    tcase_add_test(site, a_wrong_line_in_plugstack_is_told);
    TCase *const cases[] = {steps, site};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tcase_set_timeout(cases[i], TEST_LIMIT_SECONDS);
        suite_add_tcase(all, cases[i]);
    }
    return all;
}

int main(void)
{
    here_need_two_pus();
    return run_suite(suite());
}
