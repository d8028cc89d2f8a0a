/* The published checksums of the FT kernel, per time step. */
#ifndef SERVET_BENCHMARKS_FT_PUBLISHED_H
#define SERVET_BENCHMARKS_FT_PUBLISHED_H

#include <complex.h>
#include <stddef.h>

#define FT_STEPS_LIMIT 20

struct ft_problem {
    size_t nx, ny, nz;
    int steps;
    double complex checksums[FT_STEPS_LIMIT];
};

/* Classes S, W, A, B. */
extern const struct ft_problem ft_problems[4];

#endif
