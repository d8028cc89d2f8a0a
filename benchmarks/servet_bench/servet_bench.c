/* servet-bench: what placing a program gains here, side by side with the other ways to place it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "benchmarks/servet_bench/all.h"
#include "benchmarks/servet_bench/compare.h"
#include "benchmarks/servet_bench/costs.h"
#include "benchmarks/servet_bench/predict.h"
#include "benchmarks/servet_bench/report.h"
#include "benchmarks/servet_bench/request.h"
#include "benchmarks/servet_bench/tools.h"
#include "profile/base/cli.h"

enum {
    KEY_RANKS = 'r',
    KEY_THREADS = 't',
    KEY_ROUNDS = 'n',
    KEY_METRIC = 'm',
    KEY_COMPARATORS = 'c',
    KEY_OUTPUT = 'o',
    KEY_HIGHER = 0x100,
    KEY_JOBS,
    KEY_LOAD,
    KEY_LIMIT,
    KEY_BUDGET,
    KEY_WITHIN,
    KEY_JSON,
    KEY_PLOT,
    KEY_NPB,
    KEY_KERNELS,
    KEY_COSTS,
    KEY_FIGURES,
    KEY_ALL,
    KEY_LIST,
};

/* Everything here in 20 minutes, by default. */
#define WITHIN_SECONDS 1200.0

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "What to run:", 1},
    {"npb", KEY_NPB, "DIR", 0,
     "The NPB binaries that you built in DIR (bt.A.x, cg.B.x, sp-mz.W.x, ...)", 1},
    {"kernels", KEY_KERNELS, NULL, 0, "The kernels that come with servet-bench", 1},
    {"costs", KEY_COSTS, NULL, 0,
     "What starting, creating threads and mapping cost, beside other tools", 1},
    {"figures", KEY_FIGURES, NULL, 0,
     "Predict the figures of the 2012 paper from the profiles of its machines", 1},
    {"all", KEY_ALL, NULL, 0,
     "Every figure of the README in 20 minutes, into a folder (see -o, --within)", 1},
    {"list", KEY_LIST, NULL, 0, "List the comparators and exit", 1},
    {NULL, 0, NULL, 0, "How:", 2},
    {"ranks", KEY_RANKS, "N", 0, "Start the program with mpirun, N ranks", 2},
    {"threads", KEY_THREADS, "N", 0, "OMP_NUM_THREADS (default: as many as PUs; 1 a rank)", 2},
    {"rounds", KEY_ROUNDS, "N", 0, "Interleaved rounds (default 11; of --costs 41)", 2},
    {"comparators", KEY_COMPARATORS, "NAME,...", 0,
     "Only these; ratios are to the first (default: all that apply)", 2},
    {"metric", KEY_METRIC, "REGEX", 0,
     "Take the figure from stdout: the first group, or number, of the last match "
     "(default: wall time)",
     2},
    {"higher", KEY_HIGHER, NULL, 0, "Higher figures are better", 2},
    {"jobs", KEY_JOBS, "N", 0,
     "Run N copies of the program at once; the figure is the worst of them", 2},
    {"load", KEY_LOAD, "N", 0, "Keep the first N PUs busy with a background job", 2},
    {"limit", KEY_LIMIT, "SECONDS", 0, "Kill a run that takes longer (default 600)", 2},
    {"budget", KEY_BUDGET, "SECONDS", 0,
     "Start no further round of a program after that time (twice that, before the sixth)", 2},
    {"within", KEY_WITHIN, "SECONDS", 0,
     "End --all in that time (default 1200): the kernels run fewer rounds", 2},
    {NULL, 0, NULL, 0, "Results:", 3},
    {"json", KEY_JSON, NULL, 0, "Print JSON instead of tables", 3},
    {"plot", KEY_PLOT, "FILE", 0, "Draw the ratios with gnuplot (.svg or .png)", 3},
    {"output", KEY_OUTPUT, "DIR", 0,
     "Folder for tables, JSON and plots of --all and the plots of --figures "
     "(default of --all: servet-bench-results)",
     3},
    {0},
};

static void take_names(struct request *request, const char *text)
{
    size_t count = 0;
    char *next;
    free(request->names_text);
    request->names_text = strdup(text);
    for (char *name = strtok_r(request->names_text, ",", &next); name;
         name = strtok_r(NULL, ",", &next)) {
        if (!comparator_find(name)) {
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

static error_t parse_what(int key, char *argument, struct request *request)
{
    switch (key) {
    case KEY_NPB:
        request->npb = true;
        request->npb_folder = argument;
        return 0;
    case KEY_KERNELS:
        request->kernels = true;
        return 0;
    case KEY_COSTS:
        request->costs = true;
        return 0;
    case KEY_FIGURES:
        request->figures = true;
        return 0;
    case KEY_ALL:
        request->all = request->kernels = request->costs = request->figures = true;
        return 0;
    case KEY_LIST:
        request->list = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
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
        request->rounds_chosen = true;
        request->conditions.rounds = (size_t)cli_integer("--rounds", argument, 1, many);
        return 0;
    case KEY_METRIC:
        request->metric.expression = argument;
        return 0;
    case KEY_COMPARATORS:
        take_names(request, argument);
        return 0;
    case KEY_OUTPUT:
        request->output = argument;
        return 0;
    case KEY_HIGHER:
        request->metric.higher = true;
        return 0;
    case KEY_JOBS:
        request->conditions.jobs = (size_t)cli_integer("--jobs", argument, 1, many);
        return 0;
    case KEY_LOAD:
        request->conditions.load_pus =
            (size_t)cli_integer("--load", argument, 0, (long)tools_pus());
        return 0;
    case KEY_LIMIT:
        request->conditions.limit_seconds = cli_number("--limit", argument, 1e-3, 1e9);
        return 0;
    case KEY_BUDGET:
        request->conditions.budget_seconds = cli_number("--budget", argument, 1e-3, 1e9);
        return 0;
    case KEY_WITHIN:
        request->within_seconds = cli_number("--within", argument, 1.0, 1e6);
        return 0;
    case KEY_JSON:
        request->json = true;
        return 0;
    case KEY_PLOT:
        request->plot = argument;
        return 0;
    default:
        return parse_what(key, argument, request);
    }
}

static int list_comparators(void)
{
    for (size_t i = 0; i < comparator_count; i++) {
        const struct comparator *c = &comparators[i];
        printf("%-12s %-50s %s\n", c->name, c->meaning,
               c->for_ranks ? (c->for_threads ? "" : "MPI only") : "one process only");
    }
    return cli_finish(CLI_OK);
}

const char *request_path(const struct request *request, const char *name, char *path, size_t size)
{
    if ((size_t)snprintf(path, size, "%s/%s", request->output, name) >= size) {
        cli_fail("the name of the folder is too long: %s", request->output);
    }
    return path;
}

static json_t *everything(const struct results *results)
{
    json_t *root = json_pack("{s:s,s:o,s:O}", "tool", "servet-bench " SERVET_VERSION, "machine",
                             report_machine(), "comparisons", results->comparisons);
    if (results->costs) {
        json_object_set(root, "costs", results->costs);
    }
    if (json_array_size(results->exceptions)) {
        json_object_set(root, "exceptions", results->exceptions);
    }
    if (results->figures) {
        json_object_set(root, "figures", results->figures);
    }
    if (results->parts) {
        json_object_set(root, "parts", results->parts);
    }
    return root;
}

static void write_json(const struct request *request, const struct results *results)
{
    char path[4096];
    json_t *root = everything(results);
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(6);
    if (request->all &&
        json_dump_file(root, request_path(request, "results.json", path, sizeof path), flags)) {
        cli_fail("cannot write %s", path);
    }
    if (request->json) {
        json_dumpf(root, stdout, flags);
        putchar('\n');
    }
    json_decref(root);
}

static void open_folder(struct request *request)
{
    if (request->all && !request->output) {
        request->output = "servet-bench-results";
    }
    if (request->output && mkdir(request->output, 0777) && errno != EEXIST) {
        cli_usage("--output %s: %s", request->output, strerror(errno));
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
    int what = request->npb + (request->kernels || request->costs || request->figures) + program;
    if (what != 1) {
        cli_usage(
            "expected a program after --, or one of --npb, --kernels, --costs, --figures, --all");
    }
    if (request->kernels && request->metric.expression) {
        cli_usage("--metric goes with a program or --npb: the kernels' figure is their own time");
    }
}

static void run_what_is_asked(struct request *request, char **argv, struct results *results)
{
    if (request->all) {
        all_run(request, results);
        cli_note("tables, JSON and plots are in %s", request->output);
        return;
    }
    if (request->npb) {
        compare_npb(request, results);
    } else if (*argv) {
        compare_program(request, argv, results);
    }
    if (request->figures) {
        predict_figures(results->text, request->output, &results->figures);
    }
    if (request->costs) {
        costs_run(results->text, request->rounds_chosen ? request->conditions.rounds : COSTS_ROUNDS,
                  &results->costs);
    }
    if (request->kernels) {
        compare_kernels(request, results);
    }
    if (json_array_size(results->comparisons) > 1 || json_array_size(results->exceptions)) {
        compare_exceptions(results);
    }
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[-- PROGRAM [ARGUMENT...]]",
        .doc = "Runs a program under every way to place it that is there, interleaved, and says "
               "which is faster, with "
               "95 % intervals.",
    };
    struct request request = {.within_seconds = WITHIN_SECONDS,
                              .conditions = {.rounds = 11, .limit_seconds = 600.0, .jobs = 1}};
    int first = argc;
    cli_parse(&argp, argc, argv, ARGP_IN_ORDER, &first, &request);
    if (request.list) {
        return list_comparators();
    }
    check_usage(&request, first < argc);
    metric_compile(&request.metric);
    open_folder(&request);
    struct results results = {
        .text = open_text(&request), .comparisons = json_array(), .exceptions = json_array()};
    run_what_is_asked(&request, argv + first, &results);
    if (results.text != stdout) {
        fclose(results.text);
    }
    write_json(&request, &results);
    json_decref(results.comparisons);
    json_decref(results.costs);
    json_decref(results.figures);
    json_decref(results.exceptions);
    json_decref(results.parts);
    if (request.metric.expression) {
        regfree(&request.metric.compiled);
    }
    free(request.names_text);
    return cli_finish(CLI_OK);
}
