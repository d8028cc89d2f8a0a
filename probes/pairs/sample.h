/* A sample of pairs: which pairs of PUs are measured, several of them at the same time where that
 * does not disturb them, and which take over the figure of others. The method, and what it misses
 * with which probability, is in sampling.c. */
#pragma once

#include "probes/pairs/partition.h"
#include "probes/probe.h"
#include "profile/model.h"

/* A pair: the i-th and the j-th PU. */
struct pair_position {
    size_t i, j;
};

/* Measures disjoint pairs at the same time. values[k] is what is asked of pairs[k], NAN where that
 * stays undecided; figures[k] is a time or a rate of it, which shows interference. 0 or -errno. */
typedef int pairs_measure_function(void *argument, const struct pair_position *pairs, size_t count,
                                   double *values, double *figures);

/* -- pairs at the same time -- */

/* Before a class of pairs is measured, and only where that saves more than it costs, a batch of its
 * pairs is measured together and, by turns, a few of them alone. If the median of the ratios is 1
 * within what two figures of one pair differ by, further pairs of the class are measured in batches
 * that are no larger; a pair whose figure differs from those alone is measured alone after all. The
 * first batch has one pair in each of the machine's largest units (packages, NUMA nodes …); if that
 * passes, the next smaller units are tried, down to single PUs. If it does not, batches of half the
 * pairs are. */

enum { CONCURRENT_PARTITIONS = 12, CONCURRENT_MOST = 64 };
/* Beyond a tenth more time, a figure is not the same. */
#define CONCURRENT_TOLERATED 0.1

/* Ways to divide the PUs into units, the largest units first, single PUs last. */
struct concurrent {
    size_t pus, count;
    struct partition partitions[CONCURRENT_PARTITIONS]; /* owned */
};

/* How large a batch may be. */
struct concurrent_limit {
    size_t pairs;     /* up to 1: one by one */
    size_t partition; /* no two pairs touch the same unit of it */
    double figure;    /* of pairs alone */
    double band;      /* logarithm of the ratio to it that noise explains */
};

/* Pairs at a time, at most: `room` for them, unless the user or a quota allows fewer. */
size_t probe_concurrent_most(const struct probe *probe, size_t room);

/* `declared` may be NULL: then nothing is known but the PUs. 0 or -ENOMEM. */
int probe_concurrent_init(struct concurrent *concurrent, const struct profile_set *pus,
                          const struct profile_class *declared);
void probe_concurrent_free(struct concurrent *concurrent);

/* Moves the pairs of one batch to the front of `pairs`, which are in random order; how many: at
 * least 1. */
size_t probe_concurrent_compose(const struct concurrent *concurrent,
                                const struct concurrent_limit *limit, struct pair_position *pairs,
                                size_t count);

/* The measurement, and how many pairs at a time at most. */
struct concurrent_question {
    const struct concurrent *concurrent;
    pairs_measure_function *measure;
    void *argument;
    size_t most;
};

/* The largest batch that passed. Pairs that were measured alone on the way count: they come to the
 * front, `done` of them. */
struct concurrent_found {
    struct concurrent_limit limit;
    size_t done;
};

/* Looks for the largest batches of `pairs` without interference, measuring pairs that are needed in
 * any case; `values` are those of the pairs that are done. 0 or the first -errno of `measure`. */
int probe_concurrent_find(const struct concurrent_question *question, struct pair_position *pairs,
                          size_t count, double *values, struct concurrent_found *out);

/* Is a figure measured beside others like those that were measured alone? */
bool probe_concurrent_as_expected(const struct concurrent_limit *limit, double figure);

/* Do figures of pairs together differ from those alone no more than repeated ones do? `ratios` are
 * logarithms of together over alone, `repeats` those of two figures of one pair. Reorders both. */
bool probe_concurrent_undisturbed(double *ratios, size_t ratio_count, double *repeats,
                                  size_t repeat_count);

/* -- sampling -- */

/* Do these values of one class agree, where one figure deviates by `spread`? May reorder them. */
typedef bool sampling_agree_function(double *values, size_t count, double spread);

/* Values of pairs that answer yes or no: an answer of yes joins two PUs as a short time does. */
enum pair_answer { PAIR_TOGETHER, PAIR_APART };

/* A class begins with random pairs; where nothing vouches for the classes, with all pairs of one PU
 * beside them. */
enum sampling_strategy { SAMPLING_RANDOM, SAMPLING_ROWS };

struct sampling_class {
    struct concurrent_limit limit;
    bool inside; /* of refined ones: its pairs are inside of a group */
};

struct sampling {
    const struct profile_set *pus; /* not owned */
    /* Classes by probe_pair_index(), 0 is the closest: as presumed, and as the last run refined
     * them. Owned */
    uint32_t *presumed, *class_of;
    size_t presumed_count, class_count;
    struct sampling_class *classes; /* of the last run. Owned */
    struct concurrent concurrent;
    size_t at_once; /* pairs at a time, at most; up to 1: one by one */
    sampling_agree_function *agree;
    enum sampling_strategy strategy;
    bool exhaustive; /* every pair */
    bool cheap;      /* a pair takes milliseconds: the sample is the larger one */
    bool answers;    /* values are PAIR_TOGETHER or PAIR_APART, of an equivalence */
    /* of one figure so far, which may grow as more are measured; NULL: none. Not owned */
    const double *spread;
    /* shows how many pairs are done, and knows whether it is late; may be NULL. Not owned */
    struct probe *probe;
};

/* Classes from a declared topology; without one (NULL) all pairs are of one class. They agree when
 * they are one cluster, unless `agree` is set to something else. 0 or -ENOMEM. */
int probe_sampling_init(struct sampling *sampling, const struct profile_set *pus,
                        const struct profile_class *declared);
/* Nothing vouches for the classes: all pairs are of one, and go by rows. */
void probe_sampling_forget(struct sampling *sampling);
void probe_sampling_free(struct sampling *sampling);

struct sampling_outcome {
    double *values; /* by probe_pair_index(); of pairs that were left out as given */
    bool *measured; /* by probe_pair_index() */
    size_t measured_count, pair_count; /* of the pairs that were to be looked at */
    size_t planned_count;              /* pairs to be measured, as far as known */
    size_t fallbacks;                  /* classes whose sample did not agree */
    size_t most_at_once;               /* pairs at a time */
    bool cut_short;                    /* the probe was late: a class has only its first pairs */
};

/* Zeroed arrays for so many pairs. 0 or -ENOMEM. */
int probe_sampling_outcome_init(struct sampling_outcome *outcome, size_t pairs);
void probe_sampling_outcome_free(struct sampling_outcome *outcome);

/* `wanted` (by probe_pair_index(), NULL: all) says which pairs to look at; `values` and `measured`
 * are the caller's arrays. A pair whose class has no value that is decided has NAN. 0, or the first
 * -errno of `measure`. */
int probe_sampling_run(struct sampling *sampling, const bool *wanted, uint64_t seed,
                       pairs_measure_function *measure, void *argument,
                       struct sampling_outcome *outcome);

/* Calls `measure` (NULL: nothing) once more for all measured pairs, as many at a time as before but
 * beside others. It changes outcome->values itself, and the pairs that were not measured take the
 * medians over anew. 0, -ENOMEM or the first -errno. */
int probe_sampling_again(struct sampling *sampling, struct sampling_outcome *outcome, uint64_t seed,
                         pairs_measure_function *measure, void *argument);

/* Pairs that are measured where samples agree; of `wanted` as above. */
size_t probe_sampling_planned(const struct sampling *sampling, const bool *wanted);

/* Agreement of yes or no. */
bool probe_sampling_equal(double *values, size_t count, double spread);

/* "12 of 276 pairs measured, the others taken over …; up to 6 pairs at a time, which did not
 * disturb one another", or NULL when all were measured one by one. To be freed. 0 or -ENOMEM. */
int probe_sampling_note(const struct sampling_outcome *outcome, char **note);
