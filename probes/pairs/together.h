/* Disjoint pairs of PUs measured at the same time, where a check shows that they do not disturb one
 * another.
 *
 * Before a class of pairs is measured, and only where that saves more than it costs, a batch of its
 * pairs is measured together and, by turns, a few of them alone: those that have the most others
 * beside them. If the median of the ratios is 1 within what two figures of one pair differ by,
 * further pairs of the class are measured in batches that are no larger and nowhere more crowded
 * than the one that was checked; a pair whose figure is then unlike those alone is measured alone
 * after all. The first batch has one pair in each of the machine's
 * largest units (packages, NUMA nodes …); if that passes, the next smaller units are tried, down to
 * single PUs. If it does not, batches of half the pairs are.
 */
#ifndef SERVET_PROBES_PAIRS_TOGETHER_H
#define SERVET_PROBES_PAIRS_TOGETHER_H

#include "profile/model.h"

enum { TOGETHER_PARTITIONS = 12, TOGETHER_MOST = 64 };

/* The i-th and the j-th PU. */
struct pair_position {
    size_t i, j;
};

/* Measures disjoint pairs at the same time. values[k] is what is asked of pairs[k]; figures[k] is a
 * time or a rate of it that shows whether it was disturbed. 0 or -errno. */
typedef int pairs_measure_function(void *argument, const struct pair_position *pairs, size_t count,
                                   double *values, double *figures);

/* Ways to divide the PUs into units, the largest units first, single PUs last. */
struct together {
    size_t pu_count, count;
    uint32_t *unit_of[TOGETHER_PARTITIONS]; /* by position of the PU. Owned */
};

/* What a batch may be. */
struct together_limit {
    size_t pairs;     /* up to 1: one by one */
    size_t partition; /* no two pairs touch the same unit of it */
    size_t crowd;     /* pairs that may touch one of the largest units; 0: any number */
    double figure;    /* of pairs alone */
    double band;      /* logarithm of the ratio to it that noise explains */
};

/* `declared` may be NULL: then nothing is known but the PUs. 0 or -ENOMEM. */
int probe_together_init(struct together *together, const struct profile_set *pus,
                        const struct profile_class *declared);
void probe_together_free(struct together *together);

/* The unit of each PU, by position, when the groups of `relation` divide them: numbered by their
 * first PU; a PU in none of the groups is a unit of its own. To be freed; NULL: no memory. */
uint32_t *probe_together_units(const struct profile_set *pus,
                               const struct profile_relation *relation);

/* Moves the pairs of one batch to the front of `pairs`, which are in random order; how many: at
 * least 1. */
size_t probe_together_compose(const struct together *together, const struct together_limit *limit,
                              struct pair_position *pairs, size_t count);

/* Looks for the largest batches that do not disturb, among `pairs` of which all are to be measured,
 * at most `most` at a time. What was measured alone on the way counts: those pairs come to the
 * front, `*done` of them, with their `values`. `*tried` counts the batches. 0 or the first -errno
 * of `measure`. */
int probe_together_find(const struct together *together, struct pair_position *pairs, size_t count,
                        size_t most, pairs_measure_function *measure, void *argument,
                        struct together_limit *limit, double *values, size_t *done, size_t *tried);

/* Is a figure measured beside others like those that were measured alone? One that is not may be of
 * another kind of pair than the topology says, for which the check says nothing: it is to be
 * measured alone. */
bool probe_together_as_expected(const struct together_limit *limit, double figure);

/* Do figures of pairs together differ from those alone no more than repeated ones do? `ratios` are
 * logarithms, of together to alone; `repeats` of two figures of one pair, taken alike. Reorders
 * both. */
bool probe_together_undisturbed(double *ratios, size_t ratio_count, double *repeats,
                                size_t repeat_count);

#endif
