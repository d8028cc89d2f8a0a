/* Evaluation: the application with and without the plan, predicted against measured. */
#ifndef SERVET_MAPPER_SPMD_EVALUATE_H
#define SERVET_MAPPER_SPMD_EVALUATE_H

#include "spmd_planner.h"

/* Runs --characterise at the chosen tile, --evaluate by the plan, --against without it, and the latter on one core, in
 * turns, --rounds times, and prints medians, the ratio of each round's two runs, and how far the model is off: as it
 * was asked when the plan was made, and with the time of a task measured right before each run (without --characterise:
 * in the run without the plan), which leaves what the model itself gets wrong. Ends the program with one line when an
 * application does not run; no file is left. */
void spmd_evaluate(const struct spmd_planner *planner, const struct spmd_choice *choice, const struct spmd_grid *grid);

#endif
