/* Characterisation: the time of a task and the bytes of an edge task, from a run of the application. */
#ifndef SERVET_MAPPER_SPMD_CHARACTERISE_H
#define SERVET_MAPPER_SPMD_CHARACTERISE_H

#include "spmd_planner.h"

/* Of an application: both of one task. */
struct spmd_task {
    double comp_s, bytes;
    uint64_t iterations; /* that were timed */
};

/* One run of `problem` in tiles like `tile`, placed by `bind` (as in struct spmd_run). */
struct spmd_task spmd_characterise_once(const struct spmd_planner *planner, const struct spmd_problem *problem,
                                        const struct spmd_tile *tile, const char *const *bind);

/* Sets comp_s and bytes of the planner's problem and says them on stdout: medians of --rounds runs, in which all
 * processes compute at once. With --instance from that instance. Without, from tiles as large and as many as those that
 * are chosen, on the PUs where they will be: measured, chosen by what was measured, and measured again until the choice
 * stays. What a task costs depends on both: heat transfer took 1.7 ns in tiles of 200 x 200 on two PUs, which their
 * caches hold, and 6.7 ns in tiles of 1000 x 1000.
 * Both end the program with one line when the application does not run. */
void spmd_characterise(struct spmd_planner *planner);

#endif
