/* Threads end, pools churn, processes are made: does every slot come back however its thread ended,
 * and does no child inherit the one PU of the thread that made it?
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})
#define CHANGES(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct child child, plain;

/* An odd number of threads has come and gone: a counter modulo the PUs would now be off by one. */
static void expect_slots_back(const char *way)
{
    uint32_t order[2];
    char pair[32];
    here_order(MAP_MEMORY, 2, order);
    snprintf(pair, sizeof pair, "%u,%u", order[0], order[1]);
    /* ThreadSanitizer takes a cancelled pause() of a program that it does not know for one that
     * never ended. */
    const char *options = strcmp(way, "cancel") == 0
                              ? "TSAN_OPTIONS=halt_on_error=1:die_after_fork=0"
                              : "SERVET_DISABLE=";
    child_run_preloaded(&child, CHANGES(options),
                        ARGV("taskset", "-c", pair, PROGRAMS "/churn", way, "101"));
    ck_assert_msg(child.status == 0, "exit status %d: %s", child.status, child.err);
    child_expect(&child, 0, 0, order[0]);
    child_expect(&child, 0, 1, order[1]);
    child_expect(&child, 0, 2, order[0]);
}

TEST(slots_come_back_when_threads_return)
{
    expect_slots_back("end");
}

TEST(slots_come_back_when_threads_exit)
{
    expect_slots_back("exit");
}

TEST(slots_come_back_when_threads_are_cancelled)
{
    expect_slots_back("cancel");
}

TEST(slots_come_back_from_detached_threads)
{
    expect_slots_back("detach");
}

TEST(children_have_the_original_mask, .not_emulated = "qemu-user has no execveat()")
{
    static const char *const ways[] = {
        "fork",    "execl",   "execlp",   "execle",      "execv",        "execvp", "execve",
        "execvpe", "fexecve", "execveat", "posix_spawn", "posix_spawnp", "popen",  "system"};
    static const char *const makers[] = {"main", "worker"};
    char line[512], original[256];
    uint32_t order[2];
    here_order(MAP_MEMORY, 2, order);
    child_run(&plain, NULL, ARGV(PROGRAMS "/children"));
    child_run_preloaded(&child, NULL, ARGV(PROGRAMS "/children"));
    ck_assert_int_eq(child.status, 0);
    const char *before = strstr(plain.out, "child main fork ");
    snprintf(original, sizeof original, "%.*s", (int)strcspn(before + 16, "\n"), before + 16);
    for (size_t maker = 0; maker < 2; maker++) {
        for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
            snprintf(line, sizeof line, "child %s %s %s\n", makers[maker], ways[way], original);
            ck_assert_msg(strstr(child.out, line), "no \"%s\" in\n%s", line, child.out);
        }
        /* A fork's child starts afresh: its first thread takes the second place. */
        snprintf(line, sizeof line, "child %s thread %u\n", makers[maker], order[1]);
        ck_assert_msg(strstr(child.out, line), "no \"%s\" in\n%s", line, child.out);
        snprintf(line, sizeof line, "self %s failed-exec %u\n", makers[maker], order[maker]);
        ck_assert_msg(strstr(child.out, line), "no \"%s\" in\n%s", line, child.out);
        snprintf(line, sizeof line, "self %s after %u\n", makers[maker], order[maker]);
        ck_assert_msg(strstr(child.out, line), "no \"%s\" in\n%s", line, child.out);
    }
}

int main(void)
{
    here_need_two_pus();
    return run_registered();
}
