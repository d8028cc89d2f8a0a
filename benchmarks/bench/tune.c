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
#include "benchmarks/bench/race.h"
#include "benchmarks/bench/report.h"
#include "benchmarks/bench/run.h"
#include "benchmarks/bench/tools.h"
#include "mapper/command/command.h"
#include "profile/base/cli.h"
#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/base/mask.h"

#define BUDGET_SECONDS 600.0

struct tuning {
    const struct request *request;
    double budget_s, started_s;
    char **line;    /* the user's, ended by NULL */
    size_t program; /* where the program is in it */
    char *servet_pin;
    char path[PATH_MAX]; /* of the entry */
    char signature[PROFILE_SIGNATURE_SIZE];
    struct bench_candidates candidates;
    struct race race;
    char **reasons; /* of those that failed */
    size_t *order;  /* of candidates, the best first */
};

void bench_tune_check(const struct request *request, bool program)
{
    const struct conditions *conditions = &request->conditions;
    if (!program) {
        cli_usage("--tune: expected a program after --");
    }
    if (request->ranks || request->threads) {
        cli_usage("--tune: expected no --ranks and --threads, it finds them; " PIN_TUNED_RANKS
                  " stands for the ranks in the line");
    }
    if (request->names[0] || request->plot || conditions->rounds || conditions->jobs != 1 ||
        conditions->load_pus) {
        cli_usage("--tune: expected no --comparators, --plot, --rounds, --jobs and --load");
    }
}

/* -- the line -- */

/* The first word behind the ranks that can be run and is no option of the launcher; without ranks
 * the first word. */
static size_t find_program(char **line)
{
    static const char *const launchers[] = {"mpirun", "mpiexec", "srun"};
    size_t at = 0;
    while (line[at] && !strstr(line[at], PIN_TUNED_RANKS)) {
        at++;
    }
    bool ranks = line[at];
    for (size_t i = 0; !ranks && i < sizeof launchers / sizeof *launchers; i++) {
        if (strncmp(basename(line[0]), launchers[i], strlen(launchers[i])) == 0) {
            cli_usage("%s: expected " PIN_TUNED_RANKS " in the place of its number of ranks",
                      line[0]);
        }
    }
    for (at = ranks ? at + 1 : 0; line[at] && (ranks || at == 0); at++) {
        char *found = line[at][0] == '-' ? NULL : bench_tools_find(line[at]);
        free(found);
        if (found) {
            return at;
        }
    }
    cli_usage("%s: expected a program that can be run%s", line[0],
              ranks ? " behind " PIN_TUNED_RANKS : "");
}

/* The user's line with these numbers. Without `servet_pin` that which takes them from the entry,
 * which knows the program by its arguments as they were given. */
static void build_line(const struct tuning *t, const struct pin_tuned *with, const char *servet_pin,
                       struct words *out)
{
    static const char *const options[] = {
        [PIN_TUNED_MEMORY] = "--mem-prior", [PIN_TUNED_COMMUNICATION] = "--comm-prior"};
    for (size_t i = 0; t->line[i]; i++) {
        const bool here = i == t->program;
        if (here && servet_pin) {
            bench_words_add(out, "env");
            bench_words_add(out, "OMP_NUM_THREADS=%u", with->threads);
        }
        if (here && !(servet_pin && with->placement == PIN_TUNED_DEFAULT)) {
            bench_words_add(out, "%s", servet_pin ? servet_pin : "servet-pin");
            bench_words_add(out, "%s", servet_pin ? options[with->placement] : "--tuned");
            if (servet_pin && with->memory) {
                bench_words_add(out, "--membind=%s", pin_tuned_memories[with->memory]);
            }
            bench_words_add(out, "--");
        }
        char *filled = pin_tuned_fill(t->line[i], with);
        if (!filled) {
            cli_fail("out of memory");
        }
        bench_words_add(out, "%s", servet_pin || i < t->program ? filled : t->line[i]);
        free(filled);
    }
}

static char *text_of(const struct tuning *t, const struct pin_tuned *with, const char *servet_pin)
{
    struct words words = {0};
    build_line(t, with, servet_pin, &words);
    char *text = bench_words_text(&words);
    bench_words_free(&words);
    return text;
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
    bool ranks = t->program > 0;
    rc = bench_candidates(map_one_node(of, &view), &allowed, ranks, &t->candidates, &error);
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
    int rc = pin_tuned_path(profile, t->line[t->program], t->line + t->program + 1, t->path);
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
    build_line(t, &t->candidates.list[candidate], t->servet_pin, &argv);
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

static void race(struct tuning *t)
{
    size_t count = t->candidates.count;
    t->race = (struct race){.run = run_candidate,
                            .context = t,
                            .racers = bench_memory(count, sizeof(struct racer)),
                            .count = count};
    t->reasons = bench_memory(count, sizeof *t->reasons);
    t->order = bench_memory(count, sizeof *t->order);
    bench_run_hold_signals();
    bench_race(&t->race);
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (;
             at > 0 && bench_race_order(&t->race.racers[i], &t->race.racers[t->order[at - 1]]) < 0;
             at--) {
            t->order[at] = t->order[at - 1];
        }
        t->order[at] = i;
    }
}

/* -- what came out -- */

static const char *state_of(const struct tuning *t, size_t candidate)
{
    const struct racer *racer = &t->race.racers[candidate];
    switch (racer->state) {
    case RACE_SLOW:
        return "stopped: far slower";
    case RACE_FAILED:
        return t->reasons[candidate];
    default:
        return racer->rounds ? "" : "no time left for it";
    }
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
    char ranks[16] = "-", median[32] = "-", placement[32];
    snprintf(placement, sizeof placement, "%s%s%s", pin_tuned_names[with->placement],
             with->memory ? ", " : "", with->memory ? pin_tuned_memories[with->memory] : "");
    if (with->ranks) {
        snprintf(ranks, sizeof ranks, "%u", with->ranks);
    }
    if (racer->rounds) {
        snprintf(median, sizeof median, "%.6g", median_of(t, racer));
    }
    const char *state = state_of(t, candidate);
    printf("  %5s %7u %-*s %12s  %-24s %6zu%s%s\n", ranks, with->threads, placement_width(t),
           placement, median, bench_span(interval_of(t, racer), racer->rounds, 5).text,
           racer->rounds, *state ? "  " : "", state);
}

static void print_table(const struct tuning *t, const struct pin_tuned *best)
{
    const char *metric = t->request->metric.expression;
    char *keep = text_of(t, best, "servet-pin"), *entry = text_of(t, best, NULL);
    printf("%s; %s; %zu runs in %.1f s\n", t->line[t->program], metric ? metric : "wall time in s",
           t->race.runs, profile_now_s() - t->started_s);
    printf("  %5s %7s %-*s %12s  %-24s %6s\n", "ranks", "threads", placement_width(t), "placement",
           "median", "95 % interval", "rounds");
    for (size_t i = 0; i < t->race.count; i++) {
        print_row(t, t->order[i]);
    }
    printf("keep: %s\nor:   %s\n", keep, entry);
    free(keep);
    free(entry);
}

static json_t *row_json(const struct tuning *t, size_t candidate)
{
    const struct pin_tuned *with = &t->candidates.list[candidate];
    const struct racer *racer = &t->race.racers[candidate];
    const char *state = state_of(t, candidate);
    json_t *row = json_pack("{s:I,s:I,s:s,s:I}", "ranks", (json_int_t)with->ranks, "threads",
                            (json_int_t)with->threads, "placement",
                            pin_tuned_names[with->placement], "rounds", (json_int_t)racer->rounds);
    if (with->memory) {
        json_object_set_new(row, PIN_TUNED_MEMBIND, json_string(pin_tuned_memories[with->memory]));
    }
    if (racer->rounds && !*state) {
        json_object_set_new(row, "median", json_real(median_of(t, racer)));
        json_object_set_new(row, "interval",
                            bench_json_interval(interval_of(t, racer), racer->rounds));
    }
    if (*state) {
        json_object_set_new(row, "left_out", json_string(state));
    }
    return row;
}

static json_t *json_of(const struct tuning *t, const struct pin_tuned *best)
{
    const struct metric *metric = &t->request->metric;
    char *keep = text_of(t, best, "servet-pin");
    json_t *rows = json_array(), *line = json_array();
    for (size_t i = 0; i < t->race.count; i++) {
        json_array_append_new(rows, row_json(t, t->order[i]));
    }
    for (size_t i = 0; t->line[i]; i++) {
        json_array_append_new(line, json_string(t->line[i]));
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

static void keep_and_print(const struct tuning *t, size_t winner)
{
    const struct pin_tuned *best = &t->candidates.list[winner];
    struct servet_error error;
    json_t *root = json_of(t, best);
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    if (!text) {
        cli_fail("%s: expected a line in UTF-8, to keep the result", t->path);
    }
    if (t->request->json) {
        puts(text);
    } else {
        print_table(t, best);
    }
    if (profile_save_file(t->path, text, strlen(text), &error) < 0) {
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
            cli_fail("%s: %s", t->line[0], t->reasons[i]);
        }
    }
    if (!bench_run_interrupted()) {
        cli_usage("--budget: expected time for one run of %s at least, got %g s",
                  t->line[t->program], t->budget_s);
    }
    return CLI_FAILED;
}

int bench_tune(const struct request *request, char **argv)
{
    double budget = request->conditions.budget_seconds;
    struct tuning t = {.request = request,
                       .budget_s = budget > 0 ? budget : BUDGET_SECONDS,
                       .started_s = profile_now_s(),
                       .line = argv};
    t.program = find_program(argv);
    t.servet_pin = bench_tools_ours("servet-pin");
    if (!t.servet_pin) {
        cli_fail("servet-pin is not installed");
    }
    find_candidates(&t);
    find_place(&t);
    race(&t);
    size_t winner = bench_race_best(&t.race);
    int status = CLI_OK;
    if (winner == SIZE_MAX) {
        status = say_nothing_found(&t);
    } else {
        keep_and_print(&t, winner);
    }
    if (bench_run_interrupted()) {
        cli_note("interrupted%s", winner == SIZE_MAX ? " before a run ended" : "");
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
