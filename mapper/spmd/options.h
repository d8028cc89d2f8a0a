/* The command line of servet-spmd, checked. */
#ifndef SERVET_MAPPER_SPMD_OPTIONS_H
#define SERVET_MAPPER_SPMD_OPTIONS_H

#include <stdio.h>

#include "mapper/command/common_options.h"
#include "mapper/spmd/grid.h"
#include "mapper/spmd/model.h"
#include "profile/base/statistics.h"

#define SPMD_ROUNDS                                                                                \
    7 /* the fewest whose smallest and largest value hold the median with 95 % and one to spare */
#define SPMD_ROUNDS_MAX 1000

struct spmd_options {
    struct spmd_problem problem;
    double comm_s;           /* of one edge task; 0: from the profile */
    uint64_t cores;          /* 0: as the efficiency wants it */
    uint64_t tile_x, tile_y; /* 0: as the efficiency wants it */
    struct common_machine machine;
    const struct map_format *format; /* NULL: no mapping is printed */
    const char *plan;                /* file, or NULL */
    bool curve, simulate;
    const char *characterise; /* command, or NULL */
    uint64_t instance_x, instance_y, instance_n,
        instance_m;                 /* of a small instance; x 0: the chosen tiles */
    const char *evaluate, *against; /* commands with and without the plan, or NULL */
    uint64_t iterations;
    uint32_t rounds; /* of characterisation and evaluation */
};

/* Ends the program with one line and status 2 on bad usage. */
void spmd_options_parse(int argc, char **argv, struct spmd_options *out);

/* What servet-spmd prints. */

void spmd_report_choice(FILE *out, const struct spmd_problem *problem,
                        const struct spmd_choice *choice, const struct spmd_grid *grid);

/* One line for each number of cores; the chosen one is marked, and below it is said where
 * efficiency and speed-up begin to fall. */
void spmd_report_curve(FILE *out, const struct spmd_problem *problem,
                       const struct spmd_choice *curve, size_t count, uint64_t chosen);

/* Cores, and time, speed-up and efficiency without and with the plan, simulated. */
void spmd_report_simulation_head(FILE *out);
void spmd_report_simulation(FILE *out, const struct spmd_choice *choice, double plain_s,
                            double planned_s);

struct spmd_evaluation {
    size_t rounds;
    bool against; /* the program without the plan ran too: plain_s and ratio */
    struct profile_median planned_s, plain_s; /* of an iteration */
    struct profile_median ratio;              /* of planned to plain, round by round */
    struct profile_median
        planned_off; /* of the model as the plan has it: relative, signed, round by round */
    bool before;     /* task_s is of right before each run by the plan, else in these runs */
    struct profile_median task_s;
    struct profile_median off; /* of the model with that time */
    double serial_s;           /* of an iteration on one core */
};

void spmd_report_evaluation(FILE *out, const struct spmd_problem *problem,
                            const struct spmd_choice *choice,
                            const struct spmd_evaluation *evaluation);

#endif
