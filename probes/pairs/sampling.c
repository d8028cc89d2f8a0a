/* Which pairs of PUs are measured, and which take over the figure of others: one strategy for
 * messages, sharing and memory.
 *
 * All pairs of 256 PUs are 32,640. So pairs are put into classes that are presumed to agree: those
 * that have the same in common in the declared topology (a core, a cache of a level, a NUMA node, a
 * package, the node), and that are of the same two kinds of cores. Every class goes the same way:
 *
 *   sample    random pairs, and where nothing vouches for the class all pairs of one PU (a row).
 *   verify    the class agrees, and its other pairs take over the median of the sample; or it does
 *             not. A lone answer of yes or no is asked again first.
 *   refine    PUs are clustered by rows: a PU that is in no group is asked about all others that
 *             are in none; those before a gap of its row are its group. For yes or no each PU is
 *             asked about a representative of each group until one says yes. The pairs of two
 *             groups, and those inside of one, are classes from then on, and go the same way once
 *             more; what fails again is measured in full. So is all of a class without groups, and
 *             of one that has no more pairs than 24 PUs.
 *
 * Misses. A sample of m pairs misses a kind of pairs that is a share q of its class with
 * probability (1 - q)^m:
 *
 *   cheap figures (messages)        m = 1.5 n log2 n   1/n for siblings of half of the cores,
 *                                                      q = 1/(2n)
 *   costly ones (memory, sharing)   m = 4 log2 n       n^-0.6 for q = 1/10, n^-4 for q = 1/2
 *   a block of two groups           m >= 16            2^-16 for q = 1/2, 0.19 for q = 1/10
 *   a row                           never misses groups that every PU is in
 *
 * Rows take n pairs for each group and blocks some 16 for each two, so with groups of about sqrt(n)
 * PUs some n sqrt(n) of the n^2 / 2 pairs are measured. */
#include "probes/pairs/sampling.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/file.h"
#include "profile/base/statistics.h"

/* Constant       unit            source                       without it
 * costly_factor  times log2 n    0.15 to 2 s a pair           minutes of copies and working sets
 * cheap_factor   times n log2 n  misses 1/n, above            siblings of half of the cores missed
 * SAMPLE_LEAST   pairs           a median needs three         one disturbed pair speaks for a class
 * BLOCK_LEAST    pairs           misses, above                half of a block is missed
 * BLOCK_OTHERS   pairs           beside the row of one PU     a block is judged by one PU */
static const double costly_factor = 4;
static const double cheap_factor = 1.5;
enum { SAMPLE_LEAST = 3, BLOCK_LEAST = 16, BLOCK_OTHERS = 4 };

int probe_sampling_outcome_init(struct sampling_outcome *outcome, size_t pairs)
{
    *outcome = (struct sampling_outcome){.values = calloc(pairs + 1, sizeof *outcome->values),
                                         .measured = calloc(pairs + 1, sizeof *outcome->measured)};
    return outcome->values && outcome->measured ? 0 : -ENOMEM;
}

void probe_sampling_outcome_free(struct sampling_outcome *outcome)
{
    free(outcome->values);
    free(outcome->measured);
}

bool probe_sampling_equal(double *values, size_t count, double spread)
{
    (void)spread;
    for (size_t i = 1; i < count; i++) {
        if (values[i] < values[0] || values[i] > values[0]) {
            return false;
        }
    }
    return true;
}

/* -- a class that is measured -- */

bool probe_sampling_late(const struct sampling_run *run)
{
    return run->sampling->probe && probe_late(run->sampling->probe);
}

size_t probe_sampling_index(const struct sampling_run *run, const struct pair_position *pair)
{
    return probe_pair_index(run->sampling->pus->count, pair->i, pair->j);
}

static bool sampling_is_block(const struct sampling_run *run)
{
    return run->class >= run->sampling->presumed_count;
}

int probe_sampling_sort(struct sampling_run *run)
{
    const struct sampling *sampling = run->sampling;
    const bool *wanted = run->wanted;
    const size_t n = sampling->pus->count, classes = sampling->class_count;
    size_t *first = realloc(run->first, (classes + 2) * sizeof *first);
    run->first = first ? first : run->first;
    struct sampling_class *room = realloc(run->sampling->classes, (classes + 1) * sizeof *room);
    run->sampling->classes = room ? room : run->sampling->classes;
    TRY(first && room ? 0 : -ENOMEM);
    memset(first, 0, (classes + 2) * sizeof *first);
    for (size_t k = 0; k < probe_pair_count(n); k++) {
        first[sampling->class_of[k] + 2] += !wanted || wanted[k];
    }
    for (size_t c = 2; c < classes + 2; c++) {
        first[c] += first[c - 1];
    }
    PROBE_EACH_PAIR(n, i, j, k)
    {
        if (!wanted || wanted[k]) {
            run->pairs[first[sampling->class_of[k] + 1]++] = (struct pair_position){i, j};
        }
    }
    return 0;
}

/* Whether the measured pairs of the class agree; keeps the values that are decided. */
static bool sampling_agrees(struct sampling_run *run)
{
    const struct sampling *sampling = run->sampling;
    run->value_count = 0;
    for (size_t k = 0; k < run->measured; k++) {
        const double value = run->outcome->values[probe_sampling_index(run, &run->members[k])];
        if (!isnan(value)) {
            run->values[run->value_count++] = value;
        }
    }
    return run->value_count < 2 ||
           sampling->agree(run->values, run->value_count, sampling->spread ? *sampling->spread : 0);
}

/* Turns to the class; those of its pairs come first that are `measured`. */
static void sampling_turn_to(struct sampling_run *run, uint32_t class, const bool *measured)
{
    run->class = class;
    run->members = run->pairs + run->first[class];
    run->count = run->first[class + 1] - run->first[class];
    run->measured = 0;
    run->limit = (struct concurrent_limit){.pairs = 1};
    for (size_t k = 0; k < run->count; k++) {
        const struct pair_position pair = run->members[k];
        if (measured[probe_sampling_index(run, &pair)]) {
            run->members[k] = run->members[run->measured];
            run->members[run->measured++] = pair;
        }
    }
    run->known = run->least = run->measured;
    sampling_agrees(run);
}

/* Pairs of a class of `count` that is presumed. */
static size_t sampling_of(const struct sampling *sampling, size_t count)
{
    const double pus = (double)sampling->pus->count,
                 row = sampling->strategy == SAMPLING_ROWS ? 2 * (double)count / pus : 0,
                 factor = sampling->cheap ? cheap_factor * pus : costly_factor,
                 wanted = fmax(factor * log2(pus) + row, SAMPLE_LEAST);
    const bool all =
        sampling->exhaustive ||
        (sampling->cheap && probe_pair_count(sampling->pus->count) <= SAMPLING_ALL_UP_TO);
    return all || wanted > (double)count ? count : (size_t)wanted;
}

/* One answer that is decided speaks for two groups; figures inside of a group are all measured, as
 * siblings are there. */
static size_t sampling_size(const struct sampling_run *run)
{
    const struct sampling *sampling = run->sampling;
    const size_t some = run->known + BLOCK_OTHERS;
    size_t size = some < BLOCK_LEAST ? BLOCK_LEAST : some;
    if (!sampling_is_block(run)) {
        const size_t wanted = sampling_of(sampling, run->count);
        return wanted < run->least ? run->least : wanted;
    }
    if (sampling->answers) {
        size = run->measured + (run->value_count == 0);
    } else if (sampling->classes[run->class].inside && run->count <= SAMPLING_ALL_UP_TO) {
        size = run->count;
    }
    return size < run->count ? size : run->count;
}

/* Random members come next; all pairs of one PU are among them where that is asked for. */
static void sampling_draw(struct sampling_run *run)
{
    struct pair_position *others = run->members + run->measured;
    const size_t left = run->count - run->measured;
    size_t at = 0;
    random_shuffle(&run->random, others, left, sizeof *others);
    if (run->sampling->strategy != SAMPLING_ROWS || sampling_is_block(run)) {
        return;
    }
    const size_t pu = left ? others->i : 0;
    for (size_t k = 0; k < left; k++) {
        const struct pair_position pair = others[k];
        if (pair.i == pu || pair.j == pu) {
            others[k] = others[at];
            others[at++] = pair;
        }
    }
    run->least = run->measured + at;
    random_shuffle(&run->random, others, sampling_size(run) - run->measured, sizeof *others);
}

/* The next members have these values, measured `at_once`. */
static void sampling_keep(struct sampling_run *run, const double *values, size_t count,
                          size_t at_once)
{
    struct sampling_outcome *outcome = run->outcome;
    for (size_t k = 0; k < count; k++) {
        const size_t pair = probe_sampling_index(run, &run->members[run->measured++]);
        outcome->values[pair] = values[k];
        outcome->measured[pair] = true;
    }
    outcome->measured_count += count;
    outcome->most_at_once = at_once > outcome->most_at_once ? at_once : outcome->most_at_once;
}

/* How many of the members up to `to` may be measured at the same time. */
static int sampling_find_batches(struct sampling_run *run, size_t to)
{
    const struct sampling *sampling = run->sampling;
    const struct concurrent_question question = {&sampling->concurrent, run->measure, run->argument,
                                                 sampling->at_once};
    const size_t count = to - run->measured;
    struct concurrent_found found;
    FREED double *values = calloc(count + 1, sizeof *values);
    TRY(values
            ? probe_concurrent_find(&question, run->members + run->measured, count, values, &found)
            : -ENOMEM);
    run->limit = found.limit;
    sampling_keep(run, values, found.done, 1);
    return 0;
}

/* A batch, and alone what differs from the pairs that were measured alone. Where most of it does,
 * the class is of several kinds, and its pairs are measured one by one from then on. */
static int sampling_measure_batch(struct sampling_run *run, const struct pair_position *batch,
                                  size_t count, double *values)
{
    double figures[CONCURRENT_MOST];
    size_t differ = 0;
    TRY(run->measure(run->argument, batch, count, values, figures));
    for (size_t k = 0; k < count && count > 1; k++) {
        if (!probe_concurrent_as_expected(&run->limit, figures[k])) {
            TRY(run->measure(run->argument, &batch[k], 1, &values[k], &figures[k]));
            differ++;
        }
    }
    run->limit.pairs = 2 * differ > count ? 1 : run->limit.pairs;
    return 0;
}

static void sampling_tell(const struct sampling_run *run)
{
    const struct pair_position *next = &run->members[run->measured];
    const uint32_t *ids = run->sampling->pus->ids;
    if (run->sampling->probe) {
        run->sampling->probe->pairs = (struct probe_pairs){.pair = {ids[next->i], ids[next->j]},
                                                           .done = run->outcome->measured_count,
                                                           .planned = run->outcome->planned_count};
    }
}

/* Measures the members up to `to`; at least one of a class, however late it is. */
static int sampling_measure(struct sampling_run *run, size_t to)
{
    double values[CONCURRENT_MOST];
    if (run->measured < to) {
        sampling_tell(run);
        TRY(probe_sampling_late(run) || run->limit.pairs > 1 ? 0 : sampling_find_batches(run, to));
    }
    while (run->measured < to) {
        struct pair_position *batch = run->members + run->measured;
        if (run->measured > 0 && probe_sampling_late(run)) {
            run->outcome->cut_short = true;
            return 0;
        }
        sampling_tell(run);
        const size_t count = probe_concurrent_compose(&run->sampling->concurrent, &run->limit,
                                                      batch, to - run->measured);
        TRY(sampling_measure_batch(run, batch, count, values));
        sampling_keep(run, values, count, count);
    }
    return 0;
}

/* -- verification -- */

int probe_sampling_ask_again(struct sampling_run *run, const struct pair_position *pair)
{
    double *value = &run->outcome->values[probe_sampling_index(run, pair)], again, figure;
    TRY(run->measure(run->argument, pair, 1, &again, &figure));
    *value = isnan(again) ? *value : again;
    return 0;
}

/* Answers that do not agree: the rarer ones are asked again, since one that was disturbed would
 * have a class of thousands measured. */
static int sampling_ask_rarer(struct sampling_run *run, bool *agrees)
{
    const double usual = profile_median_value(run->values, run->value_count);
    const size_t measured = run->measured;
    for (size_t k = 0; k < measured && !probe_sampling_late(run); k++) {
        const double value = run->outcome->values[probe_sampling_index(run, &run->members[k])];
        const bool rare = !isnan(value) && fabs(value - usual) > 0;
        TRY(rare ? probe_sampling_ask_again(run, &run->members[k]) : 0);
    }
    *agrees = sampling_agrees(run);
    return 0;
}

/* -- all classes -- */

/* The pairs of the class that have no value take over the median of those that were measured. */
static void sampling_take_over(struct sampling_run *run, bool agrees)
{
    sampling_agrees(run);
    const double middle = profile_median_value(run->values, run->value_count);
    for (size_t k = 0; k < run->count; k++) {
        double *value = &run->outcome->values[probe_sampling_index(run, &run->members[k])];
        *value = k >= run->measured || (agrees && isnan(*value)) ? middle : *value;
    }
}

static int sampling_run_class(struct sampling_run *run, uint32_t class)
{
    const struct sampling *sampling = run->sampling;
    bool refined = false, agrees;
    size_t size;
    sampling_turn_to(run, class, run->outcome->measured);
    do { /* answers may be undecided */
        sampling_draw(run);
        size = sampling_size(run);
        TRY(sampling_measure(run, size));
        agrees = run->measured < size || sampling_agrees(run);
    } while (agrees && run->measured == size && sampling_size(run) > size);
    if (!agrees && sampling->answers && size < run->count) {
        TRY(sampling_ask_rarer(run, &agrees));
    }
    const bool disagrees = !agrees && size < run->count;
    run->outcome->fallbacks += disagrees;
    if (disagrees && !sampling_is_block(run) && run->count > SAMPLING_ALL_UP_TO) {
        TRY(probe_sampling_refine(run, &refined));
        sampling_turn_to(run, class, run->outcome->measured); /* rows were measured */
    }
    if (!agrees && !refined) {
        run->outcome->planned_count += run->count - run->measured;
        TRY(sampling_measure(run, run->count));
    }
    sampling_take_over(run, agrees);
    return 0;
}

static void sampling_stop(struct sampling_run *run)
{
    if (run->sampling->probe) {
        run->sampling->probe->pairs = (struct probe_pairs){0};
    }
    free(run->pairs);
    free(run->first);
    free(run->values);
}

static int sampling_start(struct sampling_run *run)
{
    const size_t pairs = probe_pair_count(run->sampling->pus->count);
    run->pairs = malloc((pairs + 1) * sizeof *run->pairs);
    run->values = malloc((pairs + 1) * sizeof *run->values);
    return run->pairs && run->values ? probe_sampling_sort(run) : -ENOMEM;
}

size_t probe_sampling_planned(const struct sampling *sampling, const bool *wanted)
{
    const size_t pairs = probe_pair_count(sampling->pus->count);
    size_t planned = 0;
    for (uint32_t class = 0; class < sampling->presumed_count; class ++) {
        size_t count = 0;
        for (size_t k = 0; k < pairs; k++) {
            count += sampling->presumed[k] == class && (!wanted || wanted[k]);
        }
        planned += sampling_of(sampling, count);
    }
    return planned;
}

int probe_sampling_run(struct sampling *sampling, const bool *wanted, uint64_t seed,
                       pairs_measure_function *measure, void *argument,
                       struct sampling_outcome *outcome)
{
    const size_t pairs = probe_pair_count(sampling->pus->count);
    FREED_BY(sampling_stop)
    struct sampling_run run = {.sampling = sampling,
                               .wanted = wanted,
                               .measure = measure,
                               .argument = argument,
                               .outcome = outcome,
                               .random = {seed}};
    *outcome = (struct sampling_outcome){.values = outcome->values, .measured = outcome->measured};
    memset(outcome->measured, 0, pairs * sizeof *outcome->measured);
    memcpy(sampling->class_of, sampling->presumed, pairs * sizeof *sampling->class_of);
    sampling->class_count = sampling->presumed_count;
    outcome->planned_count = probe_sampling_planned(sampling, wanted);
    TRY(sampling_start(&run));
    outcome->pair_count = run.first[sampling->class_count];
    /* refinement adds classes */
    for (uint32_t class = 0; class < sampling->class_count; class ++) {
        TRY(sampling_run_class(&run, class));
        sampling->classes[class].limit = run.limit;
    }
    return 0;
}

/* Once more those of the class that were measured. */
static int sampling_again(struct sampling_run *run, uint32_t class)
{
    double values[CONCURRENT_MOST], figures[CONCURRENT_MOST];
    random_shuffle(&run->random, run->members, run->measured, sizeof *run->members);
    for (size_t at = 0, count; at < run->measured; at += count) {
        struct pair_position *batch = run->members + at;
        count = probe_concurrent_compose(&run->sampling->concurrent,
                                         &run->sampling->classes[class].limit, batch,
                                         run->measured - at);
        TRY(run->measure(run->argument, batch, count, values, figures));
    }
    return 0;
}

int probe_sampling_again(struct sampling *sampling, struct sampling_outcome *outcome, uint64_t seed,
                         pairs_measure_function *measure, void *argument)
{
    FREED_BY(sampling_stop)
    struct sampling_run run = {.sampling = sampling,
                               .measure = measure,
                               .argument = argument,
                               .outcome = outcome,
                               .random = {seed}};
    TRY(sampling_start(&run));
    for (uint32_t class = 0; class < sampling->class_count; class ++) {
        sampling_turn_to(&run, class, outcome->measured);
        TRY(measure ? sampling_again(&run, class) : 0);
        sampling_take_over(&run, false);
    }
    return 0;
}

int probe_sampling_note(const struct sampling_outcome *outcome, char **note)
{
    size_t length;
    bool all = outcome->measured_count == outcome->pair_count;
    *note = NULL;
    if (all && outcome->most_at_once <= 1) {
        return 0;
    }
    FILE *stream = profile_stream_open(note, &length);
    TRY(stream ? 0 : -ENOMEM);
    if (!all) {
        fprintf(
            stream,
            "%s%zu of %zu pairs measured, the others inferred from pairs in similar places of the "
            "topology",
            outcome->cut_short ? "cut short by the budget: " : "", outcome->measured_count,
            outcome->pair_count);
    }
    if (outcome->most_at_once > 1) {
        fprintf(stream,
                "%sup to %zu disjoint pairs measured at a time, after a check for interference",
                all ? "" : "; ", outcome->most_at_once);
    }
    return fclose(stream) == 0 ? 0 : -ENOMEM;
}
