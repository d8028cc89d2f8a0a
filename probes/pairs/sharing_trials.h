/* A second witness of whether two PUs share a cache: how long one line takes from one to the other.
 *
 * PUs that share a cache hand a line over through it, others through the next outer one or through
 * memory, so sharing pairs are nearer than the others that share the same outer level. That tells
 * distance, not capacity: it is asked only where the ratio alone/together (probe_sharing.h) leaves
 * doubt, and held against pairs of the same level on which the ratio left none. Noise only slows
 * down, so the smallest of three exchanges counts for each pair.
 */
#ifndef SERVET_PROBES_PAIRS_SHARING_TRIALS_H
#define SERVET_PROBES_PAIRS_SHARING_TRIALS_H

#include "probes/cache/probe.h"
#include "probes/pairs/together.h"
#include "probes/probe.h"

enum sharing_opinion { OPINION_NONE, OPINION_SHARED, OPINION_PRIVATE };

enum { SHARING_REFERENCES = 16 }; /* pairs of each kind that are looked at */

struct sharing_witness {
    double near[SHARING_REFERENCES],
        far[SHARING_REFERENCES]; /* seconds, of pairs that share and that do not */
    size_t near_count, far_count;
};

/* What `seconds` of a pair say. With both kinds decided: the nearer of near's upper and far's lower
 * quartile (in the logarithm), none if those are less than 10 % apart. With one kind only: a pair a
 * fourth nearer than the pairs that do not share shares, one a fourth farther than those that share
 * does not. A pair like the only kind known says nothing: where all latencies are alike, as those
 * of threads of one core and of one package on some machines, the others may be just as far. */
enum sharing_opinion probe_sharing_witness_rule(const struct sharing_witness *witness,
                                                double seconds);

/* Latency of one line between two PUs. 0 or the machine's -errno (-ENOTSUP: it exchanges no
 * messages). */
int probe_sharing_witness_measure(struct probe *probe, const struct profile_pair *pair,
                                  double *seconds);

/* Trials of whether two PUs share a cache, and what is made of them.
 *
 * A trial is the ratio of the time of a working set together to that alone. It says nothing where
 * already the set alone did not stay in the cache, because another program at work took its place:
 * together cannot be much slower than that, and a shared cache would look private. Such a trial is
 * void: it is taken again, up to SHARING_VOIDS times a pair.
 */

enum { SHARING_TRIALS = 5, SHARING_VOIDS = 5 };

#define PROBE_SHARING_RATIO 2.0 /* the threshold of the 2010 paper */

/* The threshold, where a pair that shares the cache is expected to take so much longer together. */
double probe_sharing_threshold(double expected);

/* Decides from the ratios of one pair (sorts them). */
enum probe_sharing_verdict { SHARING_NO, SHARING_UNCERTAIN, SHARING_YES };
enum probe_sharing_verdict probe_sharing_decide(double *ratios, size_t count, double threshold);
enum probe_sharing_verdict probe_sharing_verdict_of(double decisive, double threshold);
/* The second smallest (sorts them); 0 of fewer than two. */
double probe_sharing_decisive(double *ratios, size_t count);
/* As far above the threshold as the later paper's ratio is below it. */
bool probe_sharing_is_clear(double decisive, double threshold);
bool probe_sharing_is_doubtful(double decisive, double threshold);

/* Two thirds of the cache, in whole nodes of the cycle, or `most` if that is less. */
size_t probe_sharing_set_bytes(const struct probe_cache_level *cache, size_t most);

/* How one level is tried. */
struct sharing_bar {
    size_t bytes;     /* working set of a PU */
    double threshold; /* of the ratio */
    double
        alone_most; /* seconds of a load alone from which on a trial is void; INFINITY: not known */
};

/* `bytes` is the set's size. */
struct sharing_bar probe_sharing_bar_of(const struct probe_cache *caches, size_t level,
                                        size_t bytes);

/* Of one pair. */
struct sharing_trials {
    double ratios[SHARING_TRIALS]; /* of those that count */
    size_t count, low, voids;
    double seconds; /* of all trials, void ones too: of each alone, and of the slower together */
};

/* Says the trials nothing? */
bool probe_sharing_is_void(const struct sharing_trials *trials);
/* Tries all pairs at the same time, each until it is decided. 0 or the machine's -errno. */
int probe_sharing_try(struct probe *probe, const struct sharing_bar *bar,
                      const struct pair_position *pairs, size_t count,
                      struct sharing_trials *trials);

#endif
