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
    double begun_s;       /* when the probe began, since the start */
    double planned_s;     /* of this probe; < 0: nothing is planned */
    double later_s;       /* of those after it */
    double budget_s;      /* of the whole run; 0: none */
    double most;          /* part of the run that was said to be done */
    /* a simulated machine, whose seconds count; NULL: the wall clock's. Not owned */
    struct machine *clock;
};

/* `events` < 0: a bar, if `wanted`. */
void probe_progress_start(struct progress *progress, bool wanted, int events);
/* On which clock seconds are counted from now on (NULL: the wall clock), and how many there are at
 * most (0: as many as it takes). */
void probe_progress_clock(struct progress *progress, struct machine *clock, double budget_s);
/* The next probe is expected to take `share` of the whole, in [0, 1]. */
void probe_progress_next(struct progress *progress, const char *probe, double share);
/* What the probe at hand is expected to take, and those after it. What is left is this plan, which
 * in the probe at hand gives way to what was seen of it; how much is done follows from that. */
void probe_progress_expect(struct progress *progress, double planned_s, double later_s);
/* A probe_progress_function; `argument` is the struct progress. */
void probe_progress_step(void *argument, const char *what, double done,
                         const struct probe_pairs *pairs);
/* Says how it ended ("done", "failed", "interrupted"); events only. */
void probe_progress_outcome(struct progress *progress, const char *outcome);
/* Wipes the line. */
void probe_progress_end(struct progress *progress);

#endif
