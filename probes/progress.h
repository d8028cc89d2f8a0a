/* The bar: which probe, what it measures, how much is done, how long it will still take. One line on stderr. */
#ifndef SERVET_PROBES_PROGRESS_H
#define SERVET_PROBES_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct progress {
    bool shown; /* stderr is a terminal and nobody asked for quiet */
    double started_s, drawn_s;
    double before, share; /* of the whole run: what earlier probes took, what this one takes */
};

void progress_start(struct progress *progress, bool wanted);
/* The next probe is expected to take `share` of the whole, in [0, 1]. */
void progress_next(struct progress *progress, double share);
/* A probe_progress_function; `argument` is the struct progress. */
void progress_step(void *argument, const char *what, double done);
/* Wipes the line. */
void progress_end(struct progress *progress);

#endif
