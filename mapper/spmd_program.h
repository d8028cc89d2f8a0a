/* Runs an MPI program that the user names under the trace of its MPI calls. */
#ifndef SERVET_MAPPER_SPMD_PROGRAM_H
#define SERVET_MAPPER_SPMD_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "spmd_model.h"

/* What the command line of the program may hold: {problem} becomes XxY, {grid} NxM, {cores} N, {iterations} K. */
struct spmd_run {
    const char *command; /* split at blanks */
    uint64_t x, y, n, m;
    uint64_t iterations;
    const char *plan; /* file for SERVET_SPMD_PLAN, or NULL */
    const char *const
        *bind; /* arguments of mpirun that place the ranks, ending with NULL; NULL: as it does by itself */
};

struct spmd_measured {
    double seconds;      /* from MPI_Init to MPI_Finalize, slowest rank */
    uint64_t iterations; /* messages to the first neighbour, fewest of all ranks that have one */
    double iteration_s;  /* of the slowest rank; 0 where no rank sends */
    double compute_s;    /* of one iteration outside of MPI: of the slowest rank, for which its neighbours wait */
    double bytes;        /* largest message of any rank */
};

/* 0; -ENOENT (mpirun or the trace library is not there), -EINVAL (the program does not run, or says nothing to the
 * trace: `error` names it and its own first line), -errno. */
int spmd_program_run(const struct spmd_run *run, struct spmd_measured *out, struct servet_error *error);

#endif
