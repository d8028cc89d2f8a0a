/* Can the shim be left switched on for everybody: in programs with the smallest stacks, at the
 * limits of the shell, in a sandbox of their own, with a stderr that is gone, without /proc and
 * /sys, and below debuggers? */
#include <sys/stat.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

#define PROGRAM PROGRAMS "/odd"

/* The program ends as without the shim, which prints nothing. */
static void expect_nothing(const char *const *changes, const char *const *argv)
{
    run_preloaded(changes, argv, "silent");
    ck_assert_str_eq(child.out, "");
}

TEST(the_smallest_stacks_suffice, .not_sanitized = "its own part of a thread does not fit")
{
    expect_nothing(CHANGES(child_registry, child_report), ARGV(PROGRAM, "small"));
    run_preloaded(CHANGES("SERVET_PROFILE=/nonexistent", "SERVET_VERBOSE=1"),
                  ARGV(PROGRAM, "small"), NULL);
}

/* Nobody can ask how much is left of such a stack, and a plan takes more than it has. */
TEST(a_coroutine_may_make_the_first_thread,
     .not_emulated = "the emulator maps memory beside the first thread's stack",
     .not_sanitized = "it does not know the stack")
{
    expect_nothing(CHANGES(child_registry), ARGV(PROGRAM, "coroutine", "main"));
}

TEST(a_coroutine_of_a_forked_child_may_make_the_first_thread,
     .not_sanitized = "it does not know the stack")
{
    expect_nothing(CHANGES(child_registry), ARGV(PROGRAM, "coroutine", "child"));
}

TEST(a_thousand_threads_at_once_are_placed)
{
    expect_nothing(NULL, ARGV(PROGRAM, "many", "1000"));
}

TEST(a_thread_that_cannot_be_made_leaves_no_trace)
{
    run_preloaded(NULL, ARGV(PROGRAM, "refused"), "silent");
    run_preloaded(NULL, ARGV("taskset", "-c", order_pair, PROGRAM, "refused"), "0.1=second");
}

/* A filter that kills for what the shim would call, set in each of the two ways. */
TEST(a_sandbox_of_the_program_is_not_touched, .not_sanitized = "it opens files at the end")
{
    static const char *const ways[] = {"prctl", "syscall"};
    const char *expected = formatted("count 0 %zu\n", here_pus());
    for (size_t i = 0; i < 2; i++) {
        child_run_preloaded(&child, CHANGES(child_registry, child_report),
                            ARGV(PROGRAM, "sandbox", ways[i]));
        if (child.status == 77) {
            return; /* a kernel without seccomp */
        }
        child_succeeds(&child);
        ck_assert_str_eq(child.out, expected);
        ck_assert_str_eq(child.err, "");
    }
}

/* No file may grow; one file beside the standard ones, which the loader needs too. */
TEST(limits_of_the_shell_cost_a_few_lines_at_most, .starts_programs = true,
     .not_sanitized = "it reads files of its own")
{
    expect_nothing(CHANGES(child_registry, child_report),
                   ARGV("/bin/sh", "-c", "ulimit -f 0; exec " PROGRAM " many 3"));
    run_preloaded(CHANGES(child_registry, child_report),
                  ARGV("/bin/sh", "-c",
                       "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&-; ulimit -n 4; exec " PROGRAM " many 3"),
                  NULL);
    ck_assert_uint_le(child_lines(child.err, "servet: "), 4);
}

TEST(a_stderr_that_is_gone_does_no_harm)
{
    const char *lines = "SERVET_PROFILE=/nonexistent", *verbose = "SERVET_VERBOSE=1",
               *to = "SERVET_REPORT=stderr";
    run_preloaded(CHANGES(lines, verbose, to), ARGV(PROGRAM, "broken", PROGRAM, "many", "3"), NULL);
    run_preloaded(CHANGES(lines, verbose), ARGV(PROGRAM, "full", PROGRAM, "many", "3"), NULL);
    run_preloaded(CHANGES(lines, verbose, to, child_registry),
                  ARGV("/bin/sh", "-c", "exec " PROGRAM " many 3 0<&- 1>&- 2>&-"), NULL);
}

TEST(a_file_in_the_place_of_stderr_gets_nothing)
{
    const char *path = scratch_path("data");
    struct stat about;
    expect_nothing(CHANGES("SERVET_PROFILE=/nonexistent"), ARGV(PROGRAM, "file", path));
    ck_assert_int_eq(stat(path, &about), 0);
    ck_assert_int_eq(about.st_size, 0);
    /* It would have been a line. */
    child_run_preloaded(&child, CHANGES("SERVET_PROFILE=/nonexistent"), ARGV(PROGRAM, "many", "1"));
    ck_assert_uint_eq(child_lines(child.err, "servet: "), 1);
}

/* Many empty objects take more memory than anything else that is as short. */
TEST(a_file_of_many_values_is_one_line)
{
    const char *path = scratch_path("many.json");
    const char *change = formatted("SERVET_PROFILE=%s", path);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("{\"x-many\":[{}", file);
    for (int i = 0; i < 20000; i++) {
        fputs(",{}", file);
    }
    fputs("]}", file);
    fclose(file);
    run_preloaded(CHANGES(change), ARGV(PROGRAM, "many", "1"), NULL);
    ck_assert_uint_eq(child_lines(child.err, ""), 1);
    child_err_says("$.servet_profile: missing, expected");
}

/* A container, or an emulated kernel, that refuses to change masks: one line, however many threads.
 * Seen red: ENOSYS gave two, of a PU -2. */
TEST(refused_masks_are_one_line, .loops = 2)
{
    static const char *const refusals[] = {"refuse", "lack"};
    child_run_preloaded(
        &child, NULL,
        ARGV(PROGRAM, "filtered", refusals[_i], "sched_setaffinity", PROGRAM, "many", "20"));
    if (child.status == 77) {
        return;
    }
    child_succeeds(&child);
    ck_assert_msg(child_lines(child.err, "servet: cannot pin threads: ") == 1 &&
                      child_lines(child.err, "") == 1,
                  "%s", child.err);
}

/* Without /proc there is no such file, and with 60 descriptors no number for what would be kept.
 * Seen red: it was placed as if alone, on another job's PU. */
TEST(who_is_not_seen_by_others_leaves_its_threads, .loops = 2, .starts_programs = true)
{
    const char *limit = _i ? "ulimit -n 60 && exec \"$@\"" : "exec \"$@\"";
    run_preloaded(
        CHANGES(_i ? child_registry : "SERVET_REGISTRY=/dev/null/file", "SERVET_VERBOSE=1"),
        ARGV("sh", "-c", limit, "sh", PROGRAMS "/pthreads", "1"), "0.1=all");
    child_err_says("without locks on this node: other programs are not seen");
}

/* A container with nothing in it but the program. */
TEST(without_proc_and_sys_a_program_runs_unpinned, .starts_programs = true,
     .not_sanitized = "it reads /proc")
{
    static const char script[] =
        "mount -t tmpfs none /sys && mount -t tmpfs none /proc && exec \"$@\"";
    if (system("unshare --mount true 2>/dev/null") != 0) {
        fprintf(stderr, "not checked: no namespaces here, or not root\n");
        return;
    }
    run_preloaded(CHANGES(child_registry),
                  ARGV("unshare", "--mount", "sh", "-c", script, "sh", PROGRAM, "many", "3"), NULL);
    ck_assert_uint_le(child_lines(child.err, ""), 2);
    ck_assert_uint_eq(child_lines(child.err, "servet: "), child_lines(child.err, ""));
}

/* Runs a program of two threads where `masks` (a shell command) was done first, and notes where
 * each may run. False: there are no namespaces of one's own here. */
static bool run_in_container(const char *masks, char where[2][256])
{
    if (system("unshare -Urm mount -t tmpfs none /sys/firmware 2>/dev/null") != 0) {
        fprintf(stderr, "not checked: no user namespaces here\n");
        return false;
    }
    run_plain(CHANGES(child_registry, "SERVET_WATCH=0"),
              ARGV("unshare", "-Urm", "sh", "-c",
                   formatted("%s && exec env LD_PRELOAD=%s \"$@\"", masks, SERVET_SHIM), "sh",
                   PROGRAMS "/pthreads", "1"),
              NULL);
    child_worker(&child, 0, 0, where[0], sizeof where[0]);
    child_worker(&child, 0, 1, where[1], sizeof where[1]);
    return true;
}

/* What Docker and Podman hide, what hardened runtimes hide besides, and a cpuset. */
TEST(in_a_container_threads_are_pinned_within_its_cpuset,
     .not_sanitized = "what makes the container is not under it")
{
    static const char *const masks[] = {
        "mount -t tmpfs none /sys/firmware && mount -t tmpfs none /sys/devices/virtual && "
        "mount -t tmpfs none /proc/bus",
        "mount -t tmpfs none /sys/devices/system/node",
    };
    char where[2][256], cpuset[128];
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        if (!run_in_container(masks[i], where)) {
            return;
        }
        ck_assert_str_eq(where[0], all_pus);
        ck_assert_str_eq(where[1], order_text[1]);
        ck_assert_str_eq(child.err, "");
    }
    const char *second = formatted("%u", order[1]);
    snprintf(cpuset, sizeof cpuset, "taskset -pc %s $$ >/dev/null", second);
    run_in_container(cpuset, where);
    ck_assert_str_eq(where[0], second);
    ck_assert_str_eq(where[1], second);
}

/* Where the processors themselves are hidden, nothing is said: each program of a sandbox would. */
TEST(in_a_container_without_sys_threads_are_not_pinned,
     .not_sanitized = "what makes the container is not under it")
{
    char where[2][256];
    if (!run_in_container("mount -t tmpfs none /sys", where)) {
        return;
    }
    ck_assert_str_eq(where[0], where[1]);
    ck_assert_str_eq(child.err, "");
}

/* The tool and what it looks at are both under the shim. */
TEST(debuggers_and_tracers_see_the_program_that_they_would_see, .starts_programs = true,
     .not_sanitized = "a tool does not run below another one")
{
    if (is_installed("strace")) {
        expect_nothing(NULL, ARGV("strace", "-f", "-o", "/dev/null", PROGRAM, "many", "3"));
    }
    if (is_installed("valgrind")) {
        run_preloaded(NULL,
                      ARGV("valgrind", "-q", "--error-exitcode=9", "--leak-check=full",
                           PROGRAMS "/pthreads", "1"),
                      "silent");
        child_expect(&child, 0, 1, order[1]);
    }
    if (is_installed("gdb")) {
        child_run_preloaded(
            &child, NULL,
            ARGV("gdb", "-q", "-batch", "-ex", "run", "--args", PROGRAM, "many", "3"));
        ck_assert_msg(strstr(child.out, "exited normally]"), "%s%s", child.out, child.err);
    }
}

TESTS(.begin = here_need_two_pus, .setup = child_setup)
