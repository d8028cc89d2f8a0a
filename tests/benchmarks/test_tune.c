/* Does servet-bench --tune find the fastest, keep it where servet-pin --tuned finds it, end in
 * time, and leave nothing running? Programs here say figures, so that the best is known. */
#include <glob.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"

#define tune(...) run_command(SERVET_BENCH " --tune " __VA_ARGS__)
#define FIGURE "--metric 'figure ([0-9.]+)' "

/* Every candidate has a figure of its own, so that six rounds tell them apart. */
#define TOLD_APART "echo \"figure ${OMP_NUM_THREADS:-0}${LD_PRELOAD:+.1}\""

static const char *folder;

static void set_up(void)
{
    folder = scratch_folder();
    setenv("XDG_CONFIG_HOME", folder, 1);
    unsetenv("SERVET_PROFILE");
    unsetenv("OMP_NUM_THREADS");
}

/* A program of the shell, as printf() makes it. */
#define script(name, ...)                                                                          \
    ck_assert_int_eq(chmod(scratch_file(name, "#!/bin/sh\n" __VA_ARGS__), 0755), 0)

/* The only entry that there is. */
static const char *entry_path(void)
{
    glob_t found;
    ck_assert_int_eq(glob(scratch_path("servet/*.tuned/*.json"), 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, 1);
    const char *path = kept(strdup(found.gl_pathv[0]));
    globfree(&found);
    return path;
}

static json_t *first_row(void)
{
    json_t *root = kept(json_load_file(entry_path(), 0, NULL));
    return json_array_get(json_object_get(root, "candidates"), 0);
}

static void expect(const struct run *run, int status, const char *out, const char *err)
{
    ck_assert_msg(run->status == status && strstr(run->out, out) && strstr(run->err, err),
                  "status %d\n%s%s\nexpected %s, %s", run->status, run->out, run->err, out, err);
}

/* The first run is the fastest, and has no limit when it is made again: then it would never end,
 * nor does what it starts end with it. */
static void make_hanging(const char *then)
{
    script("app",
           "cd %s\nid=\"$OMP_NUM_THREADS$LD_PRELOAD$SERVET_COMM_PRIOR\"\n"
           "[ -e first ] || { echo \"$id\" >first; echo figure 1; exit; }\n"
           "[ \"$(cat first)\" = \"$id\" ] || { echo figure 2; exit; }\n"
           "setsid sleep 600 & echo $! >apart\ntrap '' TERM\nsleep 601 & echo $! >below\n"
           "echo $$ >pid; %s; wait; wait; wait",
           folder, then);
}

#ifndef SANITIZED /* a sanitized shim does not load into programs that are not */
/* A launcher that starts one rank, and calls it one of so many. */
static void make_launcher(void)
{
    script("launch", "[ \"$1\" = -n ] || exit 9\nexport OMPI_COMM_WORLD_LOCAL_RANK=0 "
                     "OMPI_COMM_WORLD_LOCAL_SIZE=$2\nshift 2\n[ $1 = --option ] && shift\n\"$@\"");
}

static void expect_first(const char *placement, int ranks, int threads)
{
    const json_t *row = first_row();
    ck_assert_str_eq(json_string_value(json_object_get(row, "placement")), placement);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "ranks")), ranks);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "threads")), threads);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "rounds")), 6);
}

/* Fewer threads are faster, and pinned ones: both numbers come back in the entry, and its line runs
 * the program so. */
TEST(the_fastest_is_kept_and_used)
{
    script("app", "[ -n \"$LD_PRELOAD\" ] && pinned=0 || pinned=5\n"
                  "echo \"figure $OMP_NUM_THREADS.$pinned\" \"$SERVET_MEM_PRIOR\" \"$1\"");
    struct run run = tune(FIGURE "-- %s/app input", folder);
    expect(&run, 0, "keep: env OMP_NUM_THREADS=1 servet-pin --mem-prior -- ", "");
    expect(&run, 0, "\nor:   servet-pin --tuned -- ", "");
    ck_assert_msg(strstr(run.out, "      - ") && strstr(run.out, "memory"), "%s", run.out);
    expect_first("memory", 0, 1);
    run = run_command(SERVET_PIN " --tuned -v -- %s/app input", folder);
    expect(&run, 0, "figure 1.0 1 input\n", "--tuned: threads 1, placement memory (");
    run = run_command(SERVET_PIN " --tuned -- %s/app other", folder);
    expect(&run, 0, "figure .0", "with these arguments was not tuned here");
    run = tune("--json " FIGURE "-- %s/app input", folder);
    json_t *root = kept(json_loads(run.out, 0, NULL));
    ck_assert_str_eq(json_string_value(json_object_get(root, "metric")), "figure ([0-9.]+)");
}

/* Nothing tells them apart, or there was no time to tell: the line stays as it is, with as many
 * threads as before. */
TEST(what_is_alike_stays_as_it_is, .loops = 2)
{
    cpu_set_t set;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    const char *keep = formatted("keep: env OMP_NUM_THREADS=%d /", CPU_COUNT(&set));
    script("app", "cd %s; %s", folder,
           _i ? "sleep 0.4; [ -e first ] && echo figure 1 || echo figure 2; >first"
              : "echo figure 2");
    struct run run = tune("--budget %d " FIGURE "-- %s/app", _i ? 3 : 600, folder);
    expect(&run, 0, "as before, kept\n", "");
    expect(&run, 0, "\nas it is: no other is measurably better\n", "");
    expect(&run, 0, keep, "");
}

/* A short look, or one on fewer PUs, does not replace what is better founded. */
TEST(an_entry_stays_that_is_better_founded)
{
    static const struct {
        int rounds, more_pus;
        bool stays;
    } old[] = {{19, 0, false}, {3, 0, false}, {6, 1, true}};
    script("app", TOLD_APART);
    tune(FIGURE "-- %s/app", folder);
    const char *path = entry_path();
    json_t *root = kept(json_load_file(path, 0, NULL)), *machine = json_object_get(root, "machine");
    json_int_t pus = json_integer_value(json_object_get(machine, "pus"));
    json_object_set_new(root, "old", json_true());
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        json_object_set_new(machine, "pus", json_integer(pus + old[i].more_pus));
        json_object_set_new(json_array_get(json_object_get(root, "candidates"), 0), "rounds",
                            json_integer(old[i].rounds));
        ck_assert_int_eq(json_dump_file(root, path, 0), 0);
        struct run run = tune(FIGURE "-- %s/app", folder);
        expect(&run, 0, "keep: ", old[i].stays ? "it stays, of 6 rounds on" : "");
        json_t *now = kept(json_load_file(path, 0, NULL));
        ck_assert_int_eq(json_object_get(now, "old") != NULL, old[i].stays);
        ck_assert_int_eq(strstr(run.out, "\nor: ") == NULL, old[i].stays);
    }
    make_hanging("true");
    json_object_set_new(machine, "pus", json_integer(pus));
    ck_assert_int_eq(json_dump_file(root, path, 0), 0);
    struct run run = tune("--budget 5 " FIGURE "-- %s/app", folder);
    expect(&run, 0, "keep: ", "it stays, of 6 rounds on");
}

/* The line has its own threads: candidates that differ in them are one, and it stays as it is. */
TEST(threads_that_the_line_fixes_are_no_dimension)
{
    static const char *const before[] = {"", "env OMP_NUM_THREADS=1 "}, *const behind[] = {
                                                                            "env OMP_NUM_THREADS=1",
                                                                            "--option"};
    make_launcher();
    script("app", TOLD_APART);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        struct run run = tune("--json " FIGURE "-- %s%s/launch -n {ranks} %s %s/app", before[i],
                              folder, behind[i], folder);
        json_t *root = kept(json_loads(run.out, 0, NULL));
        size_t at;
        const json_t *row;
        json_array_foreach(json_object_get(root, "candidates"), at, row)
        {
            ck_assert_int_eq(json_integer_value(json_object_get(row, "threads")), 1);
        }
        const char *keep = json_string_value(json_object_get(root, "keep"));
        ck_assert_ptr_nonnull(strstr(keep, "OMP_NUM_THREADS=1"));
        ck_assert_msg(!strstr(strstr(keep, "THREADS=") + 1, "THREADS="), "%s", keep);
        ck_assert_ptr_nonnull(strstr(entry_path(), "/app-"));
    }
}

/* A rank of the launcher; how many is the launcher's word, threads those of the best with as
 * many. */
TEST(ranks_are_tuned_and_found_again)
{
    make_launcher();
    script("app", "echo \"figure $1.${OMP_NUM_THREADS}5 $LD_PRELOAD $OMP_NUM_THREADS\"");
    struct run run =
        tune(FIGURE "-- %s/launch -n {ranks} --option %s/app {ranks}{threads}", folder, folder);
    expect(&run, 0, "/launch -n 1 --option env OMP_NUM_THREADS=1 ", "");
    expect(&run, 0, "/launch -n 1 --option servet-pin --tuned -- ", "");
    expect(&run, 0, "/app '{ranks}{threads}'\n", "");
    ck_assert_int_eq(json_integer_value(json_object_get(first_row(), "ranks")), 1);
    run = run_command("%s/launch -n 1 " SERVET_PIN " --tuned -- %s/app {ranks}{threads}", folder,
                      folder);
    expect(&run, 0, "figure 11.15 ", "");
    run = run_command("%s/launch -n 4096 " SERVET_PIN " --tuned -- %s/app {ranks}{threads}", folder,
                      folder);
    expect(&run, 2, "", " ranks (0: no launcher); here are 4096, expected");
    ck_assert_uint_eq(count_lines(run.err), 1);
}

/* Where there are tiers, the policy is part of what was the fastest; the user's own comes first. */
TEST(a_policy_of_memory_is_kept_and_used)
{
    script("app", "echo \"figure 1$OMP_NUM_THREADS\" \"[$SERVET_MEMBIND]\"\n"
                  "[ -n \"$LD_PRELOAD\" ] || echo figure 999");
    struct run run = tune(FIGURE "-- %s/app", folder);
    expect(&run, 0, "keep: ", "");
    const char *path = entry_path();
    json_t *root = kept(json_load_file(path, 0, NULL)),
           *row = json_array_get(json_object_get(root, "candidates"), 0);
    json_object_set_new(row, "membind", json_string("weighted"));
    ck_assert_int_eq(json_dump_file(root, path, 0), 0);
    run = run_command(SERVET_PIN " --tuned -v -- %s/app", folder);
    expect(&run, 0, "[weighted]\n", ", memory weighted (");
    run = run_command(SERVET_PIN " --tuned --membind=local -- %s/app", folder);
    expect(&run, 0, "[local]\n", "");
    json_object_set_new(row, "membind", json_string("best"));
    ck_assert_int_eq(json_dump_file(root, path, 0), 0);
    run = run_command(SERVET_PIN " --tuned -- %s/app", folder);
    expect(&run, 0, "[]\n", "[0]: expected ranks, threads, placement");
}

/* Threads that the user has set are the user's. */
TEST(threads_of_the_user_are_kept)
{
    script("app", TOLD_APART);
    tune(FIGURE "-- %s/app", folder);
    setenv("OMP_NUM_THREADS", "4096", 1);
    struct run run = run_command(SERVET_PIN " --tuned -- %s/app", folder);
    expect(&run, 0, "figure 4096", " threads; OMP_NUM_THREADS is 4096 (");
}

/* A figure that cannot be had is a reason; where there is none at all, the command fails by it. */
TEST(failures_are_said)
{
    script("app", "[ -z \"$LD_PRELOAD\" ] || { echo not here >&2; exit 3; }; echo figure 1");
    struct run run = tune(FIGURE "-- %s/app", folder);
    expect(&run, 0, "exit status 3: ", "");
    script("app", "echo nothing to say >&2; exit 3");
    run = tune("-- %s/app", folder);
    expect(&run, 1, "", "/app: exit status 3: nothing to say\n");
}
#endif

/* The fastest is the system's own placement: then nothing is preloaded. */
TEST(a_program_that_is_fastest_unplaced_is_left_alone)
{
    script("app", "[ -z \"$LD_PRELOAD\" ] && echo \"figure 2$OMP_NUM_THREADS\" || echo figure 1");
    struct run run = tune("--higher " FIGURE "-- %s/app", folder);
    expect(&run, 0, "default", "");
    ck_assert_ptr_null(strstr(strstr(run.out, "keep: "), "-prior"));
    ck_assert_str_eq(json_string_value(json_object_get(first_row(), "placement")), "default");
    run = run_command(SERVET_PIN " --tuned -- %s/app", folder);
    expect(&run, 0, "figure 2", "");
}

static void expect_gone(const char *file)
{
    int pid = atoi(read_text(scratch_path(file)));
    ck_assert_int_gt(pid, 1);
    const char *gone = formatted("/proc/%d/exe", pid);
    for (int i = 0; i < 100 && access(gone, F_OK) == 0; i++) {
        usleep(50000);
    }
    ck_assert_msg(access(gone, F_OK) != 0, "%s: process %d is there", file, pid);
}

static void expect_kept_and_gone(void)
{
    ck_assert_int_eq(json_integer_value(json_object_get(first_row(), "rounds")), 1);
    expect_gone("pid");
    expect_gone("below");
    expect_gone("apart");
}

TEST(the_budget_ends_what_runs_and_keeps_what_was_found)
{
    make_hanging("true");
    struct run run = tune("--budget 5 " FIGURE "-- %s/app", folder);
    expect(&run, 0, "keep: ", "");
    expect_kept_and_gone();
}

TEST(an_interrupt_keeps_what_was_found_and_leaves_nothing_running)
{
    make_hanging("kill -INT $PPID");
    struct run run = tune(FIGURE "-- %s/app", folder);
    expect(&run, 128 + SIGINT, "keep: ", "interrupted\n");
    expect_kept_and_gone();
}

#ifndef SANITIZED
TEST(a_budget_without_one_run_is_refused)
{
    struct run run = tune("--budget 1 -- /bin/sleep 600");
    expect(&run, 2, "", "--budget: expected time for one run of /bin/sleep at least, got 1 s\n");
    ck_assert_str_eq(run.out, "");
}

static unsigned first_pu(void)
{
    cpu_set_t set;
    unsigned pu = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET(pu, &set)) {
        pu++;
    }
    return pu;
}

/* A job has other PUs than the tuner had: its numbers would be too many, or too few. */
TEST(an_entry_is_of_so_many_pus)
{
    script("app", TOLD_APART);
    struct run run =
        run_command("/usr/bin/taskset -c %u " SERVET_BENCH " --tune --higher " FIGURE "-- %s/app",
                    first_pu(), folder);
    expect(&run, 0, "keep: env OMP_NUM_THREADS=1 ", "");
    cpu_set_t set;
    bool several = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
    run = run_command(SERVET_PIN " --tuned -- %s/app", folder);
    expect(&run, 0, "figure", several ? "tuned on 1 PUs, this" : "");
    run =
        run_command("/usr/bin/taskset -c %u " SERVET_PIN " --tuned -- %s/app", first_pu(), folder);
    expect(&run, 0, "figure 1", "");
}

/* An entry of another machine, or none at all: the program runs as it would. */
TEST(entries_that_do_not_hold_are_said_and_left)
{
    static const struct {
        const char *text, *says;
    } entries[] = {
        {"{\"topology_signature\": \"x\", \"candidates\": []}", "tuned on another machine"},
        {"{}", "expected a file of servet-bench --tune"},
        {"{", "near end of file"},
    };
    script("app", TOLD_APART);
    tune("--higher " FIGURE "-- %s/app", folder);
    const char *path = entry_path();
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        FILE *file = fopen(path, "w");
        fputs(entries[i].text, file);
        fclose(file);
        struct run run = run_command(SERVET_PIN " --tuned -- %s/app", folder);
        expect(&run, 0, "figure 0", entries[i].says);
        ck_assert_uint_eq(count_lines(run.err), 1);
    }
}
#endif

/* Other programs under the shim on this machine must not decide what a test sees. */
static void begin(void)
{
    setenv("SERVET_REGISTRY", "0", 1);
    setenv("SERVET_WATCH", "0", 1);
}

TESTS(.begin = begin, .setup = set_up)
