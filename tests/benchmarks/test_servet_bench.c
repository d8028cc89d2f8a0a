/* Does servet-bench compare what it says, and refuse what it cannot compare, in one line? */
#include <jansson.h>
#include <sys/stat.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"

#define bench(...) run_command(SERVET_BENCH " " __VA_ARGS__)

static const char *folder;

static void make_folder(void)
{
    folder = scratch_folder();
}

/* A program of the shell, as printf() makes it. */
#define script(name, ...)                                                                          \
    ck_assert_int_eq(chmod(scratch_file(name, "#!/bin/sh\n" __VA_ARGS__), 0755), 0)

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

static json_t *parsed(struct run run)
{
    ck_assert_msg(run.status == 0, "status %d: %s", run.status, run.err);
    return kept(json_loads(run.out, 0, NULL));
}

static void expect_figure(json_t *root, const char *comparator, const char *figure, double value)
{
    ck_assert_double_eq_tol(json_number_value(json_object_get(series(root, comparator), figure)),
                            value, 1e-9);
}

/* The program says which comparator it runs under: 10 times as long with OMP_PROC_BIND as
 * without. */
TEST(figures_are_those_of_the_program_under_each_comparator)
{
    script("app", "if [ -n \"$OMP_PROC_BIND\" ]; then echo took 50 s; else echo took 5 s; fi");
    json_t *root = parsed(bench(
        "--rounds 3 --json --comparators default,omp-close --metric 'took ([0-9]+)' -- %s/app",
        folder));
    expect_figure(root, "default", "median", 5.0);
    expect_figure(root, "omp-close", "median", 50);
    expect_figure(root, "omp-close", "ratio", 10);
    ck_assert_uint_eq(json_array_size(json_object_get(series(root, "omp-close"), "values")), 3);
}

/* A B A B, not A A B B: the program keeps the order of its runs. */
TEST(rounds_are_interleaved)
{
    script("app", "echo \"${OMP_PROC_BIND:-none}\" >>%s/order", folder);
    struct run run = bench("--rounds 3 --comparators default,omp-spread -- %s/app", folder);
    ck_assert_int_eq(run.status, 0);
    ck_assert_str_eq(read_text(scratch_path("order")),
                     "none\nspread\nnone\nspread\nnone\nspread\n");
}

TEST(the_users_own_placement_does_not_leak_in)
{
    script("app", "echo \"value ${#OMP_PLACES}\"");
    setenv("OMP_PLACES", "{0}", 1);
    struct run run = bench(
        "--rounds 1 --json --comparators default --metric 'value ([0-9]+)' -- %s/app", folder);
    unsetenv("OMP_PLACES");
    json_t *root = parsed(run);
    expect_figure(root, "default", "median", 0.0);
}

#ifndef SANITIZED /* a sanitized shim does not load into programs that are not */
TEST(servet_comparators_run_the_shim)
{
    script("app", "case \"$LD_PRELOAD$SERVET_COMM_PRIOR\" in *libservet_pin.so*) echo pinned 1;; "
                  "*) echo pinned 0;; esac");
    json_t *root = parsed(bench("--rounds 1 --json --comparators default,servet-mem,servet-comm "
                                "--metric 'pinned ([0-9])' -- %s/app",
                                folder));
    expect_figure(root, "default", "median", 0.0);
    expect_figure(root, "servet-mem", "median", 1.0);
    expect_figure(root, "servet-comm", "median", 1.0);
}

/* The figure of the program is `before` without servet, `with` with it, in that round or all; the
 * first sentence says whether that is a gain, and the direction follows --higher. */
static const struct {
    const char *before, *with, *options, *says;
} answers[] = {
    {"50", "5", "", "  helped: 0.1 of the figure of default, between 0.1 and 0.1\n"},
    {"50", "5", "--higher", "  slower: 0.1 of the figure of default, between 0.1 and 0.1\n"},
    {"5", "50", "--higher", "  helped: 10 of the figure of default, between 10 and 10\n"},
    {"5", "5", "-t 1", ", because a PU was free for every thread\n"},
    {"5", "5", "-t 4096", "  did not help: 1 of the figure of default, between 1 and 1\n"},
    {"5", "$(wc -l <runs)", "", ": more rounds, or an idle machine\n"},
};

TEST(the_answer_comes_first, .loops = (sizeof answers / sizeof *answers))
{
    script("app",
           "cd %s; echo x >>runs; [ -n \"$LD_PRELOAD\" ] && echo figure %s || echo figure %s",
           folder, answers[_i].with, answers[_i].before);
    struct run run = bench("--rounds 6 --comparators default,servet-mem --metric 'figure ([0-9]+)' "
                           "%s -- %s/app",
                           answers[_i].options, folder);
    const char *answer = strstr(run.out, "rounds\n"), *table = strstr(run.out, "median");
    ck_assert_msg(answer && table && answer < table, "%s", run.out);
    const char *says = strstr(answer, answers[_i].says);
    ck_assert_msg(says && says < table, "%s", run.out);
}

TEST(fewer_than_six_rounds_decide_nothing)
{
    struct run run = bench("--rounds 5 --comparators default,servet-mem -- /bin/true");
    ck_assert_msg(strstr(run.out, "  undecided: it takes 6 rounds\n"), "%s", run.out);
}

static const struct {
    const char *options, *reason;
} reasons[] = {
    {"", "every PU has one thread under both"},
    {"--jobs 2", "more threads than PUs: the system moves threads"},
    {"--load 1", "a pinned thread stays beside the background job"},
};

/* Each is measured again, and has its reason. */
TEST(exceptions_are_listed_with_reasons, .loops = (sizeof reasons / sizeof *reasons))
{
    script("app", "if [ -n \"$LD_PRELOAD\" ]; then echo figure 50; else echo figure 5; fi");
    struct run run =
        bench("--rounds 6 %s --comparators default,servet-mem --metric 'figure ([0-9]+)' -- %s/app",
              reasons[_i].options, folder);
    ck_assert_msg(strstr(run.out, "another way is faster: 1 of 1\n") &&
                      strstr(run.out, "servet-mem takes 10.000 of default, again alone 10.000: ") &&
                      strstr(run.out, reasons[_i].reason),
                  "%s", run.out);
}

/* A way that is slower in the first six rounds alone is not held against servet, and not hidden
 * either. */
TEST(exceptions_that_do_not_come_again_are_said_to)
{
    script("app",
           "echo x >>%s/runs; if [ -n \"$LD_PRELOAD\" ] && [ $(wc -l <%s/runs) -le 12 ]; then "
           "echo figure 50; else "
           "echo figure 5; fi",
           folder, folder);
    json_t *root = parsed(bench("--rounds 6 --json --comparators default,servet-mem --metric "
                                "'figure ([0-9]+)' -- %s/app",
                                folder)),
           *exception = json_array_get(json_object_get(root, "exceptions"), 0);
    ck_assert(json_is_false(json_object_get(exception, "confirmed")));
    ck_assert_double_eq_tol(json_number_value(json_object_get(exception, "slowdown")), 10.0, 1e-9);
}
#endif

/* A comparator under which the program fails is left out with its reason; the others keep their
 * figures. */
TEST(failures_are_reasons_not_figures)
{
    script("app", "[ -z \"$OMP_PROC_BIND\" ] || { echo no places here >&2; exit 3; }");
    json_t *root =
        parsed(bench("--rounds 2 --json --comparators default,omp-close -- %s/app", folder));
    ck_assert_str_eq(json_string_value(json_object_get(series(root, "omp-close"), "left_out")),
                     "exit status 3: no places here");
    ck_assert_ptr_nonnull(json_object_get(series(root, "default"), "median"));
    struct run run = bench("--rounds 1 --limit 0.2 --comparators default -- /bin/sleep 30");
    ck_assert_int_eq(run.status, 1);
    ck_assert_ptr_nonnull(strstr(run.out, "took more than 0.2 s"));
}

TEST(jobs_run_at_the_same_time_and_the_worst_counts)
{
    /* each copy waits for the other: in turn they would never end */
    script("app",
           "mkdir %s/first 2>/dev/null && { while [ ! -d %s/second ]; do sleep 0.05; done; echo "
           "rank 1; exit; }\n"
           "mkdir %s/second; echo rank 2",
           folder, folder, folder);
    json_t *root = parsed(bench("--rounds 1 --json --limit 30 --jobs 2 --comparators default "
                                "--metric 'rank ([0-9])' -- %s/app",
                                folder));
    expect_figure(root, "default", "median", 2.0);
}

TEST(a_background_job_runs_during_the_measurement_and_not_after)
{
    script("app",
           "parent=$PPID; n=0; for s in /proc/[0-9]*/stat; do read -r p c st pp rest <$s && [ "
           "\"$pp\" = "
           "\"$parent\" ] && [ \"$p\" != $$ ] && n=$((n + 1)); done 2>/dev/null; echo beside $n");
    json_t *root = parsed(bench(
        "--rounds 1 --json --load 1 --comparators default --metric 'beside ([0-9]+)' -- %s/app",
        folder));
    ck_assert_double_ge(json_number_value(json_object_get(series(root, "default"), "median")), 1.0);
    root = parsed(bench(
        "--rounds 1 --json --comparators default --metric 'beside ([0-9]+)' -- %s/app", folder));
    expect_figure(root, "default", "median", 0.0);
}

TEST(a_budget_ends_the_rounds)
{
    script("app", "sleep 0.2; echo figure 1");
    json_t *root = parsed(bench("--rounds 1000 --budget 0.3 --json --comparators default --metric "
                                "'figure ([0-9]+)' -- %s/app",
                                folder));
    size_t rounds = json_array_size(json_object_get(series(root, "default"), "values"));
    ck_assert_uint_ge(rounds, 1);
    ck_assert_uint_le(rounds, 3); /* 0.6 s are over after three */
}

/* Ctrl-C, or a batch system's kill, must not leave the program running on the machine. */
TEST(programs_end_with_servet_bench)
{
    script("app", "echo $$ >%s/pid; exec sleep 60", folder);
    run_command("/usr/bin/timeout -s INT 2 " SERVET_BENCH
                " --rounds 1 --comparators default -- %s/app",
                folder);
    const char *gone = formatted("/proc/%d/exe", atoi(read_text(scratch_path("pid"))));
    for (int i = 0; i < 100 && access(gone, F_OK) == 0; i++) {
        usleep(50000);
    }
    ck_assert_int_ne(access(gone, F_OK), 0);
}

/* NPB's names, in NPB's folders, and its own figure. */
TEST(npb_binaries_are_found_and_run)
{
    ck_assert_int_eq(mkdir(scratch_path("bin"), 0777), 0);
    script("bin/cg.S.x", "echo ' Mop/s total     =                   123.45'");
    script("bin/is.W.x", "echo ' Mop/s total     =                    67.00'");
    script("bin/make.sh", "echo ' Mop/s total = 1'");
    json_t *root = parsed(bench("--rounds 2 --comparators default --json --npb %s", folder)),
           *list = json_object_get(root, "comparisons");
    ck_assert_uint_eq(json_array_size(list), 2);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(list, 0), "program")),
                     "cg.S.x");
    ck_assert_int_eq(json_is_true(json_object_get(json_array_get(list, 0), "higher_is_better")), 1);
    expect_figure(root, "default", "median", 123.45);
}

/* Into a file; into a folder that is made with those that it lies in, and kept when it is there. */
TEST(plots_are_drawn)
{
    static const char *const where[][2] = {{"p.svg", "p.svg"},
                                           {"new/deep", "new/deep/comparison.svg"},
                                           {"new/deep", "new/deep/comparison.svg"}};
    for (size_t i = 0; i < 3; i++) {
        struct run run = bench("--rounds 2 --comparators default,omp-close --plot %s -- /bin/true",
                               scratch_path(where[i][0]));
        ck_assert_msg(run.status == 0, "%s", run.err);
        ck_assert_ptr_nonnull(strstr(read_text(scratch_path(where[i][1])), "omp-close"));
    }
}

/* Five values cannot have a 95 % interval: none is printed, and none is in the JSON. */
TEST(too_few_rounds_have_no_interval)
{
    static const bool enough[] = {false, true};
    for (size_t i = 0; i < 2; i++) {
        struct run run = bench("--rounds %d --json --comparators default,omp-close -- /bin/true",
                               enough[i] ? 6 : 5);
        json_t *root = parsed(run), *one = series(root, "default");
        ck_assert(json_is_array(json_object_get(one, "interval")) == enough[i]);
        ck_assert(json_is_array(json_object_get(one, "ratio_interval")) == enough[i]);
        run = bench("--rounds %d --comparators default,omp-close -- /bin/true", enough[i] ? 6 : 5);
        ck_assert_msg(!strstr(run.out, "[") == !enough[i], "%s", run.out);
    }
}

#ifdef NEEDS_MPICH
/* A program that needs MPICH's library is not started by Open MPI's launcher, under which its ranks
 * would be so many programs of one rank each; nor the other way round. */
TEST(a_launcher_of_another_mpi_is_refused)
{
    static const char *const programs[] = {NEEDS_MPICH, NEEDS_OPEN_MPI};
    static const char *const needs[] = {"libmpich.so.12", "libmpi.so.40"};
    static const char *const says[] = {"echo 'mpirun (Open MPI) 4.1.4'",
                                       "echo 'HYDRA build details:'"};
    setenv("SERVET_BENCH_MPIRUN", scratch_path("launcher"), 1);
    for (size_t i = 0; i < 2; i++) {
        script("launcher", "%s", says[i]);
        expect_refused(needs[i], SERVET_BENCH " --rounds 1 -r 2 --comparators default -- %s",
                       programs[i]);
    }
}

/* The right one is called in its own words, and found in PATH by what it says, not by its name. */
TEST(the_launcher_follows_the_programs_mpi)
{
    script("mpirun", "[ \"$1\" = --version ] && { echo 'HYDRA build details:'; exit; }\n"
                     "case \"$*\" in *'-n 2 -bind-to core:1 '*) echo ranks 2;; *) echo \"$*\" >&2; "
                     "exit 1;; esac");
    char *before = kept(strdup(getenv("PATH")));
    setenv("PATH", folder, 1);
    script("mpiexec.hydra", "echo 'mpirun (Open MPI) 4.1.4'");
    struct run run = bench(
        "--rounds 1 --json -r 2 --comparators bind-core --metric 'ranks ([0-9])' -- " NEEDS_MPICH);
    setenv("PATH", before, 1);
    expect_figure(parsed(run), "bind-core", "median", 2);
}
#endif

/* Other programs under the shim on this machine must not decide what a test sees. */
static void begin(void)
{
    setenv("SERVET_REGISTRY", "0", 1);
    setenv("SERVET_WATCH", "0", 1);
}

TESTS(.begin = begin, .setup = make_folder)
