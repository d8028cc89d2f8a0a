#include "benchmarks/servet_bench/all.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/servet_bench/compare.h"
#include "benchmarks/servet_bench/costs.h"
#include "benchmarks/servet_bench/costs_plot.h"
#include "benchmarks/servet_bench/predict.h"
#include "benchmarks/servet_bench/readme.h"
#include "benchmarks/servet_bench/runner.h"
#include "profile/base/cli.h"

/* On two quiet PUs. Kernels take what is left, and more rounds than these say nothing new. */
#define FIGURES_SECONDS 1.0
#define COSTS_SECONDS 140.0
#define COMPARISON_SECONDS 30.0
/* A part may take so many times its usual time before it is killed: the machine may be shared. */
#define PATIENCE 3.0
#define LEAST_LIMIT_SECONDS 90.0
/* Of the whole time, kept for the kernels: without them there is no comparison. */
#define KERNELS_SHARE 0.40 /* 27 s of 20 minutes for each comparison: six rounds and more */
/* Projecting the time of probing takes so much of the costs, whatever the rounds. */
#define LEAST_COSTS_SHARE 0.25

struct whole {
    struct request *request;
    struct results *results;
    FILE *file; /* results.txt */
    double started;
    size_t begun, count;
    double left; /* seconds that the parts to come usually take, kernels too */
};

/* One part's text and numbers on their way into files. */
struct part {
    const char *name;
    char *text;
    size_t size;
    double started;
};

static double time_left(const struct whole *whole)
{
    return whole->started + whole->request->within_seconds - runner_now();
}

static void begin(struct whole *whole, const char *name, double usual, struct part *part)
{
    *part = (struct part){.name = name, .started = runner_now()};
    double left = fmax(fmin(whole->left, time_left(whole)), 0);
    cli_note("part %zu of %zu, %s; about %.0f s left", ++whole->begun, whole->count, name, left);
    whole->left -= usual;
    whole->results->text = open_memstream(&part->text, &part->size);
    if (!whole->results->text) {
        cli_fail("out of memory");
    }
}

static void write_file(const struct request *request, const char *name, const char *ending,
                       const char *text)
{
    char path[4096], file[128];
    snprintf(file, sizeof file, "%s.%s", name, ending);
    FILE *out = fopen(request_path(request, file, path, sizeof path), "we");
    bool written = out && fputs(text, out) != EOF;
    if (!out || fclose(out) != 0 || !written) {
        cli_fail("cannot write %s: %s", path, strerror(errno));
    }
}

static void end(struct whole *whole, struct part *part, json_t *numbers)
{
    double seconds = runner_now() - part->started;
    fclose(whole->results->text);
    whole->results->text = whole->file;
    fputs(part->text, whole->file);
    fflush(whole->file);
    if (!whole->request->json) {
        fputs(part->text, stdout);
        fflush(stdout);
    }
    char *json =
        !numbers ? NULL
                 : json_dumps(numbers, JSON_INDENT(2) | JSON_REAL_PRECISION(6) | JSON_ENCODE_ANY);
    write_file(whole->request, part->name, "txt", part->text);
    write_file(whole->request, part->name, "json", json ? json : "null");
    json_array_append_new(whole->results->parts,
                          json_pack("{s:s,s:f}", "name", part->name, "seconds", seconds));
    free(json);
    free(part->text);
}

/* For parts of fixed length: what the kernels are not promised. */
static double spare_time(const struct whole *whole)
{
    return time_left(whole) - KERNELS_SHARE * whole->request->within_seconds;
}

/* A part of fixed length: not without the time that it usually takes, and not in the time of the
 * kernels. */
static void run_readme(struct whole *whole, const struct readme_part *usual)
{
    struct part part;
    unsigned runs = usual->repeat ? usual->repeat : 1;
    double spare = spare_time(whole);
    double limit = fmin(fmax(PATIENCE * usual->seconds, LEAST_LIMIT_SECONDS), spare);
    begin(whole, usual->name, usual->seconds * runs, &part);
    json_t *object = NULL;
    if (spare < usual->seconds * runs) {
        fprintf(whole->results->text, "%s\nleft out: no time left for it (--within)\n\n",
                usual->title);
        object = json_pack("{s:s,s:s,s:s}", "name", usual->name, "what", usual->title, "left_out",
                           "no time left");
    } else {
        object = readme_run(usual, whole->request, limit / runs, whole->results->text);
    }
    end(whole, &part, object);
    json_decref(object);
}

static void run_figures(struct whole *whole)
{
    struct part part;
    begin(whole, "figures", FIGURES_SECONDS, &part);
    predict_figures(whole->results->text, whole->request->output, &whole->results->figures);
    end(whole, &part, whole->results->figures);
}

static void run_costs(struct whole *whole)
{
    struct part part;
    char path[4096];
    const struct request *request = whole->request;
    double share = spare_time(whole) / COSTS_SECONDS;
    size_t rounds = request->rounds_chosen ? request->conditions.rounds : COSTS_ROUNDS;
    begin(whole, "costs", COSTS_SECONDS, &part);
    if (share < LEAST_COSTS_SHARE) {
        fprintf(whole->results->text, "Costs\nleft out: no time left for them (--within)\n\n");
        end(whole, &part, NULL);
        return;
    }
    costs_run(whole->results->text, share < 1 ? (size_t)fmax(1, share * (double)rounds) : rounds,
              &whole->results->costs);
    costs_plot(request_path(request, "costs.svg", path, sizeof path), whole->results->costs);
    end(whole, &part, whole->results->costs);
}

static void run_kernels(struct whole *whole, size_t comparisons)
{
    struct part part;
    begin(whole, "kernels", 0, &part);
    whole->results->clock =
        (struct clock){whole->started + whole->request->within_seconds, comparisons};
    compare_kernels(whole->request, whole->results);
    compare_exceptions(whole->results);
    json_t *numbers = json_pack("{s:O,s:O}", "comparisons", whole->results->comparisons,
                                "exceptions", whole->results->exceptions);
    end(whole, &part, numbers);
    json_decref(numbers);
}

/* What is placed is placed by what was measured a moment ago, unless the user named a profile. */
static void use_fresh_profile(const struct request *request)
{
    char path[4096];
    if (access(request_path(request, "profile.json", path, sizeof path), R_OK) == 0) {
        setenv("SERVET_PROFILE", path, 0);
    }
}

static void print_times(struct whole *whole)
{
    const json_t *part;
    size_t i;
    FILE *outputs[] = {whole->file, whole->request->json ? NULL : stdout};
    for (size_t o = 0; o < 2 && outputs[o]; o++) {
        fprintf(outputs[o], "\nWhat took how long (s)\n");
        json_array_foreach(whole->results->parts, i, part)
        {
            fprintf(outputs[o], "  %-18s %8.1f\n", json_string_value(json_object_get(part, "name")),
                    json_number_value(json_object_get(part, "seconds")));
        }
        fprintf(outputs[o], "  %-18s %8.1f\n", "together", runner_now() - whole->started);
    }
}

void all_run(struct request *request, struct results *results)
{
    char path[4096];
    size_t comparisons = compare_kernels_count(request);
    struct whole whole = {.request = request,
                          .results = results,
                          .started = runner_now(),
                          .count = readme_count + 3,
                          .left = FIGURES_SECONDS + COSTS_SECONDS +
                                  COMPARISON_SECONDS * (double)comparisons};
    whole.file = fopen(request_path(request, "results.txt", path, sizeof path), "we");
    if (!whole.file) {
        cli_fail("cannot write %s: %s", path, strerror(errno));
    }
    for (size_t i = 0; i < readme_count; i++) {
        whole.left +=
            readme_parts[i].seconds * (readme_parts[i].repeat ? readme_parts[i].repeat : 1);
    }
    whole.left = fmin(whole.left, request->within_seconds);
    results->parts = json_array();
    run_figures(&whole);
    run_costs(&whole);
    for (size_t i = 0; i < readme_count; i++) {
        run_readme(&whole, &readme_parts[i]);
    }
    use_fresh_profile(request);
    run_kernels(&whole, comparisons);
    print_times(&whole);
    if (fclose(whole.file) != 0) {
        cli_fail("cannot write %s: %s", path, strerror(errno));
    }
    results->text = stdout;
}
