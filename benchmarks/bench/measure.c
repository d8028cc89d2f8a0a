/* One program under every comparator, round by round, and the figures of that.
 *
 * Rounds are interleaved (A B C A B C …), so that a slow spell of the machine meets all of them,
 * and everything that is compared is compared round by round (statistics.h). */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "benchmarks/bench/measure.h"
#include "benchmarks/bench/run.h"
#include "benchmarks/bench/tools.h"
#include "profile/base/cli.h"
#include "profile/base/clock.h"
#include "profile/base/mask.h"

/* -- a background job: processes that keep some PUs busy with memory traffic -- */

struct load {
    pid_t *pids;
    size_t count;
};

#define LOAD_BYTES ((size_t)32 << 20) /* past most caches, little enough for many PUs */

static void pin_to_nth(size_t nth)
{
    struct profile_mask allowed = {0};
    (void)profile_mask_get(0, &allowed);
    PROFILE_MASK_EACH(&allowed, pu)
    {
        if (nth-- == 0) {
            (void)profile_mask_set_pu(0, pu);
            return;
        }
    }
}

static _Noreturn void keep_busy(size_t nth, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(0); /* it ended before the line above */
    }
    pin_to_nth(nth);
    volatile char *from = malloc(LOAD_BYTES), *to = malloc(LOAD_BYTES);
    if (!from || !to) {
        _exit(1);
    }
    for (char value = 0;; value++) {
        memset((char *)from, value, LOAD_BYTES);
        memcpy((char *)to, (const char *)from, LOAD_BYTES);
    }
}

/* One process on each of the first `pus` allowed PUs, pinned there. They end with load_stop(), and
 * with this process whatever its end. */
static void load_start(size_t pus, struct load *out)
{
    *out = (struct load){.pids = bench_memory(pus, sizeof(pid_t))};
    pid_t self = getpid();
    for (; out->count < pus; out->count++) {
        pid_t pid = fork();
        if (pid < 0) {
            cli_fail("cannot start the background job: %s", strerror(errno));
        }
        if (pid == 0) {
            keep_busy(out->count, self);
        }
        out->pids[out->count] = pid;
    }
}

static void load_stop(struct load *load)
{
    for (size_t i = 0; i < load->count; i++) {
        kill(load->pids[i], SIGKILL);
        waitpid(load->pids[i], NULL, 0);
    }
    free(load->pids);
    *load = (struct load){0};
}

/* -- figures -- */

void bench_metric_compile(struct metric *metric)
{
    if (!metric->expression) {
        return;
    }
    int code = regcomp(&metric->compiled, metric->expression, REG_EXTENDED | REG_NEWLINE);
    if (code == REG_ESPACE) {
        cli_fail("out of memory");
    }
    if (code) {
        char text[128];
        regerror(code, &metric->compiled, text, sizeof text);
        cli_usage("--metric \"%s\": %s", metric->expression, text);
    }
}

static bool number_in(const char *text, regoff_t from, regoff_t to, double *value)
{
    for (const char *at = text + from; at < text + to; at++) {
        char *end;
        double number = strtod(at, &end);
        if (end > at) {
            *value = number;
            return true;
        }
    }
    return false;
}

/* The number in the last match of the expression: its first group, or the first number in the whole
 * match. */
static bool find_number(const struct metric *metric, const char *text, double *value)
{
    regmatch_t match[2];
    bool found = false;
    for (int flags = 0; *text && bench_matches(&metric->compiled, text, 2, match, flags);) {
        const regmatch_t *number = match[1].rm_so >= 0 ? &match[1] : &match[0];
        found = number_in(text, number->rm_so, number->rm_eo, value) || found;
        text += match[0].rm_eo > 0 ? match[0].rm_eo : 1;
        flags = REG_NOTBOL;
    }
    return found;
}

char *bench_figure(const struct metric *metric, const struct bench_run *run, double limit,
                   double *value)
{
    if (run->timed_out) {
        return bench_text("took more than %g s", limit);
    }
    if (run->status != 0) {
        return bench_text("exit status %d: %s", run->status,
                          run->complaint ? run->complaint : "nothing on stderr");
    }
    if (!metric->expression) {
        *value = run->seconds;
        return NULL;
    }
    return find_number(metric, run->out, value)
               ? NULL
               : bench_text("no number like \"%s\" in the output", metric->expression);
}

/* One run (of all jobs) under one comparator: the worst figure of the jobs. */
static void run_once(struct comparison *comparison, struct series *series, size_t round)
{
    struct words argv, environment;
    size_t jobs = comparison->conditions.jobs;
    struct bench_run *runs = bench_memory(jobs, sizeof *runs);
    bench_comparator_command(series->comparator, comparison->program, series->tool, &argv,
                             &environment);
    bench_run(&argv, &environment, jobs, comparison->conditions.limit_seconds, runs);
    for (size_t job = 0; job < jobs; job++) {
        double value = 0.0;
        char *reason = bench_figure(comparison->metric, &runs[job],
                                    comparison->conditions.limit_seconds, &value);
        if (reason && !series->left_out) {
            series->left_out = reason;
            reason = NULL;
        }
        free(reason);
        bool worse = comparison->metric->higher ? value < series->values[round]
                                                : value > series->values[round];
        if (job == 0 || worse) {
            series->values[round] = value;
        }
        bench_run_free(&runs[job]);
    }
    bench_words_free(&argv);
    bench_words_free(&environment);
    free(runs);
}

static char *command_line(const struct comparator *comparator, const struct program *program,
                          const char *tool)
{
    struct words argv, environment;
    bench_comparator_command(comparator, program, tool, &argv, &environment);
    bench_words_add_all(&environment, argv.list);
    char *text = bench_words_text(&environment);
    bench_words_free(&argv);
    bench_words_free(&environment);
    return text;
}

static void prepare(struct comparison *comparison, const char *const *names)
{
    size_t count = 0;
    while (names[count]) {
        count++;
    }
    comparison->series = bench_memory(count, sizeof *comparison->series);
    comparison->count = count;
    for (size_t i = 0; i < count; i++) {
        struct series *series = &comparison->series[i];
        series->comparator = bench_comparator_find(names[i]);
        series->left_out =
            bench_comparator_obstacle(series->comparator, comparison->program, &series->tool);
        series->values = bench_memory(comparison->conditions.rounds, sizeof *series->values);
        if (!series->left_out) {
            series->command = command_line(series->comparator, comparison->program, series->tool);
        }
    }
}

static void evaluate(struct comparison *comparison)
{
    size_t first = 0, rounds = comparison->rounds;
    while (first < comparison->count && comparison->series[first].left_out) {
        first++;
    }
    for (size_t i = first; i < comparison->count; i++) {
        struct series *series = &comparison->series[i];
        if (series->left_out) {
            continue;
        }
        series->median = bench_statistics_median(series->values, rounds, &series->interval);
        series->ratio =
            bench_statistics_ratio(series->values, rounds, comparison->series[first].values, rounds,
                                   &series->ratio_interval);
    }
}

/* No verdict is better than none of the programs that follow: on a machine that is that busy, fewer
 * rounds it is. */
#define OVERRUN 2.0

static bool spent(const struct conditions *conditions, size_t rounds, double gone)
{
    double budget = conditions->budget_seconds;
    if (budget <= 0.0 || rounds == 0) {
        return false;
    }
    return gone > (rounds < BENCH_LEAST_ROUNDS ? OVERRUN * budget : budget);
}

void bench_measure(const struct program *program, const struct metric *metric,
                   const struct conditions *conditions, const char *const *names,
                   struct comparison *out)
{
    *out = (struct comparison){.program = program, .metric = metric, .conditions = *conditions};
    prepare(out, names);
    struct load load;
    load_start(conditions->load_pus, &load);
    double started = profile_now_s();
    for (; out->rounds < conditions->rounds; out->rounds++) {
        if (spent(conditions, out->rounds, profile_now_s() - started)) {
            break;
        }
        for (size_t i = 0; i < out->count; i++) {
            if (!out->series[i].left_out) {
                run_once(out, &out->series[i], out->rounds);
            }
        }
    }
    load_stop(&load);
    evaluate(out);
}

void bench_measure_free(struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->count; i++) {
        free(comparison->series[i].tool);
        free(comparison->series[i].command);
        free(comparison->series[i].left_out);
        free(comparison->series[i].values);
    }
    free(comparison->series);
}

const struct series *bench_measure_best(const struct comparison *comparison, bool ours)
{
    const struct series *best = NULL;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct series *series = &comparison->series[i];
        if (series->left_out || bench_comparator_ours(series->comparator) != ours) {
            continue;
        }
        bool better = !best || (comparison->metric->higher ? series->median > best->median
                                                           : series->median < best->median);
        best = better ? series : best;
    }
    return best;
}
