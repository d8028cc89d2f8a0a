/* Which pairs of PUs are measured, and which take over what was measured on a pair like them.
 *
 * All pairs of 256 PUs are 32,640. Pairs that have the same thing in common in the declared topology (a core, a cache
 * of a level, a NUMA node, a package, the node) are presumed alike: of each such class a random sample of 4 log2(n)
 * pairs is measured, and where the sample agrees the others take its median over. Where it does not agree, the topology
 * says too little, and all pairs of the class are measured. The number of measurements so grows with log n times the
 * number of classes on regular machines.
 */
#ifndef SERVET_PROBES_SCHEDULE_H
#define SERVET_PROBES_SCHEDULE_H

#include "probe.h"
#include "relation.h"

struct schedule {
    const struct profile_set *pus; /* not owned */
    uint8_t *class_of;             /* by pair_index(): 0 is the closest */
    size_t class_count;
    bool exhaustive;      /* every pair */
    const double *spread; /* of one figure so far, which may grow as more are measured; NULL: yes or no. Not owned */
    struct probe *probe;  /* told how many pairs are done, asked whether it is late; may be NULL. Not owned */
};

/* Classes from a declared topology; without one (NULL) all pairs are of one class. 0 or -ENOMEM. */
int schedule_init(struct schedule *schedule, const struct profile_set *pus, const struct profile_class *declared);
void schedule_free(struct schedule *schedule);

/* Measures the pair of the i-th and the j-th PU. 0 or -errno. */
typedef int schedule_measure_function(void *argument, size_t i, size_t j, double *value);
/* Are these values of one class, whose deviation is `spread`, alike? May reorder them. */
typedef bool schedule_agree_function(double *values, size_t count, double spread);

struct schedule_outcome {
    double *values;                    /* by pair_index(); of pairs that were left out as given */
    bool *measured;                    /* by pair_index() */
    size_t measured_count, pair_count; /* of the pairs that were to be looked at */
    size_t planned_count;              /* pairs to be measured, as far as known */
    size_t fallbacks;                  /* classes whose sample did not agree */
    bool cut_short;                    /* the probe was late: a class was left after its first pairs */
};

/* `wanted` (by pair_index(), NULL: all) says which pairs to look at; `values` and `measured` are the caller's arrays.
 * 0, or the first -errno of `measure`. */
int schedule_run(const struct schedule *schedule, const bool *wanted, uint64_t seed, schedule_measure_function *measure,
                 schedule_agree_function *agree, void *argument, struct schedule_outcome *outcome);

/* Agreement of latencies and bandwidths: one cluster (cluster.h). */
bool schedule_agree_cluster(double *values, size_t count, double spread);
/* Agreement of yes or no. */
bool schedule_agree_equal(double *values, size_t count, double spread);

/* "12 of 276 pairs measured, the others taken over …", or NULL when all were. To be freed. */
char *schedule_note(const struct schedule_outcome *outcome);

#endif
