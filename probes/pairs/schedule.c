/* Which pairs of PUs are measured, and which take over what was measured on a pair like them.
 * That pairs are alike is a hypothesis of the topology: a sample tests it, and a class that
 * fails is measured in full. */
#include "probes/pairs/pairs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/probe.h"
#include "profile/base/file.h"
#include "profile/base/random.h"
#include "profile/base/statistics.h"

static const double sample_factor = 4; /* times log2(PUs), of every class */
/* 2 ln 100: of this many times n pairs drawn at random, a kind that is 1/(2n) of all is missed by
 * 1 %: siblings of cores half of whose PUs are offline. Where the first half of them disagrees, the
 * second is left out. */
static const double search_factor = 9.21;
enum { SAMPLE_MIN = 3 };
/* Pairs of a class that are searched for groups before all are measured: those of 128 PUs, 6 s of
 * messages. */
static const size_t blocks_from = 8128;
/* Pairs of a class of yes or no that are asked as far as others leave them open (equivalence.c),
 * and not all: those of 32 PUs, half a minute of working sets as large as last levels. */
static const size_t equivalence_from = 496;
/* Of the pairs that were measured. Where a class is not what it was said to be, so many more that
 * others took over are measured as well. */
static const double rest_share = 0.1;

/* -- agreement -- */

bool probe_schedule_agree_cluster(double *values, size_t count, double spread)
{
    struct clusters clusters;
    uint32_t *cluster_of = malloc((count + 1) * sizeof *cluster_of);
    int rc =
        cluster_of ? probe_layers_cluster(values, count, spread, cluster_of, &clusters) : -ENOMEM;
    free(cluster_of);
    return rc == 0 && clusters.count == 1;
}

bool probe_schedule_agree_equal(double *values, size_t count, double spread)
{
    (void)spread;
    for (size_t i = 1; i < count; i++) {
        if (values[i] < values[0] || values[i] > values[0]) {
            return false;
        }
    }
    return true;
}

/* -- one class -- */

struct run {
    const struct schedule *schedule;
    pairs_measure_function *measure;
    void *argument;
    struct schedule_outcome *outcome;
    struct pair_position *members; /* of the class at hand, in random order */
    double *sample;                /* their answers that say something: `said` of them */
    size_t count, sampled;         /* of those, measured: the first of `members` */
    size_t said;
    size_t class;
    struct together_limit limit; /* of the pairs that come next */
};

static bool late(const struct run *run)
{
    return run->schedule->probe && probe_late(run->schedule->probe);
}

static void tell(const struct run *run, const struct pair_position *position)
{
    if (run->schedule->probe) {
        const uint32_t *ids = run->schedule->pus->ids;
        run->schedule->probe->pairs =
            (struct probe_pairs){.pair = {ids[position->i], ids[position->j]},
                                 .done = run->outcome->measured_count,
                                 .planned = run->outcome->planned_count};
    }
}

/* Of a class of `count` pairs. */
static size_t sample_of(const struct schedule *schedule, size_t count)
{
    double pus = (double)schedule->pus->count;
    const double row = 2 * (double)count / pus; /* pairs of one PU, where all have as many */
    double wanted = schedule->search ? (search_factor + 1) * pus
                    : schedule->row  ? sample_factor * log2(pus) + row
                                     : sample_factor * log2(pus);
    size_t size = wanted > SAMPLE_MIN ? (size_t)wanted : SAMPLE_MIN;
    return schedule->exhaustive || size > count ? count : size;
}

static size_t sample_size(const struct run *run)
{
    return sample_of(run->schedule, run->count);
}

/* The pairs of one PU come first of those that were not measured, how many: where every PU has a
 * sibling, one of them shows it. */
static size_t prefer_a_row(struct run *run)
{
    struct pair_position *left = run->members + run->sampled;
    const size_t count = run->count - run->sampled, pu = count ? left->i : 0;
    size_t row = 0;
    for (size_t k = 0; k < count; k++) {
        if (left[k].i == pu || left[k].j == pu) {
            struct pair_position moved = left[k];
            left[k] = left[row];
            left[row++] = moved;
        }
    }
    return row;
}

static void collect(struct run *run, const bool *wanted, size_t class, struct random *random)
{
    size_t n = run->schedule->pus->count;
    run->count = run->sampled = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            size_t pair = probe_pair_index(n, i, j);
            if (run->schedule->class_of[pair] == class && (!wanted || wanted[pair])) {
                run->members[run->count++] = (struct pair_position){i, j};
            }
        }
    }
    random_shuffle(random, run->members, run->count, sizeof *run->members);
    if ((run->schedule->search || run->schedule->row) && !run->schedule->exhaustive) {
        prefer_a_row(run);
        random_shuffle(random, run->members, sample_size(run), sizeof *run->members);
    }
}

/* The next members have these values; `at_once` of them were measured at the same time. */
static void keep(struct run *run, const double *values, size_t count, size_t at_once)
{
    struct schedule_outcome *outcome = run->outcome;
    for (size_t k = 0; k < count; k++) {
        const struct pair_position *member = &run->members[run->sampled];
        size_t pair = probe_pair_index(run->schedule->pus->count, member->i, member->j);
        outcome->values[pair] = values[k];
        outcome->measured[pair] = true;
        run->sampled++;
    }
    outcome->measured_count += count;
    outcome->most_at_once = at_once > outcome->most_at_once ? at_once : outcome->most_at_once;
}

/* How many of the members up to `to` may be measured at the same time. */
static int find_batches(struct run *run, size_t to)
{
    const struct schedule *schedule = run->schedule;
    struct together_limit *most = &run->outcome->limits[run->class];
    const struct together_question question = {&schedule->together, run->measure, run->argument,
                                               schedule->at_once};
    struct together_found found;
    size_t count = to - run->sampled;
    double *values = calloc(count + 1, sizeof *values);
    if (!values) {
        return -ENOMEM;
    }
    int rc = probe_together_find(&question, run->members + run->sampled, count, values, &found);
    if (rc == 0) {
        run->limit = found.limit;
        *most = found.limit.pairs > most->pairs ? found.limit : *most;
        run->outcome->tried += found.tried;
        keep(run, values, found.done, 1);
    }
    free(values);
    return rc;
}

/* A batch, and alone what is unlike the pairs that were measured alone. Where that is most of them,
 * the class is of several kinds, and its pairs are measured one by one from then on. */
static int measure_batch(struct run *run, const struct pair_position *batch, size_t count,
                         double *values)
{
    double figures[TOGETHER_MOST];
    size_t unlike = 0;
    int rc = run->measure(run->argument, batch, count, values, figures);
    for (size_t k = 0; k < count && count > 1 && rc == 0; k++) {
        if (!probe_together_as_expected(&run->limit, figures[k])) {
            rc = run->measure(run->argument, &batch[k], 1, &values[k], &figures[k]);
            unlike++;
        }
    }
    run->limit.pairs = 2 * unlike > count ? 1 : run->limit.pairs;
    return rc;
}

static int measure_members(struct run *run, size_t to)
{
    double values[TOGETHER_MOST];
    if (run->sampled < to) {
        tell(run, run->members + run->sampled);
    }
    int rc = late(run) || run->limit.pairs > 1 ? 0 : find_batches(run, to);
    while (rc == 0 && run->sampled < to) {
        struct pair_position *batch = run->members + run->sampled;
        if (run->sampled > 0 &&
            late(run)) { /* one pair of the class there must be, for the others to take over */
            run->outcome->cut_short = true;
            return 0;
        }
        size_t count =
            probe_together_compose(&run->schedule->together, &run->limit, batch, to - run->sampled);
        tell(run, batch);
        rc = measure_batch(run, batch, count, values);
        if (rc == 0) {
            keep(run, values, count, count);
        }
    }
    return rc;
}

size_t probe_schedule_planned(const struct schedule *schedule, const bool *wanted)
{
    size_t counts[SCHEDULE_CLASSES + 1] = {0}, planned = 0;
    for (size_t k = 0; k < probe_pair_count(schedule->pus->count); k++) {
        counts[schedule->class_of[k]] += !wanted || wanted[k];
    }
    for (size_t class = 0; class <= SCHEDULE_CLASSES; class ++) {
        planned += sample_of(schedule, counts[class]);
    }
    return planned;
}

bool probe_schedule_says(const struct schedule *schedule, size_t pair)
{
    return !schedule->says || schedule->says(schedule->says_argument, pair);
}

/* The sample's values: of answers those that say something, if any do. */
static void gather(struct run *run)
{
    const size_t n = run->schedule->pus->count;
    run->said = 0;
    for (int all = 0; all < 2 && run->said == 0; all++) {
        for (size_t k = 0; k < run->sampled; k++) {
            const size_t pair = probe_pair_index(n, run->members[k].i, run->members[k].j);
            if (all || probe_schedule_says(run->schedule, pair)) {
                run->sample[run->said++] = run->outcome->values[pair];
            }
        }
    }
}

/* Of the members from `from` on that were measured, those that were answered so are asked again:
 * the second answer counts. */
static int ask_again(struct run *run, size_t from, bool yes)
{
    const size_t n = run->schedule->pus->count;
    struct pair_position *again = malloc((run->sampled + 1) * sizeof *again);
    double values[TOGETHER_MOST];
    size_t count = 0;
    int rc = again ? 0 : -ENOMEM;
    for (size_t k = from; rc == 0 && k < run->sampled; k++) {
        const size_t pair = probe_pair_index(n, run->members[k].i, run->members[k].j);
        if (probe_schedule_says(run->schedule, pair) && (run->outcome->values[pair] > 0) == yes) {
            again[count++] = run->members[k];
        }
    }
    for (size_t at = 0, batch; rc == 0 && at < count && !late(run); at += batch) {
        batch =
            probe_together_compose(&run->schedule->together, &run->limit, again + at, count - at);
        rc = measure_batch(run, again + at, batch, values);
        for (size_t k = 0; rc == 0 && k < batch; k++) {
            run->outcome->values[probe_pair_index(n, again[at + k].i, again[at + k].j)] = values[k];
        }
    }
    run->outcome->cut_short |= late(run);
    free(again);
    return rc;
}

/* Until no answer is open. What joins two groups speaks for many pairs, and is asked twice. */
static int measure_equivalence(struct run *run)
{
    const struct equivalence_question question = {run->schedule, run->outcome, run->class};
    run->outcome->searched = true;
    for (;;) {
        const size_t from = run->sampled;
        size_t next;
        int rc = probe_equivalence_next(&question, run->members, run->count, from, &next);
        if (rc < 0 || next == 0) {
            return rc;
        }
        run->outcome->planned_count += next;
        rc = measure_members(run, from + next);
        rc = rc < 0 ? rc : ask_again(run, from, true);
        if (rc < 0 || run->outcome->cut_short) {
            return rc;
        }
    }
}

/* The sample did not agree. Sets `done` when all members have their values. */
static int measure_others(struct run *run, size_t class, struct random *random, bool *done)
{
    struct schedule_outcome *outcome = run->outcome;
    const struct blocks_question question = {run->schedule, run->measure, run->argument,
                                             outcome,       class,        random};
    outcome->fallbacks++;
    *done = run->schedule->says && !run->schedule->exhaustive && run->count > equivalence_from;
    if (*done) {
        return measure_equivalence(run);
    }
    if (run->schedule->search && !run->schedule->exhaustive && run->count > blocks_from) {
        int rc = probe_blocks_measure(&question, run->count);
        *done = rc > 0;
        if (rc != 0) {
            return rc < 0 ? rc : 0;
        }
    }
    outcome->planned_count += run->count - run->sampled;
    return measure_members(run, run->count);
}

static bool agrees_now(struct run *run)
{
    const double spread = run->schedule->spread ? *run->schedule->spread : 0;
    gather(run);
    return run->schedule->agree(run->sample, run->said, spread);
}

/* Answers of a sample that do not agree: those of the few are asked again, as one of them may have
 * been disturbed and would make a class of many pairs one that is to be measured. An answer that
 * then says nothing takes nothing back. */
static int ask_few_again(struct run *run, bool *agrees)
{
    const size_t said = run->said;
    size_t yes = 0;
    for (size_t k = 0; k < said; k++) {
        yes += run->sample[k] > 0;
    }
    int rc = ask_again(run, 0, 2 * yes < said);
    *agrees = rc == 0 && agrees_now(run) && run->said == said;
    return rc;
}

/* Measures the sample, and says whether it agrees. A class without others agrees. That it is not
 * known which pairs are alike its own answers may show. */
static int measure_sample(struct run *run, bool *agrees)
{
    const size_t size = sample_size(run), parts = run->schedule->search ? 2 : 1;
    int rc = 0;
    *agrees = true;
    for (size_t part = 1; rc == 0 && *agrees && part <= parts; part++) {
        const size_t to = part < parts ? size / 2 : size;
        rc = measure_members(run, to);
        *agrees = rc < 0 || run->sampled != to || size == run->count || agrees_now(run);
    }
    if (rc == 0 && *agrees && run->sampled == size && sample_size(run) > size) {
        const size_t to = size + prefer_a_row(run);
        rc = measure_members(run, to);
        *agrees = rc < 0 || run->sampled != to || agrees_now(run);
    }
    return rc == 0 && !*agrees && run->schedule->says ? ask_few_again(run, agrees) : rc;
}

static int run_class(struct run *run, size_t class, struct random *random)
{
    size_t n = run->schedule->pus->count;
    bool done = false, agrees;
    run->class = class;
    run->limit = run->outcome->limits[class] = (struct together_limit){.pairs = 1};
    int rc = measure_sample(run, &agrees);
    if (rc == 0 && !agrees) {
        rc = measure_others(run, class, random, &done);
    }
    if (rc < 0 || done || run->sampled == run->count) {
        return rc;
    }
    size_t from = run->sampled;
    gather(run);
    double middle = profile_median_value(run->sample, run->said);
    for (size_t k = from; k < run->count; k++) {
        run->outcome->values[probe_pair_index(n, run->members[k].i, run->members[k].j)] = middle;
    }
    return 0;
}

/* A class failed, so what says which pairs are alike is wrong there, and the sample of a small
 * class may have missed its few others: what the rest took over is measured where it is little. */
static int measure_rest(struct run *run, const bool *wanted, struct random *random)
{
    struct schedule_outcome *outcome = run->outcome;
    const size_t pairs = probe_pair_count(run->schedule->pus->count),
                 rest = outcome->pair_count - outcome->measured_count;
    bool *left = calloc(pairs + 1, sizeof *left);
    int rc = left ? 0 : -ENOMEM;
    const bool little = (double)rest <= rest_share * (double)outcome->measured_count;
    const size_t classes = little ? run->schedule->class_count : 0;
    for (size_t k = 0; left && k < pairs; k++) {
        left[k] = (!wanted || wanted[k]) && !outcome->measured[k];
    }
    for (size_t class = 0; class < classes && rc == 0; class ++) {
        collect(run, left, class, random);
        run->class = class;
        run->limit = outcome->limits[class];
        outcome->planned_count += run->count;
        rc = measure_members(run, run->count);
    }
    free(left);
    return rc;
}

int probe_schedule_run(const struct schedule *schedule, const bool *wanted, uint64_t seed,
                       pairs_measure_function *measure, void *argument,
                       struct schedule_outcome *outcome)
{
    size_t pairs = probe_pair_count(schedule->pus->count);
    struct random random = {seed};
    struct run run = {.schedule = schedule,
                      .measure = measure,
                      .argument = argument,
                      .outcome = outcome,
                      .members = malloc((pairs + 1) * sizeof *run.members),
                      .sample = malloc((pairs + 1) * sizeof *run.sample)};
    int rc = run.members && run.sample ? 0 : -ENOMEM;
    memset(outcome->measured, 0, pairs * sizeof *outcome->measured);
    outcome->measured_count = outcome->pair_count = outcome->planned_count = outcome->fallbacks = 0;
    outcome->tried = outcome->most_at_once = 0;
    outcome->cut_short = outcome->searched = false;
    outcome->parts = 0;
    for (size_t class = 0; class < schedule->class_count && rc == 0; class ++) {
        struct random scratch = {seed};
        collect(&run, wanted, class, &scratch);
        outcome->pair_count += run.count;
        outcome->planned_count += sample_size(&run);
    }
    for (size_t class = 0; class < schedule->class_count && rc == 0; class ++) {
        collect(&run, wanted, class, &random);
        rc = run_class(&run, class, &random);
    }
    if (rc == 0 && outcome->fallbacks > 0 && !outcome->cut_short) {
        rc = measure_rest(&run, wanted, &random);
    }
    if (schedule->probe) {
        schedule->probe->pairs = (struct probe_pairs){0};
    }
    free(run.members);
    free(run.sample);
    return rc;
}

int probe_schedule_again(const struct schedule *schedule, const struct schedule_outcome *outcome,
                         uint64_t seed, pairs_measure_function *measure, void *argument)
{
    double values[TOGETHER_MOST], figures[TOGETHER_MOST];
    struct random random = {seed};
    struct run run = {
        .schedule = schedule,
        .members = malloc((probe_pair_count(schedule->pus->count) + 1) * sizeof *run.members)};
    int rc = run.members ? 0 : -ENOMEM;
    for (size_t class = 0; class < schedule->class_count && rc == 0; class ++) {
        collect(&run, outcome->measured, class, &random);
        for (size_t at = 0, count = 0; at < run.count && rc == 0; at += count) {
            struct pair_position *batch = run.members + at;
            count = probe_together_compose(&schedule->together, &outcome->limits[class], batch,
                                           run.count - at);
            rc = measure(argument, batch, count, values, figures);
        }
    }
    free(run.members);
    return rc;
}

int probe_schedule_note(const struct schedule_outcome *outcome, char **note)
{
    size_t length;
    bool all = outcome->measured_count == outcome->pair_count;
    *note = NULL;
    if (all && outcome->most_at_once <= 1) {
        return 0;
    }
    FILE *stream = profile_stream_open(note, &length);
    if (!stream) {
        return -ENOMEM;
    }
    if (!all) {
        fprintf(
            stream,
            "%s%zu of %zu pairs measured, the others taken over from pairs alike in the topology",
            outcome->cut_short ? "cut short by the budget: " : "", outcome->measured_count,
            outcome->pair_count);
    }
    if (outcome->most_at_once > 1) {
        fprintf(stream,
                "%sup to %zu disjoint pairs measured at a time, which a check showed not to "
                "disturb one another",
                all ? "" : "; ", outcome->most_at_once);
    }
    return fclose(stream) == 0 ? 0 : -ENOMEM;
}
