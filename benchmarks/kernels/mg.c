/* MG (RNR-94-007, Section 2.3): V-cycle multigrid for the Poisson equation on a periodic cube,
 * whose right-hand side is +1 at ten points and -1 at ten others: those of the largest and smallest
 * of n^3 random numbers. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/nas_random.h"
#include "benchmarks/kernels/par.h"

const char kernel_name[] = "MG";

/* -- grids -- */

/* One level of the MG kernel: n x n x n points of a periodic cube, kept with a ghost layer on every
 * side. A level that has a plane or more for every rank is dealt out by planes (z); a coarser one
 * is kept whole by every rank. */

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
static size_t mg_size(const struct mg_level *level)
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

/* Fills the ghost layers: periodic in all three directions. */
static void mg_ghosts(const struct mg_level *level, double *grid)
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

/* out = base + sign * (stencil c applied to `in`): c[d] weighs the points at distance d in the
 * sense of the specification (0: itself, 1: 6 faces, 2: 12 edges, 3: 8 corners). `out` may be
 * `base`, not `in`. Ghosts are filled.
 */
static void mg_stencil(const struct mg_level *level, const double c[4], const double *in,
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

/* coarse->r = P fine->r; coarse->u is left alone. */
static void mg_restrict(const struct mg_level *fine, struct mg_level *coarse)
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

/* fine->u += Q coarse->u (fine->u is first set to 0 when `fresh`). */
static void mg_prolong(const struct mg_level *coarse, struct mg_level *fine, bool fresh)
{
#pragma omp parallel for schedule(static)
    for (size_t plane = 1; plane <= fine->planes; plane++) {
        for (size_t row = 1; row <= fine->n; row++) {
            prolong_row(coarse, fine, plane, row, fresh);
        }
    }
    mg_ghosts(fine, fine->u);
}

/* -- the kernel -- */

#define SEED UINT64_C(314159265)
#define CHARGES 10
#define LEVELS_LIMIT 16
#define TOLERANCE 1e-8

static const double poisson[4] = {-8.0 / 3.0, 0.0, 1.0 / 6.0, 1.0 / 12.0};
static const double smoother_a[4] = {-3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0, 0.0};
static const double smoother_b[4] = {-3.0 / 17.0, 1.0 / 33.0, -1.0 / 61.0, 0.0};

static const struct problem {
    size_t n;
    int iterations;
    const double *smoother;
    double norm;
} problems[] = {
    {32, 4, smoother_a, 0.5307707005734e-04},
    {128, 4, smoother_a, 0.6467329375339e-05},
    {256, 4, smoother_a, 0.2433365309069e-05},
    {256, 20, smoother_b, 0.1800564401355e-05},
};

struct charge {
    double value;
    uint64_t place; /* (z n + y) n + x */
};

struct charges {
    struct charge largest[CHARGES],
        smallest[CHARGES]; /* smallest: values negated, so that both are descending */
};

static void keep(struct charge *list, double value, uint64_t place)
{
    if (value <= list[CHARGES - 1].value) {
        return;
    }
    size_t at = CHARGES - 1;
    while (at > 0 && list[at - 1].value < value) {
        list[at] = list[at - 1];
        at--;
    }
    list[at] = (struct charge){value, place};
}

static void no_charges(struct charges *charges)
{
    for (size_t i = 0; i < CHARGES; i++) {
        charges->largest[i] = charges->smallest[i] =
            (struct charge){-2.0, 0}; /* below -1: any number beats it */
    }
}

static void merge(struct charges *into, const struct charges *from)
{
    for (size_t i = 0; i < CHARGES; i++) {
        keep(into->largest, from->largest[i].value, from->largest[i].place);
        keep(into->smallest, from->smallest[i].value, from->smallest[i].place);
    }
}

static void scan_plane(size_t n, size_t z, struct charges *charges)
{
    uint64_t place = (uint64_t)z * n * n, state = nas_jump(SEED, place);
    for (uint64_t end = place + (uint64_t)n * n; place < end; place++) {
        double value = nas_next(&state);
        keep(charges->largest, value, place);
        keep(charges->smallest, -value, place);
    }
}

static void find_charges(const struct mg_level *level, struct charges *found)
{
    struct charges here;
    no_charges(&here);
#pragma omp parallel
    {
        struct charges own;
        no_charges(&own);
#pragma omp for schedule(static)
        for (size_t plane = 0; plane < level->planes; plane++) {
            scan_plane(level->n, level->first + plane, &own);
        }
#pragma omp critical
        merge(&here, &own);
    }
    struct charges *all = kernel_memory(par_size(), sizeof *all);
    par_gather(&here, sizeof here, all);
    no_charges(found);
    for (size_t rank = 0; rank < par_size(); rank++) {
        merge(found, &all[rank]);
    }
    free(all);
}

static void put_charge(const struct mg_level *level, double *grid, uint64_t place, double charge)
{
    size_t n = level->n, z = (size_t)(place / (n * n)), y = (size_t)(place / n % n),
           x = (size_t)(place % n);
    if (z >= level->first && z < level->first + level->planes) {
        grid[mg_at(level, z - level->first + 1, y + 1, x + 1)] = charge;
    }
}

static void right_hand_side(const struct mg_level *level, double *grid)
{
    struct charges charges;
    find_charges(level, &charges);
    for (size_t i = 0; i < CHARGES; i++) {
        put_charge(level, grid, charges.largest[i].place, 1.0);
        put_charge(level, grid, charges.smallest[i].place, -1.0);
    }
    mg_ghosts(level, grid);
}

static size_t make_levels(size_t n, struct mg_level *levels)
{
    size_t count = 0, ranks = par_size();
    for (size_t side = 2; side <= n; side *= 2) {
        struct mg_level *level = &levels[count++];
        /* planes must halve evenly down to the last level that is dealt out */
        level->n = side;
        level->shared = ranks > 1 && side >= 2 * ranks;
        level->planes = level->shared ? side / ranks : side;
        level->first = level->shared ? par_rank() * level->planes : 0;
        level->u = kernel_memory(mg_size(level), sizeof(double));
        level->r = kernel_memory(mg_size(level), sizeof(double));
    }
    return count;
}

static void smooth(const struct mg_level *level, const double *smoother)
{
    mg_stencil(level, smoother, level->r, level->u, 1.0, level->u);
}

/* levels[top].u += M levels[top].r, and the levels below are scratch. `v` is the right-hand side of
 * the top level. */
static void v_cycle(struct mg_level *levels, size_t top, const double *v, const double *smoother,
                    double *scratch)
{
    for (size_t k = top; k > 0; k--) {
        mg_restrict(&levels[k], &levels[k - 1]);
    }
    memset(levels[0].u, 0, mg_size(&levels[0]) * sizeof(double));
    smooth(&levels[0], smoother);
    for (size_t k = 1; k < top; k++) {
        mg_prolong(&levels[k - 1], &levels[k], true);
        mg_stencil(&levels[k], poisson, levels[k].u, levels[k].r, -1.0, scratch);
        memcpy(levels[k].r, scratch, mg_size(&levels[k]) * sizeof(double));
        smooth(&levels[k], smoother);
    }
    mg_prolong(&levels[top - 1], &levels[top], false);
    mg_stencil(&levels[top], poisson, levels[top].u, v, -1.0, levels[top].r);
    smooth(&levels[top], smoother);
}

static double norm_of(const struct mg_level *level)
{
    double sum = 0.0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (size_t plane = 1; plane <= level->planes; plane++) {
        for (size_t row = 1; row <= level->n; row++) {
            const double *r = level->r + mg_at(level, plane, row, 0);
            for (size_t x = 1; x <= level->n; x++) {
                sum += r[x] * r[x];
            }
        }
    }
    par_sum(&sum, 1);
    return sqrt(sum / pow((double)level->n, 3.0));
}

static double solve(struct mg_level *levels, size_t top, const struct problem *what,
                    const double *v, double *scratch)
{
    struct mg_level *level = &levels[top];
    memset(level->u, 0, mg_size(level) * sizeof(double));
    mg_stencil(level, poisson, level->u, v, -1.0, level->r);
    for (int i = 0; i < what->iterations; i++) {
        v_cycle(levels, top, v, what->smoother, scratch);
        mg_stencil(level, poisson, level->u, v, -1.0, level->r);
    }
    return norm_of(level);
}

static bool ranks_fit(size_t n, size_t ranks)
{
    return (ranks & (ranks - 1)) == 0 && ranks <= n / 2;
}

bool kernel_run(char problem, struct kernel_result *result, const char **reason)
{
    const struct problem *what = &problems[kernel_class_index(problem)];
    *reason = "expected a power of two of ranks, at most half the points of a side";
    if (!ranks_fit(what->n, par_size())) {
        return false;
    }
    struct mg_level levels[LEVELS_LIMIT];
    size_t count = make_levels(what->n, levels), top = count - 1;
    double *v = kernel_memory(mg_size(&levels[top]), sizeof *v);
    /* the largest level that needs it is the second */
    double *scratch = kernel_memory(mg_size(&levels[top - 1]), sizeof *scratch);
    right_hand_side(&levels[top], v);
    par_barrier();
    double start = par_seconds();
    double norm = solve(levels, top, what, v, scratch);
    result->seconds = par_seconds() - start;
    result->rate = 58.0 * what->iterations * pow((double)what->n, 3.0) / result->seconds * 1e-6;
    result->unit = "Mop/s";
    result->verified = kernel_compare("norm", norm, what->norm, TOLERANCE);
    for (size_t i = 0; i < count; i++) {
        free(levels[i].u);
        free(levels[i].r);
    }
    free(v);
    free(scratch);
    return true;
}
