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

extern const struct lab_part bench_parts[];
extern const size_t bench_part_count;

/* Runs the part, at most `limit_seconds`, with files in `folder`; what it prints goes to `text`. A
 * new object: "name", "what", "command", "seconds", and "output" (lines) or "left_out" (why there
 * is none). */
json_t *bench_part_run(const struct lab_part *part, const char *folder, size_t threads,
                       double limit_seconds, FILE *text);

/* -- costs: what placing costs, beside the tools that could do it instead: start of a program,
 * creation of a thread, a mapping, measuring this machine -- */

/* Unless another number is asked for; what takes long, or is a median already, is measured less
 * often. */
#define LAB_COSTS_ROUNDS 41

/* Measures, interleaved, `rounds` of each; prints tables on `out`; numbers into a new *json. */
void bench_costs(FILE *out, size_t rounds, json_t **json);

/* -- the papers' machines, measured: machines.c -- */

/* What servet-probe finds by `probes` (as its --probes) on the simulated machine of that name.
 * 0; -ENOENT (no servet-probe), -EIO (it failed), or what profile_parse() says. */
int bench_probed(const char *machine, const char *probes, struct servet_profile **out,
                 struct servet_error *error);

/* Makes of a measured node a cluster of `nodes` like it: the network is the outermost layer of
 * `pair`, two such nodes measured as one machine, which loses it. 0; -EINVAL (fewer than two nodes,
 * a cluster already, no layer that joins all of the pair); -ENOMEM. */
int bench_cluster(struct servet_profile *node, struct servet_profile *pair, uint32_t nodes);

/* -- what a placement is worth: predict.c -- */

struct prediction {
    double bytes_per_s;  /* of all workers together */
    double ring_seconds; /* mean over neighbours; 0 with one worker */
    double pair_seconds; /* mean over pairs */
    uint32_t nodes;      /* that have a worker */
};

/* The placement of workers[count] (PU numbers), by the profile's model. 0, -EINVAL (a PU that the
 * profile does not know), -ENOMEM. */
int bench_predict(const struct servet_profile *profile, const uint32_t *workers, size_t count,
                  struct prediction *out);

/* The default of the paper's clusters: the fewest nodes, and in them the PUs by OS index. `out` has
 * room for count. 0 or -ERANGE (more workers than PUs). */
int bench_default_placement(const struct servet_profile *profile, size_t count, uint32_t *out);

/* -- Tables 1 and 2 and Figures 2 to 5 of the 2012 mapping paper: figures.c, figures_plot.c -- */

#define LAB_CORES_LIMIT 5
enum { LAB_DEFAULT, LAB_MEMORY, LAB_COMMUNICATION, LAB_PLACEMENTS };

struct lab_figure {
    const char *number, *title;
    size_t placements; /* of hybrid programs the first two */
    size_t count;
    struct lab_point {
        uint32_t cores;
        struct prediction of[LAB_PLACEMENTS];
    } points[LAB_CORES_LIMIT];
};

extern const char *const bench_placements[LAB_PLACEMENTS];

/* Percent of memory bandwidth above the default. */
double bench_increase(const struct lab_point *point, size_t placement);

/* figure-2.svg … figure-5.svg in `folder`; figures of one number share a picture. */
void bench_figures_plot(const char *folder, const struct lab_figure *figures, size_t count);

/* Measures the papers' machines (some 15 s of a quiet PU), and then all tables and figures: text on
 * `out`, numbers into a new *json, pictures into `folder` unless NULL. 0, or what
 * bench_probed(), map_workers() and bench_predict() say. */
int bench_figures(FILE *out, const char *folder, json_t **json, struct servet_error *error);

#endif
