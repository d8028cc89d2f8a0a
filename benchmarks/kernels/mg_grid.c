/* One level of the MG kernel: a periodic cube with a ghost layer on every side. Coarse levels
 * are kept whole by every rank, since planes to deal out run short there. */
#include "benchmarks/kernels/mg_grid.h"

#include <stdlib.h>
#include <string.h>

#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/par.h"

size_t mg_size(const struct mg_level *level)
{
    return (level->planes + 2) * (level->n + 2) * (level->n + 2);
}

static void ghosts_in_plane(const struct mg_level *level, double *grid, size_t plane)
{
    size_t n = level->n;
    for (size_t row = 1; row <= n; row++) {
        grid[mg_at(level, plane, row, 0)] = grid[mg_at(level, plane, row, n)];
        grid[mg_at(level, plane, row, n + 1)] = grid[mg_at(level, plane, row, 1)];
    }
    size_t bytes = (n + 2) * sizeof *grid;
    memcpy(grid + mg_at(level, plane, 0, 0), grid + mg_at(level, plane, n, 0), bytes);
    memcpy(grid + mg_at(level, plane, n + 1, 0), grid + mg_at(level, plane, 1, 0), bytes);
}

void mg_ghosts(const struct mg_level *level, double *grid)
{
    size_t last = level->planes, bytes = (level->n + 2) * (level->n + 2) * sizeof *grid;
#pragma omp parallel for schedule(static)
    for (size_t plane = 1; plane <= last; plane++) {
        ghosts_in_plane(level, grid, plane);
    }
    double *first_plane = grid + mg_at(level, 1, 0, 0),
           *last_plane = grid + mg_at(level, last, 0, 0);
    double *below = grid, *above = grid + mg_at(level, last + 1, 0, 0);
    if (level->shared) {
        par_to_next(last_plane, below, bytes);
        par_to_previous(first_plane, above, bytes);
        return;
    }
    memcpy(below, last_plane, bytes);
    memcpy(above, first_plane, bytes);
}

/* Sums over the neighbours in y and z of each point of a row: `faces` the 4 nearest, `edges` the 4
 * next. */
static void neighbour_sums(const double *in, size_t row, size_t plane, size_t width, double *faces,
                           double *edges)
{
    for (size_t x = 0; x < row; x++) {
        faces[x] = in[x - width] + in[x + width] + in[x - plane] + in[x + plane];
        edges[x] = in[x - plane - width] + in[x - plane + width] + in[x + plane - width] +
                   in[x + plane + width];
    }
}

void mg_stencil(const struct mg_level *level, const double c[4], const double *in,
                const double *base, double sign, double *out)
{
    size_t n = level->n, width = n + 2, plane_size = width * width;
    double c0 = sign * c[0], c1 = sign * c[1], c2 = sign * c[2], c3 = sign * c[3];
#pragma omp parallel
    {
        double *faces = malloc(2 * width * sizeof *faces), *edges = faces + width;
#pragma omp for schedule(static)
        for (size_t plane = 1; plane <= level->planes; plane++) {
            for (size_t row = 1; row <= n; row++) {
                size_t at = mg_at(level, plane, row, 0);
                const double *here = in + at;
                neighbour_sums(here, width, plane_size, width, faces, edges);
                for (size_t x = 1; x <= n; x++) {
                    out[at + x] = base[at + x] + c0 * here[x] +
                                  c1 * (here[x - 1] + here[x + 1] + faces[x]) +
                                  c2 * (edges[x] + faces[x - 1] + faces[x + 1]) +
                                  c3 * (edges[x - 1] + edges[x + 1]);
                }
            }
        }
        free(faces);
    }
    mg_ghosts(level, out);
}

/* P at the fine point (plane, row, x): weights 1/2, 1/4, 1/8, 1/16 by distance. */
static double weighted(const double *in, size_t plane, size_t width)
{
    double faces[3], edges[3];
    neighbour_sums(in - 1, 3, plane, width, faces, edges);
    return 0.5 * in[0] + 0.25 * (in[-1] + in[1] + faces[1]) +
           0.125 * (edges[1] + faces[0] + faces[2]) + 0.0625 * (edges[0] + edges[2]);
}

/* Coarse planes that the fine planes of this rank lie under go to `target`. */
static void restrict_planes(const struct mg_level *fine, const struct mg_level *shape, size_t first,
                            size_t count, double *target)
{
    size_t width = fine->n + 2;
#pragma omp parallel for schedule(static)
    for (size_t q = first; q < first + count; q++) {
        /* coarse point q lies on fine point 2 q + 1 */
        size_t plane = 2 * q + 1 - fine->first + 1, to = q - first;
        for (size_t row = 1; row <= shape->n; row++) {
            for (size_t x = 1; x <= shape->n; x++) {
                const double *in = fine->r + mg_at(fine, plane, 2 * row, 2 * x);
                target[(to * shape->n + row - 1) * shape->n + x - 1] =
                    weighted(in, width * width, width);
            }
        }
    }
}

/* All ranks get all coarse planes: those of a level that is kept whole, under one that is dealt
 * out. */
static void gather_planes(const struct mg_level *fine, const struct mg_level *coarse,
                          double *compact)
{
    size_t plane_bytes = coarse->n * coarse->n * sizeof *compact;
    size_t *first = kernel_memory(par_size() + 1, sizeof *first);
    for (size_t rank = 0; rank <= par_size(); rank++) {
        first[rank] =
            rank * fine->planes / 2 * plane_bytes; /* coarse points of the fine planes below */
    }
    par_gather_parts(compact, first);
    free(first);
}

void mg_restrict(const struct mg_level *fine, struct mg_level *coarse)
{
    bool gather = fine->shared && !coarse->shared;
    size_t first = fine->first / 2, count = (fine->first + fine->planes) / 2 - first, n = coarse->n;
    double *compact = kernel_memory(coarse->planes * n * n, sizeof *compact);
    size_t offset = gather ? first : 0;
    restrict_planes(fine, coarse, first, count, compact + offset * n * n);
    if (gather) {
        gather_planes(fine, coarse, compact);
    }
#pragma omp parallel for schedule(static)
    for (size_t plane = 1; plane <= coarse->planes; plane++) {
        for (size_t row = 1; row <= n; row++) {
            memcpy(coarse->r + mg_at(coarse, plane, row, 1),
                   compact + ((plane - 1) * n + row - 1) * n, n * sizeof *compact);
        }
    }
    free(compact);
    mg_ghosts(coarse, coarse->r);
}

/* The coarse neighbours of fine point g (from 0) as places with ghosts: the point itself twice when
 * g lies on one. */
static void neighbours(size_t g, size_t first, size_t *low, size_t *high)
{
    *high = g / 2 - first + 1;
    *low = g % 2 ? *high : *high - 1;
}

static void prolong_row(const struct mg_level *coarse, struct mg_level *fine, size_t plane,
                        size_t row, bool fresh)
{
    size_t z0, z1, y0, y1, x0, x1;
    neighbours(fine->first + plane - 1, coarse->first, &z0, &z1);
    neighbours(row - 1, 0, &y0, &y1);
    const double *from[4] = {
        coarse->u + mg_at(coarse, z0, y0, 0), coarse->u + mg_at(coarse, z0, y1, 0),
        coarse->u + mg_at(coarse, z1, y0, 0), coarse->u + mg_at(coarse, z1, y1, 0)};
    double *to = fine->u + mg_at(fine, plane, row, 0);
    for (size_t x = 1; x <= fine->n; x++) {
        neighbours(x - 1, 0, &x0, &x1);
        double sum = 0.0;
        for (size_t i = 0; i < 4; i++) {
            sum += from[i][x0] + from[i][x1];
        }
        to[x] = (fresh ? 0.0 : to[x]) + 0.125 * sum;
    }
}

void mg_prolong(const struct mg_level *coarse, struct mg_level *fine, bool fresh)
{
#pragma omp parallel for schedule(static)
    for (size_t plane = 1; plane <= fine->planes; plane++) {
        for (size_t row = 1; row <= fine->n; row++) {
            prolong_row(coarse, fine, plane, row, fresh);
        }
    }
    mg_ghosts(fine, fine->u);
}
