/* Evaluation: the application with and without the plan, predicted against measured. */
#ifndef SERVET_MAPPER_SPMD_EVALUATE_H
#define SERVET_MAPPER_SPMD_EVALUATE_H

#include "spmd_planner.h"

/* Runs --evaluate by the plan and --against without it, and the latter on one core, in turns, --rounds times, and
 * prints medians, the ratio of each round's two runs, and how far the model is off: as it was asked, and with the time
 * of a task in the runs themselves, which leaves what the model itself gets wrong.
 * Ends the program with one line when an application does not run; no file is left. */
void spmd_evaluate(const struct spmd_planner *planner, const struct spmd_choice *choice, const struct spmd_grid *grid);

/* The median, and the values that hold it with 95 % or more: order statistics, whatever the distribution (David and
 * Nagaraja, Order Statistics, 7.1). Fewer than six values have no such interval: the smallest and the largest then.
 * Sorts them; count >= 1. */
struct spmd_median {
    double median, low, high;
};
struct spmd_median spmd_median(double *values, size_t count);

#endif
