/* The command line of servet-spmd, checked. */
#ifndef SERVET_MAPPER_SPMD_OPTIONS_H
#define SERVET_MAPPER_SPMD_OPTIONS_H

#include "common_options.h"
#include "spmd_model.h"

#define SPMD_ROUNDS 7 /* the fewest whose smallest and largest value hold the median with 95 % and one to spare */
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
    const char *characterise;                                /* command, or NULL */
    uint64_t instance_x, instance_y, instance_n, instance_m; /* of a small instance; x 0: the chosen tiles */
    const char *evaluate, *against;                          /* commands with and without the plan, or NULL */
    uint64_t iterations;
    uint32_t rounds; /* of characterisation and evaluation */
};

/* Ends the program with one line and status 2 on bad usage. */
void spmd_options_parse(int argc, char **argv, struct spmd_options *out);

#endif
