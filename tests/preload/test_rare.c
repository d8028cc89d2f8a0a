/* Programs that do what few do, with threads that end without a word, with forks that libc does not
 * see, with attributes and stacks: do they see what they would without the shim, and is a place
 * neither lost nor given to another process? */
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

#define PROGRAM PROGRAMS "/rare"

static void run(const char *const *changes, const char *way, const char *told)
{
    run_preloaded(changes, ARGV("taskset", "-c", order_pair, PROGRAM, way), told);
}

/* Its output is the same without the shim. */
static void expect_the_same(const char *way)
{
    child_run(&plain, NULL, ARGV("taskset", "-c", order_pair, PROGRAM, way));
    run(NULL, way, NULL);
    ck_assert_str_eq(child.out, plain.out);
    ck_assert_str_eq(child.err, plain.err);
}

TEST(the_loader_and_the_shim_do_not_wait_for_each_other)
{
    run(NULL, "constructor", NULL);
    child_says(&child, "opened\n");
}

TEST(threads_that_are_gone_are_not_touched_and_their_places_come_back)
{
    run(NULL, "gone", "0.1=second 0.2=first");
}

TEST(a_child_of_any_fork_pins_itself, .loops = 3, .not_emulated = "clone() with a stack")
{
    static const char *const ways[] = {"_Fork", "clone", "raw"};
    run(CHANGES(RANK), ways[_i], "0.0=first 0.1=both");
}

TEST(attributes_that_are_not_set_stay_so)
{
    expect_the_same("attributes");
    expect_the_same("stack");
}

TEST(attributes_with_signals_keep_them)
{
    run(NULL, "signals", "0.1=second");
    child_says(&child, "blocked: 01\n");
}

TEST(a_policy_that_is_refused_is_no_mask_that_is_refused)
{
    run(NULL, "refused", "0.1=second 0.2=first silent");
    child_says(&child, "Operation not permitted\n");
}

/* Sanitizers make stacks bigger, and their shadow of a stack outlives a frame that an asynchronous
 * cancellation leaves. */
#ifndef SANITIZERS
TEST(a_thread_is_made_on_little_stack)
{
    expect_the_same("little");
}

TEST(threads_that_are_cancelled_as_they_return_keep_no_lock)
{
    run(CHANGES("SERVET_VERBOSE=1"), "cancelled", "0.1=second 0.2=first");
}
#endif

TESTS(.begin = here_need_two_pus)
