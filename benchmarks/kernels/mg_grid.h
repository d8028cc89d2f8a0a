/* One level of the MG kernel: n x n x n points of a periodic cube, kept with a ghost layer on every
 * side. A level that has a plane or more for every rank is dealt out by planes (z); a coarser one
 * is kept whole by every rank. */
#ifndef SERVET_BENCHMARKS_MG_GRID_H
#define SERVET_BENCHMARKS_MG_GRID_H

#include <stdbool.h>
#include <stddef.h>

struct mg_level {
    size_t n;             /* points a side; a power of two */
    size_t first, planes; /* planes of this rank, without ghosts */
    bool shared;          /* dealt out; false: every rank has all of it */
    double *u, *r;        /* (planes + 2) (n + 2) (n + 2) each */
};

static inline size_t mg_at(const struct mg_level *level, size_t plane, size_t row, size_t column)
{
    return (plane * (level->n + 2) + row) * (level->n + 2) + column;
}

/* Room of one grid of the level. */
size_t mg_size(const struct mg_level *level);

/* Fills the ghost layers: periodic in all three directions. */
void mg_ghosts(const struct mg_level *level, double *grid);

/* out = base + sign * (stencil c applied to `in`): c[d] weighs the points at distance d in the
 * sense of the specification (0: itself, 1: 6 faces, 2: 12 edges, 3: 8 corners). `out` may be
 * `base`, not `in`. Ghosts are filled.
 */
void mg_stencil(const struct mg_level *level, const double c[4], const double *in,
                const double *base, double sign, double *out);

/* coarse->r = P fine->r; coarse->u is left alone. */
void mg_restrict(const struct mg_level *fine, struct mg_level *coarse);
/* fine->u += Q coarse->u (fine->u is first set to 0 when `fresh`). */
void mg_prolong(const struct mg_level *coarse, struct mg_level *fine, bool fresh);

#endif
