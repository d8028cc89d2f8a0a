/* Threads end, pools churn, processes are made: does every slot come back however its thread ended,
 * and does no child inherit the one PU of the thread that made it? */
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

/* An odd number of threads has come and gone: a counter modulo the PUs would now be off by one. The
 * main thread waits, and keeps all PUs. */
TEST(slots_come_back_however_threads_end)
{
    static const char *const ways[] = {"end", "exit", "cancel", "detach"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        /* ThreadSanitizer takes a cancelled pause() of a program that it does not know for one that
     * never ended. */
        const char *options = strcmp(ways[i], "cancel") == 0
                                  ? "TSAN_OPTIONS=halt_on_error=1:die_after_fork=0"
                                  : "SERVET_DISABLE=";
        run_preloaded(CHANGES(options),
                      ARGV("taskset", "-c", order_pair, PROGRAMS "/churn", ways[i], "101"),
                      "0.0=both 0.1=second 0.2=first");
    }
}

/* Its threads lived briefly before: one in some is looked at. */
TEST(a_routine_whose_threads_live_longer_is_placed_again)
{
    run_preloaded(NULL, ARGV("taskset", "-c", order_pair, PROGRAMS "/churn", "grow", "200"),
                  "0.1=second 0.2=first");
}

TEST(children_have_the_original_mask, .not_emulated = "qemu-user has no execveat()")
{
    static const char *const ways[] = {
        "fork",    "_Fork",    "clone",       "aio",          "wordexp", "execl",
        "execlp",  "execle",   "execv",       "execvp",       "execve",  "execvpe",
        "fexecve", "execveat", "posix_spawn", "posix_spawnp", "popen",   "system"};
    static const char *const makers[] = {"main", "worker"};
    child_run(&plain, NULL, ARGV(PROGRAMS "/children"));
    run_preloaded(CHANGES(RANK), ARGV(PROGRAMS "/children"), NULL);
    const char *before = strstr(plain.out, "child main fork ");
    const char *original = formatted("%.*s", (int)strcspn(before + 16, "\n"), before + 16);
    for (size_t maker = 0; maker < 2; maker++) {
        for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
            child_says(&child, "child %s %s %s\n", makers[maker], ways[way], original);
        }
        /* A fork's child starts afresh: its first thread takes the second place. */
        child_says(&child, "child %s thread %u\n", makers[maker], order[1]);
        child_says(&child, "self %s failed-exec %u\n", makers[maker], order[maker]);
        child_says(&child, "self %s after %u\n", makers[maker], order[maker]);
    }
}

TESTS(.begin = here_need_two_pus)
