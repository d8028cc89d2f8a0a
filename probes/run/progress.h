/* Which probe runs, what it measures, how much is done, how long it will still take: a bar on
 * stderr for people, or events for scripts, one JSON object per line. */
#ifndef SERVET_PROBES_RUN_PROGRESS_H
#define SERVET_PROBES_RUN_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "probes/probe.h"

struct progress {
    bool shown;        /* stderr is a terminal and nobody asked for quiet */
    int events;        /* file descriptor for events; < 0: none */
    const char *probe; /* the one that runs: "cache", "memory" … */
    double started_s, drawn_s;
    double before, share; /* of the whole run: what earlier probes took, what this one takes */
    double planned_s;     /* of the whole run, before anything is measured; 0: not known */
    /* a simulated machine, whose seconds count; NULL: the wall clock's. Not owned */
    struct machine *clock;
};

/* `events` < 0: a bar, if `wanted`. */
void probe_progress_start(struct progress *progress, bool wanted, int events);
/* Says that the run is expected to take so many seconds, and on which clock they are counted from
 * now on. */
void probe_progress_plan(struct progress *progress, double planned_s, struct machine *clock);
/* The next probe is expected to take `share` of the whole, in [0, 1]. */
void probe_progress_next(struct progress *progress, const char *probe, double share);
/* A probe_progress_function; `argument` is the struct progress. */
void probe_progress_step(void *argument, const char *what, double done,
                         const struct probe_pairs *pairs);
/* Says how it ended ("done", "failed", "interrupted"); events only. */
void probe_progress_outcome(struct progress *progress, const char *outcome);
/* Wipes the line. */
void probe_progress_end(struct progress *progress);

#endif
