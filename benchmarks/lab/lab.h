/* How this project's own figures are made. Not installed: everything is found in the build folder
 * and the source tree. */
#ifndef SERVET_BENCHMARKS_LAB_LAB_H
#define SERVET_BENCHMARKS_LAB_LAB_H

#include <jansson.h>
#include <stdio.h>

#include "profile/model.h"

/* -- parts: what programs and commands of this project print -- */

struct lab_part {
    const char *name;
    const char *title;       /* what it measures */
    double seconds;          /* that it took on two quiet PUs */
    unsigned repeat;         /* runs; 0: one */
    const char *command[12]; /* words; see parts.c for the names in braces */
};

extern const struct lab_part lab_parts[];
extern const size_t lab_part_count;

/* Runs the part, at most `limit_seconds`, with files in `folder`; what it prints goes to `text`. A
 * new object: "name", "what", "command", "seconds", and "output" (lines) or "left_out" (why there
 * is none). */
json_t *lab_part_run(const struct lab_part *part, const char *folder, size_t threads,
                     double limit_seconds, FILE *text);

/* -- costs: what placing costs, beside the tools that could do it instead: start of a program,
 * creation of a thread, a mapping, measuring this machine and, projected, larger ones -- */

/* Unless another number is asked for; what takes long, or is a median already, is measured less
 * often. */
#define LAB_COSTS_ROUNDS 41

/* Measures, interleaved, `rounds` of each; prints tables on `out`; numbers into a new *json. */
void lab_costs(FILE *out, size_t rounds, json_t **json);
/* One panel for each thing that was measured, one bar for each way, seconds on a logarithmic axis.
 * By gnuplot, the format after the name (.svg, .png). */
void lab_costs_plot(const char *path, const json_t *costs);

/* -- figures: what placements are worth on the machines of the 2012 mapping paper -- */

struct prediction {
    double bytes_per_s;  /* of all workers together */
    double ring_seconds; /* mean over neighbours; 0 with one worker */
    double pair_seconds; /* mean over pairs */
    uint32_t nodes;      /* that have a worker */
};

/* The placement of workers[count] (PU numbers), by the profile's model. 0, -EINVAL (a PU that the
 * profile does not know), -ENOMEM. */
int lab_predict(const struct servet_profile *profile, const uint32_t *workers, size_t count,
                struct prediction *out);

/* The default of the paper's clusters: the fewest nodes, and in them the PUs by OS index. `out` has
 * room for count. 0 or -ERANGE (more workers than PUs). */
int lab_default_placement(const struct servet_profile *profile, size_t count, uint32_t *out);

/* The profile of a cluster of one class with `nodes` nodes instead of its own, in one network
 * layer. 0, -EINVAL, -ENOMEM. */
int lab_enlarge(struct servet_profile *profile, uint32_t nodes);

/* All figures: a table on `out`, numbers into a new *json, and figure-2.svg … figure-5.svg into
 * `folder` unless NULL. */
void lab_figures(FILE *out, const char *folder, json_t **json);

#endif
