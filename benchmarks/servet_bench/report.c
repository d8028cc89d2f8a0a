#include "benchmarks/servet_bench/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "benchmarks/servet_bench/tools.h"
#include "profile/base/cli.h"

#define LINE_SIZE 512

struct verdict report_verdict_between(const struct comparison *comparison,
                                      const struct series *ours, const struct series *other)
{
    struct verdict verdict = {.ours = ours, .best = other};
    const double *a = ours->values, *b = other->values;
    bool higher = comparison->metric->higher;
    verdict.ratio =
        statistics_ratio(higher ? b : a, higher ? a : b, comparison->rounds, &verdict.interval);
    verdict.slower = verdict.interval.low > 1.0;
    return verdict;
}

bool report_verdict(const struct comparison *comparison, struct verdict *out)
{
    *out = (struct verdict){.best = measure_best(comparison, false)};
    for (size_t i = 0; i < comparison->count && !out->ours; i++) {
        const struct series *series = &comparison->series[i];
        if (!series->left_out && strncmp(series->comparator->name, "servet-", 7) == 0) {
            out->ours = series;
        }
    }
    if (!out->ours || !out->best || comparison->rounds < STATISTICS_LEAST_ROUNDS) {
        return false;
    }
    *out = report_verdict_between(comparison, out->ours, out->best);
    return true;
}

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
    fprintf(out, "; %s; %zu interleaved rounds\n",
            metric->expression ? metric->expression : "wall time in s", comparison->rounds);
}

void report_table(FILE *out, const struct comparison *comparison)
{
    print_program(out, comparison);
    fprintf(out, "  %-12s %12s  %-25s %8s  %s\n", "", "median", "95 % interval", "ratio",
            "95 % interval");
    for (size_t i = 0; i < comparison->count; i++) {
        const struct series *s = &comparison->series[i];
        if (s->left_out) {
            fprintf(out, "  %-12s %s\n", s->comparator->name, s->left_out);
            continue;
        }
        fprintf(out, "  %-12s %12.6g  [%10.5g, %10.5g]  %8.3f  [%.3f, %.3f]\n", s->comparator->name,
                s->median, s->interval.low, s->interval.high, s->ratio, s->ratio_interval.low,
                s->ratio_interval.high);
    }
    struct verdict verdict;
    if (report_verdict(comparison, &verdict)) {
        fprintf(out, "  %s / %s (best of the others): %.3f [%.3f, %.3f], %s\n",
                verdict.ours->comparator->name, verdict.best->comparator->name, verdict.ratio,
                verdict.interval.low, verdict.interval.high,
                verdict.slower ? "SLOWER beyond the interval" : "not slower beyond the interval");
    } else if (comparison->rounds < STATISTICS_LEAST_ROUNDS) {
        fprintf(out, "  no verdict: 95 %% intervals need %d rounds\n", STATISTICS_LEAST_ROUNDS);
    }
    fprintf(out, "\n");
}

/* A ratio to a figure of 0 is none: null, JSON has no infinity. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *pair(struct interval interval)
{
    return json_pack("[o,o]", number(interval.low), number(interval.high));
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
                     pair(series->interval), "ratio", number(series->ratio), "ratio_interval",
                     pair(series->ratio_interval), "values", values);
}

json_t *report_json_conditions(const struct comparison *comparison)
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

json_t *report_json(const struct comparison *comparison)
{
    json_t *list = json_array(), *object = report_json_conditions(comparison);
    for (size_t i = 0; i < comparison->count; i++) {
        json_array_append_new(list, series_json(comparison, &comparison->series[i]));
    }
    json_object_set_new(object, "comparators", list);
    struct verdict verdict;
    if (report_verdict(comparison, &verdict)) {
        json_object_set_new(object, "verdict",
                            json_pack("{s:s,s:s,s:o,s:o,s:b}", "servet",
                                      verdict.ours->comparator->name, "best_other",
                                      verdict.best->comparator->name, "slowdown",
                                      number(verdict.ratio), "interval", pair(verdict.interval),
                                      "slower", (int)verdict.slower));
    }
    return object;
}

static void cpu_model(char *text, size_t size)
{
    char line[LINE_SIZE];
    snprintf(text, size, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strstr(line, ": ");
        if (strncmp(line, "model name", 10) == 0 && colon) {
            snprintf(text, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (file) {
        fclose(file);
    }
}

json_t *report_machine(void)
{
    struct utsname name;
    char cpu[LINE_SIZE], date[32];
    time_t now = time(NULL);
    struct tm parts;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    cpu_model(cpu, sizeof cpu);
    uname(&name);
    return json_pack("{s:s,s:s,s:s,s:I,s:s}", "host", name.nodename, "cpu", cpu, "kernel",
                     name.release, "pus", (json_int_t)tools_pus(), "date", date);
}
