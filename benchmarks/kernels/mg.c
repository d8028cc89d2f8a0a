/* MG (RNR-94-007, Section 2.3): V-cycle multigrid for the Poisson equation on a periodic cube,
 * whose right-hand side is +1 at ten points and -1 at ten others: those of the largest and smallest
 * of n^3 random numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/mg_grid.h"
#include "benchmarks/kernels/nas_random.h"
#include "benchmarks/kernels/par.h"

const char kernel_name[] = "MG";

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
