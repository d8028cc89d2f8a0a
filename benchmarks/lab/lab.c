/* lab: every figure of docs/MEASUREMENTS.md in one run, part by part, in a given time.
 *
 * Parts of a fixed length come first; the kernels share the time that is left, because a comparison
 * of fewer rounds is still one. A part for which there is no time, or whose programs were not
 * built, is left out and says so: the list of parts is always whole. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "benchmarks/bench/compare.h"
#include "benchmarks/bench/report.h"
#include "benchmarks/lab/lab.h"
#include "profile/base/cli.h"
#include "profile/base/clock.h"
#include "profile/base/file.h"

/* Everything here in 20 minutes, by default. */
#define WITHIN_SECONDS 1200.0
/* On two quiet PUs. Kernels take what is left, and more rounds than these say nothing new. */
#define FIGURES_SECONDS 15.0
#define COSTS_SECONDS 140.0
#define COMPARISON_SECONDS 30.0
/* A part may take so many times its usual time before it is killed: the machine may be shared. */
#define PATIENCE 3.0
#define LEAST_LIMIT_SECONDS 90.0
/* Of the whole time, kept for the kernels: without them there is no comparison. */
#define KERNELS_SHARE 0.40 /* 27 s of 20 minutes for each comparison: six rounds and more */
/* Projecting the time of probing takes so much of the costs, whatever the rounds. */
#define LEAST_COSTS_SHARE 0.25

struct lab {
    bool only_costs, only_figures, json;
    const char *folder; /* NULL: no files */
    double within_seconds;
    struct request request; /* how programs are compared */
    bool rounds_chosen;
    struct results results;
    FILE *file; /* MEASUREMENTS.md */
    json_t *parts, *costs, *figures;
    double started;
    size_t begun, count;
    double left; /* seconds that the parts to come usually take, kernels too */
};

/* One part's text on its way into the file. */
struct part {
    const char *name, *title;
    char *text;
    size_t size;
    double started;
};

static const char *path_of(const struct lab *lab, const char *name, char *path, size_t size)
{
    if ((size_t)snprintf(path, size, "%s/%s", lab->folder, name) >= size) {
        cli_fail("the name of the folder is too long: %s", lab->folder);
    }
    return path;
}

static double time_left(const struct lab *lab)
{
    return lab->started + lab->within_seconds - profile_now_s();
}

static void begin(struct lab *lab, const char *name, const char *title, double usual,
                  struct part *part)
{
    *part = (struct part){.name = name, .title = title, .started = profile_now_s()};
    double left = fmax(fmin(lab->left, time_left(lab)), 0);
    cli_note("part %zu of %zu, %s; about %.0f s left", ++lab->begun, lab->count, name, left);
    lab->left -= usual;
    lab->results.text = profile_stream_open(&part->text, &part->size);
    if (!lab->results.text) {
        cli_fail("out of memory");
    }
}

static void end(struct lab *lab, struct part *part, json_t *numbers)
{
    double seconds = profile_now_s() - part->started;
    if (fclose(lab->results.text) != 0) {
        cli_fail("out of memory");
    }
    fprintf(lab->file, "\n## %s\n\n`%s`, %.1f s\n\n```\n%s```\n", part->title, part->name, seconds,
            part->text);
    fflush(lab->file);
    if (!lab->json) {
        fputs(part->text, stdout);
        fflush(stdout);
    }
    json_t *object =
        json_pack("{s:s,s:s,s:f}", "name", part->name, "what", part->title, "seconds", seconds);
    json_object_set(object, "numbers", numbers ? numbers : json_null());
    json_array_append_new(lab->parts, object);
    free(part->text);
}

/* For parts of fixed length: what the kernels are not promised. */
static double spare_time(const struct lab *lab)
{
    return time_left(lab) - KERNELS_SHARE * lab->within_seconds;
}

/* A part of fixed length: not without the time that it usually takes, and not in the time of the
 * kernels. */
static void run_part(struct lab *lab, const struct lab_part *usual)
{
    struct part part;
    unsigned runs = usual->repeat ? usual->repeat : 1;
    double spare = spare_time(lab);
    double limit = fmin(fmax(PATIENCE * usual->seconds, LEAST_LIMIT_SECONDS), spare);
    begin(lab, usual->name, usual->title, usual->seconds * runs, &part);
    json_t *object = NULL;
    if (spare < usual->seconds * runs) {
        fputs("left out: no time left for it (--within)\n", lab->results.text);
        object = json_pack("{s:s}", "left_out", "no time left");
    } else {
        object = bench_part_run(usual, lab->folder, lab->request.threads, limit / runs,
                                lab->results.text);
    }
    end(lab, &part, object);
    json_decref(object);
}

static void make_figures(struct lab *lab, FILE *text)
{
    struct servet_error error = {"not enough memory"};
    if (bench_figures(text, lab->folder, &lab->figures, &error)) {
        cli_fail("the figures of the paper: %s", error.text);
    }
}

static void run_figures(struct lab *lab)
{
    struct part part;
    begin(lab, "figures", "Figures 2 to 5 of the mapping paper, predicted", FIGURES_SECONDS, &part);
    if (spare_time(lab) < FIGURES_SECONDS) {
        fputs("left out: no time left for them (--within)\n", lab->results.text);
    } else {
        make_figures(lab, lab->results.text);
    }
    end(lab, &part, lab->figures);
}

static void run_costs(struct lab *lab)
{
    struct part part;
    double share = spare_time(lab) / COSTS_SECONDS;
    size_t rounds = lab->rounds_chosen ? lab->request.conditions.rounds : LAB_COSTS_ROUNDS;
    begin(lab, "costs", "What placing costs, beside other tools", COSTS_SECONDS, &part);
    if (share < LEAST_COSTS_SHARE) {
        fputs("left out: no time left for them (--within)\n", lab->results.text);
        end(lab, &part, NULL);
        return;
    }
    bench_costs(lab->results.text, share < 1 ? (size_t)fmax(1, share * (double)rounds) : rounds,
                &lab->costs);
    end(lab, &part, lab->costs);
}

static void run_kernels(struct lab *lab, size_t comparisons)
{
    struct part part;
    begin(lab, "kernels", "Kernels under all ways to place them", 0, &part);
    lab->results.share = (struct share){lab->started + lab->within_seconds, comparisons};
    bench_compare_kernels(&lab->request, &lab->results);
    bench_compare_exceptions(&lab->results);
    json_t *numbers = json_pack("{s:O,s:O}", "comparisons", lab->results.comparisons, "exceptions",
                                lab->results.exceptions);
    end(lab, &part, numbers);
    json_decref(numbers);
}

/* What is placed is placed by what was measured a moment ago, unless the user named a profile. */
static void use_fresh_profile(const struct lab *lab)
{
    char path[4096];
    if (access(path_of(lab, "profile.json", path, sizeof path), R_OK) == 0) {
        setenv("SERVET_PROFILE", path, 0);
    }
}

static void write_head(const struct lab *lab)
{
    json_t *machine = bench_json_machine();
    fprintf(lab->file, "# Measurements\n\n%s, %lld PUs, Linux %s, %s; servet %s.\n",
            json_string_value(json_object_get(machine, "cpu")),
            (long long)json_integer_value(json_object_get(machine, "pus")),
            json_string_value(json_object_get(machine, "kernel")),
            json_string_value(json_object_get(machine, "date")), SERVET_VERSION);
    json_decref(machine);
}

static void write_json(const struct lab *lab, const char *path)
{
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(6);
    json_t *root =
        json_pack("{s:s,s:o}", "tool", "servet " SERVET_VERSION, "machine", bench_json_machine());
    json_object_set(root, "parts", lab->parts);
    json_object_set(root, "costs", lab->costs);
    json_object_set(root, "figures", lab->figures);
    if (path && json_dump_file(root, path, flags)) {
        cli_fail("cannot write %s", path);
    }
    if (lab->json) {
        json_dumpf(root, stdout, flags);
        putchar('\n');
    }
    json_decref(root);
}

static void run_all(struct lab *lab)
{
    char path[4096];
    size_t comparisons = bench_compare_kernels_count(&lab->request);
    lab->count = bench_part_count + 3;
    lab->left = FIGURES_SECONDS + COSTS_SECONDS + COMPARISON_SECONDS * (double)comparisons;
    lab->file = fopen(path_of(lab, "MEASUREMENTS.md", path, sizeof path), "we");
    if (!lab->file) {
        cli_fail("cannot write %s: %s", path, strerror(errno));
    }
    for (size_t i = 0; i < bench_part_count; i++) {
        lab->left += bench_parts[i].seconds * (bench_parts[i].repeat ? bench_parts[i].repeat : 1);
    }
    lab->left = fmin(lab->left, lab->within_seconds);
    write_head(lab);
    run_figures(lab);
    run_costs(lab);
    for (size_t i = 0; i < bench_part_count; i++) {
        run_part(lab, &bench_parts[i]);
    }
    use_fresh_profile(lab);
    run_kernels(lab, comparisons);
    fprintf(lab->file, "\nAll of it took %.0f s.\n", profile_now_s() - lab->started);
    if (fclose(lab->file) != 0) {
        cli_fail("cannot write %s: %s", path, strerror(errno));
    }
    write_json(lab, path_of(lab, "results.json", path, sizeof path));
    cli_note("MEASUREMENTS.md, results.json and plots are in %s", lab->folder);
}

static void run_one(struct lab *lab)
{
    FILE *text = lab->json ? fopen("/dev/null", "we") : stdout;
    if (!text) {
        cli_fail("cannot write the tables: %s", strerror(errno));
    }
    if (lab->only_figures) {
        make_figures(lab, text);
    }
    if (lab->only_costs) {
        bench_costs(text, lab->rounds_chosen ? lab->request.conditions.rounds : LAB_COSTS_ROUNDS,
                    &lab->costs);
    }
    if (lab->json) {
        fclose(text);
    }
    write_json(lab, NULL);
}

enum { KEY_COSTS = 0x100, KEY_FIGURES, KEY_WITHIN, KEY_JSON };

static const struct argp_option options[] = {
    {"costs", KEY_COSTS, NULL, 0, "Only what placing costs, beside other tools", 0},
    {"figures", KEY_FIGURES, NULL, 0, "Only the figures of the 2012 paper, predicted", 0},
    {"output", 'o', "DIR", 0, "Folder for MEASUREMENTS.md, results.json and plots", 0},
    {"within", KEY_WITHIN, "SECONDS", 0, "End in that time (default 1200)", 0},
    {"rounds", 'n', "N", 0, "Interleaved rounds (default 11; of the costs 41)", 0},
    {"threads", 't', "N", 0, "Threads of the kernels (default: as many as PUs)", 0},
    {"json", KEY_JSON, NULL, 0, "Print JSON instead of tables", 0},
    {0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct lab *lab = state->input;
    switch (key) {
    case KEY_COSTS:
        lab->only_costs = true;
        return 0;
    case KEY_FIGURES:
        lab->only_figures = true;
        return 0;
    case 'o':
        lab->folder = argument;
        return 0;
    case KEY_WITHIN:
        lab->within_seconds = cli_number("--within", argument, 1.0, 1e6);
        return 0;
    case 'n':
        lab->rounds_chosen = true;
        lab->request.conditions.rounds = (size_t)cli_integer("--rounds", argument, 1, 1 << 20);
        return 0;
    case 't':
        lab->request.threads = (size_t)cli_integer("--threads", argument, 1, 1 << 20);
        return 0;
    case KEY_JSON:
        lab->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .doc = "Makes the figures of docs/MEASUREMENTS.md, all of them unless told which."};
    struct lab lab = {.within_seconds = WITHIN_SECONDS,
                      .request.conditions = {.rounds = 11, .limit_seconds = 600.0, .jobs = 1}};
    cli_parse(&argp, argc, argv, 0, NULL, &lab);
    bool one = lab.only_costs || lab.only_figures;
    if (!one && !lab.folder) {
        lab.folder = "lab-results";
    }
    if (lab.folder && mkdir(lab.folder, 0777) && errno != EEXIST) {
        cli_usage("--output %s: %s", lab.folder, strerror(errno));
    }
    lab.request.plot = lab.folder;
    lab.started = profile_now_s();
    lab.parts = json_array();
    lab.results = (struct results){.comparisons = json_array(), .exceptions = json_array()};
    (one ? run_one : run_all)(&lab);
    json_decref(lab.results.comparisons);
    json_decref(lab.results.exceptions);
    json_decref(lab.parts);
    json_decref(lab.costs);
    json_decref(lab.figures);
    return cli_finish(CLI_OK);
}
