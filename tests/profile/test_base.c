/* The base of every room: figures and their intervals, hashes, other programs. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/child.h"
#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/base/format_safe.h"
#include "profile/base/hash.h"
#include "profile/base/statistics.h"
#include "profile/base/ticks.h"
#include "profile/scope.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

TEST(a_median_comes_with_the_values_that_hold_it)
{
    /* Binomial(n, 1/2): how many of the smallest may be left out for 95 %. */
    static const size_t left_out[][2] = {{1, 0},  {5, 0},  {6, 0},  {8, 0},  {9, 1},
                                         {11, 1}, {12, 2}, {20, 5}, {41, 13}};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        double values[41];
        size_t count = left_out[i][0], skip = left_out[i][1];
        for (size_t k = 0; k < count; k++) {
            values[k] =
                (double)((k * 7 + 3) % count); /* 0 … count - 1 where 7 does not divide it */
        }
        struct profile_median found = profile_median(values, count);
        ck_assert_double_eq_tol(found.median, (double)(count - 1) / 2, 1e-12);
        ck_assert_double_eq_tol(found.low, (double)skip, 1e-12);
        ck_assert_double_eq_tol(found.high, (double)(count - 1 - skip), 1e-12);
    }
}

TEST(a_quantile_is_one_of_the_values)
{
    double values[] = {5, 1, 4, 2, 3};
    ck_assert_double_eq(profile_quantile(values, 5, 0), 1);
    ck_assert_double_eq(profile_quantile(values, 5, 0.25), 2);
    ck_assert_double_eq(profile_quantile(values, 5, 1), 5);
    ck_assert_double_eq(profile_median_value(values, 4), 2.5);
    ck_assert(isnan(profile_median_value(values, 0)) && isnan(profile_quantile(values, 0, 0.5)));
}

TEST(a_hash_is_the_published_one)
{
    /* draft-eastlake-fnv, appendix C: FNV-1a of 64 bits. */
    ck_assert(profile_hash_text(PROFILE_HASH_BEGIN, "") == UINT64_C(0xcbf29ce484222325));
    ck_assert(profile_hash_text(PROFILE_HASH_BEGIN, "a") == UINT64_C(0xaf63dc4c8601ec8c));
    ck_assert(profile_hash_text(PROFILE_HASH_BEGIN, "foobar") == UINT64_C(0x85944171f73967e8));
    ck_assert(profile_hash_bytes(PROFILE_HASH_BEGIN, "foobar", 6) == UINT64_C(0x85944171f73967e8));
}

/* Its first line is that of all PUs, and no PU's: taken for PU 9, it doubled the sums. */
TEST(the_ticks_of_a_pu_are_those_of_its_line)
{
    const char *path = scratch_file("stat", "cpu  9 9 9 9 9 9 9 9 0 0\n"
                                            "cpu0 1 0 2 30 4 0 0 5 700 0\n"
                                            "cpu1 100 0 0 7 0\ncpu10 5 5 5 5 5 5 5 5 0 0\n"
                                            "intr 1 2 3\ncpu2 1 1 1 1 1 1 1 1 0 0\n");
    struct profile_ticks ticks[10];
    memset(ticks, 1, sizeof ticks);
    ck_assert_int_eq(profile_ticks_read(path, ticks, 10), 0);
    ck_assert_uint_eq(ticks[0].all, 42);
    ck_assert_uint_eq(ticks[0].idle, 34);
    ck_assert_uint_eq(ticks[0].stolen, 5);
    ck_assert_uint_eq(ticks[1].all, 107);
    ck_assert_uint_eq(ticks[2].all, 0);
    ck_assert_uint_eq(ticks[9].all, 0);
    ck_assert_int_eq(profile_ticks_read("/nonexistent", ticks, 10), -ENOENT);
}

/* Long files are read in pieces that end anywhere. */
TEST(each_pu_of_a_large_machine_has_its_ticks)
{
    enum { PUS = 1000, LINE_BYTES = 64 };
    static struct profile_ticks ticks[PUS];
    static char text[PUS * LINE_BYTES], *end = text;
    for (unsigned pu = 0; pu < PUS; pu++) {
        end += sprintf(end, "cpu%u 1 2 3 %u 0 0 0 0 0 0\n", pu, 10 * pu);
    }
    ck_assert_int_eq(profile_ticks_read(scratch_file("large", "%s", text), ticks, PUS), 0);
    for (unsigned pu = 0; pu < PUS; pu++) {
        ck_assert_uint_eq(ticks[pu].idle, 10 * pu);
        ck_assert_uint_eq(ticks[pu].all, 6 + 10 * pu);
    }
}

TEST(a_pu_that_is_not_listed_has_not_been_busy)
{
    static const struct profile_ticks none, now = {9, 4, 0}, later = {12, 4, 0}, idled = {12, 6, 0},
                                            back = {12, 3, 0};
    ck_assert_int_eq(profile_ticks_idled(&now, &later), 0);
    ck_assert_int_eq(profile_ticks_idled(&now, &idled), 2);
    ck_assert_int_eq(profile_ticks_idled(&now, &back), -1);
    ck_assert_int_eq(profile_ticks_idled(&none, &now), -1);
    ck_assert_int_eq(profile_ticks_idled(&now, &none), -1);
    ck_assert_int_eq(profile_ticks_idled(&none, &none), -1);
}

TEST(what_has_no_room_is_not_put)
{
    char text[8] = "-------", *end = text + sizeof text;
    ck_assert_ptr_eq(profile_format_text(profile_format_text(text, end, "120"), end, "/abc"),
                     text + 7);
    ck_assert_str_eq(text, "120/abc");
    ck_assert_ptr_null(profile_format_text(text + 7, end, "d"));
    ck_assert_ptr_null(profile_format_text(NULL, end, "d"));
}

TEST(the_clock_goes_on)
{
    uint64_t before = profile_now_ns();
    double seconds = profile_now_s();
    ck_assert_uint_le(before, profile_now_ns());
    ck_assert_double_ge(seconds, (double)before * 1e-9 - 1e-6);
}

static char *output_of(const char *script, const char *const *environment, int *status)
{
    int out = profile_child_file();
    char *text, *words = strdup(script);
    ck_assert(out >= 0 && words);
    *status = profile_child_run(
        &(struct profile_child){.argv = (char *[]){(char[]){"sh"}, (char[]){"-c"}, words, NULL},
                                .environment = environment,
                                .folder = "/",
                                .in = PROFILE_CHILD_NOTHING,
                                .out = out,
                                .errors = out});
    ck_assert_int_eq(profile_child_read(out, &text), 0);
    close(out);
    free(words);
    return text;
}

TEST(a_child_gets_its_streams_environment_and_folder)
{
    const char *const environment[] = {"SERVET_TEST=here", "HOME", NULL};
    int status;
    char *text = output_of("echo \"$SERVET_TEST ${HOME-none} $PWD\"; cat; echo err >&2; exit 3",
                           environment, &status);
    ck_assert_int_eq(status, 3);
    ck_assert_str_eq(text, "here none /\nerr\n");
    free(text);
    text = output_of("kill -TERM $$", NULL, &status);
    ck_assert_int_eq(status, 128 + SIGTERM);
    free(text);
}

TEST(a_program_that_is_not_there_is_no_exit_status)
{
    char *argv[] = {(char[]){"servet-no-such-program"}, NULL};
    pid_t pid = -7;
    struct profile_child child = {.argv = argv, .in = -1, .out = -1, .errors = -1};
    ck_assert_int_eq(profile_child_start(&child, &pid), -ENOENT);
    ck_assert_int_eq(pid, -7);
    ck_assert_int_eq(profile_child_run(&child), -ENOENT);
}

static int fill_in(void *context)
{
    char *text = context;
    snprintf(text, sizeof "there", "there");
    fputs("lost\n", stderr);
    return 0;
}

static int crash(void *context)
{
    fill_in(context);
    raise(SIGSEGV);
    return 0;
}

static int refuse_it(void *context)
{
    fill_in(context);
    return -ENODATA;
}

TEST(a_call_that_crashes_leaves_us_as_we_were)
{
    char text[sizeof "there"] = "here";
    ck_assert_int_eq(profile_child_call(crash, text, text, sizeof text), -EFAULT);
    ck_assert_str_eq(text, "here");
    ck_assert_int_eq(profile_child_call(refuse_it, text, text, sizeof text), -ENODATA);
    ck_assert_int_eq(profile_child_call(fill_in, text, NULL, 0), 0);
    ck_assert_str_eq(text, "here");
    ck_assert_int_eq(profile_child_call(fill_in, text, text, sizeof text), 0);
    ck_assert_str_eq(text, "there");
}

TEST(a_text_in_memory_is_there_when_it_is_closed)
{
    FREED char *text;
    size_t size;
    FILE *stream = profile_stream_open(&text, &size);
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(ftell(stream), 0);
    fputs("one, ", stream);
    ck_assert_int_eq(ftell(stream), 5);
    ck_assert_ptr_null(text);
    ck_assert_int_eq(fseek(stream, 0, SEEK_SET), -1);
    fprintf(stream, "%d", 2);
    ck_assert_int_eq(fclose(stream), 0);
    ck_assert_uint_eq(size, 6);
    ck_assert_str_eq(text, "one, 2");
}
