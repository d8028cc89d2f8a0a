#include "schedule.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "probe.h"
#include "random.h"

static const double sample_factor = 4; /* times log2(PUs), of every class */
enum { SAMPLE_MIN = 3, CLASSES_MAX = 32 };

/* -- classes -- */

/* Marks the pairs of the relation's groups as of class `class` unless they are of a closer one. */
static void mark(struct schedule *schedule, const struct profile_relation *relation, int class)
{
    const struct profile_set *pus = schedule->pus;
    for (size_t g = 0; g < relation->group_count; g++) {
        for (size_t i = 0; i < pus->count; i++) {
            if (!profile_set_has(&relation->groups[g], pus->ids[i])) {
                continue;
            }
            for (size_t j = i + 1; j < pus->count; j++) {
                uint8_t *slot = &schedule->class_of[pair_index(pus->count, i, j)];
                if (*slot > class && profile_set_has(&relation->groups[g], pus->ids[j])) {
                    *slot = (uint8_t) class;
                }
            }
        }
    }
}

static void mark_numa(struct schedule *schedule, const struct profile_class *declared, int class)
{
    for (size_t i = 0; i < declared->numa_count; i++) {
        struct profile_set pus = declared->numa[i].pus;
        const struct profile_relation one = {.groups = &pus, .group_count = 1};
        mark(schedule, &one, class);
    }
}

static size_t largest_node(const struct profile_class *declared)
{
    size_t largest = 0;
    for (size_t i = 0; i < declared->numa_count; i++) {
        largest = declared->numa[i].pus.count > largest ? declared->numa[i].pus.count : largest;
    }
    return largest;
}

static size_t largest_group(const struct profile_relation *relation)
{
    size_t largest = 0;
    for (size_t i = 0; i < relation->group_count; i++) {
        largest = relation->groups[i].count > largest ? relation->groups[i].count : largest;
    }
    return largest;
}

/* Renumbers the classes that occur to 0, 1, 2 … */
static void renumber(struct schedule *schedule)
{
    uint8_t number[CLASSES_MAX] = {0};
    bool occurs[CLASSES_MAX] = {false};
    size_t pairs = pair_count(schedule->pus->count);
    for (size_t i = 0; i < pairs; i++) {
        occurs[schedule->class_of[i]] = true;
    }
    for (size_t c = 0; c < CLASSES_MAX; c++) {
        number[c] = (uint8_t)schedule->class_count;
        schedule->class_count += occurs[c];
    }
    for (size_t i = 0; i < pairs; i++) {
        schedule->class_of[i] = number[schedule->class_of[i]];
    }
}

int schedule_init(struct schedule *schedule, const struct profile_set *pus, const struct profile_class *declared)
{
    size_t pairs = pair_count(pus->count);
    *schedule = (struct schedule){.pus = pus, .class_of = malloc(pairs + 1)};
    if (!schedule->class_of) {
        return -ENOMEM;
    }
    memset(schedule->class_of, CLASSES_MAX - 1, pairs);
    if (declared) {
        uint8_t class = 0;
        mark(schedule, &declared->cores, class ++);
        for (size_t i = 0; i < declared->cache_count && class < CLASSES_MAX - 4; i++) {
            mark(schedule, &declared->caches[i].sharing, class ++);
        }
        /* What is smaller lies within the other: a machine whose memory is interleaved has one node of all packages. */
        bool nodes_inside = largest_node(declared) <= largest_group(&declared->packages);
        mark_numa(schedule, declared, nodes_inside ? class : class + 1);
        mark(schedule, &declared->packages, nodes_inside ? class + 1 : class);
    }
    renumber(schedule);
    return 0;
}

void schedule_free(struct schedule *schedule)
{
    free(schedule->class_of);
    schedule->class_of = NULL;
}

/* -- agreement -- */

bool schedule_agree_cluster(double *values, size_t count, double spread)
{
    struct clusters clusters;
    uint32_t *cluster_of = malloc((count + 1) * sizeof *cluster_of);
    int rc = cluster_of ? cluster_values(values, count, spread, cluster_of, &clusters) : -ENOMEM;
    free(cluster_of);
    return rc == 0 && clusters.count == 1;
}

bool schedule_agree_equal(double *values, size_t count, double spread)
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

struct position {
    size_t i, j;
};

struct run {
    const struct schedule *schedule;
    schedule_measure_function *measure;
    schedule_agree_function *agree;
    void *argument;
    struct schedule_outcome *outcome;
    struct position *members; /* of the class at hand, in random order */
    double *sample;
    size_t count, sampled; /* of those, measured: the first of `members` */
};

static bool late(const struct run *run)
{
    return run->schedule->probe && probe_late(run->schedule->probe);
}

static void tell(const struct run *run, const struct position *position)
{
    if (run->schedule->probe) {
        const uint32_t *ids = run->schedule->pus->ids;
        run->schedule->probe->pairs = (struct probe_pairs){.pair = {ids[position->i], ids[position->j]},
                                                           .done = run->outcome->measured_count,
                                                           .planned = run->outcome->planned_count};
    }
}

static void collect(struct run *run, const bool *wanted, size_t class, struct random *random)
{
    size_t n = run->schedule->pus->count;
    run->count = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            size_t pair = pair_index(n, i, j);
            if (run->schedule->class_of[pair] == class && (!wanted || wanted[pair])) {
                run->members[run->count++] = (struct position){i, j};
            }
        }
    }
    for (size_t k = run->count; k > 1; k--) {
        size_t other = random_below(random, k);
        struct position swap = run->members[k - 1];
        run->members[k - 1] = run->members[other];
        run->members[other] = swap;
    }
}

static int measure_members(struct run *run, size_t from, size_t to)
{
    size_t n = run->schedule->pus->count;
    for (size_t k = from; k < to; k++) {
        size_t pair = pair_index(n, run->members[k].i, run->members[k].j);
        if (k > 0 && late(run)) { /* one pair of the class there must be: the others need something to take over */
            run->outcome->cut_short = true;
            return 0;
        }
        tell(run, &run->members[k]);
        int rc = run->measure(run->argument, run->members[k].i, run->members[k].j, &run->outcome->values[pair]);
        if (rc < 0) {
            return rc;
        }
        run->outcome->measured[pair] = true;
        run->outcome->measured_count++;
        run->sample[k] = run->outcome->values[pair];
        run->sampled++;
    }
    return 0;
}

static size_t sample_size(const struct run *run)
{
    double wanted = sample_factor * log2((double)run->schedule->pus->count);
    size_t size = wanted > SAMPLE_MIN ? (size_t)wanted : SAMPLE_MIN;
    return run->schedule->exhaustive || size > run->count ? run->count : size;
}

static int run_class(struct run *run)
{
    size_t n = run->schedule->pus->count, size = sample_size(run);
    run->sampled = 0;
    int rc = measure_members(run, 0, size);
    double spread = run->schedule->spread ? *run->schedule->spread : 0;
    if (rc == 0 && run->sampled == size && size < run->count && !run->agree(run->sample, size, spread)) {
        run->outcome->fallbacks++;
        run->outcome->planned_count += run->count - size;
        rc = measure_members(run, size, run->count);
    }
    if (rc < 0 || run->sampled == run->count) {
        return rc;
    }
    size_t from = run->sampled;
    double middle = probe_median(run->sample, from);
    for (size_t k = from; k < run->count; k++) {
        run->outcome->values[pair_index(n, run->members[k].i, run->members[k].j)] = middle;
    }
    return 0;
}

int schedule_run(const struct schedule *schedule, const bool *wanted, uint64_t seed, schedule_measure_function *measure,
                 schedule_agree_function *agree, void *argument, struct schedule_outcome *outcome)
{
    size_t pairs = pair_count(schedule->pus->count);
    struct random random = {seed};
    struct run run = {schedule,
                      measure,
                      agree,
                      argument,
                      outcome,
                      malloc((pairs + 1) * sizeof *run.members),
                      malloc((pairs + 1) * sizeof *run.sample),
                      0,
                      0};
    int rc = run.members && run.sample ? 0 : -ENOMEM;
    memset(outcome->measured, 0, pairs * sizeof *outcome->measured);
    outcome->measured_count = outcome->pair_count = outcome->planned_count = outcome->fallbacks = 0;
    outcome->cut_short = false;
    for (size_t class = 0; class < schedule->class_count && rc == 0; class ++) {
        struct random scratch = {seed};
        collect(&run, wanted, class, &scratch);
        outcome->pair_count += run.count;
        outcome->planned_count += sample_size(&run);
    }
    for (size_t class = 0; class < schedule->class_count && rc == 0; class ++) {
        collect(&run, wanted, class, &random);
        rc = run_class(&run);
    }
    if (schedule->probe) {
        schedule->probe->pairs = (struct probe_pairs){0};
    }
    free(run.members);
    free(run.sample);
    return rc;
}

char *schedule_note(const struct schedule_outcome *outcome)
{
    char *note = NULL;
    if (outcome->measured_count == outcome->pair_count) {
        return NULL;
    }
    if (asprintf(&note, "%s%zu of %zu pairs measured, the others taken over from pairs alike in the topology",
                 outcome->cut_short ? "cut short by the budget: " : "", outcome->measured_count,
                 outcome->pair_count) < 0) {
        return NULL;
    }
    return note;
}
