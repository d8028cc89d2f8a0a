/* Are events whole lines that say how far the run is, in order, and does a reader that went away
 * stop nothing? */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* What came so far. */
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
    probe_progress_next(&progress, "cache", 0.5);
    probe_progress_outcome(&progress, "done");
    const char *events = text();
    ck_assert_ptr_eq(strstr(events, "{\"event\": \"probe\", \"probe\": \"cache\", "), events);
    ck_assert_ptr_nonnull(strstr(events, "}\n{\"event\": \"end\", \"outcome\": \"done\", "));
    ck_assert_int_eq(events[strlen(events) - 1], '\n');
}

TEST(earlier_probes_count_as_done)
{
    probe_progress_next(&progress, "cache", 0.5);
    probe_progress_step(&progress, "curve", 0.5, &none);
    ck_assert_double_eq_tol(number(text(), "\"done\": "), 0.25, 1e-4);
    probe_progress_next(&progress, "memory", 0.2);
    probe_progress_step(&progress, "copy", 0.5, &none);
    const char *events = text();
    ck_assert_double_eq_tol(number(events, "\"done\": "), 0.6, 1e-4);
    ck_assert_ptr_nonnull(strstr(events, "\"probe\": \"memory\", \"what\": \"copy\""));
}

TEST(nothing_is_more_than_done)
{
    probe_progress_next(&progress, "cache", 1);
    probe_progress_step(&progress, "curve", 1.5, &none);
    ck_assert_double_eq_tol(number(text(), "\"done\": "), 1, 1e-9);
}

TEST(pairs_are_named_while_pairs_are_measured)
{
    const struct probe_pairs pairs = {.pair = {3, 5}, .done = 2, .planned = 9};
    probe_progress_next(&progress, "message", 1);
    probe_progress_step(&progress, "messages", 0.1, &pairs);
    ck_assert_ptr_nonnull(
        strstr(text(), "\"pair\": [3, 5], \"pairs_done\": 2, \"pairs_total\": 9}"));
    probe_progress_next(&progress, "memory", 1);
    probe_progress_step(&progress, "copies", 0.1, &none);
    ck_assert_ptr_null(strstr(text(), "pair\""));
}

TEST(steps_that_follow_at_once_are_left_out)
{
    probe_progress_next(&progress, "cache", 1);
    for (int i = 0; i < 1000; i++) {
        probe_progress_step(&progress, "curve", 0.5, &none);
    }
    const char *events = text(), *first = strstr(events, "\"step\"");
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(strstr(first + 1, "\"step\""));
}

TEST(the_time_left_is_guessed_from_what_is_done)
{
    progress.started_s -= 10; /* a quarter in ten seconds */
    probe_progress_next(&progress, "cache", 1);
    probe_progress_step(&progress, "curve", 0.25, &none);
    ck_assert_double_eq_tol(number(text(), "\"seconds_left\": "), 30, 1);
}

TEST(a_first_second_is_no_ground_for_a_guess)
{
    probe_progress_next(&progress, "cache", 1);
    probe_progress_step(&progress, "curve", 0.25, &none);
    ck_assert_ptr_null(strstr(text(), "seconds_left"));
}

TEST(a_plan_is_a_guess_at_once_and_gives_way_to_what_is_seen)
{
    probe_progress_next(&progress, "cache", 0.5);
    probe_progress_expect(&progress, 10, 30);
    probe_progress_step(&progress, "curve", 0, &none);
    ck_assert_double_eq_tol(number(text(), "\"seconds_left\": "), 40, 1);
    /* half of it took twice as long as planned: so will the other half, and not what comes later */
    probe_progress_next(&progress, "cache", 0.5);
    probe_progress_expect(&progress, 10, 30);
    progress.started_s -= 10;
    probe_progress_step(&progress, "curve", 0.5, &none);
    const char *events = text();
    double left = number(events, "\"seconds_left\": ");
    ck_assert_double_gt(left, 30 + 7.5);
    ck_assert_double_lt(left, 30 + 10);
    ck_assert_double_eq_tol(number(events, "\"done\": "), 10 / (10 + left), 0.01);
}

TEST(no_more_time_is_left_than_of_the_budget)
{
    probe_progress_clock(&progress, NULL, 15);
    progress.started_s -= 10;
    probe_progress_next(&progress, "cache", 0.5);
    probe_progress_expect(&progress, 10, 30);
    probe_progress_step(&progress, "curve", 0, &none);
    ck_assert_double_eq_tol(number(text(), "\"seconds_left\": "), 5, 1);
}

TEST(what_was_done_stays_done)
{
    probe_progress_next(&progress, "cache", 0.5);
    probe_progress_expect(&progress, 10, 0);
    progress.started_s -= 10;
    probe_progress_step(&progress, "curve", 0.9, &none);
    const double before = number(text(), "\"done\": ");
    probe_progress_next(&progress, "memory", 0.5);
    probe_progress_expect(&progress, 100, 0);
    probe_progress_step(&progress, "copies", 0, &none);
    const char *events = text();
    ck_assert_double_eq_tol(number(events, "\"done\": "), before, 1e-4);
    ck_assert_double_gt(number(events, "\"seconds_left\": "), 90);
}

TEST(a_reader_that_is_gone_stops_nothing)
{
    signal(SIGPIPE, SIG_IGN);
    close(ends[0]);
    probe_progress_next(&progress, "cache", 1);
    ck_assert_int_lt(progress.events, 0);
    probe_progress_outcome(&progress, "done");
}

TESTS(.setup = start)
