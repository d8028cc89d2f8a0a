/* Trials of whether two PUs share a cache, and what is made of them.
 *
 * A trial is the ratio of the time of a working set together to that alone. It says nothing where already the set alone
 * did not stay in the cache, because another program at work took its place: together cannot be much slower than that,
 * and a shared cache would look private. Such a trial is void: it is taken again, up to SHARING_VOIDS times a pair.
 */
#ifndef SERVET_PROBES_SHARING_TRIALS_H
#define SERVET_PROBES_SHARING_TRIALS_H

#include "probe_cache.h"
#include "together.h"

enum { SHARING_TRIALS = 5, SHARING_VOIDS = 5 };

#define PROBE_SHARING_RATIO 2.0 /* the threshold of the 2010 paper */

/* The threshold, where a pair that shares the cache is expected to take so much longer together. */
double probe_sharing_threshold(double expected);

/* Decides from the ratios of one pair (sorts them). */
enum probe_sharing_verdict { SHARING_NO, SHARING_UNCERTAIN, SHARING_YES };
enum probe_sharing_verdict probe_sharing_decide(double *ratios, size_t count, double threshold);
enum probe_sharing_verdict sharing_verdict_of(double decisive, double threshold);
/* The second smallest (sorts them); 0 of fewer than two. */
double sharing_decisive(double *ratios, size_t count);
/* As far above the threshold as the later paper's ratio is below it. */
bool sharing_is_clear(double decisive, double threshold);
bool sharing_is_doubtful(double decisive, double threshold);

/* Two thirds of the cache, in whole nodes of the cycle, or `most` if that is less. */
size_t sharing_set_bytes(const struct probe_cache_level *cache, size_t most);

/* How one level is tried. */
struct sharing_bar {
    size_t bytes;      /* working set of a PU */
    double threshold;  /* of the ratio */
    double alone_most; /* seconds of a load alone from which on a trial is void; INFINITY: not known */
};

/* `bytes` is the set's size. */
struct sharing_bar sharing_bar_of(const struct probe_cache *caches, size_t level, size_t bytes);

/* Of one pair. */
struct sharing_trials {
    double ratios[SHARING_TRIALS]; /* of those that count */
    size_t count, low, voids;
    double seconds; /* of all trials, void ones too: of each alone, and of the slower together */
};

/* Says the trials nothing? */
bool sharing_is_void(const struct sharing_trials *trials);
/* Tries all pairs at the same time, each until it is decided. 0 or the machine's -errno. */
int sharing_try(struct probe *probe, const struct sharing_bar *bar, const struct pair_position *pairs, size_t count,
                struct sharing_trials *trials);

#endif
