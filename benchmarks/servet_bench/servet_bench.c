/* servet-bench: what placing a program gains here, side by side with the other ways to place it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "costs.h"
#include "npb.h"
#include "predict.h"
#include "report.h"
#include "suite.h"
#include "tools.h"

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
    KEY_JSON,
    KEY_PLOT,
    KEY_NPB,
    KEY_KERNELS,
    KEY_COSTS,
    KEY_FIGURES,
    KEY_ALL,
    KEY_LIST,
};

#define MOST_COMPARATORS 32
#define COST_ROUNDS 41
/* 18 comparisons at 30 s (60 s at most), and costs and figures in 2 minutes, stay within 20 minutes. */
#define SUITE_BUDGET_SECONDS 30.0

struct request {
    bool npb, kernels, costs, figures, all, list, json, rounds_chosen;
    const char *npb_folder, *output, *plot;
    char *names_text;
    const char *names[MOST_COMPARATORS + 1];
    size_t ranks, threads;
    struct metric metric;
    struct conditions conditions;
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "What to run:", 1},
    {"npb", KEY_NPB, "DIR", 0, "The NPB binaries that you built in DIR (bt.A.x, cg.B.x, sp-mz.W.x, ...)", 1},
    {"kernels", KEY_KERNELS, NULL, 0, "The kernels that come with servet-bench", 1},
    {"costs", KEY_COSTS, NULL, 0, "What starting, creating threads and mapping cost, beside other tools", 1},
    {"figures", KEY_FIGURES, NULL, 0, "Predict the figures of the 2012 paper from the profiles of its machines", 1},
    {"all", KEY_ALL, NULL, 0, "Kernels, costs and figures, at most 20 minutes, into a folder (see -o)", 1},
    {"list", KEY_LIST, NULL, 0, "List the comparators and exit", 1},
    {NULL, 0, NULL, 0, "How:", 2},
    {"ranks", KEY_RANKS, "N", 0, "Start the program with mpirun, N ranks", 2},
    {"threads", KEY_THREADS, "N", 0, "OMP_NUM_THREADS (default: as many as PUs; 1 a rank)", 2},
    {"rounds", KEY_ROUNDS, "N", 0, "Interleaved rounds (default 11; of --costs 41)", 2},
    {"comparators", KEY_COMPARATORS, "NAME,...", 0, "Only these; ratios are to the first (default: all that apply)", 2},
    {"metric", KEY_METRIC, "REGEX", 0,
     "Take the figure from stdout: the first group, or number, of the last match "
     "(default: wall time)",
     2},
    {"higher", KEY_HIGHER, NULL, 0, "Higher figures are better", 2},
    {"jobs", KEY_JOBS, "N", 0, "Run N copies of the program at once; the figure is the worst of them", 2},
    {"load", KEY_LOAD, "N", 0, "Keep the first N PUs busy with a background job", 2},
    {"limit", KEY_LIMIT, "SECONDS", 0, "Kill a run that takes longer (default 600)", 2},
    {"budget", KEY_BUDGET, "SECONDS", 0,
     "Start no further round of a program after that time (twice that, before the sixth)", 2},
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
    for (char *name = strtok_r(request->names_text, ",", &next); name; name = strtok_r(NULL, ",", &next)) {
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
        request->conditions.load_pus = (size_t)cli_integer("--load", argument, 0, (long)tools_pus());
        return 0;
    case KEY_LIMIT:
        request->conditions.limit_seconds = cli_number("--limit", argument, 1e-3, 1e9);
        return 0;
    case KEY_BUDGET:
        request->conditions.budget_seconds = cli_number("--budget", argument, 1e-3, 1e9);
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

/* Names of the comparators to run on a program: the user's, or all that suit its form. */
static void choose(const struct request *request, const struct program *program, const char **names)
{
    size_t count = 0;
    if (request->names[0]) {
        memcpy(names, request->names, sizeof request->names);
        return;
    }
    for (size_t i = 0; i < comparator_count; i++) {
        const struct comparator *c = &comparators[i];
        bool binds_threads = strncmp(c->name, "omp-", 4) == 0;
        if ((program->ranks ? c->for_ranks : c->for_threads) &&
            !(program->ranks && program->threads <= 1 && binds_threads)) {
            names[count++] = c->name;
        }
    }
    names[count] = NULL;
}

struct results {
    FILE *text; /* where tables go */
    json_t *comparisons, *costs, *figures;
    size_t slower;
};

static struct comparison *compare_all(const struct request *request, const struct program *programs, size_t count,
                                      const struct metric *metric, struct results *results)
{
    struct comparison *comparisons = calloc(count ? count : 1, sizeof *comparisons);
    if (!comparisons) {
        cli_fail("out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        const char *names[MOST_COMPARATORS + 1];
        struct verdict verdict;
        choose(request, &programs[i], names);
        measure(&programs[i], metric, &request->conditions, names, &comparisons[i]);
        report_table(results->text, &comparisons[i]);
        fflush(results->text);
        json_array_append_new(results->comparisons, report_json(&comparisons[i]));
        results->slower += report_verdict(&comparisons[i], &verdict) && verdict.slower;
    }
    return comparisons;
}

static void free_all(struct comparison *comparisons, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        measure_free(&comparisons[i]);
    }
    free(comparisons);
}

static const char *in_folder(const struct request *request, const char *name, char *path, size_t size)
{
    if ((size_t)snprintf(path, size, "%s/%s", request->output, name) >= size) {
        cli_fail("the name of the folder is too long: %s", request->output);
    }
    return path;
}

/* Programs of one process and MPI programs have different comparators: a plot each. */
static void plot_suite(const struct request *request, const struct comparison *comparisons, size_t count)
{
    char path[4096];
    size_t threads = 0;
    while (threads < count && comparisons[threads].program->ranks == 0) {
        threads++;
    }
    if (threads) {
        report_plot(in_folder(request, "threads.svg", path, sizeof path), comparisons, threads);
    }
    size_t ranks = threads;
    while (ranks < count && comparisons[ranks].program->threads <= 1) {
        ranks++;
    }
    if (ranks > threads) {
        report_plot(in_folder(request, "ranks.svg", path, sizeof path), comparisons + threads, ranks - threads);
    }
    if (count > ranks) {
        report_plot(in_folder(request, "hybrid.svg", path, sizeof path), comparisons + ranks, count - ranks);
    }
}

/* Beside a background job on half of the PUs, and two jobs at once: the papers measured on loaded machines. */
static void run_loaded(const struct request *request, const struct metric *metric, struct results *results)
{
    struct suite suite;
    struct request loaded = *request, twice = *request;
    size_t pus = request->threads ? request->threads : tools_pus();
    suite_loaded(pus, &suite);
    loaded.conditions.load_pus = pus > 1 ? pus / 2 : 1;
    twice.conditions.jobs = 2;
    free_all(compare_all(&loaded, suite.programs, suite.count, metric, results), suite.count);
    free_all(compare_all(&twice, suite.programs, suite.count, metric, results), suite.count);
    suite_free(&suite);
}

static void run_kernels(const struct request *request, struct results *results)
{
    struct suite suite;
    struct metric metric = {.expression = SUITE_METRIC};
    suite_kernels(request->threads ? request->threads : tools_pus(), &suite);
    metric_compile(&metric);
    struct comparison *comparisons = compare_all(request, suite.programs, suite.count, &metric, results);
    if (request->output) {
        plot_suite(request, comparisons, suite.count);
    }
    free_all(comparisons, suite.count);
    if (request->conditions.load_pus == 0 && request->conditions.jobs == 1) {
        run_loaded(request, &metric, results);
    }
    regfree(&metric.compiled);
    suite_free(&suite);
}

static void run_npb(const struct request *request, struct results *results)
{
    struct npb_list list;
    struct metric metric = request->metric;
    if (!metric.expression) {
        metric = (struct metric){.expression = NPB_METRIC, .higher = true};
        metric_compile(&metric);
    }
    size_t pus = tools_pus();
    int code = npb_find(request->npb_folder, request->ranks ? request->ranks : pus,
                        request->threads ? request->threads : pus, &list);
    if (code) {
        cli_usage("--npb %s: %s", request->npb_folder, strerror(-code));
    }
    if (list.count == 0) {
        cli_usage("--npb %s: expected programs called like bt.A.x or cg.B.x in it", request->npb_folder);
    }
    struct comparison *comparisons = compare_all(request, list.programs, list.count, &metric, results);
    if (request->plot) {
        report_plot(request->plot, comparisons, list.count);
    }
    free_all(comparisons, list.count);
    npb_free(&list);
    if (!request->metric.expression) {
        regfree(&metric.compiled);
    }
}

static void run_program(const struct request *request, char **argv, struct results *results)
{
    struct program program = {.label = argv[0], .ranks = request->ranks, .threads = request->threads};
    if (program.threads == 0) {
        program.threads = program.ranks ? 1 : tools_pus();
    }
    char *found = tools_find(argv[0]);
    if (!found) {
        cli_usage("%s: expected a program that can be run", argv[0]);
    }
    free(found);
    words_add_all(&program.argv, argv);
    struct comparison *comparisons = compare_all(request, &program, 1, &request->metric, results);
    if (request->plot) {
        report_plot(request->plot, comparisons, 1);
    }
    bool any = measure_best(&comparisons[0], false) || measure_best(&comparisons[0], true);
    free_all(comparisons, 1);
    words_free(&program.argv);
    if (!any) {
        cli_fail("%s did not succeed under any comparator", argv[0]);
    }
}

static json_t *everything(const struct results *results)
{
    json_t *root = json_pack("{s:s,s:o,s:O}", "tool", "servet-bench " SERVET_VERSION, "machine", report_machine(),
                             "comparisons", results->comparisons);
    if (results->costs) {
        json_object_set(root, "costs", results->costs);
    }
    if (results->figures) {
        json_object_set(root, "figures", results->figures);
    }
    return root;
}

static void write_json(const struct request *request, const struct results *results)
{
    char path[4096];
    json_t *root = everything(results);
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(6);
    if (request->all && json_dump_file(root, in_folder(request, "results.json", path, sizeof path), flags)) {
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
    char path[4096];
    FILE *text = stdout;
    if (request->all) {
        text = fopen(in_folder(request, "results.txt", path, sizeof path), "we");
    } else if (request->json) {
        text = fopen("/dev/null", "we");
    }
    if (!text) {
        cli_fail("cannot write the tables: %s", strerror(errno));
    }
    return text;
}

static void check_usage(const struct request *request, bool program)
{
    int what = request->npb + (request->kernels || request->costs || request->figures) + program;
    if (what != 1) {
        cli_usage("expected a program after --, or one of --npb, --kernels, --costs, --figures, --all");
    }
    if (request->kernels && request->metric.expression) {
        cli_usage("--metric goes with a program or --npb: the kernels' figure is their own time");
    }
}

static void run_all(struct request *request, char **argv, struct results *results)
{
    if (request->npb) {
        run_npb(request, results);
    } else if (*argv) {
        run_program(request, argv, results);
    }
    if (request->figures) {
        predict_figures(results->text, request->output, &results->figures);
    }
    if (request->costs) {
        costs_run(results->text, request->rounds_chosen ? request->conditions.rounds : COST_ROUNDS, &results->costs);
    }
    if (request->kernels) {
        run_kernels(request, results);
    }
}

/* What was written for --all goes to stdout too, when it is complete. */
static void show(const struct request *request)
{
    char path[4096], line[1024];
    FILE *text = fopen(in_folder(request, "results.txt", path, sizeof path), "re");
    while (text && !request->json && fgets(line, sizeof line, text)) {
        fputs(line, stdout);
    }
    if (text) {
        fclose(text);
    }
    cli_note("tables, JSON and plots are in %s", request->output);
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[-- PROGRAM [ARGUMENT...]]",
        .doc = "Runs a program under every way to place it that is there, interleaved, and says which is faster, with "
               "95 % intervals.",
    };
    struct request request = {.conditions = {.rounds = 11, .limit_seconds = 600.0, .jobs = 1}};
    int first = argc;
    cli_parse(&argp, argc, argv, ARGP_IN_ORDER, &first, &request);
    if (request.list) {
        return list_comparators();
    }
    check_usage(&request, first < argc);
    metric_compile(&request.metric);
    if (request.all && request.conditions.budget_seconds == 0.0) {
        request.conditions.budget_seconds = SUITE_BUDGET_SECONDS;
    }
    open_folder(&request);
    struct results results = {.text = open_text(&request), .comparisons = json_array()};
    run_all(&request, argv + first, &results);
    if (results.comparisons && json_array_size(results.comparisons) > 1) {
        fprintf(results.text, "servet slower than the best of the others beyond the interval: %zu of %zu programs\n",
                results.slower, json_array_size(results.comparisons));
    }
    if (results.text != stdout) {
        fclose(results.text);
    }
    write_json(&request, &results);
    if (request.all) {
        show(&request);
    }
    json_decref(results.comparisons);
    json_decref(results.costs);
    json_decref(results.figures);
    if (request.metric.expression) {
        regfree(&request.metric.compiled);
    }
    free(request.names_text);
    return cli_finish(CLI_OK);
}
