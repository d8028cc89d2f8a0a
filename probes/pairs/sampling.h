/* A run of a sample, class by class: for the files of sampling only. sampling.c has the way that
 * every class goes, classes.c divides one whose pairs do not agree. */
#pragma once

#include "probes/pairs/sample.h"
#include "profile/base/random.h"

/* Constant       unit            source                       without it
 * ALL_UP_TO      pairs           those of 24 PUs, 1 s each    rows cost more than they save */
enum { SAMPLING_ALL_UP_TO = 276 };

struct sampling_run {
    struct sampling *sampling;
    const bool *wanted; /* NULL: all */
    pairs_measure_function *measure;
    void *argument;
    struct sampling_outcome *outcome;
    struct random random;
    struct pair_position *pairs; /* that are wanted, by class. Owned, as the two below */
    size_t *first;               /* of each class in `pairs`, and the end */
    double *values;              /* of the class, where it has some */
    size_t value_count;
    uint32_t class;
    struct pair_position *members; /* of the class: `measured` ones first */
    size_t count, measured;
    size_t known; /* measured before it was turned to */
    size_t least; /* to be measured: those that are, and the row */
    struct concurrent_limit limit;
};

bool probe_sampling_late(const struct sampling_run *run);
size_t probe_sampling_index(const struct sampling_run *run, const struct pair_position *pair);

/* Sorts the pairs that are wanted by their classes, and makes room for new ones. 0 or -ENOMEM. */
int probe_sampling_sort(struct sampling_run *run);

/* Asks the pair once more, alone; an undecided answer leaves the first one. 0 or -errno. */
int probe_sampling_ask_again(struct sampling_run *run, const struct pair_position *pair);

/* Divides the class at hand into classes of its own; `*done` false: it has no groups. 0 or
 * -errno. */
int probe_sampling_refine(struct sampling_run *run, bool *done);
