/* How large a share of the loads of a repeated cycle misses a cache: the shapes that a measured
 * curve is made of.
 *
 * A cycle of `bytes` is visited over and over, every line once in each turn. What counts is how
 * many of its lines, X, fall into one set of K ways, and what the replacement policy makes of X
 * lines in K ways. Where pages (or a hash over slices) put lines into sets at random, X follows
 * B(NP, K * PS / C) (2010 paper, Section III-A2); seen from one *access* it is size-biased, that is
 * 1 + B(NP - 1, K * PS / C), which the paper's P(X > K) leaves out.
 */
#ifndef SERVET_PROBES_CACHE_MODEL_H
#define SERVET_PROBES_CACHE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache_curve;

enum cache_policy {
    CACHE_LRU,    /* all X lines miss once X > K */
    CACHE_PLRU,   /* a tree of bits (ways a power of two) or one reference bit per way */
    CACHE_LEAKY,  /* something between LRU and random */
    CACHE_RANDOM, /* a random way is evicted */
    CACHE_AGED, /* four ages per line: a line comes in at age 1, a hit makes it 0, the first of age
                   3 is evicted, and when none is left all others age (Intel's quad-age LRU,
                   QLRU_H00_M1_R0_U1 in the naming of Abel and Reineke, nanoBench, ISPASS 2020) */
    CACHE_ADAPTIVE, /* resists thrashing: keeps nearly K of the X lines whatever happens (DRRIP) */
    CACHE_POLICIES,
};

struct cache_shape {
    uint64_t bytes;
    uint32_t ways;
    enum cache_policy policy;
    bool scattered;  /* lines fall into sets at random: pages at random places, or a hash */
    uint32_t slices; /* > 1, then `scattered` does not count: lines side by side, of which a hash
                        gives each to one of so many slices. A set's share of lines is B(NP, 1 /
                        slices): narrower than that of random pages */
    uint64_t behind_bytes; /* > 0: the cache holds what a level of so many bytes evicted, and not
                              what that one holds */
};

/* What it takes to believe in a policy (0: LRU and pseudo-LRU); to be weighed together with a
 * size's. */
double probe_cache_policy_prior(enum cache_policy policy);

/* Misses per access, in [0, 1], of a cycle through `working_set` bytes; `page_bytes` is the
 * contiguous piece. Of a cache of victims the level before holds the lines visited last; a set has
 * the fewer to hold. */
double probe_cache_miss_share(const struct cache_shape *shape, uint64_t working_set,
                              size_t page_bytes);

/* Misses per visit, in [0, 1], of one set in which `lines` (a whole number) are visited over and
 * over in the same order. */
double probe_cache_set_miss(enum cache_policy policy, uint32_t ways, double lines);

/* The same of a cache that holds what the level before it evicted; that one holds a share `held` of
 * the working set, the lines visited last. CACHE_PLRU and CACHE_RANDOM. */
double probe_cache_set_victims_miss(enum cache_policy policy, uint32_t ways, double lines,
                                    double held);

/* P(1 + X > K), X ~ B(pages - 1, K * PS / CS): the share of pages whose set is too full, by which
 * --method paper predicts misses (Section III-A2). A page shares its set with X others: seen from
 * the page that is loaded, X + 1 are there. With the X of the formula as printed, that of a set
 * which nobody asked for, sizes come out a part in K too small, and not as the paper has them. */
double probe_cache_page_conflicts(uint64_t pages, uint32_t ways, size_t page_bytes,
                                  uint64_t cache_bytes);

/* Sizes that are tried, with what it takes to believe in them (0: power of two). */
struct cache_size {
    uint64_t bytes;
    double prior;
};
extern const double probe_cache_free_prior; /* of large sizes without a meaning of their own */
/* Ascending sizes from 4 KiB to 512 MiB. The array is static; *count is set. */
const struct cache_size *probe_cache_sizes(size_t *count);

/* The samples of a latency curve, and what of them counts. */

enum { CACHE_STEPS_PER_OCTAVE = 8 }; /* of the even grid */

enum { CACHE_POINTS_MAX = 224, CACHE_SAMPLES_MAX = 36 };

struct cache_point {
    double bytes; /* working set */
    bool between; /* not of the even grid: measured around a knee */
    double seconds[CACHE_SAMPLES_MAX];
    size_t count;
};

struct cache_samples {
    struct cache_point points[CACHE_POINTS_MAX]; /* ascending sizes */
    size_t count;
};

/* Puts a point without samples in its place. False: it is there, or there is no room. */
bool probe_cache_samples_add(struct cache_samples *samples, double bytes, bool between);

/* The curve of the even grid, or of all points: for each the mean of the samples that count, made
 * non-decreasing. Its other fields are 0. Owned: probe_cache_curve_free(). 0 or -ENOMEM. */
int probe_cache_samples_curve(struct cache_samples *samples, bool all, struct cache_curve *out);
void probe_cache_curve_free(struct cache_curve *curve);

/* The spread of the samples at the point nearest to `bytes`. */
double probe_cache_samples_spread(struct cache_samples *samples, double bytes);

#endif
