/* What is declared of who shares a measured cache level: for pairs of which a measurement says
 * nothing. */
#ifndef SERVET_PROBES_PAIRS_SHARING_H
#define SERVET_PROBES_PAIRS_SHARING_H

#include "probes/cache/probe.h"
#include "probes/pairs/relation.h"
#include "probes/pairs/sharing_trials.h"

enum sharing_declaration { NOTHING_DECLARED, DECLARED_PRIVATE, DECLARED_SHARED };

/* The numbers that the profile gives the measured levels (result.h), as `pu` sees them; 0: nothing
 * is declared of that one. `declared` may be NULL. */
void probe_sharing_declared_levels(const struct profile_class *declared, uint32_t pu,
                                   const struct probe_cache *caches,
                                   uint32_t numbers[CACHE_LEVELS_MAX]);

/* Of the level of that number (0: none). */
enum sharing_declaration probe_sharing_declared(const struct profile_class *declared,
                                                uint32_t number, uint32_t a, uint32_t b);

/* Which PUs share a cache level (2010 paper, Section III-B).
 *
 * Two PUs traverse 2/3 of the cache each; if it is one cache, both sets do not fit and at least one
 * of them slows down. Modern shared caches are winner-takes-all (one thread keeps its set, the
 * other loses everything), so the slower of the two counts. Disturbance only slows down, so a pair
 * is called sharing when the second smallest of five ratios, each of a run together against a run
 * alone beside it in time, exceeds a threshold: 2, the papers' ratio, where the next outer level is
 * slow enough for that. Two sets of 2/3 in one cache are as one of 4/3, whose time is on the
 * latency curve: where it is less than four times that of 2/3 (an L2 of efficiency cores before a
 * near L3), the threshold is in the middle between that ratio and 1, at least the later paper's
 * 1.5. Down to 3/4 of it we say "uncertain".
 *
 * Sharing nests, so only pairs that share the next outer level are asked about an inner one; of
 * pairs alike in the topology a sample is measured (schedule.h). It is an equivalence, too: pairs
 * that contradict that are asked again.
 *
 * Where the decisive ratio lies near the threshold (1.5 to 2.67 about 2, as far above as below),
 * and where pairs contradict the equivalence also when asked again, a second witness is heard: the
 * latency of one cache line between the two, against that of pairs of the same level that the ratio
 * is sure of (sharing_witness.h). With an opinion it decides; on contradicting pairs only if that
 * ends the contradiction. How often it did is counted.
 */

struct probe_sharing_level {
    struct profile_relation sharing; /* owned */
    uint32_t repetitions;
    double spread;        /* largest of the pairs' */
    uint32_t uncertain;   /* pairs whose ratio lay just below the threshold, and on which no witness
                             was of use */
    uint32_t witnessed;   /* pairs that the latency of a line decided */
    uint32_t tipped;      /* of those: against what the ratio alone would have said */
    uint32_t as_declared; /* pairs of which no trial says anything, taken as declared
                             (sharing_trials.h) */
    uint32_t unknown;     /* such pairs of which nothing is declared, and no witness was of use */
    size_t measured, pairs; /* pairs measured, of those that might share it */
    size_t at_once;         /* pairs measured at the same time, at most */
    bool cut_short;         /* by the budget */
    size_t limited_bytes;  /* working set of a PU, if the memory limit made it less than two thirds;
                              0: it did not */
    size_t contradictions; /* pairs that share it without their common partners doing so, also when
                              asked again */
};

struct probe_sharing {
    struct probe_sharing_level levels[CACHE_LEVELS_MAX]; /* as in the cache result */
    size_t count;
};

int probe_sharing(struct probe *probe, const struct probe_cache *caches, struct probe_sharing *out,
                  struct servet_error *error);
void probe_sharing_free(struct probe_sharing *result);

#endif
