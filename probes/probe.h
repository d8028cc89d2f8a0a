/* Common to all probes: their machine, their progress, and the source of their random choices.
 *
 * Every probe: 0 and its result, or -errno (machine.h) with one line in `error`. A probe does not
 * depend on profiles on disk, on terminals or on other probes; servet-probe puts the results
 * together (result.c). */
#pragma once

#include <stdio.h>

#include "probes/machine.h"
#include "profile/base/statistics.h"
#include "profile/model.h"

/* The pair of PUs at hand, and how many of those planned are done. */
struct probe_pairs {
    struct profile_pair pair;
    size_t done, planned; /* planned 0: nothing is measured pair by pair just now */
};

/* Called with what is being measured ("cache sizes", "PUs 0 and 1") and how much of this probe is
 * done, in [0, 1]. */
typedef void probe_progress_function(void *argument, const char *what, double done,
                                     const struct probe_pairs *pairs);

struct probe {
    struct machine *machine;
    probe_progress_function *progress; /* may be NULL */
    void *progress_argument;
    struct probe_pairs pairs;
    /* The present measurement within the whole of the probe; share 0: it is all. */
    double progress_from, progress_share;
    uint64_t seed; /* counts up: every measurement gets its own */
    /* It says which pairs are alike (pairs/sample.h); NULL: nothing is known. */
    const struct profile_class *declared;
    const struct kinds *kinds; /* of cores; NULL: all are alike */
    const struct profile_set *const
        *holders;    /* whose caches are asked about, by level; NULL, or an entry NULL: all PUs */
    bool exhaustive; /* measure every pair */
    bool unwritten;  /* messages of data that is never written (machine_exchange) */
    bool one_by_one; /* never several pairs at the same time */
    bool hurried;    /* no time to touch arrays of several times the last level: one of it does */
    double alone_bytes_per_s; /* the best that one PU was seen to copy; 0: none was yet */
    size_t largest_bytes;     /* the user's limit of working sets for cache sizes; 0: none */
    struct machine *clock; /* whose elapsed time counts; NULL: `machine` (a messenger has none) */
    double deadline;       /* of the probe at hand, on that clock; 0: none. From then on nothing is
                              repeated that need not be */
};

/* Seconds gone on that clock. */
double probe_elapsed(const struct probe *probe);

/* Is the time that the user granted used up, or would it be after one more operation that takes as
 * long as the last one? */
bool probe_late(const struct probe *probe);

/* Nanoseconds that this thread was ready and did not run; 0 where the kernel keeps no account. */
uint64_t probe_waited_ns(void);

void probe_tell(const struct probe *probe, double done, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns `code`; a machine's -errno fills `error`, with what was being done. */
int probe_error(struct servet_error *error, int code, const char *what);

/* (third quartile - first quartile) / median, of two their distance / median; sorts; -1 for fewer
 * than two. */
double probe_spread(double *values, size_t count);

/* To four decimals: a curve has a hundred spreads, and none is known better. */
double probe_spread_rounded(double spread);

/* -- a stopping rule says how often a figure is measured: until it is known well enough, or a most.
 * So quiet figures cost little, and the others get the time -- */

/* Relative. Rounds of copies and sweeps of messages differ by 4 to 7 % on a shared machine, by 1 to
 * 2 % on one's own. */
#define REPEAT_AGREE 0.05

/* Measurements of one figure that is a median, and of one that is a minimum. */
enum { REPEAT_MEDIAN_LEAST = 3, REPEAT_MEDIAN_MOST = 9, REPEAT_MINIMUM_MOST = 5 };

/* Is half of the interval that holds the median with a probability of 95 % (profile_median(); of
 * fewer than six values all they span, which is 75 % for three and 94 % for five) below 5 %, or the
 * figure measured REPEAT_MEDIAN_MOST times? Never before REPEAT_MEDIAN_LEAST. */
bool probe_repeat_median_settled(const double *values, size_t count);
/* The same of a time that disturbance can only lengthen: do the two smallest agree within 5 %? */
bool probe_repeat_minimum_settled(const double *values, size_t count);

/* The least time of several batches, and their spread. */
struct probe_settled {
    double seconds, spread;
    uint32_t repetitions;
};

/* A figure is looked at again, apart in time: the smaller one counts, and its spread reaches to the
 * end of that of the other one, so that it covers what a second run would say. Within one burst
 * figures agree that differ twofold from run to run. Where the spread is not known (< 0), a
 * shorter time takes its place. */
void probe_repeat_look_again(double *seconds, double *spread, uint32_t *repetitions,
                             const struct probe_settled *again);

/* -- what the operating system declares of the machine that is measured -- */

/* As profile_from_hwloc(NULL, …), but of this machine: HWLOC_XMLFILE, HWLOC_SYNTHETIC and
 * HWLOC_FSROOT, which put another one in its place, are taken out of the environment unless
 * HWLOC_THISSYSTEM says that they describe this one. Not while other threads read the
 * environment. */
int probe_topology_own(struct servet_profile **out, struct servet_error *error);

/* For a run inside a cpuset: drops every other PU from all sets, groups and pairs, and what is
 * left without any. 0 or -ENOMEM. */
int probe_topology_restrict(struct profile_class *node_class, const struct profile_set *pus);

/* Kinds of cores (performance and efficiency cores) have caches and a share of the memory of their
 * own: each is measured on its own first PU. */

enum { KINDS_MAX = 8 };

/* Kinds of the measured PUs, by lowest PU. */
struct kinds {
    struct profile_set pus[KINDS_MAX]; /* disjoint, never empty, all PUs together. Owned */
    size_t count;                      /* 1: one kind, or kinds unknown */
};

/* 0 or -ENOMEM. PUs in no declared kind are one more; more than KINDS_MAX kinds are none. */
int probe_kinds_of(const struct profile_class *declared, const struct profile_set *pus,
                   struct kinds *out);
void probe_kinds_free(struct kinds *kinds);

/* Which declared kind a PU is of; their number: none. */
size_t probe_kinds_declared(const struct profile_class *declared, uint32_t pu);

/* Which kind a PU is of. */
size_t probe_kinds_find(const struct kinds *kinds, uint32_t pu);

/* Sizes of one cache are no further apart, declared or measured on another node: an L3 in a virtual
 * machine was seen at a fifth of its declared size. */
#define PROBE_FURTHEST 8.0

/* Leaves what it says of these PUs. False: nothing. */
bool probe_relation_narrow(struct profile_relation *relation, const struct profile_set *pus);

/* Before a further part of a text: nothing before the first. */
const char *probe_separator(FILE *text, const char *separator);

/* Notes it of a figure, after what is noted already. 0 or -ENOMEM. */
int probe_note(struct profile_quality *quality, const char *note);

/* Notes for the flags of a figure (struct profile_quality). */
#define PROBE_WORDS_BESIDE_OTHERS "other tasks kept their PUs from running at the same time"
#define PROBE_WORDS_THROUGH_THREADS "between threads through shared memory, not through MPI"
#define PROBE_WORDS_PUS_MOVE                                                                       \
    "a virtual machine's PUs move between those of its host, so a later run may find otherwise"

/* Sets the flag, and notes it of `what` ("pairs not measured"). 0 or -ENOMEM. */
int probe_note_beside_others(struct profile_quality *quality, const char *what);
