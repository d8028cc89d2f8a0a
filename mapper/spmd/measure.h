/* Runs an MPI program that the user names under the trace of its MPI calls. */
#ifndef SERVET_MAPPER_SPMD_MEASURE_H
#define SERVET_MAPPER_SPMD_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "mapper/spmd/model.h"
#include "mapper/spmd/plan.h"

/* What the command line of the program may hold: {problem} becomes XxY, {grid} NxM, {cores} N,
 * {iterations} K. */
struct spmd_run {
    const char *command; /* split at blanks */
    uint64_t x, y, n, m;
    uint64_t iterations;
    const char *plan;        /* file for SERVET_SPMD_PLAN, or NULL */
    const char *const *bind; /* arguments of mpirun that place the ranks, ending with NULL; NULL: as
                                it does by itself */
};

struct spmd_measured {
    double seconds;      /* from MPI_Init to MPI_Finalize, slowest rank */
    uint64_t iterations; /* messages to the first neighbour, fewest of all ranks that have one */
    double iteration_s;  /* of the slowest rank; 0 where no rank sends */
    double compute_s;    /* of one iteration outside of MPI: of the slowest rank, for which its
                            neighbours wait */
    double bytes;        /* largest message of any rank */
};

/* 0; -ENOENT (mpirun or the trace library is not there), -EINVAL (the program does not run, or says
 * nothing to the trace: `error` names it and its own first line), -errno. */
int spmd_program_run(const struct spmd_run *run, struct spmd_measured *out,
                     struct servet_error *error);

/* Characterisation: the time of a task and the bytes of an edge task, from a run of the
 * application. */

/* Of an application: both of one task. */
struct spmd_task {
    double comp_s, bytes;
    uint64_t iterations; /* that were timed */
};

/* One run of `problem` in tiles like `tile`, placed by `bind` (as in struct spmd_run). */
struct spmd_task spmd_characterise_once(const struct spmd_planner *planner,
                                        const struct spmd_problem *problem,
                                        const struct spmd_tile *tile, const char *const *bind);

/* Sets comp_s and bytes of the planner's problem and says them on stdout: medians of --rounds runs,
 * in which all processes compute at once. With --instance from that instance. Without, from tiles
 * as large and as many as those that are chosen, on the PUs where they will be: measured, chosen by
 * what was measured, and measured again until the choice stays. What a task costs depends on both:
 * heat transfer took 1.7 ns in tiles of 200 x 200 on two PUs, which their caches hold, and 6.7 ns
 * in tiles of 1000 x 1000.
 * Both end the program with one line when the application does not run. */
void spmd_characterise(struct spmd_planner *planner);

/* Evaluation: the application with and without the plan, predicted against measured. */

/* Runs --characterise at the chosen tile, --evaluate by the plan, --against without it, and the
 * latter on one core, in turns, --rounds times, and prints medians, the ratio of each round's two
 * runs, and how far the model is off: as it was asked when the plan was made, and with the time of
 * a task measured right before each run (without --characterise: in the run without the plan),
 * which leaves what the model itself gets wrong. Ends the program with one line when an application
 * does not run; no file is left. */
void spmd_evaluate(const struct spmd_planner *planner, const struct spmd_choice *choice,
                   const struct spmd_grid *grid);

#endif
