/* Does servet-bench compare what it says, and refuse what it cannot compare, in one line? */
#include <check.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"

static char folder[64];

static struct run bench(const char *format, ...)
{
    char line[4096];
    int used = snprintf(line, sizeof line, "%s ", SERVET_BENCH);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, sizeof line - (size_t)used, format, arguments);
    va_end(arguments);
    return run_command(line);
}

static void make_folder(void)
{
    strcpy(folder, "/tmp/servet-bench-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void drop_folder(void)
{
    char line[128];
    snprintf(line, sizeof line, "/bin/rm -rf %s", folder);
    struct run run = run_command(line);
    run_free(&run);
}

static void script(const char *name, const char *body)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\n%s\n", body);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0755), 0);
}

/* The object of one comparator in the only comparison. */
static json_t *series(json_t *root, const char *name)
{
    json_t *list = json_object_get(json_array_get(json_object_get(root, "comparisons"), 0),
                                   "comparators"),
           *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        if (strcmp(json_string_value(json_object_get(item, "name")), name) == 0) {
            return item;
        }
    }
    ck_abort_msg("no comparator %s", name);
    return NULL;
}

/* servet-bench on FOLDER/app under a command that ends it. */
static struct run run_command_for(const char *front, const char *where)
{
    char line[4096];
    snprintf(line, sizeof line, "%s %s -n 1 -c default -- %s/app", front, SERVET_BENCH, where);
    return run_command(line);
}

static json_t *parsed(struct run *run)
{
    ck_assert_msg(run->status == 0, "status %d: %s", run->status, run->err);
    json_t *root = json_loads(run->out, 0, NULL);
    ck_assert_msg(root != NULL, "not JSON: %s", run->out);
    run_free(run);
    return root;
}

/* The program says which comparator it runs under: 10 times as long with OMP_PROC_BIND as
 * without. */
START_TEST(figures_are_those_of_the_program_under_each_comparator)
{
    script("app", "if [ -n \"$OMP_PROC_BIND\" ]; then echo took 50 s; else echo took 5 s; fi");
    struct run run =
        bench("-n 3 --json -c default,omp-close --metric 'took ([0-9]+)' -- %s/app", folder);
    json_t *root = parsed(&run);
    json_t *close = series(root, "omp-close");
    ck_assert_double_eq_tol(json_number_value(json_object_get(series(root, "default"), "median")),
                            5.0, 1e-12);
    ck_assert_double_eq_tol(json_number_value(json_object_get(close, "median")), 50.0, 1e-12);
    ck_assert_double_eq_tol(json_number_value(json_object_get(close, "ratio")), 10.0, 1e-12);
    ck_assert_uint_eq(json_array_size(json_object_get(close, "values")), 3);
    json_decref(root);
}
END_TEST

/* A B A B, not A A B B: the program keeps the order of its runs. */
START_TEST(rounds_are_interleaved)
{
    char body[256], path[128];
    snprintf(body, sizeof body, "echo \"${OMP_PROC_BIND:-none}\" >>%s/order", folder);
    script("app", body);
    struct run run = bench("-n 3 -c default,omp-spread -- %s/app", folder);
    ck_assert_int_eq(run.status, 0);
    run_free(&run);
    snprintf(path, sizeof path, "/bin/cat %s/order", folder);
    run = run_command(path);
    ck_assert_str_eq(run.out, "none\nspread\nnone\nspread\nnone\nspread\n");
    run_free(&run);
}
END_TEST

START_TEST(the_users_own_placement_does_not_leak_in)
{
    script("app", "echo \"value ${#OMP_PLACES}\"");
    setenv("OMP_PLACES", "{0}", 1);
    struct run run = bench("-n 1 --json -c default --metric 'value ([0-9]+)' -- %s/app", folder);
    unsetenv("OMP_PLACES");
    json_t *root = parsed(&run);
    ck_assert_double_eq_tol(json_number_value(json_object_get(series(root, "default"), "median")),
                            0.0, 1e-12);
    json_decref(root);
}
END_TEST

#ifndef SANITIZED /* a sanitized shim does not load into programs that are not */
START_TEST(servet_comparators_run_the_shim)
{
    script("app", "case \"$LD_PRELOAD$SERVET_COMM_PRIOR\" in *libservet_pin.so*) echo pinned 1;; "
                  "*) echo pinned 0;; esac");
    struct run run =
        bench("-n 1 --json -c default,servet-mem,servet-comm --metric 'pinned ([0-9])' -- %s/app",
              folder);
    json_t *root = parsed(&run);
    ck_assert_double_eq_tol(json_number_value(json_object_get(series(root, "default"), "median")),
                            0.0, 1e-12);
    ck_assert_double_eq_tol(
        json_number_value(json_object_get(series(root, "servet-mem"), "median")), 1.0, 1e-12);
    ck_assert_double_eq_tol(
        json_number_value(json_object_get(series(root, "servet-comm"), "median")), 1.0, 1e-12);
    json_decref(root);
}
END_TEST

/* Slower by ten with no spread is beyond any interval; the direction follows --higher. */
START_TEST(the_verdict_names_a_slower_servet)
{
    script("app", "if [ -n \"$LD_PRELOAD\" ]; then echo figure 50; else echo figure 5; fi");
    struct run run =
        bench("-n 6 -c default,servet-mem --metric 'figure ([0-9]+)' -- %s/app", folder);
    ck_assert_ptr_nonnull(strstr(run.out, "SLOWER beyond the interval"));
    run_free(&run);
    run = bench("-n 6 --higher -c default,servet-mem --metric 'figure ([0-9]+)' -- %s/app", folder);
    ck_assert_ptr_nonnull(strstr(run.out, "not slower beyond the interval"));
    run_free(&run);
    run = bench("-n 5 -c default,servet-mem --metric 'figure ([0-9]+)' -- %s/app", folder);
    ck_assert_ptr_nonnull(strstr(run.out, "no verdict"));
    run_free(&run);
}
END_TEST

static const struct {
    const char *options, *reason;
} reasons[] = {
    {"", "every PU has one thread under both"},
    {"--jobs 2", "more threads than PUs: the system moves threads"},
    {"--load 1", "a pinned thread stays beside the background job"},
};

/* Each is measured again, and has its reason. */
START_TEST(exceptions_are_listed_with_reasons)
{
    script("app", "if [ -n \"$LD_PRELOAD\" ]; then echo figure 50; else echo figure 5; fi");
    struct run run = bench("-n 6 %s -c default,servet-mem --metric 'figure ([0-9]+)' -- %s/app",
                           reasons[_i].options, folder);
    ck_assert_msg(strstr(run.out, "beyond the interval: 1 of 1 programs") &&
                      strstr(run.out, "servet-mem takes 10.000 of default, again alone 10.000: ") &&
                      strstr(run.out, reasons[_i].reason),
                  "%s", run.out);
    run_free(&run);
}
END_TEST

/* What is slower in the first six rounds only is not held against servet, and not hidden either. */
START_TEST(exceptions_that_do_not_come_again_are_said_to)
{
    char body[512];
    snprintf(body, sizeof body,
             "echo x >>%s/runs; if [ -n \"$LD_PRELOAD\" ] && [ $(wc -l <%s/runs) -le 12 ]; then "
             "echo figure 50; else "
             "echo figure 5; fi",
             folder, folder);
    script("app", body);
    struct run run =
        bench("-n 6 --json -c default,servet-mem --metric 'figure ([0-9]+)' -- %s/app", folder);
    json_t *root = parsed(&run),
           *exception = json_array_get(json_object_get(root, "exceptions"), 0);
    ck_assert(json_is_false(json_object_get(exception, "confirmed")));
    ck_assert_double_eq_tol(json_number_value(json_object_get(exception, "slowdown")), 10.0, 1e-9);
    json_decref(root);
}
END_TEST
#endif

/* A comparator under which the program fails is left out with its reason; the others keep their
 * figures. */
START_TEST(failures_are_reasons_not_figures)
{
    script("app", "[ -z \"$OMP_PROC_BIND\" ] || { echo no places here >&2; exit 3; }");
    struct run run = bench("-n 2 --json -c default,omp-close -- %s/app", folder);
    json_t *root = parsed(&run);
    ck_assert_str_eq(json_string_value(json_object_get(series(root, "omp-close"), "left_out")),
                     "exit status 3: no places here");
    ck_assert_ptr_nonnull(json_object_get(series(root, "default"), "median"));
    json_decref(root);
    run = bench("-n 1 --limit 0.2 -c default -- /bin/sleep 30");
    ck_assert_int_eq(run.status, 1);
    ck_assert_ptr_nonnull(strstr(run.out, "took more than 0.2 s"));
    run_free(&run);
}
END_TEST

START_TEST(jobs_run_at_the_same_time_and_the_worst_counts)
{
    char body[512];
    /* each copy waits for the other: in turn they would never end */
    snprintf(body, sizeof body,
             "mkdir %s/first 2>/dev/null && { while [ ! -d %s/second ]; do sleep 0.05; done; echo "
             "rank 1; exit; }\n"
             "mkdir %s/second; echo rank 2",
             folder, folder, folder);
    script("app", body);
    struct run run = bench(
        "-n 1 --json --limit 30 --jobs 2 -c default --metric 'rank ([0-9])' -- %s/app", folder);
    json_t *root = parsed(&run);
    ck_assert_double_eq_tol(json_number_value(json_object_get(series(root, "default"), "median")),
                            2.0, 1e-12);
    json_decref(root);
}
END_TEST

START_TEST(a_background_job_runs_during_the_measurement_and_not_after)
{
    char line[128];
    script("app",
           "parent=$PPID; n=0; for s in /proc/[0-9]*/stat; do read -r p c st pp rest <$s && [ "
           "\"$pp\" = "
           "\"$parent\" ] && [ \"$p\" != $$ ] && n=$((n + 1)); done 2>/dev/null; echo beside $n");
    struct run run =
        bench("-n 1 --json --load 1 -c default --metric 'beside ([0-9]+)' -- %s/app", folder);
    json_t *root = parsed(&run);
    ck_assert_double_ge(json_number_value(json_object_get(series(root, "default"), "median")), 1.0);
    json_decref(root);
    snprintf(line, sizeof line, "-n 1 --json -c default --metric 'beside ([0-9]+)' -- %s/app",
             folder);
    run = bench("%s", line);
    root = parsed(&run);
    ck_assert_double_eq_tol(json_number_value(json_object_get(series(root, "default"), "median")),
                            0.0, 1e-12);
    json_decref(root);
}
END_TEST

START_TEST(a_budget_ends_the_rounds)
{
    script("app", "sleep 0.2; echo figure 1");
    struct run run = bench(
        "-n 1000 --budget 0.3 --json -c default --metric 'figure ([0-9]+)' -- %s/app", folder);
    json_t *root = parsed(&run);
    size_t rounds = json_array_size(json_object_get(series(root, "default"), "values"));
    ck_assert_uint_ge(rounds, 1);
    ck_assert_uint_le(rounds, 3); /* 0.6 s are over after three */
    json_decref(root);
}
END_TEST

/* Ctrl-C, or a batch system's kill, must not leave the program running on the machine. */
START_TEST(programs_end_with_servet_bench)
{
    char body[256], path[128], gone[160];
    snprintf(body, sizeof body, "echo $$ >%s/pid; exec sleep 60", folder);
    snprintf(path, sizeof path, "%s/pid", folder);
    script("app", body);
    struct run run = run_command_for("/usr/bin/timeout -s INT 2", folder);
    run_free(&run);
    FILE *file = fopen(path, "r");
    int pid = 0;
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%d", &pid), 1);
    fclose(file);
    snprintf(gone, sizeof gone, "/proc/%d/exe", pid);
    for (int i = 0; i < 100 && access(gone, F_OK) == 0; i++) {
        usleep(50000);
    }
    ck_assert_int_ne(access(gone, F_OK), 0);
}
END_TEST

/* NPB's names, in NPB's folders, and its own figure. */
START_TEST(npb_binaries_are_found_and_run)
{
    char path[128];
    snprintf(path, sizeof path, "%s/bin", folder);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    script("bin/cg.S.x", "echo ' Mop/s total     =                   123.45'");
    script("bin/is.W.x", "echo ' Mop/s total     =                    67.00'");
    script("bin/make.sh", "echo ' Mop/s total = 1'");
    struct run run = bench("-n 2 -c default --json --npb %s", folder);
    json_t *root = parsed(&run), *list = json_object_get(root, "comparisons");
    ck_assert_uint_eq(json_array_size(list), 2);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(list, 0), "program")),
                     "cg.S.x");
    ck_assert_int_eq(json_is_true(json_object_get(json_array_get(list, 0), "higher_is_better")), 1);
    ck_assert_double_eq_tol(json_number_value(json_object_get(series(root, "default"), "median")),
                            123.45, 1e-9);
    json_decref(root);
}
END_TEST

START_TEST(plots_are_drawn)
{
    if (access("/usr/bin/gnuplot", X_OK)) {
        return; /* plots are optional: the command says so itself */
    }
    char line[256];
    struct run run = bench("-n 2 -c default,omp-close --plot %s/p.svg -- /bin/true", folder);
    ck_assert_msg(run.status == 0, "%s", run.err);
    run_free(&run);
    snprintf(line, sizeof line, "/bin/grep -c omp-close %s/p.svg", folder);
    run = run_command(line);
    ck_assert_int_eq(run.status, 0);
    run_free(&run);
}
END_TEST

/* Too little time for anything: every part is there all the same, and says so. */
START_TEST(all_accounts_for_every_part_in_the_time_it_has)
{
    char path[256];
    struct run run = bench("--all --within 1 -n 1 -c default --json -o %s/all", folder);
    ck_assert_ptr_nonnull(strstr(run.err, "part 1 of "));
    json_t *root = parsed(&run), *part;
    size_t i, parts = json_array_size(json_object_get(root, "parts"));
    ck_assert_uint_ge(parts, 20);
    json_array_foreach(json_object_get(root, "parts"), i, part)
    {
        static const char *const endings[] = {"txt", "json"};
        for (size_t e = 0; e < 2; e++) {
            snprintf(path, sizeof path, "%s/all/%s.%s", folder,
                     json_string_value(json_object_get(part, "name")), endings[e]);
            ck_assert_msg(access(path, R_OK) == 0, "no %s", path);
        }
    }
    snprintf(path, sizeof path, "/bin/grep -c no.time.left %s/all/results.txt", folder);
    run = run_command(path);
    ck_assert_msg(atoi(run.out) >= 17, "%s", run.out);
    run_free(&run);
    json_decref(root);
}
END_TEST

/* Section 4.2 of the 2012 paper: one core per package up to 16 cores, one per L3 on 32, on 8 nodes;
 * and whatever is predicted says that it is. */
START_TEST(figures_are_predicted_for_the_papers_core_counts)
{
    struct run run = bench("--figures --json");
    json_t *root = parsed(&run), *figures = json_object_get(root, "figures"), *figure, *point;
    size_t i, j;
    ck_assert_uint_eq(json_array_size(figures), 3);
    json_array_foreach(figures, i, figure)
    {
        ck_assert_ptr_nonnull(
            strstr(json_string_value(json_object_get(figure, "origin")), "not measured"));
        ck_assert_uint_eq(json_array_size(json_object_get(figure, "points")), 15);
    }
    json_array_foreach(json_object_get(json_array_get(figures, 0), "points"), j, point)
    {
        json_int_t cores = json_integer_value(json_object_get(point, "cores"));
        bool memory =
            strcmp(json_string_value(json_object_get(point, "placement")), "servet-mem") == 0;
        json_int_t nodes = cores / (memory ? 2 : 8);
        nodes = nodes < 1 ? 1 : (nodes > 8 ? 8 : nodes);
        ck_assert_int_eq(json_integer_value(json_object_get(point, "nodes")), nodes);
    }
    json_decref(root);
}
END_TEST

static const char *const wrong[] = {
    "",
    "--kernels -- /bin/true",
    "-n 0 -- /bin/true",
    "-c nonsense -- /bin/true",
    "-c , -- /bin/true",
    "--metric ( -- /bin/true",
    "--npb /nonexistent",
    "--npb /proc/self/fd",
    "--jobs x -- /bin/true",
    "-n 1 -c default --plot /tmp/plot.txt -- /bin/true",
    "-- /nonexistent/program",
    "--kernels --metric x",
};

START_TEST(bad_usage_is_one_line_and_status_2)
{
    struct run run = bench("%s", wrong[_i]);
    ck_assert_msg(run.status == 2 && count_lines(run.err) == 1, "%s: status %d, %s", wrong[_i],
                  run.status, run.err);
    run_free(&run);
}
END_TEST

int main(void)
{
    /* Other programs under the shim on this machine must not decide what a test sees. */
    setenv("SERVET_REGISTRY", "0", 1);
    TCase *cases = tcase_create("command");
    tcase_add_checked_fixture(cases, make_folder, drop_folder);
    tcase_add_test(cases, figures_are_those_of_the_program_under_each_comparator);
    tcase_add_test(cases, rounds_are_interleaved);
    tcase_add_test(cases, the_users_own_placement_does_not_leak_in);
#ifndef SANITIZED
    tcase_add_test(cases, servet_comparators_run_the_shim);
    tcase_add_test(cases, the_verdict_names_a_slower_servet);
    tcase_add_loop_test(cases, exceptions_are_listed_with_reasons, 0,
                        (int)(sizeof reasons / sizeof *reasons));
    tcase_add_test(cases, exceptions_that_do_not_come_again_are_said_to);
#endif
    tcase_add_test(cases, failures_are_reasons_not_figures);
    tcase_add_test(cases, jobs_run_at_the_same_time_and_the_worst_counts);
    tcase_add_test(cases, a_background_job_runs_during_the_measurement_and_not_after);
    tcase_add_test(cases, a_budget_ends_the_rounds);
    tcase_add_test(cases, programs_end_with_servet_bench);
    tcase_add_test(cases, npb_binaries_are_found_and_run);
    tcase_add_test(cases, plots_are_drawn);
    tcase_add_test(cases, all_accounts_for_every_part_in_the_time_it_has);
    tcase_add_test(cases, figures_are_predicted_for_the_papers_core_counts);
    tcase_add_loop_test(cases, bad_usage_is_one_line_and_status_2, 0,
                        (int)(sizeof wrong / sizeof *wrong));
    return run_tests(cases);
}
