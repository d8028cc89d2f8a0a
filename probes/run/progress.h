/* Which step of a run is at work, what it measures, how much is done and how long it has taken: a
 * bar on stderr for people, or events for scripts, one JSON object per line. */
#pragma once

#include "probes/probe.h"

struct progress {
    bool shown;        /* stderr is a terminal and --quiet was not given */
    int events;        /* file descriptor for events; < 0: none */
    const char *probe; /* the one that runs: "cache", "memory" … */
    size_t step, steps;
    double started_s, drawn_s;
    /* a simulated machine, whose seconds count; NULL: the wall clock's. Not owned */
    struct machine *clock;
};

/* `events` < 0: a bar, if `wanted`. */
void probe_progress_start(struct progress *progress, bool wanted, int events);
/* So many steps come, after those that were planned before; seconds are counted on that clock
 * (NULL: the wall clock). */
void probe_progress_plan(struct progress *progress, struct machine *clock, size_t steps);
/* Step `step`, from 1 on, begins. */
void probe_progress_next(struct progress *progress, size_t step, const char *probe);
/* A probe_progress_function; `argument` is the struct progress. */
void probe_progress_step(void *argument, const char *what, double done,
                         const struct probe_pairs *pairs);
/* Says how it ended ("done", "failed", "interrupted"); events only. */
void probe_progress_outcome(struct progress *progress, const char *outcome);
/* Wipes the line. */
void probe_progress_end(struct progress *progress);
