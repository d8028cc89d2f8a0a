/* What the files of probes/run/ promise one another and the rest of the room. */
#ifndef SERVET_PROBES_RUN_RUN_H
#define SERVET_PROBES_RUN_RUN_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "probes/cache/cache.h"
#include "probes/machine.h"
#include "probes/pairs/memory.h"
#include "probes/pairs/pairs.h"
#include "probes/probe.h"
#include "probes/run/progress.h"
#include "profile/base/error.h"
#include "profile/model.h"

/* -- conditions -- */

/* What else the machine did while it was measured: time stolen by a hypervisor, siblings at work,
 * load. */

/* Clock ticks since boot of some PUs together. */
struct conditions_ticks {
    unsigned long long all, idle, stolen;
};

struct conditions_before {
    char load[32]; /* load average of the last minute, before any worker of ours ran; "" if
                      unreadable */
    struct conditions_ticks measured, siblings;
    double settle_spread; /* between the last warm-up figures; < 0: no warm-up */
    bool settled;
    double suspended_s; /* since boot, before the first probe */
};

/* Sums the ticks of `pus` in a text like /proc/stat. */
struct conditions_ticks probe_conditions_sum(const char *stat_text, const struct profile_set *pus);

/* Before the first probe on this very machine: looks around, and keeps the first PU busy until its
 * frequency stands still (at most 0.3 s). 0 or -errno of the machine. */
int probe_conditions_before(struct machine *machine, const struct profile_class *declared,
                            struct conditions_before *out);

/* After the last: conditions load_average, warm_up, steal, smt_siblings, suspended, stood_still,
 * busy. 0 or -ENOMEM. */
int probe_conditions_after(const struct conditions_before *before, struct machine *machine,
                           const struct profile_class *declared, struct servet_profile *profile);

/* What held while measuring, and might have bent the figures: recorded in the profile. */

/* Appends a condition; both texts are copied. 0 or -ENOMEM. */
int probe_conditions_add(struct servet_profile *profile, const char *key, const char *value);

/* Did other programs run before or while it was measured, as its conditions say? */
bool probe_conditions_others_ran(const struct servet_profile *profile);

/* Which figures of the profile a second run might not confirm, because their rounds lie more than a
 * fifth apart, the budget cut them short or left them out, or a virtual machine's PUs shared
 * caches otherwise than declared, and how to measure them again: "memory (spread 41 %), message
 * (cut short); measure again when nothing else runs and without --budget". Where
 * nothing else ran, waiting for that is no advice: it says that the machine itself changes.
 * `left_out`: probes that the budget left no time for. False: none, and `text` is empty. */
bool probe_conditions_unsettled(const struct servet_profile *profile, unsigned left_out, char *text,
                                size_t size);

/* Does the CPU say that it is one of a virtual machine (x86)? */
bool probe_conditions_virtual_machine(void);

/* Where no cache is declared, nor measured. */
#define PROBE_USUAL_LAST_LEVEL_BYTES ((size_t)32 << 20)

/* -- options -- */

/* Options that a run of servet-probe has on one machine and, with --cluster, on many. */

struct run_options {
    const char *output; /* NULL: the default place; "-": standard output */
    uint64_t seed;
    double budget_s; /* 0: none */
    bool quiet, json, exhaustive, force;
};

/* A child parser; its input is a struct run_options. */
extern const struct argp probe_options_argp;

/* -- output -- */

/* Where the profile goes. */

/* The default place, whose folder is made if need be, or `wanted` (not NULL), whose folder must be
 * there. Fails now and not after the measurement when nothing can be written there. 0; -EINVAL: an
 * empty name, or something that is no regular file; -errno. */
int probe_output_choose(const char *wanted, char *path, size_t size, struct servet_error *error);

/* How a profile says when its measurement began (strftime(), in UTC). */
#define PROBE_STARTED_FORMAT "%Y-%m-%dT%H:%M:%SZ"

/* -- result -- */

/* From what the probes found to a profile. The declared topology gives the names of things
 * (packages, cores, NUMA nodes) and the declared sizes; every figure that was measured replaces the
 * declared one and says so. */

/* Where the caches were measured, for the notes. */
struct measured_on {
    uint32_t pu;
    bool guest; /* a virtual machine */
    bool busy;  /* other programs ran before or while it was measured */
};

/* Puts the measured levels in the place of the declared caches. A declared level that was not seen
 * in the measurement stays, marked as declared. `sharing` (may be NULL): else the declared groups
 * are kept. Where a size is not the declared one, the level's note says so. 0 or -ENOMEM. */
int probe_result_set_caches(struct profile_class *node_class, const struct probe_cache *caches,
                            struct probe_sharing *sharing, const struct measured_on *where);

int probe_result_copy_relation(const struct profile_relation *from, struct profile_relation *out);
void probe_result_free_cache(struct profile_cache *cache);

/* Keeps the latency curve that the sizes came from. 0 or -ENOMEM. */
int probe_result_set_cache_curve(struct profile_class *node_class, const struct cache_curve *curve);
/* The reaches of the TLB's levels: on ordinary pages, and on huge ones if the caches were measured
 * in those. */
int probe_result_set_tlb(struct profile_class *node_class, const struct probe_cache *caches,
                         size_t ordinary_page_bytes);

/* Where the search for levels of memory was not finished the declared ones that do not cross those
 * found stay, since nobody knows better. 0 or -ENOMEM. */
int probe_result_keep_levels(const struct profile_memory *declared, struct profile_memory *found);
/* Move what was found into the class; `found` is empty afterwards. */
void probe_result_set_memory(struct profile_class *node_class, struct probe_memory *found);
void probe_result_set_numa(struct profile_class *node_class, struct probe_numa *found);
int probe_result_set_layers(struct profile_class *node_class, struct profile_communication *found);

/* Every layer was measured between threads. 0 or -ENOMEM. */
int probe_result_through_threads(struct profile_class *node_class);
/* The figures of these probes (enum probe_run_probes) were cut short by the budget. */
void probe_result_cut_short(struct profile_class *node_class, unsigned probes);

/* Caches of several kinds of cores in one class. */

/* What the probes found on one kind. */
struct kind_results {
    struct probe_cache caches;
    struct probe_sharing sharing; /* empty: the declared groups are kept */
};

/* For the levels of the first kind that were measured: whose caches they are. holders[i] is NULL
 * for a cache that the operating system says others have too, and for the last one where it says
 * nothing of it and another kind's last one may be as large: that is asked of all PUs. */
int probe_result_holders(const struct profile_class *node_class, const struct kinds *kinds,
                         const struct kind_results *results, const struct profile_set **holders);

/* As probe_result_set_caches(), of each kind; a cache that kinds have in common is the one found by
 * the first. 0 or -ENOMEM. */
int probe_result_set_caches_of_kinds(struct profile_class *node_class, const struct kinds *kinds,
                                     struct kind_results *results, const struct measured_on *where);

/* -- run -- */

/* One run of servet-probe: the chosen probes, one after the other, and the profile that comes of
 * it. */

enum probe_run_probes {
    PROBE_CACHE = 1,
    PROBE_SHARING = 2, /* needs the cache sizes */
    PROBE_MEMORY = 4,
    PROBE_MESSAGE = 8,
    PROBE_ALL = 15,
    /* steps that nobody asks for by name: domains that only sets of PUs fill, and repetitions
     * that have to be apart in time */
    PROBE_SETS = 16,
    PROBE_REPEATS = 32,
};

/* As --probes calls them, by bit of enum probe_run_probes. */
enum { PROBE_NAMES = 4 };
extern const char *const probe_run_names[PROBE_NAMES];

/* The argument of --probes: comma-separated names; a probe that needs another brings it. An unknown
 * name ends the command with status 2; `also` ("none, or ") says in that line what else is
 * allowed. */
unsigned probe_run_parse(const char *text, const char *also);

struct probe_run {
    unsigned probes;
    bool mpi;             /* messages through MPI where that can be had */
    bool paper;           /* cache sizes by the method of the 2010 paper */
    bool exhaustive;      /* every pair, nothing taken over */
    bool unwritten;       /* messages of data that nobody writes (machine_exchange) */
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
 * (machine->declared is NULL afterwards). What could not be measured is said in one line on stderr
 * each, and stays as declared. */
int probe_run_run(struct probe_run *run, struct servet_profile **out, struct servet_error *error);

/* What the probes of one run have found so far; for run.c, budget.c and conditions.c alone. */

struct probe_results {
    struct probe probe;
    struct profile_class *node_class;
    struct kinds kinds;
    struct kind_results of[KINDS_MAX];
    struct probe_memory memory;
    struct probe_numa numa;
    struct profile_communication messages;
    bool through_threads; /* messages */
    /* messages say which pairs are similar, so they come before sharing */
    bool messages_first;
    size_t step;    /* of those asked for, from 1 on */
    double until_s; /* when the budget of all probes is used up, on the machine's clock; 0: never */
    unsigned left_out;  /* probes that the budget left no time for */
    unsigned throttled; /* and those that a quota leaves too few workers for */
    unsigned shortened; /* and those that it cut short */
    unsigned done;
};

/* -- budget -- */

/* The time of a run: one deadline, from when the machine was opened, and steps in a fixed order
 * (budget.c). */

/* How many steps were asked for. */
size_t probe_budget_steps(const struct probe_run *run);
void probe_budget_start(const struct probe_run *run, struct probe_results *results);

/* The next step: was it asked for, and does it fit? Grants it its part and shows it. A step that
 * does not fit is left out and stays as declared. */
bool probe_budget_begins(const struct probe_run *run, struct probe_results *results,
                         unsigned probe);
/* Grants one of `of` equal parts of the step's time, from now on. */
void probe_budget_grant(const struct probe_run *run, struct probe_results *results, unsigned probe,
                        double of);

/* Seconds; infinity without a budget. */
double probe_budget_left(const struct probe_results *results);
/* Is there time to start the ranks of MPI? */
bool probe_budget_fits_ranks(const struct probe_run *run, const struct probe_results *results);

/* No probe of those asked for had a figure: -ETIME, and a line that says why. */
int probe_budget_fail(const struct probe_run *run, struct servet_error *error);

/* One PU shares nothing and sends nothing: there is nothing to be late with. */
bool probe_budget_asks_nothing(const struct probe_results *results, unsigned probe);

/* Under what conditions it was measured, and what of it was left out or cut short. 0 or -ENOMEM. */
int probe_run_add_conditions(const struct probe_run *run, const struct probe_results *results,
                             struct servet_profile *profile);

/* -- verify -- */

/* Does a stored profile still describe this machine? A sample of its figures is measured again: the
 * latency in each cache level and beyond the last one, the bandwidth of one worker, the latency of
 * the fastest layer. */

/* No new figure is begun after so long; the longest one takes less than one second. */
#define RECHECK_SECONDS 4.0

/* One line per figure on `out`, the verdict on the last one. `mpi`: messages may be measured
 * through MPI.
 * 1: it still does; 0: it does not (other machine, other figures, or nothing in it was measured);
 * -errno with the reason. */
int probe_verify_pairs(struct machine *machine, const struct servet_profile *profile, bool mpi,
                       FILE *out, struct servet_error *error);

#endif
