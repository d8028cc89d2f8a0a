/* Which pairs of PUs are measured, and which take over what was measured on a pair like them.
 *
 * All pairs of 256 PUs are 32,640. Pairs that have the same thing in common in the declared
 * topology (a core, a cache of a level, a NUMA node, a package, the node), and are of the same two
 * kinds of cores, are presumed alike: of each such class a random sample of 4 log2(n) pairs is
 * measured, and where the sample agrees the others take its median over. Where it does not agree,
 * the topology says too little, and all pairs of the class are measured. The number of measurements
 * so grows with log n times the number of classes on regular machines. Where a check allows it,
 * disjoint pairs are measured at the same time (together.h).
 */
#ifndef SERVET_PROBES_PAIRS_SCHEDULE_H
#define SERVET_PROBES_PAIRS_SCHEDULE_H

#include "probes/pairs/relation.h"
#include "probes/pairs/together.h"
#include "probes/probe.h"

enum { SCHEDULE_CLASSES = 255 };

struct schedule {
    const struct profile_set *pus; /* not owned */
    uint8_t *class_of;             /* by probe_pair_index(): 0 is the closest */
    size_t class_count;
    struct together together;
    size_t at_once;  /* pairs at a time, at most; up to 1: one by one */
    bool exhaustive; /* every pair */
    bool search; /* that pairs are alike is doubted: 5.6 n of each class, not 4 log2(n), among them
                    all of one PU */
    const double *spread; /* of one figure so far, which may grow as more are measured; NULL: yes or
                             no. Not owned */
    struct probe
        *probe; /* told how many pairs are done, asked whether it is late; may be NULL. Not owned */
};

/* Classes from a declared topology; without one (NULL) all pairs are of one class. 0 or -ENOMEM. */
int probe_schedule_init(struct schedule *schedule, const struct profile_set *pus,
                        const struct profile_class *declared);
void probe_schedule_free(struct schedule *schedule);

/* Are these values of one class, whose deviation is `spread`, alike? May reorder them. */
typedef bool schedule_agree_function(double *values, size_t count, double spread);

struct schedule_outcome {
    double *values; /* by probe_pair_index(); of pairs that were left out as given */
    bool *measured; /* by probe_pair_index() */
    size_t measured_count, pair_count;              /* of the pairs that were to be looked at */
    size_t planned_count;                           /* pairs to be measured, as far as known */
    size_t fallbacks;                               /* classes whose sample did not agree */
    struct together_limit limits[SCHEDULE_CLASSES]; /* what was found for each class */
    size_t tried, most_at_once;                     /* batches checked; pairs at a time, at most */
    bool cut_short; /* the probe was late: a class was left after its first pairs */
};

/* `wanted` (by probe_pair_index(), NULL: all) says which pairs to look at; `values` and `measured`
 * are the caller's arrays. 0, or the first -errno of `measure`. */
int probe_schedule_run(const struct schedule *schedule, const bool *wanted, uint64_t seed,
                       pairs_measure_function *measure, schedule_agree_function *agree,
                       void *argument, struct schedule_outcome *outcome);
/* Calls `measure` once more for all measured pairs, as many at a time as before but beside others.
 * Its values are its own business. 0 or the first -errno. */
int probe_schedule_again(const struct schedule *schedule, const struct schedule_outcome *outcome,
                         uint64_t seed, pairs_measure_function *measure, void *argument);

/* Pairs that are measured where samples agree; of `wanted` as above. */
size_t probe_schedule_planned(const struct schedule *schedule, const bool *wanted);

/* Agreement of latencies and bandwidths: one cluster (cluster.h). */
bool probe_schedule_agree_cluster(double *values, size_t count, double spread);
/* Agreement of yes or no. */
bool probe_schedule_agree_equal(double *values, size_t count, double spread);

/* "12 of 276 pairs measured, the others taken over …; up to 6 pairs at a time, which did not
 * disturb one another", or NULL when all were measured one by one. To be freed. */
char *probe_schedule_note(const struct schedule_outcome *outcome);

#endif
