/* The command line of servet-spmd, checked. */
#ifndef SERVET_MAPPER_SPMD_OPTIONS_H
#define SERVET_MAPPER_SPMD_OPTIONS_H

#include "formats.h"
#include "spmd_model.h"

struct spmd_options {
    struct spmd_problem problem;
    double comm_s;                  /* of one edge task; 0: from the profile */
    uint64_t cores;                 /* 0: as the efficiency wants it */
    uint64_t tile_x, tile_y;        /* 0: as the efficiency wants it */
    const char *profile, *topology; /* both NULL: this machine */
    struct profile_set cpuset;
    const struct map_format *format; /* NULL: no mapping is printed */
    const char *plan;                /* file, or NULL */
    bool curve, simulate;
    const char *characterise; /* command of a small instance, or NULL */
    uint64_t instance_x, instance_y, instance_n, instance_m;
    const char *evaluate, *against; /* commands with and without the plan, or NULL */
    uint64_t iterations;
};

/* Ends the program with one line and status 2 on bad usage. */
void spmd_options_parse(int argc, char **argv, struct spmd_options *out);

#endif
