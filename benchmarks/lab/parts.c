/* Figures that programs of the build folder print: each part runs one command and keeps what it
 * said. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/bench/launcher.h"
#include "benchmarks/bench/run.h"
#include "benchmarks/bench/tools.h"
#include "benchmarks/lab/lab.h"
#include "profile/base/cli.h"
#include "profile/base/clock.h"

/* In commands: {ours}NAME a command of this project, {built}PATH a file below the build's
 * benchmarks folder, {script}PATH a file of the source's benchmarks folder, {out}NAME a file of
 * the output folder, {build} the build folder, {mpirun} the launcher, {pus} the number of PUs. The
 * first three must be there, or the part is left out. */
const struct lab_part bench_parts[] = {
    {"probe",
     "All node probes of this machine",
     7,
     0,
     {"{ours}servet-probe", "-o", "{out}profile.json"}},
    {"found", "What they found", 1, 0, {"{ours}servet-show", "{out}profile.json"}},
    {"report",
     "The report (report.html) and its pictures (report/)",
     5,
     0,
     {"{ours}servet-show", "{out}profile.json", "--html", "{out}report.html", "--png",
      "{out}report", "--map", "{pus}"}},
    {"mapping",
     "As many workers as PUs, by memory priority",
     1,
     0,
     {"{ours}servet-map", "--profile", "{out}profile.json", "-n", "{pus}", "--mem-prior",
      "--explain"}},
    {"threads-default", "Threads as the system places them", 1, 0, {"{built}demo/where_omp"}},
    {"threads-servet",
     "Threads under servet-pin",
     1,
     0,
     {"{ours}servet-pin", "--profile", "{out}profile.json", "--mem-prior", "--",
      "{built}demo/where_omp"}},
    {"ranks-servet",
     "Ranks under servet-pin",
     2,
     0,
     {"{mpirun}", "-n", "{pus}", "{ours}servet-pin", "--profile", "{out}profile.json",
      "--mem-prior", "--", "{built}demo/where_mpi"}},
    {"mapper-scale",
     "Mapping up to 1,000,000 workers on as many PUs",
     5,
     0,
     {"{built}mapper/mapper-scale"}},
    {"mapper-quality",
     "Mappings beside hwloc-distrib, compact and scatter",
     1,
     0,
     {"{built}mapper/mapper-quality"}},
    {"cluster-survey", "Surveys of simulated fat trees", 2, 0, {"{built}cluster/survey_scaling"}},
    {"probing-time",
     "Probing larger machines, projected (benchmarks/probes/time_table.py)",
     25,
     0,
     {"{script}probes/time_table.py", "{ours}servet-probe", "2", "8", "24", "64"}},
    {"probing-more-time",
     "The same of large ones, the whole run alone",
     60,
     0,
     {"{script}probes/time_table.py", "{ours}servet-probe", "--whole", "256", "1024"}},
    {"shim-start",
     "Start of a program under the shim",
     5,
     3,
     {"{built}preload/overhead", "600", "300", "start"}},
    {"shim-threads", "Threads under the shim", 40, 0, {"{built}preload/overhead", "100", "1000"}},
    {"shim-memory",
     "1,000,000 threads created and joined under the shim: growth of memory, KB",
     60,
     0,
     {"{ours}servet-pin", "--", "{built}preload/overhead_child", "million", "1000000"}},
    {"tracer",
     "Messages of 8 bytes, traced and not",
     75,
     0,
     {"{script}preload/message_rate.sh", "{mpirun}", "{built}preload/message_rate",
      "{ours}servet-pin"}},
    {"cache-accuracy",
     "Cache sizes found on simulated machines that nothing was tuned on",
     40,
     0,
     {"{script}probes/accuracy.sh", "{built}probes/accuracy", "final", "noise", "4", "--list"}},
    {"cache-hits",
     "Cache sizes found on this machine, idle and beside a copy",
     135,
     0,
     {"{script}probes/hit_rate.sh", "{ours}servet-probe", "10"}},
    {"spmd",
     "SPMD programs with and without a plan",
     150,
     0,
     {"{script}spmd/evaluate.sh", "native", "{build}"}},
};
const size_t bench_part_count = sizeof bench_parts / sizeof *bench_parts;

/* The launcher of the MPI that this was built with: its programs are the ones that are run. */
static char *mpirun(void)
{
    struct bench_linked linked = {0};
    enum bench_mpi kind;
    char *launcher = NULL, *program = bench_tools_built("../demo/where_mpi");
    if (program) {
        bench_linked_with(program, &linked);
    }
    free(program);
    return bench_launcher(&linked, &kind, &launcher, NULL) < 0 ? NULL : launcher;
}

/* What stands for {out} and {pus}. */
struct where {
    const char *folder;
    size_t threads;
};

/* `word` with its name in braces replaced, as a new string; NULL: it is not there. */
static char *found(const char *word, const struct where *where)
{
    static const char ours[] = "{ours}", built[] = "{built}", script[] = "{script}",
                      out[] = "{out}";
    char *text = NULL, path[PATH_MAX];
    if (strncmp(word, ours, sizeof ours - 1) == 0) {
        return bench_tools_ours(word + sizeof ours - 1);
    }
    if (strncmp(word, built, sizeof built - 1) == 0) {
        snprintf(path, sizeof path, "../%s", word + sizeof built - 1);
        return bench_tools_built(path);
    }
    if (strncmp(word, script, sizeof script - 1) == 0) {
        snprintf(path, sizeof path, "%s/%s", LAB_SCRIPTS, word + sizeof script - 1);
        return bench_tools_find(path);
    }
    if (strcmp(word, "{build}") == 0) {
        return bench_tools_built("../..");
    }
    if (strcmp(word, "{mpirun}") == 0) {
        return mpirun();
    }
    int length = strncmp(word, out, sizeof out - 1) == 0
                     ? asprintf(&text, "%s/%s", where->folder, word + sizeof out - 1)
                 : strcmp(word, "{pus}") == 0
                     ? asprintf(&text, "%zu", where->threads ? where->threads : bench_tools_pus())
                     : asprintf(&text, "%s", word);
    if (length < 0) {
        cli_fail("out of memory");
    }
    return text;
}

/* The command line; false and in `missing` the word that is not there. */
static bool command_of(const struct lab_part *part, const struct where *where, struct words *argv,
                       const char **missing)
{
    for (const char *const *word = part->command; *word; word++) {
        char *text = found(*word, where);
        if (!text) {
            *missing = *word;
            return false;
        }
        bench_words_add(argv, "%s", text);
        free(text);
    }
    return true;
}

static json_t *lines_of(const char *text)
{
    json_t *list = json_array();
    while (*text) {
        size_t length = strcspn(text, "\n");
        json_array_append_new(list, json_stringn(text, length));
        text += length + (text[length] == '\n');
    }
    return list;
}

static void leave_out(json_t *object, FILE *text, const char *why)
{
    fprintf(text, "left out: %s\n", why);
    json_object_set_new(object, "left_out", json_string(why));
}

static void run_times(const struct lab_part *part, const struct words *argv, double limit,
                      json_t *object, FILE *text)
{
    struct words environment = {0};
    double started = profile_now_s();
    json_t *output = json_array();
    if (geteuid() == 0) { /* Open MPI wants to be told that root knows */
        bench_words_add(&environment, "OMPI_ALLOW_RUN_AS_ROOT=1");
        bench_words_add(&environment, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    }
    for (unsigned i = 0; i < (part->repeat ? part->repeat : 1); i++) {
        struct bench_run run;
        char why[256];
        bench_run(argv, &environment, 1, limit, &run);
        fputs(run.out, text);
        if (run.status == 0 && run.complaint) { /* commands say there what they have done */
            fprintf(text, "%s\n", run.complaint);
        }
        json_t *lines = lines_of(run.out);
        json_array_extend(output, lines);
        json_decref(lines);
        snprintf(why, sizeof why,
                 run.timed_out ? "it took more than its time" : "exit status %d: %s", run.status,
                 run.complaint ? run.complaint : "nothing on stderr");
        bool failed = run.status != 0 || run.timed_out;
        bench_run_free(&run);
        if (failed) {
            leave_out(object, text, why);
            break;
        }
    }
    json_object_set_new(object, "output", output);
    json_object_set_new(object, "seconds", json_real(profile_now_s() - started));
    bench_words_free(&environment);
}

json_t *bench_part_run(const struct lab_part *part, const char *folder, size_t threads,
                       double limit_seconds, FILE *text)
{
    const struct where here = {folder, threads}, *where = &here;
    struct words argv = {0};
    const char *missing = "";
    char why[256];
    json_t *object =
        json_pack("{s:s,s:s,s:f}", "name", part->name, "what", part->title, "seconds", 0.0);
    fprintf(text, "%s\n", part->title);
    if (command_of(part, where, &argv, &missing)) {
        char *line = bench_words_text(&argv);
        fprintf(text, "$ %s\n", line);
        json_object_set_new(object, "command", json_string(line));
        free(line);
        run_times(part, &argv, limit_seconds, object, text);
    } else {
        snprintf(
            why, sizeof why, "%s is not there (most of these programs are in a build folder only)",
            strchr(missing, '}') && strchr(missing, '}')[1] ? strchr(missing, '}') + 1 : missing);
        leave_out(object, text, why);
    }
    fprintf(text, "\n");
    bench_words_free(&argv);
    return object;
}
