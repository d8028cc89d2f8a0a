/* Are events whole lines that say how far the run is, in order, and does a reader that went away
 * stop nothing? */
#include <signal.h>

#include "probes/run/progress.h"
#include "tests/base/runner.h"

static int ends[2];
static struct progress progress;
static const struct probe_pairs none;

static void start(void)
{
    ck_assert_int_eq(pipe(ends), 0);
    probe_progress_start(&progress, true, ends[1]);
}

/* Output so far. */
static const char *text(void)
{
    static char buffer[4096];
    ssize_t length = read(ends[0], buffer, sizeof buffer - 1);
    ck_assert_int_ge(length, 0);
    buffer[length] = '\0';
    return buffer;
}

/* `key` of the last event in the text. */
static double number(const char *events, const char *key)
{
    const char *found = NULL;
    for (const char *at = events; (at = strstr(at, key)); at++) {
        found = at;
    }
    ck_assert_msg(found != NULL, "no %s in %s", key, events);
    return strtod(found + strlen(key), NULL);
}

TEST(a_probe_and_the_end_are_events)
{
    probe_progress_plan(&progress, NULL, 4);
    probe_progress_next(&progress, 1, "cache");
    probe_progress_outcome(&progress, "done");
    const char *events = text();
    ck_assert_ptr_eq(
        strstr(events, "{\"event\": \"probe\", \"probe\": \"cache\", \"step\": 1, \"steps\": 4, "),
        events);
    ck_assert_ptr_nonnull(strstr(events, "}\n{\"event\": \"end\", \"outcome\": \"done\", "));
    ck_assert_int_eq(events[strlen(events) - 1], '\n');
}

TEST(earlier_steps_count_as_done)
{
    probe_progress_plan(&progress, NULL, 4);
    probe_progress_next(&progress, 1, "cache");
    probe_progress_step(&progress, "curve", 0.5, &none);
    ck_assert_double_eq_tol(number(text(), "\"done\": "), 0.125, 1e-4);
    probe_progress_next(&progress, 3, "memory");
    probe_progress_step(&progress, "copy", 0.5, &none);
    const char *events = text();
    ck_assert_double_eq_tol(number(events, "\"done\": "), 0.625, 1e-4);
    ck_assert_ptr_nonnull(strstr(events, "\"probe\": \"memory\", \"what\": \"copy\""));
}

TEST(nothing_is_more_than_done)
{
    probe_progress_plan(&progress, NULL, 1);
    probe_progress_next(&progress, 1, "cache");
    probe_progress_step(&progress, "curve", 1.5, &none);
    ck_assert_double_eq_tol(number(text(), "\"done\": "), 1, 1e-9);
}

TEST(the_time_since_the_start_is_in_every_event)
{
    progress.started_s -= 10;
    probe_progress_next(&progress, 1, "cache");
    ck_assert_double_eq_tol(number(text(), "\"elapsed_s\": "), 10, 1);
}

TEST(pairs_are_named_while_pairs_are_measured)
{
    const struct probe_pairs pairs = {.pair = {3, 5}, .done = 2, .planned = 9};
    probe_progress_next(&progress, 1, "message");
    probe_progress_step(&progress, "messages", 0.1, &pairs);
    ck_assert_ptr_nonnull(
        strstr(text(), "\"pair\": [3, 5], \"pairs_done\": 2, \"pairs_total\": 9}"));
    probe_progress_next(&progress, 1, "memory");
    probe_progress_step(&progress, "copies", 0.1, &none);
    ck_assert_ptr_null(strstr(text(), "pair\""));
}

TEST(steps_that_follow_at_once_are_left_out)
{
    probe_progress_next(&progress, 1, "cache");
    for (int i = 0; i < 1000; i++) {
        probe_progress_step(&progress, "curve", 0.5, &none);
    }
    const char *events = text(), *first = strstr(events, "\"event\": \"step\"");
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(strstr(first + 1, "\"event\": \"step\""));
}

TEST(a_reader_that_is_gone_stops_nothing)
{
    signal(SIGPIPE, SIG_IGN);
    close(ends[0]);
    probe_progress_next(&progress, 1, "cache");
    ck_assert_int_lt(progress.events, 0);
    probe_progress_outcome(&progress, "done");
}

TESTS(.setup = start)
