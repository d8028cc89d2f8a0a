/* The model of one cache level: the share of the loads of a repeated random cycle that miss it, by
 * the size of the cycle.
 *
 * A cycle of S bytes is visited over and over, each line once in a turn. X of its lines fall into
 * one set of K ways, and the replacement policy decides how many of X lines in K ways miss. Where
 * random pages, or a hash over slices, deal lines out to `parts` parts of the cache of C bytes, X
 * follows 1 + B(NP - 1, 1 / parts), where NP = S / C * K * parts: the binomial model of the 2010
 * paper (Section III-A2), seen from one access, which is size-biased. So a share depends on S / C,
 * K, the policy and the parts alone, and is kept in tables by these. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum cache_policy {
    /* all X lines miss once X > K */
    CACHE_LRU,
    /* a tree of bits (ways a power of two), or one reference bit per way */
    CACHE_PLRU,
    /* a random way is evicted */
    CACHE_RANDOM,
    /* four ages per line: a line comes in at age 1, a hit makes it 0, the first of age 3 is
       evicted, and when none is left all others age (QLRU_H00_M1_R0_U1 of Abel and Reineke,
       nanoBench, ISPASS 2020) */
    CACHE_AGED,
    /* resists thrashing: keeps nearly K of the X lines (DRRIP, Jaleel et al., ISCA 2010) */
    CACHE_ADAPTIVE,
    CACHE_POLICIES,
};

struct cache_shape {
    uint64_t bytes;
    uint32_t ways;
    enum cache_policy policy;
    /* 0, 1: lines fall into sets side by side. Else a hash deals them out to so many slices at
       random, or random pages to as many parts as a way has pages */
    uint32_t parts;
    /* > 0: the cache holds the victims of a level of so many bytes, and not what that one holds */
    uint64_t behind_bytes;
};

/* Relative error of the model itself: smaller ones are no evidence. */
extern const double probe_cache_model_error;

/* Misses per load, in [0, 1], of a cycle through `working_set` bytes. */
double probe_cache_miss_share(const struct cache_shape *shape, double working_set);

/* The same for many working sets, out of the tables, within a few thousandths. `parts` counts as
 * the next of 2, 3, 4, 6, 8 ... 256. 0 or -ENOMEM. */
int probe_cache_miss_shares(const struct cache_shape *shape, const double *working_sets,
                            size_t count, double *shares);

/* Misses per visit, in [0, 1], of one set in which `lines` (a whole number) are visited over and
 * over in the same order. */
double probe_cache_set_miss(enum cache_policy policy, uint32_t ways, double lines);

/* Pseudo-LRU of up to 64 ways: the bits of a tree's nodes, or of the ways where those are no power
 * of two. The way was used; the way whose line goes. */
void probe_cache_plru_touch(uint64_t *bits, uint32_t ways, uint32_t way);
uint32_t probe_cache_plru_victim(uint64_t bits, uint32_t ways);

/* P(1 + X > K), X ~ B(pages - 1, K * PS / CS): the share of pages whose set is too full, by which
 * --method paper predicts misses (Section III-A2). A page shares its set with X others: seen from
 * the loaded page, X + 1 are there. With the X of the formula as printed sizes come out a part in K
 * too small, and not as the paper has them. */
double probe_cache_page_conflicts(uint64_t pages, uint32_t ways, size_t page_bytes,
                                  uint64_t cache_bytes);
