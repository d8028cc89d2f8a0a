/* Comparisons of what is asked for: which comparators suit a program, and the second look at
 * programs that servet is slower on. */
#include "benchmarks/bench/compare.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "benchmarks/bench/programs.h"
#include "benchmarks/bench/report.h"
#include "benchmarks/bench/run.h"
#include "benchmarks/bench/tools.h"
#include "profile/base/cli.h"

/* Names of the comparators to run on a program: the user's, or all that suit its form. */
static void choose(const struct request *request, const struct program *program, const char **names)
{
    size_t count = 0;
    if (request->names[0]) {
        memcpy(names, request->names, sizeof request->names);
        return;
    }
    for (size_t i = 0; i < bench_comparator_count; i++) {
        const struct comparator *c = &bench_comparators[i];
        if (program->ranks ? c->for_ranks && (program->threads > 1 || !c->proc_bind)
                           : c->for_threads) {
            names[count++] = c->name;
        }
    }
    names[count] = NULL;
}

/* The best of the others was picked by the same rounds that condemn servet: both are measured
 * again, alone. */
static bool confirmed(const struct comparison *comparison, const struct verdict *verdict,
                      struct verdict *again)
{
    const char *const names[] = {verdict->best->comparator->name, verdict->ours->comparator->name,
                                 NULL};
    struct comparison second;
    bench_measure(comparison->program, comparison->metric, &comparison->conditions, names, &second);
    bool known = bench_verdict(&second, again), slower = !known || again->slower;
    if (!known) {
        again->ratio = 0;
    }
    bench_measure_free(&second);
    return slower;
}

static void keep_exception(const struct comparison *comparison, const struct verdict *verdict,
                           struct results *results)
{
    struct verdict again;
    bool slower = confirmed(comparison, verdict, &again);
    const char *reason = slower ? bench_reason(comparison, verdict)
                                : "not found again when both were measured alone";
    json_t *object = bench_json_conditions(comparison);
    json_object_set_new(object, "servet", json_string(verdict->ours->comparator->name));
    json_object_set_new(object, "best_other", json_string(verdict->best->comparator->name));
    json_object_set_new(object, "slowdown", json_real(verdict->ratio));
    if (again.ratio > 0) {
        json_object_set_new(object, "again",
                            json_pack("{s:f,s:[f,f]}", "slowdown", again.ratio, "interval",
                                      again.interval.low, again.interval.high));
    }
    json_object_set_new(object, "confirmed", json_boolean(slower));
    json_object_set_new(object, "reason", json_string(reason));
    json_array_append_new(results->exceptions, object);
}

static struct comparison *compare_all(const struct request *request,
                                      const struct programs *programs, const struct metric *metric,
                                      struct results *results)
{
    struct comparison *comparisons = bench_memory(programs->count, sizeof *comparisons);
    for (size_t i = 0; i < programs->count; i++) {
        const char *names[MOST_COMPARATORS + 1];
        struct verdict verdict;
        choose(request, &programs->list[i], names);
        bench_measure(&programs->list[i], metric, &request->conditions, names, &comparisons[i]);
        bench_table(results->text, &comparisons[i]);
        fflush(results->text);
        json_array_append_new(results->comparisons, bench_json(&comparisons[i]));
        if (bench_verdict(&comparisons[i], &verdict) && verdict.slower) {
            keep_exception(&comparisons[i], &verdict, results);
        }
    }
    return comparisons;
}

/* Into request->plot, or a picture of that name where it is a folder. */
static void plot_part(const struct request *request, const char *name,
                      const struct comparison *comparisons, size_t count)
{
    struct stat status;
    char path[PATH_MAX];
    if (request->plot && count) {
        bool folder = stat(request->plot, &status) == 0 && S_ISDIR(status.st_mode);
        snprintf(path, sizeof path, folder ? "%s/%s" : "%s", request->plot, name);
        bench_plot_ratios(path, comparisons, count);
    }
}

/* Programs of one process and MPI programs have different comparators: a plot each. */
static void plot_suite(const struct request *request, const struct comparison *comparisons,
                       size_t count)
{
    size_t threads = 0;
    while (threads < count && comparisons[threads].program->ranks == 0) {
        threads++;
    }
    size_t ranks = threads;
    while (ranks < count && comparisons[ranks].program->threads <= 1) {
        ranks++;
    }
    plot_part(request, "threads.svg", comparisons, threads);
    plot_part(request, "ranks.svg", comparisons + threads, ranks - threads);
    plot_part(request, "hybrid.svg", comparisons + ranks, count - ranks);
}

/* `plot` NULL: a picture for each form of the programs. Did one run under any comparator? */
static bool compare_under(const struct request *request, const struct programs *suite,
                          const char *plot, const struct metric *metric, struct results *results)
{
    bool any = false;
    struct comparison *comparisons = compare_all(request, suite, metric, results);
    if (plot) {
        plot_part(request, plot, comparisons, suite->count);
    } else {
        plot_suite(request, comparisons, suite->count);
    }
    for (size_t i = 0; i < suite->count; i++) {
        any = any || bench_measure_best(&comparisons[i], false) ||
              bench_measure_best(&comparisons[i], true);
        bench_measure_free(&comparisons[i]);
    }
    free(comparisons);
    return any;
}

/* Beside a background job on half of the PUs, and two jobs at once that each want all: the papers
 * measured on loaded machines. */
static void compare_loaded(const struct request *request, const struct metric *metric,
                           struct results *results)
{
    struct programs half, whole;
    struct request loaded = *request, twice = *request;
    size_t pus = request->threads ? request->threads : bench_tools_pus();
    bench_kernels(pus > 1 ? pus / 2 : 1, 1, &half);
    bench_kernels(pus, 1, &whole);
    loaded.conditions.load_pus = pus > 1 ? pus / 2 : 1;
    twice.conditions.jobs = 2;
    compare_under(&loaded, &half, "loaded.svg", metric, results);
    compare_under(&twice, &whole, "two-jobs.svg", metric, results);
    bench_programs_free(&half);
    bench_programs_free(&whole);
}

void bench_compare_kernels(const struct request *request, struct results *results)
{
    struct programs suite;
    struct metric metric = {.expression = BENCH_KERNEL_METRIC};
    bench_kernels(request->threads ? request->threads : bench_tools_pus(), SIZE_MAX, &suite);
    bench_metric_compile(&metric);
    compare_under(request, &suite, NULL, &metric, results);
    if (request->conditions.load_pus == 0 && request->conditions.jobs == 1) {
        compare_loaded(request, &metric, results);
    }
    regfree(&metric.compiled);
    bench_programs_free(&suite);
}

void bench_compare_npb(const struct request *request, struct results *results)
{
    struct programs list;
    struct metric metric = request->metric;
    if (!metric.expression) {
        metric = (struct metric){.expression = BENCH_NPB_METRIC, .higher = true};
        bench_metric_compile(&metric);
    }
    size_t pus = bench_tools_pus();
    int code = bench_npb_find(request->npb_folder, request->ranks ? request->ranks : pus,
                              request->threads ? request->threads : pus, &list);
    if (code) {
        cli_usage("--npb %s: %s", request->npb_folder, strerror(-code));
    }
    if (list.count == 0) {
        cli_usage("--npb %s: expected programs called like bt.A.x or cg.B.x in it",
                  request->npb_folder);
    }
    compare_under(request, &list, "npb.svg", &metric, results);
    bench_programs_free(&list);
    if (!request->metric.expression) {
        regfree(&metric.compiled);
    }
}

void bench_compare_program(const struct request *request, char **argv, struct results *results)
{
    struct program program = {
        .label = bench_copy(argv[0]), .ranks = request->ranks, .threads = request->threads};
    if (program.threads == 0) {
        program.threads = program.ranks ? 1 : bench_tools_pus();
    }
    char *found = bench_tools_find(argv[0]);
    if (!found) {
        cli_usage("%s: expected a program that can be run", argv[0]);
    }
    free(found);
    bench_words_add_all(&program.argv, argv);
    struct servet_error error;
    if (program.ranks && bench_program_launcher(&program, &error) < 0) {
        cli_usage("%s", error.text);
    }
    const struct programs alone = {&program, 1};
    bool any = compare_under(request, &alone, "comparison.svg", &request->metric, results);
    bench_program_free(&program);
    if (!any) {
        cli_fail("%s did not succeed under any comparator", argv[0]);
    }
}

void bench_compare_exceptions(const struct results *results)
{
    size_t i, confirmed_ones = 0;
    const json_t *exception;
    json_array_foreach(results->exceptions, i, exception)
    {
        confirmed_ones += json_is_true(json_object_get(exception, "confirmed"));
    }
    fprintf(results->text, "programs for which another way is faster: %zu of %zu%s\n",
            confirmed_ones, json_array_size(results->comparisons),
            json_array_size(results->exceptions) > confirmed_ones
                ? ", and in these that were not confirmed:"
                : "");
    json_array_foreach(results->exceptions, i, exception)
    {
        const json_t *again = json_object_get(json_object_get(exception, "again"), "slowdown");
        fprintf(results->text, "  %s: %s takes %.3f of %s",
                json_string_value(json_object_get(exception, "program")),
                json_string_value(json_object_get(exception, "servet")),
                json_number_value(json_object_get(exception, "slowdown")),
                json_string_value(json_object_get(exception, "best_other")));
        if (again) {
            fprintf(results->text, ", again alone %.3f", json_number_value(again));
        }
        fprintf(results->text, ": %s\n", json_string_value(json_object_get(exception, "reason")));
    }
}
