/* Figures as people read them. */
#ifndef SERVET_PROFILE_FIGURES_H
#define SERVET_PROFILE_FIGURES_H

#include "model.h"

/* Long enough for every figure below. */
#define FIGURE_SIZE 64
/* Groups beyond this many columns are only counted. */
#define GROUPS_WIDTH 60

struct figure {
    char text[FIGURE_SIZE + GROUPS_WIDTH];
};

/* 32 KiB, 1.25 MiB; "-" for 0. */
struct figure figure_bytes(uint64_t bytes);
/* 48.2 ns, 1.3 us; "-" for 0. */
struct figure figure_seconds(double seconds);
/* 9.31 GB/s; "-" for 0. */
struct figure figure_bandwidth(double bytes_per_s);
/* "0,2 1,3" or "0,2 … (48 groups)"; "-" when there are no groups and no pairs. */
struct figure figure_relation(const struct profile_relation *relation);
/* "measured 7 times, spread 3 %" */
struct figure figure_quality(const struct profile_quality *quality);

#endif
