/* A comparison in words and as JSON, and what is known of the reason where ours is not the best. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "benchmarks/bench/report.h"
#include "benchmarks/bench/tools.h"
#include "profile/topology/topology.h"

/* -- verdicts -- */

/* The same of two of its series that have figures; the interval says 95 % only from
 * BENCH_LEAST_ROUNDS on. */
static struct verdict verdict_between(const struct comparison *comparison,
                                      const struct series *ours, const struct series *other)
{
    struct verdict verdict = {.ours = ours, .best = other};
    const double *a = ours->values, *b = other->values;
    bool higher = comparison->metric->higher;
    verdict.ratio = bench_statistics_ratio(higher ? b : a, comparison->rounds, higher ? a : b,
                                           comparison->rounds, &verdict.interval);
    verdict.slower = verdict.interval.low > 1.0;
    return verdict;
}

/* The first series with figures, of servet's or of the others'; NULL: there is none. */
static const struct series *first_of(const struct comparison *comparison, bool ours)
{
    for (size_t i = 0; i < comparison->count; i++) {
        const struct series *series = &comparison->series[i];
        if (!series->left_out && bench_comparator_ours(series->comparator) == ours) {
            return series;
        }
    }
    return NULL;
}

bool bench_verdict(const struct comparison *comparison, struct verdict *out)
{
    const struct series *ours = first_of(comparison, true),
                        *best = bench_measure_best(comparison, false);
    if (!ours || !best || comparison->rounds < BENCH_LEAST_ROUNDS) {
        return false;
    }
    *out = verdict_between(comparison, ours, best);
    return true;
}

/* Whether a comparator leaves the choice of PUs to the system's scheduler. mpirun binds ranks by
 * itself up to two. */
static bool leaves_threads_free(const struct comparator *comparator, const struct program *program)
{
    return strcmp(comparator->name, "bind-none") == 0 ||
           (strcmp(comparator->name, "default") == 0 && program->ranks == 0);
}

static size_t workers(const struct comparison *comparison)
{
    const struct program *program = comparison->program;
    size_t ranks = program->ranks ? program->ranks : 1,
           threads = program->threads ? program->threads : 1;
    return ranks * threads * comparison->conditions.jobs;
}

/* Whether another of servet's priorities is not slower than the best of the others. */
static bool other_priority_is_not(const struct comparison *comparison,
                                  const struct verdict *verdict)
{
    const struct series *best = bench_measure_best(comparison, true);
    if (!best || best == verdict->ours) {
        return false;
    }
    const struct verdict other = verdict_between(comparison, best, verdict->best);
    return !other.slower;
}

/* More than servet-pin and the shim take to start a program on a machine at work. */
#define START_SECONDS 0.02

const char *bench_reason(const struct comparison *comparison, const struct verdict *verdict)
{
    size_t pus = bench_tools_pus(), count = workers(comparison);
    bool free_threads = leaves_threads_free(verdict->best->comparator, comparison->program);
    if (!comparison->metric->expression &&
        verdict->ours->median - verdict->best->median < START_SECONDS) {
        return "a run is so short that the start of servet-pin counts";
    }
    if (comparison->conditions.load_pus && free_threads) {
        return "a pinned thread stays beside the background job, from which the system moves its "
               "own";
    }
    if (count > pus && free_threads) {
        return "more threads than PUs: the system moves threads to PUs that fall idle, pinned ones "
               "stay";
    }
    if (count > pus) {
        return "more threads than PUs: who shares a PU with whom decides, not the cores";
    }
    if (other_priority_is_not(comparison, verdict)) {
        return "the other priority is not slower: the program wants that one";
    }
    if (count == pus) {
        return "every PU has one thread under both: which one is on which is all that differs";
    }
    if (free_threads) {
        return "threads that the system may move do better than on the PUs that were chosen";
    }
    return "other PUs were chosen: SERVET_VERBOSE=1 and servet-map --explain say which and why";
}

/* An interval within that much of 1 is no gain: a user would not see it. */
#define ALIKE 0.05

/* Did servet help, against the first of the others, which is what runs without it? NULL: one of the
 * two has no figures. */
static const char *answer(const struct comparison *comparison, struct verdict *out)
{
    const struct series *ours = first_of(comparison, true), *before = first_of(comparison, false);
    if (!ours || !before) {
        return NULL;
    }
    *out = verdict_between(comparison, ours, before);
    const struct interval in = out->interval;
    return comparison->rounds < BENCH_LEAST_ROUNDS     ? "undecided"
           : in.high < 1                               ? "helped"
           : in.low > 1                                ? "slower"
           : in.low > 1 - ALIKE && in.high < 1 + ALIKE ? "did not help"
                                                       : "undecided";
}

static void print_answer(FILE *out, const struct comparison *comparison)
{
    struct verdict verdict;
    const char *word = answer(comparison, &verdict), *why = "";
    if (!word) {
        return;
    }
    if (comparison->rounds < BENCH_LEAST_ROUNDS) {
        fprintf(out, "  %s: it takes %d rounds\n", word, BENCH_LEAST_ROUNDS);
        return;
    }
    if (strcmp(word, "undecided") == 0) {
        why = ": more rounds, or an idle machine";
    } else if (strcmp(word, "did not help") == 0 && workers(comparison) <= bench_tools_pus()) {
        why = ", because a PU was free for every thread";
    }
    const bool higher = comparison->metric->higher;
    const struct interval in = verdict.interval;
    fprintf(out, "  %s: %.3g of the %s of %s, between %.3g and %.3g%s\n", word,
            higher ? 1 / verdict.ratio : verdict.ratio,
            comparison->metric->expression ? "figure" : "time", verdict.best->comparator->name,
            higher ? 1 / in.high : in.low, higher ? 1 / in.low : in.high, why);
}

/* -- tables, JSON -- */

static void print_program(FILE *out, const struct comparison *comparison)
{
    const struct program *program = comparison->program;
    fprintf(out, "%s", program->label);
    if (program->ranks) {
        fprintf(out, ", %zu ranks", program->ranks);
    }
    if (program->threads) {
        fprintf(out, ", %zu threads%s", program->threads, program->ranks ? " each" : "");
    }
    if (comparison->conditions.jobs > 1) {
        fprintf(out, ", %zu jobs at once (the worst)", comparison->conditions.jobs);
    }
    if (comparison->conditions.load_pus) {
        fprintf(out, ", background job on %zu PUs", comparison->conditions.load_pus);
    }
    const struct metric *metric = comparison->metric;
    fprintf(out, "%s; %s; %zu interleaved rounds\n", bench_tools_quota().text,
            metric->expression ? metric->expression : "wall time in s", comparison->rounds);
}

struct bench_span bench_span(struct interval interval, size_t rounds, int digits)
{
    struct bench_span span = {"-"};
    if (rounds >= BENCH_LEAST_ROUNDS) {
        snprintf(span.text, sizeof span.text, "[%10.*g, %10.*g]", digits, interval.low, digits,
                 interval.high);
    }
    return span;
}

void bench_table(FILE *out, const struct comparison *comparison)
{
    print_program(out, comparison);
    print_answer(out, comparison);
    fprintf(out, "  %-12s %12s  %-25s %8s  %s\n", "", "median", "95 % interval", "ratio",
            "95 % interval");
    for (size_t i = 0; i < comparison->count; i++) {
        const struct series *s = &comparison->series[i];
        if (s->left_out) {
            fprintf(out, "  %-12s %s\n", s->comparator->name, s->left_out);
            continue;
        }
        struct bench_span median = bench_span(s->interval, comparison->rounds, 5);
        struct bench_span ratio = bench_span(s->ratio_interval, comparison->rounds, 4);
        fprintf(out, "  %-12s %12.6g  %-24s  %8.3f  %s\n", s->comparator->name, s->median,
                median.text, s->ratio, ratio.text);
    }
    fprintf(out, "\n");
}

/* A ratio to a figure of 0 is none: null, JSON has no infinity. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *bench_json_interval(struct interval interval, size_t rounds)
{
    return rounds < BENCH_LEAST_ROUNDS
               ? json_null()
               : json_pack("[o,o]", number(interval.low), number(interval.high));
}

static json_t *series_json(const struct comparison *comparison, const struct series *series)
{
    if (series->left_out) {
        return json_pack("{s:s,s:s}", "name", series->comparator->name, "left_out",
                         series->left_out);
    }
    json_t *values = json_array();
    for (size_t round = 0; round < comparison->rounds; round++) {
        json_array_append_new(values, json_real(series->values[round]));
    }
    return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:o}", "name", series->comparator->name, "command",
                     series->command, "median", number(series->median), "interval",
                     bench_json_interval(series->interval, comparison->rounds), "ratio",
                     number(series->ratio), "ratio_interval",
                     bench_json_interval(series->ratio_interval, comparison->rounds), "values",
                     values);
}

json_t *bench_json_conditions(const struct comparison *comparison)
{
    const struct metric *metric = comparison->metric;
    return json_pack("{s:s,s:I,s:I,s:s,s:b,s:I,s:I,s:I}", "program", comparison->program->label,
                     "ranks", (json_int_t)comparison->program->ranks, "threads",
                     (json_int_t)comparison->program->threads, "metric",
                     metric->expression ? metric->expression : "wall time", "higher_is_better",
                     (int)metric->higher, "rounds", (json_int_t)comparison->rounds, "jobs",
                     (json_int_t)comparison->conditions.jobs, "load_pus",
                     (json_int_t)comparison->conditions.load_pus);
}

json_t *bench_json(const struct comparison *comparison)
{
    json_t *list = json_array(), *object = bench_json_conditions(comparison);
    for (size_t i = 0; i < comparison->count; i++) {
        json_array_append_new(list, series_json(comparison, &comparison->series[i]));
    }
    json_object_set_new(object, "comparators", list);
    struct verdict verdict;
    const char *result = answer(comparison, &verdict);
    if (result) {
        json_object_set_new(object, "result", json_string(result));
    }
    if (bench_verdict(comparison, &verdict)) {
        json_object_set_new(object, "verdict",
                            json_pack("{s:s,s:s,s:o,s:o,s:b}", "servet",
                                      verdict.ours->comparator->name, "best_other",
                                      verdict.best->comparator->name, "slowdown",
                                      number(verdict.ratio), "interval",
                                      bench_json_interval(verdict.interval, comparison->rounds),
                                      "slower", (int)verdict.slower));
    }
    return object;
}

json_t *bench_json_machine(void)
{
    struct utsname name;
    struct sysfs fs = {.root = ""};
    char *cpu = profile_sysfs_processor(&fs), date[32];
    time_t now = time(NULL);
    struct tm parts;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    uname(&name);
    json_t *machine =
        json_pack("{s:s,s:s,s:s,s:I,s:s}", "host", name.nodename, "cpu", cpu ? cpu : "unknown",
                  "kernel", name.release, "pus", (json_int_t)bench_tools_pus(), "date", date);
    free(cpu);
    const double quota = bench_tools_quota().cpus;
    if (quota > 0) {
        json_object_set_new(machine, "cpu_quota", json_real(quota));
    }
    return machine;
}
