/* What servet-spmd prints. */
#ifndef SERVET_MAPPER_SPMD_REPORT_H
#define SERVET_MAPPER_SPMD_REPORT_H

#include <stdio.h>

#include "median.h"
#include "spmd_grid.h"

void spmd_report_choice(FILE *out, const struct spmd_problem *problem, const struct spmd_choice *choice,
                        const struct spmd_grid *grid);

/* One line for each number of cores; the chosen one is marked, and below it is said where efficiency and speed-up begin
 * to fall. */
void spmd_report_curve(FILE *out, const struct spmd_problem *problem, const struct spmd_choice *curve, size_t count,
                       uint64_t chosen);

/* Cores, and time, speed-up and efficiency without and with the plan, simulated. */
void spmd_report_simulation_head(FILE *out);
void spmd_report_simulation(FILE *out, const struct spmd_choice *choice, double plain_s, double planned_s);

struct spmd_evaluation {
    size_t rounds;
    bool against;                             /* the program without the plan ran too: plain_s and ratio */
    struct profile_median planned_s, plain_s; /* of an iteration */
    struct profile_median ratio;              /* of planned to plain, round by round */
    struct profile_median planned_off;        /* of the model as the plan has it: relative, signed, round by round */
    bool before;                              /* task_s is of right before each run by the plan, else in these runs */
    struct profile_median task_s;
    struct profile_median off; /* of the model with that time */
    double serial_s;           /* of an iteration on one core */
};

void spmd_report_evaluation(FILE *out, const struct spmd_problem *problem, const struct spmd_choice *choice,
                            const struct spmd_evaluation *evaluation);

#endif
