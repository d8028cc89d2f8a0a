/* servet-bench: what placing a program gains here, side by side with the other ways to place it.
 *
 * It measures programs of the user's, and kernels to try it with. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "benchmarks/bench/compare.h"
#include "benchmarks/bench/report.h"
#include "benchmarks/bench/tools.h"
#include "benchmarks/bench/tune.h"
#include "profile/base/cli.h"

enum {
    KEY_RANKS = 'r',
    KEY_THREADS = 't',
    KEY_ROUNDS = 0x100,
    KEY_COMPARATORS,
    KEY_JOBS,
    KEY_LOAD,
    KEY_LIMIT,
    KEY_BUDGET,
    KEY_NPB,
};

#define FLAG(member) CLI_FLAG(struct request, member)
#define TEXT(member) CLI_TEXT(struct request, member)
#define KEY_METRIC TEXT(metric.expression)

#define ROUNDS 11

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "What to run:", 1},
    {"npb", KEY_NPB, "DIR", 0,
     "The NPB binaries that you built in DIR (bt.A.x, cg.B.x, sp-mz.W.x, ...)", 1},
    {"kernels", FLAG(kernels), NULL, 0, "The kernels that come with servet-bench", 1},
    {"tune", FLAG(tune), NULL, 0,
     "Find the fastest ranks, threads and placement of the program, and keep them for servet-pin "
     "--tuned; {ranks} and {threads} in its line stand for their numbers",
     1},
    {"list", FLAG(list), NULL, 0, "List the comparators and exit", 1},
    {NULL, 0, NULL, 0, "How:", 2},
    {"ranks", KEY_RANKS, "N", 0, "Start the program with the launcher of its MPI, N ranks", 2},
    {"threads", KEY_THREADS, "N", 0, "OMP_NUM_THREADS (default: as many as PUs; 1 a rank)", 2},
    {"rounds", KEY_ROUNDS, "N", 0, "Interleaved rounds (default 11)", 2},
    {"comparators", KEY_COMPARATORS, "NAME,...", 0,
     "Only these; ratios are to the first (default: all that apply)", 2},
    {"metric", KEY_METRIC, "REGEX", 0,
     "Take the figure from stdout: the first group, or number, of the last match "
     "(default: wall time)",
     2},
    {"higher", FLAG(metric.higher), NULL, 0, "Higher figures are better", 2},
    {"jobs", KEY_JOBS, "N", 0,
     "Run N copies of the program at once; the figure is the worst of them", 2},
    {"load", KEY_LOAD, "N", 0, "Keep the first N PUs busy with a background job", 2},
    {"limit", KEY_LIMIT, "SECONDS", 0, "Kill a run that takes longer (default 600)", 2},
    {"budget", KEY_BUDGET, "SECONDS", 0,
     "Start no further round of a program after that time, such as 90 or 10m (twice that, before "
     "the sixth); --tune ends within it (default 10m)",
     2},
    {NULL, 0, NULL, 0, "Results:", 3},
    {"json", FLAG(json), NULL, 0, "Print JSON instead of tables", 3},
    {"plot", TEXT(plot), "FILE|DIR", 0,
     "Draw the ratios: into a file (.svg), or a folder, which is made", 3},
    {0},
};

static void take_names(struct request *request, const char *text)
{
    size_t count = 0;
    char *next;
    free(request->names_text);
    request->names_text = bench_copy(text);
    for (char *name = strtok_r(request->names_text, ",", &next); name;
         name = strtok_r(NULL, ",", &next)) {
        if (!bench_comparator_find(name)) {
            cli_usage("--comparators: no comparator \"%s\"; --list names them", name);
        }
        if (count == MOST_COMPARATORS) {
            cli_usage("--comparators: at most %d names", MOST_COMPARATORS);
        }
        request->names[count++] = name;
    }
    request->names[count] = NULL;
    if (count == 0) {
        cli_usage("--comparators: expected names, got \"%s\"", text);
    }
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;
    const long many = 1 << 20;
    switch (key) {
    case KEY_RANKS:
        request->ranks = (size_t)cli_integer("--ranks", argument, 1, many);
        return 0;
    case KEY_THREADS:
        request->threads = (size_t)cli_integer("--threads", argument, 1, many);
        return 0;
    case KEY_ROUNDS:
        request->conditions.rounds = (size_t)cli_integer("--rounds", argument, 1, many);
        return 0;
    case KEY_COMPARATORS:
        take_names(request, argument);
        return 0;
    case KEY_JOBS:
        request->conditions.jobs = (size_t)cli_integer("--jobs", argument, 1, many);
        return 0;
    case KEY_LOAD:
        request->conditions.load_pus =
            (size_t)cli_integer("--load", argument, 0, (long)bench_tools_pus());
        return 0;
    case KEY_LIMIT:
        request->conditions.limit_seconds = cli_number("--limit", argument, 1e-3, 1e9);
        return 0;
    case KEY_BUDGET:
        request->conditions.budget_seconds = cli_seconds("--budget", argument);
        return 0;
    case KEY_NPB:
        request->npb = true;
        request->npb_folder = argument;
        return 0;
    default:
        return cli_set_member(key, argument, request) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

static int list_comparators(void)
{
    for (size_t i = 0; i < bench_comparator_count; i++) {
        const struct comparator *c = &bench_comparators[i];
        printf("%-12s %-50s %s\n", c->name, c->meaning,
               c->for_ranks ? (c->for_threads ? "" : "MPI only") : "one process only");
    }
    return cli_finish(CLI_OK);
}

static void write_json(const struct results *results)
{
    json_t *root = json_pack("{s:s,s:o,s:O}", "tool", "servet-bench " SERVET_VERSION, "machine",
                             bench_json_machine(), "comparisons", results->comparisons);
    if (json_array_size(results->exceptions)) {
        json_object_set(root, "exceptions", results->exceptions);
    }
    json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(root);
}

/* Before anything is measured: a picture that cannot be drawn is said now. */
static void check_plot(const struct request *request)
{
    struct stat status;
    const char *path = request->plot, *slash = strrchr(path, '/');
    const char *ending = strrchr(slash ? slash + 1 : path, '.');
    bool folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    bool picture = ending && strcmp(ending, ".svg") == 0;
    if (!folder && ending && !picture) {
        cli_usage("--plot %s: expected a file that ends in .svg, or a folder", path);
    }
    if (picture && !folder && request->kernels) {
        cli_usage("--plot %s: expected a folder, --kernels draws several pictures", path);
    }
    if (!picture && !folder) {
        int rc = bench_make_folder(path);
        if (rc == -EEXIST) {
            cli_usage("--plot %s: expected a folder, or a file that ends in .svg", path);
        }
        if (rc < 0) {
            cli_usage("--plot %s: %s", path, strerror(-rc));
        }
    }
}

static FILE *open_text(const struct request *request)
{
    FILE *text = request->json ? fopen("/dev/null", "we") : stdout;
    if (!text) {
        cli_fail("cannot write the tables: %s", strerror(errno));
    }
    return text;
}

static void check_usage(const struct request *request, bool program)
{
    if (request->tune && !program) {
        cli_usage("--tune: expected a program after --, such as -- mpirun -n {ranks} ./app");
    }
    if (request->npb + request->kernels + program != 1) {
        cli_usage("expected a program after --, or one of --npb, --kernels");
    }
    if (request->metric.higher && !request->metric.expression) {
        cli_usage("--higher: expected --metric REGEX with it, more seconds are never better");
    }
    if (request->tune) {
        bench_tune_check(request);
    }
    if (request->kernels && request->metric.expression) {
        cli_usage("--metric goes with a program or --npb: the kernels' figure is their own time");
    }
    if (request->plot) {
        check_plot(request);
    }
}

static void run_what_is_asked(const struct request *request, char **argv, struct results *results)
{
    if (request->npb) {
        bench_compare_npb(request, results);
    } else if (request->kernels) {
        bench_compare_kernels(request, results);
    } else {
        bench_compare_program(request, argv, results);
    }
    if (json_array_size(results->comparisons) > 1 || json_array_size(results->exceptions)) {
        bench_compare_exceptions(results);
    }
}

static void *memory_for_json(size_t size)
{
    return bench_memory(size, 1);
}

static int compare(const struct request *request, char **argv)
{
    struct results results = {
        .text = open_text(request), .comparisons = json_array(), .exceptions = json_array()};
    run_what_is_asked(request, argv, &results);
    if (request->json) {
        fclose(results.text);
        write_json(&results);
    }
    json_decref(results.comparisons);
    json_decref(results.exceptions);
    return CLI_OK;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[-- PROGRAM [ARGUMENT...]]",
        .doc = "Runs a program under every installed way to place it, interleaved, and says "
               "which is faster, with 95 % intervals.",
    };
    struct request request = {.conditions = {.limit_seconds = 600.0, .jobs = 1}};
    int first = argc;
    json_set_alloc_funcs(memory_for_json, free); /* else fields would be missing in silence */
    cli_parse(&argp, argc, argv, ARGP_IN_ORDER, &first, &request);
    if (request.list) {
        return list_comparators();
    }
    check_usage(&request, first < argc);
    request.conditions.rounds = request.conditions.rounds ? request.conditions.rounds : ROUNDS;
    bench_metric_compile(&request.metric);
    int status =
        request.tune ? bench_tune(&request, argv + first) : compare(&request, argv + first);
    if (request.metric.expression) {
        regfree(&request.metric.compiled);
    }
    free(request.names_text);
    return cli_finish(status);
}
