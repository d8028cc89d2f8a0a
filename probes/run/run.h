/* A run of servet-probe: its options, where its profile goes, the chosen probes one after the
 * other, under what conditions they measured, and whether what they found still holds. */
#pragma once

#include <argp.h>
#include <stdio.h>

#include "probes/machine.h"
#include "probes/run/progress.h"
#include "profile/base/ticks.h"
#include "profile/model.h"

/* -- options that a run has on one machine and, with --cluster, on many -- */

struct run_options {
    const char *output; /* NULL: the default place; "-": standard output */
    uint64_t seed;
    double budget_s; /* 0: none */
    bool quiet, json, exhaustive, force;
};

/* A child parser; its input is a struct run_options. */
extern const struct argp probe_options_argp;

/* -- where the profile goes -- */

/* The default place, whose folder is made if need be, or `wanted` (not NULL), whose folder must be
 * there; "" for standard output ("-"). Ends the command now and not after the measurement when
 * nothing can be written there: with status 2 for an empty name, or something that is no regular
 * file. */
void probe_output_choose(const char *wanted, char *path, size_t size);

/* How a profile says when its measurement began (strftime(), in UTC). */
#define PROBE_STARTED_FORMAT "%Y-%m-%dT%H:%M:%SZ"

/* -- the chosen probes, one after the other -- */

enum probe_run_probes {
    PROBE_CACHE = 1,
    PROBE_SHARING = PROBE_CACHE << 1, /* needs the cache sizes */
    PROBE_MEMORY = PROBE_SHARING << 1,
    PROBE_MESSAGE = PROBE_MEMORY << 1,
    PROBE_DEVICE = PROBE_MESSAGE << 1, /* on a machine that has a GPU */
    PROBE_ALL = PROBE_CACHE | PROBE_SHARING | PROBE_MEMORY | PROBE_MESSAGE | PROBE_DEVICE,
    /* steps without a name on the command line: domains that only sets of PUs fill, and repetitions
     * that must lie apart in time */
    PROBE_SETS = PROBE_DEVICE << 1,
    PROBE_REPEATS = PROBE_SETS << 1,
};

/* As --probes calls them, by bit of enum probe_run_probes. */
enum { PROBE_NAMES = 5 };
extern const char *const probe_run_names[PROBE_NAMES];

/* " cache sharing …": the names of some, each after a separator. */
struct probe_run_list {
    char text[96];
};
struct probe_run_list probe_run_list(unsigned probes, char separator);

/* Which of the names a comma-separated list begins with; `count`: none. */
size_t probe_run_name(const char *text, const char *const *names, size_t count);

/* The argument of --probes: comma-separated names; a probe that needs another brings it. An unknown
 * name ends the command with status 2; `also` ("none, or ") says in that line what else is
 * allowed. */
unsigned probe_run_parse(const char *text, const char *also);

struct probe_run {
    unsigned probes;
    bool mpi;             /* messages through MPI where that can be had */
    bool paper;           /* cache sizes by the method of the 2010 paper */
    bool exhaustive;      /* every pair, nothing taken over */
    bool unwritten;       /* messages of data that is never written (machine_exchange) */
    bool one_by_one;      /* never several pairs at the same time */
    double budget_s;      /* 0: as long as it takes */
    size_t largest_bytes; /* of the working sets that cache sizes are inferred from; 0: as declared
                             caches suggest */
    uint64_t seed;
    struct machine *machine;
    struct progress *progress;
    double took_s;     /* set by the command: what this run took, BSP parameters as well */
    unsigned left_out; /* set by the run: probes that the budget left no time for */
    int incomplete;    /* set by the run: -ENODEV, -ENOMEM or -EINTR that ended it after some probe
                          had its result; 0: none */
};

/* Runs it. When a PU goes offline, memory does not do or it is interrupted, the probes that were
 * done make a partial profile, marked by the condition "incomplete"; before the first one is done
 * that is -ENODEV, -ENOMEM or -EINTR. The machine's declared profile becomes the result
 * (machine->declared is NULL afterwards). A probe that fails prints one line on stderr, and its
 * figures stay as declared. */
int probe_run_run(struct probe_run *run, struct servet_profile **out, struct servet_error *error);

/* Where no cache is declared, nor measured. */
#define PROBE_USUAL_LAST_LEVEL_BYTES ((size_t)32 << 20)

/* -- a condition is a key and a line of text in the profile: it held while the machine was measured
 * and may have bent the figures (load, stolen time, siblings at work, a budget) -- */

struct conditions_before {
    char load[32]; /* load average of the last minute, before any worker of ours ran; "" if
                      unreadable */
    struct profile_ticks measured, siblings;
    double settle_spread; /* between the last warm-up figures; < 0: no warm-up */
    bool settled;
    double suspended_s; /* since boot, before the first probe */
};

/* The `count` first PUs' ticks, summed over `pus`. */
struct profile_ticks probe_conditions_sum(const struct profile_ticks *ticks, size_t count,
                                          const struct profile_set *pus);

/* Before the first probe on this very machine: looks around, and keeps the first PU busy until its
 * frequency stands still (at most 0.3 s). 0 or -errno of the machine. */
int probe_conditions_before(struct machine *machine, const struct profile_class *declared,
                            struct conditions_before *out);

/* After the last: conditions load_average, warm_up, steal, smt_siblings, suspended, stood_still,
 * busy. 0 or -ENOMEM. */
int probe_conditions_after(const struct conditions_before *before, struct machine *machine,
                           const struct profile_class *declared, struct servet_profile *profile);

/* Where conditions are added, one after the other. */
struct conditions {
    struct servet_profile *profile;
    int rc; /* -ENOMEM: one of them could not be added */
};
void probe_conditions_add(struct conditions *to, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Did other programs run before or while it was measured, as its conditions say? */
bool probe_conditions_others_ran(const struct servet_profile *profile);

/* Probes whose figures are settled in the old profile and not in the new one, which was measured
 * while other programs ran. */
unsigned probe_conditions_loosened(const struct servet_profile *old,
                                   const struct servet_profile *profile);

/* Which figures of the profile a second run might not confirm, because their rounds lie more than a
 * fifth apart, the budget cut them short or left them out, or a virtual machine's PUs shared
 * caches otherwise than declared, and how to measure them again: "memory (spread 41 %), message
 * (cut short); measure again when nothing else runs and without --budget". Where
 * nothing else ran, waiting for that is no advice.
 * `left_out`: probes that the budget left no time for. False: none, and `text` is empty. */
bool probe_conditions_unsettled(const struct servet_profile *profile, unsigned left_out, char *text,
                                size_t size);

/* -- does a stored profile still hold? The latency in each cache level and beyond the last one, the
 * bandwidth of one worker and the latency of the fastest layer are measured again -- */

/* No new figure is begun after so long; the longest one takes less than one second. */
#define RECHECK_SECONDS 4.0
/* Figures are the same if they differ by no more (profile_same()): a short look on a machine at
 * work is coarser than two profiles side by side (DIFF_TOLERANCE). Another machine, or a neighbour
 * that takes half of a cache or of the bandwidth, is beyond them; what one idle machine shows from
 * run to run is not. Messages were seen in two states a factor of 1.8 apart on one machine. */
#define RECHECK_SAME 0.5
#define RECHECK_SAME_MESSAGE 1.0

/* One line per figure on `out`, the verdict on the last one. `mpi`: messages may be measured
 * through MPI.
 * 1: it still does, or other programs ran and nothing can be said; 0: it does not (other machine,
 * other figures, or nothing in it was measured); -errno with the reason. */
int probe_verify_pairs(struct machine *machine, const struct servet_profile *profile, bool mpi,
                       FILE *out, struct servet_error *error);

/* -- the command servet-probe, for any machine that can be opened -- */

/* Opens the machine to be measured, on `pus` alone unless they are empty; `seed` drives what is
 * drawn. -EINVAL, -EPERM, -ENOENT, -EACCES and -EISDIR are bad input. */
typedef int probe_open_machine(const struct profile_set *pus, uint64_t seed,
                               const volatile sig_atomic_t *cancel, struct machine *out,
                               struct servet_error *error);

/* The exit status; bad input ends the program. */
int probe_command(int argc, char **argv, probe_open_machine *open);
