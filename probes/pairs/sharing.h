/* Sharing: which PUs have a cache in common (2010 paper, Section III-B).
 *
 * Two PUs traverse 2/3 of the cache each; if it is one cache, both sets do not fit and at least one
 * of them slows down. Shared caches of today are winner-takes-all (one thread keeps its set, the
 * other loses everything), so the slower of the two counts. A trial is the ratio of the time
 * together to that alone just before. Interference only slows down, so a low order statistic of the
 * trials decides: the second smallest of five, or the third of nine where five leave doubt. A pair
 * shares the cache above a threshold: 2, the papers' ratio, where the next outer level is slow
 * enough for that. Two sets of 2/3 in one cache are as one of 4/3, whose time is on the latency
 * curve: where it is less than four times that of 2/3, the threshold is the middle between that
 * ratio and 1, at least the later paper's 1.5. From 3/4 of it on a pair is undecided. So is one
 * whose trials are void, because one PU alone missed the cache already: another program had it.
 *
 * Sharing nests, so only pairs that share the next outer level are asked about an inner one; which
 * of them are measured is in sampling.c. An undecided pair takes over the answer of its class;
 * where that has none, what is declared; else it counts as private. Sharing is an equivalence:
 * pairs that contradict that are listed one by one, and counted. */
#pragma once

#include "probes/cache/probe.h"
#include "probes/pairs/sample.h"
#include "probes/probe.h"
#include "profile/model.h"

struct probe_sharing_level {
    struct profile_relation sharing; /* owned */
    /* the ratio that decided, of pairs with trials that count (2010 paper, Figure 8). Owned */
    struct profile_pair_figure *ratios;
    size_t ratio_count;
    uint32_t repetitions;
    double spread;          /* largest of the pairs' */
    uint32_t undecided;     /* pairs without an answer, of their own or of their class */
    uint32_t as_declared;   /* of those: taken as declared; the others count as private */
    size_t measured, pairs; /* pairs measured, of those that might share it */
    size_t at_once;         /* pairs measured at the same time, at most */
    size_t limited_bytes;   /* working set of a PU, if memory allowed less than two thirds; 0: it
                               did not limit it */
    size_t contradictions;  /* pairs that share it without their common partners doing so */
    bool cut_short;         /* by the budget */
    bool refined;           /* pairs took over answers of their groups */
};

struct probe_sharing {
    struct probe_sharing_level levels[CACHE_LEVELS_MAX]; /* as in the cache result */
    size_t count;
};

int probe_sharing(struct probe *probe, const struct probe_cache *caches, struct probe_sharing *out,
                  struct servet_error *error);
void probe_sharing_free(struct probe_sharing *result);
