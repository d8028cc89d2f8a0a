/* A run of servet-probe: its options, where its profile goes, and the chosen probes one after the
 * other. */
#ifndef SERVET_PROBES_RUN_RUN_H
#define SERVET_PROBES_RUN_RUN_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/machine.h"
#include "probes/run/progress.h"
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

#endif
