/* Are the statistics and the predicted figures what they are said to be, and does the laboratory
 * account for all of its parts? */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/bench/programs.h"
#include "benchmarks/bench/statistics.h"
#include "benchmarks/lab/lab.h"
#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"

TEST(medians_and_intervals)
{
    const double odd[] = {5.0, 1.0, 3.0}, even[] = {4.0, 1.0, 3.0, 2.0},
                 same[] = {2.0, 2.0, 2.0, 2.0};
    ck_assert_double_eq_tol(bench_statistics_median(odd, 3), 3.0, 1e-15);
    ck_assert_double_eq_tol(bench_statistics_median(even, 4), 2.5, 1e-15);
    struct interval interval = bench_statistics_interval(same, 4);
    ck_assert_double_eq_tol(interval.low, 2.0, 1e-15);
    ck_assert_double_eq_tol(interval.high, 2.0, 1e-15);
    interval = bench_statistics_interval(odd, 3);
    ck_assert_double_eq_tol(interval.low, 1.0, 1e-15);
    ck_assert_double_eq_tol(interval.high, 5.0, 1e-15);
}

/* A slow spell that hits both programs in the same rounds is no difference: with independent
 * resamples the interval would reach from 0.2 to 20. */
TEST(ratios_are_paired_by_round)
{
    double a[20], b[20];
    for (int i = 0; i < 20; i++) {
        b[i] = i % 2 ? 10.0 : 1.0;
        a[i] = 2.0 * b[i];
    }
    struct interval interval;
    ck_assert_double_eq_tol(bench_statistics_ratio(a, b, 20, &interval), 2.0, 1e-12);
    ck_assert_double_eq_tol(interval.low, 2.0, 1e-12);
    ck_assert_double_eq_tol(interval.high, 2.0, 1e-12);
}

/* Of 200 comparisons of equal distributions about 5 % may exclude 1; with an interval that is too
 * narrow many do. */
TEST(the_interval_covers_what_it_says)
{
    uint64_t state = 7;
    int excluded = 0;
    for (int trial = 0; trial < 200; trial++) {
        double a[15], b[15];
        for (int i = 0; i < 15; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            a[i] = 1.0 + 0.1 * (double)(state >> 40) / (double)(1 << 24);
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            b[i] = 1.0 + 0.1 * (double)(state >> 40) / (double)(1 << 24);
        }
        struct interval interval;
        bench_statistics_ratio(a, b, 15, &interval);
        excluded += interval.low > 1.0 || interval.high < 1.0;
    }
    ck_assert_int_le(excluded, 20);
}

TEST(npb_names)
{
    static const char *const good[] = {"bt.A.x", "cg.B.4", "sp-mz.W.x", "lu.C.16"};
    static const char *const bad[] = {"bt.A",    "bt.Z.x",   "cg.B.0", "cg.b.x",
                                      "xcg.B.x", "cg.B.x.o", "bt.A.4x"};
    static const size_t numbers[] = {0, 4, 0, 16};
    size_t ranks;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert_msg(bench_npb_is_name(good[i], &ranks), "%s", good[i]);
        ck_assert_uint_eq(ranks, numbers[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(!bench_npb_is_name(bad[i], &ranks), "%s", bad[i]);
    }
}

/* The bandwidths that the 2012 paper quotes for the Finis Terrae (Section 4.3): 2200 MB/s alone and
 * in different cells, 1700 in one cell, 1000 on one bus; two workers of a ring send two
 * messages. */
TEST(predictions_follow_the_papers_bandwidths)
{
    struct servet_profile *profile = loaded(FIXTURES "/finis-terrae-2-nodes.json");
    static const uint32_t pairs[][2] = {{0, 1}, {0, 4}, {0, 8}, {0, 16}};
    static const double bytes[] = {2e9, 3.4e9, 4.4e9, 4.4e9},
                        seconds[] = {16e-6, 16e-6, 16e-6, 32e-6};
    for (size_t i = 0; i < 4; i++) {
        struct prediction prediction;
        ck_assert_int_eq(bench_predict(profile, pairs[i], 2, &prediction), 0);
        ck_assert_double_eq_tol(prediction.bytes_per_s, bytes[i], 1.0);
        ck_assert_double_eq_tol(prediction.ring_seconds, seconds[i], 1e-12);
        ck_assert_uint_eq(prediction.nodes, i == 3 ? 2 : 1);
    }
    const uint32_t bus[] = {0, 1, 2, 3}, unknown[] = {32};
    struct prediction prediction;
    ck_assert_int_eq(bench_predict(profile, bus, 4, &prediction), 0);
    ck_assert_double_eq_tol(prediction.bytes_per_s, 2e9, 1.0); /* the bus is full with two */
    ck_assert_int_eq(bench_predict(profile, unknown, 1, &prediction), -EINVAL);
}

TEST(the_default_fills_nodes_in_order)
{
    struct servet_profile *profile = loaded(FIXTURES "/finis-terrae-2-nodes.json");
    uint32_t pus[33];
    ck_assert_int_eq(bench_default_placement(profile, 20, pus), 0);
    ck_assert_uint_eq(pus[0], 0);
    ck_assert_uint_eq(pus[19], 19);
    ck_assert_int_eq(bench_default_placement(profile, 33, pus), -ERANGE);
}

/* Too little time for anything: every part is there all the same, and says so. */
TEST(every_part_is_accounted_for_in_the_time_that_there_is)
{
    struct run run = run_command(LAB " --within 1 -n 1 --json -o %s", scratch_folder());
    ck_assert_msg(run.status == 0 && strstr(run.err, "part 1 of "), "%d: %s", run.status, run.err);
    json_t *root = json_loads(run.out, 0, NULL), *part;
    size_t i, left_out = 0;
    ck_assert_uint_eq(json_array_size(json_object_get(root, "parts")), bench_part_count + 3);
    const char *written = read_text(scratch_path("MEASUREMENTS.md"));
    json_array_foreach(json_object_get(root, "parts"), i, part)
    {
        ck_assert_msg(strstr(written, json_string_value(json_object_get(part, "what"))), "no %s",
                      json_string_value(json_object_get(part, "name")));
    }
    for (const char *at = written; (at = strstr(at, "no time left")); at++) {
        left_out++;
    }
    ck_assert_uint_ge(left_out, 17);
    json_decref(root);
}

/* What follows the last '/' or '}' of the first word. */
static const char *program_of(const char *command, size_t *length)
{
    size_t end = strcspn(command, " `");
    const char *name = command;
    for (size_t i = 0; i < end; i++) {
        name = command[i] == '/' || command[i] == '}' ? command + i + 1 : name;
    }
    *length = (size_t)(command + end - name);
    return name;
}

static bool is_part_of_all(const char *name, size_t length)
{
    for (size_t i = 0; i < bench_part_count; i++) {
        for (const char *const *word = bench_parts[i].command; *word; word++) {
            size_t own;
            const char *other = program_of(*word, &own);
            if (own == length && memcmp(other, name, length) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Every command under "Figures" of the measurements is one that lab runs, lab itself, or
 * servet-bench; what is judged by other people's measurements has a heading of its own. */
TEST(commands_of_the_measurements_are_parts)
{
    FILE *file = fopen(MEASUREMENTS, "r");
    char line[4096];
    bool figures = false;
    size_t commands = 0;
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file)) {
        figures = strncmp(line, "## ", 3) == 0 ? strncmp(line, "## Figures", 10) == 0 : figures;
        for (char *at = line; figures && (at = strstr(at, "`benchmarks/"));) {
            size_t length;
            const char *name = program_of(++at, &length);
            bool itself = (length == 3 && memcmp(name, "lab", 3) == 0) ||
                          (length == 12 && memcmp(name, "servet-bench", 12) == 0);
            ck_assert_msg(itself || is_part_of_all(name, length), "lab does not run %.*s",
                          (int)length, name);
            at += length;
            commands++;
        }
    }
    fclose(file);
    ck_assert_uint_ge(commands, 6);
}

/* of a busy machine */
TESTS(.seconds = 100)
