/* The tuner: runs of the user's line with other numbers in it, raced (race.h), and what came out.
 *
 * What is measured is the very line that is printed as the one to keep. */
#include "benchmarks/bench/tune.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/bench/candidates.h"
#include "benchmarks/bench/line.h"
#include "benchmarks/bench/race.h"
#include "benchmarks/bench/report.h"
#include "benchmarks/bench/run.h"
#include "benchmarks/bench/tools.h"
#include "mapper/command/command.h"
#include "profile/base/cli.h"
#include "profile/base/clock.h"
#include "profile/base/control_groups.h"
#include "profile/base/file.h"
#include "profile/base/mask.h"

#define BUDGET_SECONDS 600.0

struct tuning {
    const struct request *request;
    double budget_s, started_s;
    struct bench_line line;
    char *servet_pin;
    char path[PATH_MAX]; /* of the entry */
    char signature[PROFILE_SIGNATURE_SIZE];
    struct bench_candidates candidates;
    struct race race;
    char **reasons; /* of those that failed */
    size_t *order;  /* of candidates, the winner first, then the best */
    size_t winner;  /* SIZE_MAX: no run came to its end */
};

void bench_tune_check(const struct request *request)
{
    const struct conditions *conditions = &request->conditions;
    if (request->ranks || request->threads) {
        cli_usage("--tune: expected no --ranks and --threads, it finds them; " PIN_TUNED_RANKS
                  " stands for the ranks in the line");
    }
    if (request->names[0] || request->plot || conditions->rounds || conditions->jobs != 1 ||
        conditions->load_pus) {
        cli_usage("--tune: expected no --comparators, --plot, --rounds, --jobs and --load");
    }
}

/* -- candidates -- */

/* This node of the profile, and the PUs of it that this process may use. */
static void find_candidates(struct tuning *t)
{
    struct common_machine machine = {0};
    struct map_node_view view;
    struct profile_mask mask;
    struct profile_set usable = {0}, allowed = {0};
    struct servet_error error;
    struct servet_profile *profile = map_common_machine_open(&machine);
    const struct profile_class *of = profile_class_here(profile);
    int rc = profile_mask_get(0, &mask);
    if (rc == 0 && (profile_mask_to_set(&mask, &usable) < 0 ||
                    profile_set_intersect(&usable, &of->pus, &allowed) < 0)) {
        rc = -ENOMEM;
    }
    if (rc < 0) {
        cli_fail("PUs of this process: %s", strerror(-rc));
    }
    const char *before = getenv("OMP_NUM_THREADS");
    const struct bench_habit habit = {.ranks = t->line.ranks,
                                      .fixed = t->line.threads,
                                      .before = before ? (uint32_t)strtoul(before, NULL, 10) : 0,
                                      .most = profile_quota_workers(machine.quota)};
    rc = bench_candidates(map_one_node(of, &view), &allowed, &habit, &t->candidates, &error);
    if (rc < 0) {
        cli_fail("%s", error.text);
    }
    profile_set_free(&usable);
    profile_set_free(&allowed);
    profile_set_free(&machine.cpuset);
    profile_free(profile);
}

/* What cannot be kept is said before anything is measured. */
static void find_place(struct tuning *t)
{
    char profile[PATH_MAX], folder[PATH_MAX];
    struct servet_error error;
    if (profile_default_path(profile, sizeof profile, &error) < 0) {
        cli_usage("--tune: %s", error.text);
    }
    int rc = pin_tuned_path(profile, t->line.words[t->line.program],
                            t->line.words + t->line.program + 1, t->path);
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(t->path, '/') - t->path), t->path);
    if (rc == 0) {
        rc = bench_make_folder(folder);
    }
    if (rc == 0) {
        rc = access(folder, W_OK) < 0 ? -errno : profile_signature("", t->signature);
    }
    if (rc < 0) {
        cli_usage("--tune: %s: %s", t->path, strerror(-rc));
    }
}

/* -- runs -- */

/* A run is asked to end early enough to be gone at the end of the budget. */
static double left_s(const struct tuning *t)
{
    return t->started_s + t->budget_s - profile_now_s() - BENCH_GRACE_SECONDS;
}

static enum race_state outcome_of(struct tuning *t, size_t candidate, const struct bench_run *run,
                                  double limit_s, struct race_run *out)
{
    const struct metric *metric = &t->request->metric;
    double value;
    char *reason = bench_figure(metric, run, limit_s, &value);
    if (!reason) {
        *out = (struct race_run){.value = metric->higher ? -value : value, .seconds = run->seconds};
        return RACE_RUNS;
    }
    free(t->reasons[candidate]);
    t->reasons[candidate] = reason;
    return RACE_FAILED;
}

static enum race_state run_candidate(void *context, size_t candidate, double limit_s,
                                     struct race_run *out)
{
    struct tuning *t = context;
    const struct words nothing = {0};
    struct words argv = {0};
    struct bench_run run;
    double left = left_s(t), user = t->request->conditions.limit_seconds;
    if (left <= 0 || left < t->race.racers[candidate].longest_s || bench_run_interrupted()) {
        return RACE_OVER;
    }
    bool by_race = limit_s > 0 && limit_s < user;
    double limit = by_race ? limit_s : user;
    bench_line_build(&t->line, &t->candidates.list[candidate], t->servet_pin, &argv);
    bench_run(&argv, &nothing, 1, left < limit ? left : limit, &run);
    bool over = bench_run_interrupted() || (run.timed_out && left < limit);
    enum race_state outcome = over ? RACE_OVER
                              : run.timed_out && by_race
                                  ? RACE_SLOW
                                  : outcome_of(t, candidate, &run, limit, out);
    bench_run_free(&run);
    bench_words_free(&argv);
    return outcome;
}

static bool is_simpler(void *context, size_t candidate, size_t other)
{
    const struct pin_tuned *list = ((const struct tuning *)context)->candidates.list;
    return bench_candidate_simpler(&list[candidate], &list[other]);
}

static int compare_candidates(const struct tuning *t, size_t a, size_t b)
{
    if (a == t->winner || b == t->winner) {
        return a == t->winner ? -1 : 1;
    }
    return bench_race_order(&t->race.racers[a], &t->race.racers[b]);
}

static void sort(struct tuning *t)
{
    for (size_t i = 0; i < t->race.count; i++) {
        size_t at = i;
        for (; at > 0 && compare_candidates(t, i, t->order[at - 1]) < 0; at--) {
            t->order[at] = t->order[at - 1];
        }
        t->order[at] = i;
    }
}

static void race(struct tuning *t)
{
    size_t count = t->candidates.count;
    t->race = (struct race){.run = run_candidate,
                            .simpler = is_simpler,
                            .context = t,
                            .racers = bench_memory(count, sizeof(struct racer)),
                            .count = count};
    t->reasons = bench_memory(count, sizeof *t->reasons);
    t->order = bench_memory(count, sizeof *t->order);
    bench_run_hold_signals();
    bench_race(&t->race);
    t->winner = bench_race_choice(&t->race);
    sort(t);
}

/* -- what came out -- */

/* Why there is no figure; NULL where there is one. */
static const char *left_out(const struct tuning *t, size_t candidate)
{
    const struct racer *racer = &t->race.racers[candidate];
    switch (racer->state) {
    case RACE_SLOW:
        return "stopped: far slower";
    case RACE_FAILED:
        return t->reasons[candidate];
    default:
        return racer->rounds ? NULL : "no time left for it";
    }
}

/* In the table's last column. */
struct remark {
    char text[256];
};

static struct remark remark_of(const struct tuning *t, size_t candidate)
{
    struct remark remark;
    const char *why = candidate == t->winner                  ? "kept"
                      : bench_race_equal(&t->race, candidate) ? "cannot be distinguished"
                                                              : left_out(t, candidate);
    snprintf(remark.text, sizeof remark.text, "%s%s%s", candidate == 0 ? "as before" : "",
             candidate == 0 && why ? ", " : "", why ? why : "");
    return remark;
}

/* Figures as the program gave them. */
static double median_of(const struct tuning *t, const struct racer *racer)
{
    return t->request->metric.higher ? -racer->median : racer->median;
}

static struct interval interval_of(const struct tuning *t, const struct racer *racer)
{
    return t->request->metric.higher
               ? (struct interval){-racer->interval.high, -racer->interval.low}
               : racer->interval;
}

/* Its figure by that of the first, which is what the user ran before. */
struct gain {
    double ratio;
    struct interval interval;
    size_t rounds; /* of the one with fewer; 0: there is no ratio */
};

static struct gain gain_of(const struct tuning *t, size_t candidate)
{
    const struct racer *one = &t->race.racers[candidate], *before = &t->race.racers[0];
    struct gain gain = {.rounds = one->rounds < before->rounds ? one->rounds : before->rounds};
    if (left_out(t, candidate) || left_out(t, 0)) {
        gain.rounds = 0;
    }
    if (gain.rounds) {
        gain.ratio = bench_statistics_ratio(one->values, one->rounds, before->values,
                                            before->rounds, &gain.interval);
    }
    return gain;
}

/* Columns for "communication", or "communication, weighted" where there are tiers. */
static int placement_width(const struct tuning *t)
{
    for (size_t i = 0; i < t->race.count; i++) {
        if (t->candidates.list[i].memory) {
            return (int)sizeof "communication, weighted" - 1;
        }
    }
    return (int)sizeof "communication" - 1;
}

static void print_row(const struct tuning *t, size_t candidate)
{
    const struct pin_tuned *with = &t->candidates.list[candidate];
    const struct racer *racer = &t->race.racers[candidate];
    const struct gain gain = gain_of(t, candidate);
    char ranks[16] = "-", median[32] = "-", ratio[32] = "-", placement[32];
    snprintf(placement, sizeof placement, "%s%s%s", pin_tuned_names[with->placement],
             with->memory ? ", " : "", with->memory ? pin_tuned_memories[with->memory] : "");
    if (with->ranks) {
        snprintf(ranks, sizeof ranks, "%u", with->ranks);
    }
    if (racer->rounds) {
        snprintf(median, sizeof median, "%.6g", median_of(t, racer));
    }
    if (gain.rounds) {
        snprintf(ratio, sizeof ratio, "%.3f", gain.ratio);
    }
    const struct remark remark = remark_of(t, candidate);
    printf("  %5s %7u %-*s %12s  %-24s %6zu %7s  %-*s%s\n", ranks, with->threads,
           placement_width(t), placement, median,
           bench_span(interval_of(t, racer), racer->rounds, 5).text, racer->rounds, ratio,
           *remark.text ? 26 : 0, bench_span(gain.interval, gain.rounds, 3).text, remark.text);
}

/* Why the line that is kept is kept. */
static void print_verdict(const struct tuning *t)
{
    const struct gain gain = gain_of(t, t->winner);
    if (t->winner == 0) {
        printf("as it is: no other is measurably better\n");
    } else if (gain.rounds) {
        printf("kept / before: %.3f [%.3f, %.3f]\n", gain.ratio, gain.interval.low,
               gain.interval.high);
    }
}

static void print_table(const struct tuning *t)
{
    const char *metric = t->request->metric.expression;
    printf("%s%s; %s; %zu runs in %.1f s\n", t->line.words[t->line.program],
           bench_tools_quota().text, metric ? metric : "wall time in s", t->race.runs,
           profile_now_s() - t->started_s);
    printf("  %5s %7s %-*s %12s  %-24s %6s %7s  %s\n", "ranks", "threads", placement_width(t),
           "placement", "median", "95 % interval", "rounds", "ratio", "95 % interval");
    for (size_t i = 0; i < t->race.count; i++) {
        print_row(t, t->order[i]);
    }
    print_verdict(t);
}

/* The line, and the same by the entry where it has been written. */
static void print_lines(const struct tuning *t, bool by_entry)
{
    const struct pin_tuned *winner = &t->candidates.list[t->winner];
    char *keep = bench_line_text(&t->line, winner, "servet-pin"),
         *entry = bench_line_text(&t->line, winner, NULL);
    printf("keep: %s\n", keep);
    if (by_entry) {
        printf("or:   %s\n", entry);
    }
    free(keep);
    free(entry);
}

static json_t *row_json(const struct tuning *t, size_t candidate)
{
    const struct pin_tuned *with = &t->candidates.list[candidate];
    const struct racer *racer = &t->race.racers[candidate];
    const struct gain gain = gain_of(t, candidate);
    const char *missing = left_out(t, candidate);
    json_t *row = json_pack(
        "{s:I,s:I,s:s,s:I}", "ranks", (json_int_t)with->ranks, "threads", (json_int_t)with->threads,
        "placement", pin_tuned_names[with->placement], PIN_TUNED_ROUNDS, (json_int_t)racer->rounds);
    if (with->memory) {
        json_object_set_new(row, PIN_TUNED_MEMBIND, json_string(pin_tuned_memories[with->memory]));
    }
    if (candidate == 0) {
        json_object_set_new(row, "as_before", json_true());
    }
    if (missing) {
        json_object_set_new(row, "left_out", json_string(missing));
        return row;
    }
    json_object_set_new(row, "median", json_real(median_of(t, racer)));
    json_object_set_new(row, "interval", bench_json_interval(interval_of(t, racer), racer->rounds));
    json_object_set_new(row, "equal", json_boolean(bench_race_equal(&t->race, candidate)));
    if (gain.rounds) {
        json_object_set_new(row, "ratio", json_real(gain.ratio));
        json_object_set_new(row, "ratio_interval", bench_json_interval(gain.interval, gain.rounds));
    }
    return row;
}

static json_t *json_of(const struct tuning *t)
{
    const struct metric *metric = &t->request->metric;
    char *keep = bench_line_text(&t->line, &t->candidates.list[t->winner], "servet-pin");
    json_t *rows = json_array(), *line = json_array();
    for (size_t i = 0; i < t->race.count; i++) {
        json_array_append_new(rows, row_json(t, t->order[i]));
    }
    for (char **word = t->line.words; *word; word++) {
        json_array_append_new(line, json_string(*word));
    }
    json_t *root = json_pack(
        "{s:s,s:o,s:s,s:o,s:s,s:s,s:b,s:I,s:f,s:o}", "tool", "servet-bench " SERVET_VERSION,
        PIN_TUNED_MACHINE, bench_json_machine(), PIN_TUNED_SIGNATURE, t->signature, "line", line,
        "keep", keep, "metric", metric->expression ? metric->expression : "wall time",
        "higher_is_better", (int)metric->higher, "runs", (json_int_t)t->race.runs, "seconds",
        profile_now_s() - t->started_s, PIN_TUNED_ROWS, rows);
    free(keep);
    return root;
}

/* An entry stays that has an interval where this search has none, or is of more PUs: a short look,
 * or one within taskset, is no reason to lose it. */
static bool stays(const struct tuning *t)
{
    struct pin_tuned_search old;
    const size_t rounds = t->race.racers[t->winner].rounds, pus = bench_tools_pus();
    if (pin_tuned_read_search(t->path, t->signature, &old) < 0 ||
        (old.pus <= pus && (old.rounds <= rounds || rounds >= BENCH_LEAST_ROUNDS))) {
        return false;
    }
    cli_note("%s: it stays, of %u rounds on %u PUs; this search had %zu on %zu (to replace it, "
             "remove it first)",
             t->path, old.rounds, old.pus, rounds, pus);
    return true;
}

static void keep_and_print(const struct tuning *t)
{
    struct servet_error error;
    json_t *root = json_of(t);
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    if (!text) {
        cli_fail("%s: expected a line in UTF-8, to keep the result", t->path);
    }
    if (t->request->json) {
        puts(text);
    } else {
        print_table(t);
    }
    const bool replaces = !stays(t);
    if (!t->request->json) {
        print_lines(t, replaces);
    }
    if (replaces && profile_save_file(t->path, text, strlen(text), &error) < 0) {
        cli_fail("%s", error.text);
    }
    free(text);
    json_decref(root);
}

/* No run came to its end. */
static int say_nothing_found(const struct tuning *t)
{
    for (size_t i = 0; i < t->race.count; i++) {
        if (t->race.racers[i].state == RACE_FAILED) {
            cli_fail("%s: %s", t->line.words[0], t->reasons[i]);
        }
    }
    if (!bench_run_interrupted()) {
        cli_usage("--budget: expected time for one run of %s at least, got %g s",
                  t->line.words[t->line.program], t->budget_s);
    }
    return CLI_FAILED;
}

int bench_tune(const struct request *request, char **argv)
{
    double budget = request->conditions.budget_seconds;
    struct tuning t = {.request = request,
                       .budget_s = budget > 0 ? budget : BUDGET_SECONDS,
                       .started_s = profile_now_s()};
    bench_line_read(argv, &t.line);
    t.servet_pin = bench_tools_ours("servet-pin");
    if (!t.servet_pin) {
        cli_fail("servet-pin is not installed");
    }
    find_candidates(&t);
    find_place(&t);
    race(&t);
    int status = CLI_OK;
    if (t.winner == SIZE_MAX) {
        status = say_nothing_found(&t);
    } else {
        keep_and_print(&t);
    }
    if (bench_run_interrupted()) {
        cli_note("interrupted%s", t.winner == SIZE_MAX ? " before a run ended" : "");
        status = 128 + bench_run_interrupted();
    }
    for (size_t i = 0; i < t.race.count; i++) {
        free(t.reasons[i]);
    }
    free(t.reasons);
    free(t.order);
    free(t.race.racers);
    free(t.candidates.list);
    free(t.servet_pin);
    return status;
}
