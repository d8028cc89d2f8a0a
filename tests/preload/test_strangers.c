/* Other people's programs under the shim: does what they do themselves with masks count, do they
 * hear what they would hear without it, and does a sandbox of theirs stay unharmed? */
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

#define PROGRAM PROGRAMS "/stranger"

static void run(const char *what, const char *pu, const char *told)
{
    run_preloaded(NULL, ARGV(PROGRAM, what, pu), told);
    ck_assert_str_eq(child.err, "");
}

TEST(a_mask_from_outside_wins_before_the_first_thread, .starts_programs = true)
{
    run("outside", order_text[1], "0.0=second 0.1=second");
    run("outside", order_text[0], "0.0=first 0.1=first");
}

/* As servers do that fork their workers before they make threads. */
TEST(the_child_of_a_process_without_threads_is_placed_and_not_its_parent)
{
    run_preloaded(NULL, ARGV(PROGRAMS "/odd", "prefork"), "0.0=all 0.1=second 0.2=all");
}

TEST(default_attributes_win)
{
    run("defaults", order_text[0], "0.1=first");
}

TEST(a_mask_set_while_a_child_is_made_stays, .starts_programs = true)
{
    run("system", order_text[1], "0.0=second 0.1=second");
}

TEST(a_worker_that_binds_itself_is_the_programs)
{
    for (int i = 0; i < 2; i++) {
        run("rebind", order_text[i], i ? "0.1=second 0.2=second" : "0.1=first 0.2=first");
        child_says(&child, "count 1 1\n");
    }
}

TEST(making_a_thread_is_no_cancellation_point)
{
    child_run_preloaded(&child, NULL, ARGV(PROGRAM, "cancelled"));
    ck_assert_msg(strstr(child.out, "made\n") && !strstr(child.out, "not made"), "%s%s", child.out,
                  child.err);
}

TEST(asking_for_filters_changes_nothing)
{
    run("probe", NULL, "0.0=all 0.1=second");
}

#define SANDBOX                                                                                    \
    .not_emulated = "qemu-user has no seccomp()",                                                  \
    .not_sanitized = "the filter kills for what its runtime asks, too"

/* By prctl() and by seccomp(). */
TEST(a_worker_that_shuts_itself_in_is_alone_in_it, .loops = 2, SANDBOX)
{
    run("worker", _i ? "0" : NULL, "0.0=all 0.1=second 0.3=all");
}

TEST(a_sandbox_of_all_leaves_nobody_on_one_pu, SANDBOX)
{
    run("everybody", NULL, "0.0=all 0.1=all 0.2=all 0.3=all");
}

/* By prctl() and by seccomp(). */
TEST(a_vfork_child_that_shuts_itself_in_is_not_killed, .loops = 2, .starts_programs = true)
{
    run("vfork", _i ? "0" : NULL, "0.1=second");
    child_says(&child, "count 2 0\n");
}

/* -- other people's programs, which do not bring a sanitizer's runtime -- */

#define OF_OTHERS .starts_programs = true, .not_sanitized = "they do not bring its runtime"

/* By the tool that makes it one. */
static const struct {
    const char *tool, *argv[6];
} runtimes[] = {
    {"javac", {"java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", JAVA_SOURCE}},
    {"node",
     {"node", "-e",
      "const os = require('os'), w = require('worker_threads');"
      "const say = () => console.log('count', os.availableParallelism ? "
      "os.availableParallelism() : 0, os.cpus().length);"
      "say(); require('fs').readFile('/dev/null', () => {"
      "new w.Worker('0', {eval: true}).on('exit', say); });"}},
    {"ruby",
     {"ruby", "-retc", "-e",
      "count = -> { puts \"count #{Etc.nprocessors}\" }; count.();"
      "Thread.new(&count).join; count.()"}},
    {"erl",
     {"erl", "-noshell", "-eval",
      "[io:format(\"count ~p~n\", [erlang:system_info(What)]) || What <- "
      "[schedulers_online, logical_processors_available]], halt()."}},
};

TEST(who_places_its_own_threads_is_left_alone, .loops = sizeof runtimes / sizeof *runtimes,
     OF_OTHERS)
{
    if (!is_installed(runtimes[_i].tool)) {
        return;
    }
    child_run(&plain, NULL, runtimes[_i].argv);
    ck_assert_msg(plain.status == 0, "without: %d %s", plain.status, plain.err);
    child_run_preloaded(&child, CHANGES("SERVET_REPORT=stderr"), runtimes[_i].argv);
    ck_assert_str_eq(child.out, plain.out);
    child_err_says("nothing was placed: its runtime places its own threads");
    ck_assert_ptr_null(strstr(child.err, "PU"));
}

/* Python is placed, and what it says to the kernel itself counts. */
TEST(python_binds_itself_and_knows_it, OF_OTHERS, .tool = "python3")
{
    const char *script =
        formatted("import os, threading\n"
                  "t = threading.Thread(target=lambda: 0); t.start(); t.join()\n"
                  "print(sorted(os.sched_getaffinity(0)))\n"
                  "os.sched_setaffinity(0, {%u})\n"
                  "print(os.sched_getaffinity(0) == {%u})\n"
                  "os.sched_setaffinity(0, {%s})\n"
                  "print(len(os.sched_getaffinity(0)))\n"
                  "print([l for l in open('/proc/self/status') if 'allowed_list' in l][0])",
                  order[1], order[1], order_pair);
    child_run(&plain, NULL, ARGV("taskset", "-c", order_pair, "python3", "-c", script));
    child_run_preloaded(&child, NULL, ARGV("taskset", "-c", order_pair, "python3", "-c", script));
    ck_assert_msg(strstr(plain.out, "True\n2\n"), "%s%s", plain.out, plain.err);
    ck_assert_str_eq(child.out, plain.out);
}

TESTS(.begin = here_need_two_pus)
