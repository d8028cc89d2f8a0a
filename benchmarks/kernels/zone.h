/* One zone of the multi-zone kernel: a block of nx x ny x nz points, whose values move by an
 * alternating-direction implicit step with fourth-order dissipation: one scalar pentadiagonal
 * system along every line of every direction. */
#ifndef SERVET_BENCHMARKS_ZONE_H
#define SERVET_BENCHMARKS_ZONE_H

#include <stddef.h>

#define ZONE_COMPONENTS 5 /* as many as the Navier-Stokes equations have */

struct zone {
    size_t nx, ny, nz;
    /* [nz][ny][nx][ZONE_COMPONENTS]; the outermost x and y layers belong to neighbours */
    double *u;
};

static inline size_t zone_at(const struct zone *zone, size_t z, size_t y, size_t x)
{
    return ((z * zone->ny + y) * zone->nx + x) * ZONE_COMPONENTS;
}

void zone_step(struct zone *zone);

#endif
