#include "costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "runner.h"
#include "statistics.h"
#include "tools.h"
#include "words.h"

#define LIMIT_SECONDS 120.0
#define MOST 8

/* One way to do a thing; `tool` is looked for, and the way left out when it is not there. */
struct way {
    const char *name;
    const char *tool; /* of this project when ours; NULL: nothing in front of the program */
    bool ours;
    const char *options[MOST];
};

struct timed {
    const struct way *way;
    char *tool;
    struct words argv;
    double *values;
    const char *failed;
};

static json_t *interval_json(const char *name, const double *values, size_t count, double unit)
{
    struct interval interval = statistics_interval(values, count);
    return json_pack("{s:s,s:f,s:[f,f]}", "name", name, "seconds", statistics_median(values, count) * unit, "interval",
                     interval.low * unit, interval.high * unit);
}

static void prepare(const struct way *ways, size_t count, char *const *program, size_t rounds, struct timed *timed)
{
    for (size_t i = 0; i < count; i++) {
        const struct way *way = &ways[i];
        timed[i] = (struct timed){.way = way, .values = calloc(rounds, sizeof(double))};
        if (way->tool) {
            timed[i].tool = way->ours ? tools_ours(way->tool) : tools_find(way->tool);
            timed[i].failed = timed[i].tool ? NULL : "not installed";
        }
        if (timed[i].tool) {
            words_add(&timed[i].argv, "%s", timed[i].tool);
        }
        for (size_t o = 0; o < MOST && way->options[o]; o++) {
            words_add(&timed[i].argv, "%s", way->options[o]);
        }
        if (program) {
            words_add_all(&timed[i].argv, program);
        }
    }
}

/* The figure of a run: its wall time, or the number after `word` in its output. */
static double figure(const struct run *run, const char *word)
{
    const char *found = word && run->out ? strstr(run->out, word) : NULL;
    return word ? (found ? strtod(found + strlen(word), NULL) : NAN) : run->seconds;
}

static void run_rounds(struct timed *timed, size_t count, size_t rounds, const char *word)
{
    const struct words nothing = {0};
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            struct run run;
            if (timed[i].failed) {
                continue;
            }
            runner_run(&timed[i].argv, &nothing, 1, LIMIT_SECONDS, &run);
            timed[i].values[round] = figure(&run, word);
            if (run.status != 0 || !isfinite(timed[i].values[round])) {
                timed[i].failed = "the program failed under it";
            }
            runner_free(&run);
        }
    }
}

/* All ways in one table; figures are in `unit` seconds and printed in microseconds. */
static json_t *compare(FILE *out, const char *title, const struct way *ways, size_t count, char *const *program,
                       size_t rounds, const char *word, double unit)
{
    struct timed *timed = calloc(count, sizeof *timed);
    if (!timed) {
        cli_fail("out of memory");
    }
    json_t *list = json_array();
    prepare(ways, count, program, rounds, timed);
    run_rounds(timed, count, rounds, word);
    fprintf(out, "%s (median and 95 %% interval of %zu interleaved rounds, us)\n", title, rounds);
    for (size_t i = 0; i < count; i++) {
        if (timed[i].failed) {
            fprintf(out, "  %-34s %s\n", ways[i].name, timed[i].failed);
            json_array_append_new(list, json_pack("{s:s,s:s}", "name", ways[i].name, "left_out", timed[i].failed));
        } else {
            struct interval interval = statistics_interval(timed[i].values, rounds);
            double median = statistics_median(timed[i].values, rounds);
            fprintf(out, "  %-34s %12.1f  [%.1f, %.1f]\n", ways[i].name, median * unit * 1e6, interval.low * unit * 1e6,
                    interval.high * unit * 1e6);
            json_array_append_new(list, interval_json(ways[i].name, timed[i].values, rounds, unit));
        }
        free(timed[i].tool);
        words_free(&timed[i].argv);
        free(timed[i].values);
    }
    fprintf(out, "\n");
    free(timed);
    return json_pack("{s:s,s:o}", "what", title, "ways", list);
}

static const struct way starts[] = {
    {"nothing", NULL, false, {NULL}},
    {"servet-pin --mem-prior", "servet-pin", true, {"--mem-prior", "--"}},
    {"taskset -c 0", "taskset", false, {"-c", "0"}},
    {"numactl --physcpubind=0", "numactl", false, {"--physcpubind=0"}},
    {"hwloc-bind core:0", "hwloc-bind", false, {"core:0", "--"}},
    {"likwid-pin -c 0", "likwid-pin", false, {"-q", "-c", "0"}},
};

/* Time until all of a mapping is printed, the start of the command included. */
static const struct way mappings[] = {
    {"servet-map -n 16 of 16 cores", "servet-map", true, {"-n", "16", "--topology", "package:2 numa:1 core:8 pu:1"}},
    {"hwloc-distrib 16 of 16 cores", "hwloc-distrib", false, {"-i", "package:2 numa:1 core:8 pu:1", "16"}},
    {"servet-map -n 128 of 128 cores", "servet-map", true, {"-n", "128", "--topology", "package:4 numa:4 core:8 pu:1"}},
    {"hwloc-distrib 128 of 128 cores", "hwloc-distrib", false, {"-i", "package:4 numa:4 core:8 pu:1", "128"}},
    {"servet-map -n 1024 of 1024 cores",
     "servet-map",
     true,
     {"-n", "1024", "--topology", "package:16 numa:4 core:16 pu:1"}},
    {"hwloc-distrib 1024 of 1024 cores", "hwloc-distrib", false, {"-i", "package:16 numa:4 core:16 pu:1", "1024"}},
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

void costs_run(FILE *out, size_t rounds, json_t **json)
{
    enum { MAPPING_ROUNDS = 7 };
    char *nothing[] = {(char *)"/bin/true", NULL};
    *json = json_array();
    json_array_append_new(*json, compare(out, "Start of /bin/true", starts, COUNT(starts), nothing, rounds, NULL, 1.0));
    char *threads = tools_beside("thread_storm");
    if (threads) {
        char *storm[] = {threads, NULL};
        json_array_append_new(*json,
                              compare(out, "A thread created and joined: with one PU no thread crosses to another",
                                      starts, COUNT(starts), storm, MAPPING_ROUNDS, "us per thread: ", 1e-6));
        free(threads);
    }
    json_array_append_new(*json, compare(out, "A whole mapping, command included", mappings, COUNT(mappings), NULL,
                                         MAPPING_ROUNDS, NULL, 1.0));
}
