/* Does SERVET_REPORT tell the truth about every thread, and does SERVET_MEMBIND set the policy that
 * it names? */
#include <jansson.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/base/command.h"
#include "tests/base/runner.h"
#include "tests/preload/child.h"
#include "tests/preload/here.h"

TEST(a_text_report_has_a_line_for_each_thread_and_a_check,
     .not_emulated = "the emulator has a thread of its own")
{
    run_preloaded(CHANGES("SERVET_REPORT=stderr"), ARGV(PROGRAMS "/pthreads", "1"), NULL);
#ifndef THREAD_SANITIZER /* has a thread of its own */
    ck_assert_uint_eq(count_of(child.err, " last "), 2);
#endif
    child_err_says(" main PU %s last ", all_pus);
    child_err_says(" thread PU %u last %u ", order[1], order[1]);
    child_err_says("by servet\n");
    child_err_says("check: "); /* a line for each program that is on its PU as well */
    ck_assert_ptr_null(strstr(child.err, "threads of this process"));
}

/* Why the threads of such a command were left to the kernel, said once. */
static void expect_cause(const char *why, const char *const *changes, const char *const *command)
{
    const char *line = formatted("left to the kernel: threads of the program: %s", why);
    child_run_preloaded(&child, changes, command);
    ck_assert_msg(strstr(child.err, line) &&
                      count_of(child.err, "left to the kernel: threads") == 1,
                  "no \"%s\" once in\n%s", line, child.err);
    ck_assert_msg(!strstr(child.err, "nothing was placed"), "%s", child.err);
}

/* Seen red: all causes were "no PU of its own". */
TEST(the_cause_of_threads_without_a_pu_is_told_with_figures)
{
    const char *const *report = CHANGES("SERVET_REPORT=stderr");
    const char *threads = formatted("%zu", here_pus() + 1);
    expect_cause(here_pus() == (size_t)sysconf(_SC_NPROCESSORS_ONLN)
                     ? formatted("%s threads, %zu PUs\n", threads, here_pus())
                     : threads,
                 report, ARGV(PROGRAMS "/pthreads", threads));
    child_err_says(" by kernel\n");
    expect_cause(formatted("2 threads, may use PU %s only (taskset or cpuset)\n", order_text[1]),
                 report, ARGV("taskset", "-c", order_text[1], PROGRAMS "/pthreads", "2"));
    expect_cause(formatted("3 threads, this rank's own mask is PU %s\n", order_text[1]),
                 CHANGES("SERVET_REPORT=stderr", "OMPI_COMM_WORLD_LOCAL_RANK=0",
                         "OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_MCA_hwloc_base_binding_policy=core"),
                 ARGV("taskset", "-c", order_text[1], PROGRAMS "/pthreads", "3"));
    expect_cause("the program gave a mask\n", report,
                 ARGV(PROGRAMS "/pthreads", "1", "attribute", order_text[1]));
}

/* Seen red: the pool was left for "no PU of its own", the team was laid over without a word. */
TEST(the_process_that_holds_a_pu_is_named, .not_emulated = "the emulator has a thread of its own")
{
    char expected[64];
    run_plain(
        NULL,
        ARGV("taskset", "-c", order_pair, "sh", "-c",
             formatted("cd %s && rm -f go && mkfifo go && export LD_PRELOAD=" CHILD_PRELOAD
                       " SERVET_WATCH=0 SERVET_VERBOSE=1 SERVET_REGISTRY=%s/registry && "
                       "{ " PROGRAMS
                       "/spin <go 2>err & } && exec 3>go && until grep -q ' on PU ' err; do :; "
                       "done; " PROGRAMS "/pthreads 2; echo | OMP_NUM_THREADS=2 " PROGRAMS
                       "/stays alone 1 0 0 0; exec 3>&-; wait",
                       scratch_folder(), scratch_folder())),
        NULL);
    snprintf(expected, sizeof expected, "threads of the program: PU %u held by ", order[1]);
    const char *held = strstr(child.err, expected);
    ck_assert_msg(held && strstr(held, "(spin)"), "no \"%s\" in %s", expected, child.err);
    snprintf(expected, sizeof expected, ": laid over PU %u held by ", order[1]);
    const char *laid = strstr(child.err, expected);
    ck_assert_msg(laid && strstr(laid, "(spin)"), "no \"%s\" in %s", expected, child.err);
}

/* Seen red: "nothing was placed: the program made no thread and called no MPI_Init". */
TEST(a_rank_that_servet_pin_placed_is_told_without_threads)
{
    static const char *const of[][3] = {
        {"OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
         "rank 1 of 2 (Open MPI) on PU "},
        {"LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "worker 1 of 2 (torchrun) on PU "}};
    for (size_t i = 0; i < 2; i++) {
        child_run(&child, CHANGES("SERVET_REPORT=stderr", of[i][0], of[i][1]),
                  ARGV(SERVET_PIN, "true"));
        ck_assert_msg(strstr(child.err, of[i][2]) && strstr(child.err, ", by servet-pin\n") &&
                          !strstr(child.err, "nothing was placed"),
                      "%s", child.err);
        child_run_preloaded(&child, CHANGES("SERVET_REPORT=stderr", of[i][0], of[i][1]),
                            ARGV("true"));
        child_err_says("nothing was placed");
    }
}

/* Seen red: "taskset or cpuset", its children shared its PU, and each said -v's lines. */
TEST(a_worker_and_its_children_are_one, .not_emulated = "the emulator has a thread of its own")
{
    static const char said[] = "servet: process ";
    const char *const worker[] = {"LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "SERVET_REPORT=stderr",
                                  NULL};
    run_plain(worker, ARGV("taskset", "-c", order_pair, SERVET_PIN, "-v", PROGRAMS "/loaders"),
              NULL);
    ck_assert_msg(strstr(child.err, ": 3 threads, this worker's part is PU ") &&
                      !strstr(child.err, "(loaders)"),
                  "%s", child.err);
    const char *first = strstr(child.err, said);
    for (const char *at = first; at; at = strstr(at + 1, said)) {
        const size_t length = strcspn(first + strlen(said), ":");
        ck_assert_msg(strncmp(at, first, strlen(said) + length) == 0, "%s", child.err);
    }
}

/* Seen red: -v had no line for the job, and two threads of a rank on one PU went unsaid. */
TEST(the_job_is_told_in_one_line, .not_emulated = "cores are not known")
{
    static const char *const option[] = {"--dry-run", "-v"};
    for (int i = 0; i < 4; i++) {
        run_plain(CHANGES("OMP_NUM_THREADS=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
                          formatted("OMPI_COMM_WORLD_LOCAL_RANK=%d", i / 2)),
                  ARGV("taskset", "-c", order_pair, SERVET_PIN, option[i % 2], "echo", "ran"),
                  NULL);
        ck_assert_str_eq(child.out, i % 2 ? "ran\n" : "");
        ck_assert_uint_eq(child_lines(child.err, "servet-pin: "), i < 2);
        ck_assert_uint_eq(
            child_lines(child.err, formatted("servet-pin: 2 ranks x 2 threads (Open MPI) on ")),
            i < 2);
        ck_assert_msg(i >= 2 || strstr(child.err, "), up to 2 threads a PU\n"), "%s", child.err);
    }
    run_plain(CHANGES("OMP_PROC_BIND=close", RANK), ARGV(SERVET_PIN, "--dry-run", "false"), NULL);
    ck_assert_str_eq(child.err, "servet-pin: OpenMP threads stay where OMP_PROC_BIND wants them "
                                "(--force overrides it)\n");
}

/* Seen red: servet-pin -v ran it without a word. */
TEST(a_command_that_cannot_be_preloaded_is_told, .file = PROGRAMS "/static")
{
    const char *const changes[] = {"SERVET_REPORT=stderr", NULL};
    run_plain(changes, ARGV(SERVET_PIN, "-v", PROGRAMS "/static"), NULL);
    ck_assert_uint_eq(child_lines(child.err, "servet-pin: nothing is placed or traced: "), 1);
    ck_assert_ptr_nonnull(
        strstr(child.err, "nothing was placed: the command is statically linked\n"));
    const char *path = scratch_file("script", "#! " PROGRAMS "/static\n");
    ck_assert_int_eq(chmod(path, 0700), 0);
    child_run(&child, changes, ARGV(SERVET_PIN, path));
    child_err_says("the command is statically linked\n");
    child_run(&child, changes, ARGV(SERVET_PIN, PROGRAMS "/pthreads", "1"));
    ck_assert_ptr_null(strstr(child.err, "the command"));
}

/* Seen red: there was no file, and no word. */
TEST(a_trace_of_a_program_without_mpi_is_told)
{
    run_plain(CHANGES("SERVET_REPORT=stderr"),
              ARGV(SERVET_PIN, "--trace", scratch_path("trace"), PROGRAMS "/pthreads", "1"), NULL);
    ck_assert_ptr_nonnull(
        strstr(child.err, "nothing was traced: the program called no MPI_Init\n"));
}

#ifndef SANITIZERS /* their own start routine stands before the program's */
/* A program of one team thread, one of its own and a helper, seen while it stays. */
static void look_at_live(const char *preload)
{
    run_plain(NULL,
              ARGV("sh", "-c",
                   formatted("cd %s && rm -f go out && mkfifo go && { %s " PROGRAMS
                             "/stays alone 1 1 0 0 <go >out & } && exec 3>go && "
                             "until grep -q ready out; do :; done; " SERVET_SHOW
                             " --live=$!; echo >&3; wait",
                             scratch_folder(), preload)),
              NULL);
}

static void expect_live(const char *role, const char *by)
{
    const char *line = strstr(child.out, role);
    const size_t length = line ? strcspn(line, "\n") : 0;
    ck_assert_msg(line && length > strlen(by) &&
                      strncmp(line + length - strlen(by), by, strlen(by)) == 0,
                  "no \"%s ... %s\" in\n%s", role, by, child.out);
}

/* Seen red: a helper on one PU was a worker that the shim had placed. */
TEST(the_roles_of_threads_that_run_are_those_of_their_code, .not_emulated = "roles are not known",
     .starts_programs = true)
{
    look_at_live("taskset -c $(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')");
    expect_live(" stays main PU ", " by others");
    expect_live(" stays worker PU ", " by others");
    expect_live(" stays thread PU ", " by others");
    expect_live(" stays helper PU ", " by others");
    ck_assert_msg(strstr(child.out, " check: no two workers share a PU\n"), "%s", child.out);
    look_at_live("OMP_PROC_BIND=close LD_PRELOAD=" CHILD_PRELOAD
                 " taskset -c $(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')");
    expect_live(" stays main PU ", " by user");
    expect_live(" stays worker PU ", " by user");
    expect_live(" stays thread PU ", " by others");
    look_at_live("SERVET_REGISTRY=0 SERVET_WATCH=0 OMP_NUM_THREADS=2 LD_PRELOAD=" CHILD_PRELOAD);
    expect_live(" stays main PU ", " by servet");
    expect_live(" stays worker PU ", " by servet");
    expect_live(" stays thread PU ", "");
    expect_live(" stays helper PU ", " by kernel");
}
#endif

/* Lines of a report in JSON that have the member; with `text` those where it is this. */
static int count_members(const char *path, const char *key, const char *text)
{
    char line[4096];
    int count = 0;
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file)) {
        json_t *object = json_loads(line, 0, NULL), *value = json_object_get(object, key);
        ck_assert_msg(object, "not JSON: %s", line);
        count += value &&
                 (!text || (json_is_string(value) && strcmp(json_string_value(value), text) == 0));
        json_decref(object);
    }
    fclose(file);
    return count;
}

TEST(a_json_report_is_appended_to)
{
    const char *path = scratch_path("report.json");
    const char *change = formatted("SERVET_REPORT=%s", path);
    for (int i = 0; i < 2; i++) {
        run_preloaded(CHANGES(change), ARGV(PROGRAMS "/pthreads", "1"), "silent");
    }
    ck_assert_int_eq(count_members(path, "decided_by", "servet"), 2);
    ck_assert_int_ge(count_members(path, "shared_pu", NULL), 2);
}

/* Seen red: the quote ended the string, and JSON had no word on threads beyond those that have a
 * line. */
TEST(a_report_in_json_has_what_the_text_has)
{
    run_plain(NULL,
              ARGV("sh", "-c",
                   formatted("cd %s && cp $(find " PROGRAMS " -name libomp-stub.so) 'li\"b.so' && "
                             "echo | LD_PRELOAD=" CHILD_PRELOAD
                             ":$PWD/'li\"b.so' SERVET_REPORT=named.json "
                             "taskset -c %s " PROGRAMS
                             "/stays alone 2 0 0 0 && for report in many.json many; do "
                             "LD_PRELOAD=" CHILD_PRELOAD " SERVET_REPORT=$report " PROGRAMS
                             "/churn end 4200; done "
                             "&& tail many",
                             scratch_folder(), order_text[0])),
              NULL);
    ck_assert_int_eq(count_members(scratch_path("named.json"), "left", "li\"b.so"), 1);
    ck_assert_int_eq(count_members(scratch_path("many.json"), "more_threads", NULL), 1);
    child_says(&child, " and 107 threads more\n");
    child_run(&child, NULL, ARGV("grep", "-c", "tid", scratch_path("many")));
    ck_assert_int_eq(count_members(scratch_path("many.json"), "tid", NULL), atoi(child.out));
}

TEST(a_report_that_cannot_be_written_is_one_line)
{
    run_preloaded(CHANGES("SERVET_REPORT=/nonexistent/report"), ARGV(PROGRAMS "/pthreads", "1"),
                  NULL);
    ck_assert_uint_eq(child_lines(child.err, ""), 1);
    child_err_says("/nonexistent/report");
}

/* A pipe without a reader holds nothing up. */
TEST(a_report_to_a_pipe_without_a_reader_does_not_hang)
{
    const char *pipe = scratch_path("pipe");
    const char *change = formatted("SERVET_REPORT=%s", pipe);
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    run_preloaded(CHANGES(change), ARGV("timeout", "20", PROGRAMS "/pthreads", "1"), NULL);
    ck_assert_uint_eq(child_lines(child.err, "servet: SERVET_REPORT: "), 1);
}

/* A thread may call itself what it likes; a report is one line for each, and obeyed by no
 * terminal. */
TEST(names_are_printed_escaped)
{
    run_preloaded(CHANGES("SERVET_REPORT=stderr"), ARGV(PROGRAMS "/named"), NULL);
    child_err_says("x\\n0 root\\x1b[2J");
    ck_assert_msg(!strchr(child.err, '\033'), "%s", child.err);
}

/* The program goes elsewhere before it ends. */
TEST(a_relative_name_is_that_of_the_start)
{
    child_run_preloaded(
        &child, CHANGES("SERVET_REPORT=here"),
        ARGV("/bin/sh", "-c", formatted("cd %s && exec " PROGRAMS "/named /", scratch_folder())));
    ck_assert_msg(child.status == 0 && access(scratch_path("here"), R_OK) == 0, "%d %s",
                  child.status, child.err);
}

TEST(a_name_that_is_too_long_is_told)
{
    static char change[PATH_MAX + 64] = "SERVET_REPORT=/";
    memset(change + strlen(change), 'x', PATH_MAX);
    run_preloaded(CHANGES(change), ARGV(PROGRAMS "/pthreads", "1"), NULL);
    ck_assert_uint_eq(child_lines(child.err, "servet: SERVET_REPORT: too long"), 1);
}

#define POLICY PROGRAMS "/odd", "policy"

static void expect_policy(const char *change, int policy)
{
    child_run_preloaded(&child, CHANGES(change), ARGV(POLICY));
    if (child.status == 77) {
        return; /* a kernel without NUMA */
    }
    ck_assert_str_eq(child.out, formatted("policy %d\n", policy));
    ck_assert_str_eq(child.err, "");
}

TEST(memory_follows_as_asked)
{
    expect_policy("SERVET_MEMBIND=", MPOL_DEFAULT);
    expect_policy("SERVET_MEMBIND=none", MPOL_DEFAULT);
    expect_policy("SERVET_MEMBIND=local", MPOL_LOCAL);
    expect_policy("SERVET_MEMBIND=interleave", MPOL_INTERLEAVE);
}

static void expect_one_line(const char *change, const char *call)
{
    child_run_preloaded(&child, CHANGES(change),
                        ARGV(PROGRAMS "/odd", "filtered", "refuse", call, POLICY));
    if (child.status == 77) {
        return;
    }
    ck_assert_int_eq(child.status, 0);
    ck_assert_str_eq(child.out, "policy 0\n");
    ck_assert_uint_eq(child_lines(child.err, ""), 1);
    ck_assert_uint_eq(child_lines(child.err, "servet: SERVET_MEMBIND"), 1);
}

TEST(a_refused_policy_is_one_line)
{
    const char *call = formatted("%d", SYS_set_mempolicy);
    expect_one_line("SERVET_MEMBIND=local", call);
    expect_one_line("SERVET_MEMBIND=interleave", call);
    expect_one_line("SERVET_MEMBIND=nonsense", "none");
}

TEST(the_command_has_an_option_for_it)
{
    child_run(&child, NULL, ARGV(SERVET_PIN, "--membind=interleave", POLICY));
    if (child.status != 77) {
        const char *expected = formatted("policy %d\n", MPOL_INTERLEAVE);
        ck_assert_str_eq(child.out, expected);
    }
}

static void expect_no_tier(const char *policy, const char *rank, unsigned lines)
{
    child_run(&child, CHANGES("OMPI_COMM_WORLD_LOCAL_SIZE=2", rank),
              ARGV(SERVET_PIN, policy, POLICY));
    ck_assert_int_eq(child.status, 2);
    ck_assert_str_eq(child.out, "");
    ck_assert_uint_eq(child_lines(child.err, ""), lines);
    ck_assert_uint_eq(child_lines(child.err, "servet-pin: --membind="), lines);
}

/* All the memory of one NUMA node is alike. */
TEST(a_tier_that_the_node_has_not_is_one_line)
{
    if (access("/sys/devices/system/node/node1", F_OK) == 0) {
        return; /* this machine may have tiers */
    }
    expect_one_line("SERVET_MEMBIND=fast", "none");
    child_err_says("SERVET_MEMBIND=fast: the memory of all NUMA nodes");
    expect_one_line("SERVET_MEMBIND=capacity", "none");
    expect_no_tier("--membind=fast", "OMPI_COMM_WORLD_LOCAL_RANK=0", 1);
    expect_no_tier("--membind=capacity", "OMPI_COMM_WORLD_LOCAL_RANK=1", 0);
}

TESTS(.begin = here_need_two_pus)
