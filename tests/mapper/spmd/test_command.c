/* Does servet-spmd print Table 1, write plans and mappings, and refuse what makes no sense in one
 * line? */
#include <jansson.h>
#include <string.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/base/scratch.h"

#define DELL " --profile " FIXTURES "/spmd-dell.json "
#define HEAT "--problem 8500x4000 --comp 0.13e-6 --comm 5.8e-6 "

static void assert_says(const char *options, const char *expected)
{
    struct run run = run_command(SERVET_SPMD " %s", options);
    ck_assert_msg(run.status == 0, "servet-spmd %s: status %d, %s", options, run.status, run.err);
    ck_assert_msg(strstr(run.out, expected), "servet-spmd %s: no '%s' in\n%s", options, expected,
                  run.out);
}

TEST(table_1_is_printed)
{
    assert_says(HEAT "--cores 16" DELL,
                "tile           2125 x 1000 tasks\ncores          16 (4 x 4)");
    assert_says(HEAT "--cores 16" DELL, "iteration      0.27625 s");
    assert_says("--problem 10000x6000 --comp 0.54e-6 --comm 40.6e-6 --cores 32 --profile " FIXTURES
                "/spmd-ibm.json",
                "tile           1250 x 1500 tasks\ncores          32 (8 x 4)");
    assert_says("--problem 10800 --comp 0.08e-6 --comm 131.3e-6 --cores 8 --profile " FIXTURES
                "/spmd-amd.json",
                "tile           1350 x 1 tasks\ncores          8 (8 x 1)");
}

TEST(curves_say_where_efficiency_falls)
{
    const char *wave = "--problem 10800 --comp 0.08e-6 --comm 131.3e-6 --curve --profile " FIXTURES
                       "/spmd-amd.json";
    assert_says(wave, "# efficiency falls below 0.85 from 8 cores on");
    assert_says(wave, "0.000144         6           1  *");
}

TEST(mappings_come_in_the_mappers_formats)
{
    assert_says(HEAT "--cores 16 --format rankfile" DELL, "rank 15=dell2 slot=7\n");
    assert_says(HEAT "--cores 16 --format hostfile" DELL, "dell1\ndell1\n");
    assert_says(HEAT "--cores 4 --cpuset 0-3 --format hydra" DELL, "-bind-to user:");
    assert_says("--format help", "rankfile");
}

TEST(the_plan_is_a_file)
{
    const char *path = scratch_path("plan");
    struct run run = run_command(SERVET_SPMD " " HEAT "--tile 2125x1000 --plan %s" DELL, path);
    ck_assert_msg(strstr(run.out, "16 (4 x 4)"), "%s%s", run.out, run.err);
    json_t *plan = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(plan);
    ck_assert_uint_eq(json_array_size(json_object_get(plan, "ranks")), 16);
    json_t *inner = json_array_get(json_object_get(plan, "ranks"), 5);
    ck_assert_uint_eq(json_array_size(json_object_get(inner, "tasks")), 9);
    ck_assert_uint_eq(json_array_size(json_object_get(inner, "messages")), 4);
    json_decref(plan);
}

TEST(bad_input_is_one_line_and_status_2)
{
    const char *cases[][2] = {
        {"", "--problem: missing"},
        {"--problem 0x5 --comp 1" DELL, "--problem: expected"},
        {"--problem 8x --comp 1" DELL, "'8x'"},
        {"--problem -4x4 --comp 1" DELL, "'-4x4'"},
        {"--problem 80x60" DELL, "--comp: missing"},
        {"--problem 80x60 --comp 0" DELL, "--comp: expected a time above 0, got '0'"},
        {"--problem 80x60 --comp -1" DELL, "--comp"},
        {"--problem 80x60 --comp nan" DELL, "--comp"},
        {"--problem 80x60 --comp 1 --comm 0" DELL, "--comm: expected a time above 0"},
        {"--problem 80x60 --comp 1 --bytes 0" DELL, "--bytes: expected"},
        {"--problem 80x60 --comp 1 --efficiency 0" DELL,
         "--efficiency: expected a number above 0 and below 1"},
        {"--problem 80x60 --comp 1 --efficiency 1" DELL,
         "--efficiency: expected a number above 0 and below 1"},
        {"--problem 80x60 --comp 1 --efficiency 85" DELL, "--efficiency: expected"},
        {"--problem 80x60 --comp 1 --tile 7x60" DELL, "--tile: expected a tile that divides"},
        {"--problem 80x60 --comp 1 --tile 1x1" DELL, "--tile: expected one for at most 40 cores"},
        {"--problem 80x60 --comp 1 --cores 41" DELL,
         "--cores: expected at most 40 (the PUs of the profile), got 41"},
        {"--problem 80x60 --comp 1 --cores 7" DELL,
         "--cores: expected a number of processes whose grid divides"},
        {"--problem 80x60 --comp 1 --cores 4 --tile 40x30" DELL, "--cores, --tile"},
        {"--problem 80x60 --comp 1 --stencil 5d" DELL, "--stencil: expected 1d3"},
        {"--problem 80x60 --comp 1 --stencil 1d3" DELL, "--problem: expected one number"},
        {"--problem 80x60 --comp 1 --format pdf" DELL, "--format: expected one of"},
        {"--problem 80x60 --comp 1 --cpuset 0,900" DELL,
         "--cpuset: expected PUs of the profile (0 to 39), got 900"},
        {"--problem 80x60 --comp 1 --profile /nonexistent.json", "/nonexistent.json"},
        {"--problem 80x60 --comp 1 --topology 'package:2 pu:2'", "--comm: missing"},
        {"--problem 80x60 --comp 1 --plan /nonexistent/plan" DELL, "--plan: /nonexistent/plan"},
        {"--problem 80x60 --characterise /nonexistent/app --cpuset 0-1" DELL,
         "'/nonexistent/app' does not run"},
        {"--problem 80x60 --characterise /bin/true --cpuset 0" DELL,
         "--characterise: expected a problem for at least 2"},
        {"--problem 79x59 --characterise /bin/true --cpuset 0-1" DELL,
         "--characterise: expected a problem for at least 2"},
        {"--problem 80x60 --comp 1 --rounds 0" DELL, "--rounds: expected"},
        {"--problem 80x60 --characterise /bin/true --cpuset 0-1" DELL, "left no trace"},
        {"--problem 80x60 --comp 1 nonsense" DELL, "nonsense"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!HAVE_MPI && strstr(cases[i][0], "--characterise")) {
            continue;
        }
        struct run run = run_command(SERVET_SPMD " %s", cases[i][0]);
        ck_assert_msg(run.status == 2 && count_lines(run.err) == 1 && strstr(run.err, cases[i][1]),
                      "servet-spmd %s: no '%s' in status %d: %s", cases[i][0], cases[i][1],
                      run.status, run.err);
    }
}

/* By its name: a plan is put into place by renaming, and an open file would still be the old
 * one. */
static void assert_leaves_the_old_plan(const char *options)
{
    const char *path = scratch_file("plan", "old");
    struct run run = run_command(SERVET_SPMD " %s --plan %s" DELL, options, path);
    ck_assert_msg(run.status == 2, "servet-spmd %s: status %d", options, run.status);
    ck_assert_str_eq(read_text(path), "old");
}

TEST(a_program_that_does_not_run_leaves_the_old_plan)
{
    if (HAVE_MPI) {
        assert_leaves_the_old_plan(
            "--problem 80x60 --cores 2 --cpuset 0-1 --characterise /bin/false");
    }
}

TEST(a_refused_plan_leaves_the_old_one)
{
    assert_leaves_the_old_plan(HEAT "--cores 41");
    assert_leaves_the_old_plan(HEAT "--tile 7x7");
    assert_leaves_the_old_plan(HEAT "--efficiency 1");
}
