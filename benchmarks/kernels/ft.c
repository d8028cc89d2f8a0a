/* FT (RNR-94-007, Section 2.5): a diffusion equation solved by a 3-D Fourier transform forward, and
 * one backward per time step, each followed by a checksum. Planes (z) are dealt out to ranks; for
 * the transform along z everything is exchanged, so that each rank has all of z for its part of
 * x. */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/kernels/fft.h"
#include "benchmarks/kernels/ft_published.h"
#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/nas_random.h"
#include "benchmarks/kernels/par.h"

const char kernel_name[] = "FT";

#define SEED UINT64_C(314159265)
#define DIFFUSION 1e-6 /* alpha of the specification */
#define CHECKSUM_POINTS 1024
#define TOLERANCE 1e-12

struct transform {
    size_t nx, ny, nz;
    size_t planes;              /* nz / ranks: layout by planes [planes][ny][nx] */
    size_t columns;             /* nx / ranks: layout by columns [columns][ny][nz] */
    double complex *spectrum;   /* by columns */
    double complex *by_columns; /* what goes through the transforms */
    double complex *by_planes;
    double complex *exchanged;
    double *decay; /* of spectrum for one time step */
    double complex *roots_x, *roots_y, *roots_z;
};

/* One work array per thread, in the parallel region that uses it. */
static double complex *work_array(size_t n)
{
    return kernel_memory(2 * n * FFT_LINES, sizeof(double complex));
}

static void transform_planes(const struct transform *t, int sign)
{
#pragma omp parallel
    {
        double complex *work = work_array(t->nx > t->ny ? t->nx : t->ny);
#pragma omp for schedule(static)
        for (size_t z = 0; z < t->planes; z++) {
            double complex *plane = t->by_planes + z * t->ny * t->nx;
            fft_lines(t->nx, t->roots_x, sign, &(struct fft_lines){plane, t->ny, t->nx, 1}, work);
            fft_lines(t->ny, t->roots_y, sign, &(struct fft_lines){plane, t->nx, 1, t->nx}, work);
        }
        free(work);
    }
}

static void transform_columns(const struct transform *t, int sign)
{
#pragma omp parallel
    {
        double complex *work = work_array(t->nz);
#pragma omp for schedule(static)
        for (size_t x = 0; x < t->columns; x++) {
            const struct fft_lines columns = {t->by_columns + x * t->ny * t->nz, t->ny, t->nz, 1};
            fft_lines(t->nz, t->roots_z, sign, &columns, work);
        }
        free(work);
    }
}

/* Tiles keep the strided side of the turn in cache: 8 complex numbers are two cache lines. */
#define TILE 8

/* packed[x][y][z of this rank] from planes, or back. With one rank `packed` is the layout by
 * columns itself. */
static void turn(const struct transform *t, double complex *packed, bool to_columns)
{
    size_t nx = t->nx, ny = t->ny, nz = t->planes;
#pragma omp parallel for schedule(static)
    for (size_t y = 0; y < ny; y++) {
        for (size_t x0 = 0; x0 < nx; x0 += TILE) {
            for (size_t z = 0; z < nz; z++) {
                double complex *plane = t->by_planes + (z * ny + y) * nx;
                for (size_t x = x0; x < nx && x < x0 + TILE; x++) {
                    double complex *there = packed + (x * ny + y) * nz + z;
                    if (to_columns) {
                        *there = plane[x];
                    } else {
                        plane[x] = *there;
                    }
                }
            }
        }
    }
}

/* Blocks of ranks [rank][x][y][z of that rank] and the layout by columns [x][y][z], either way. */
static void join(const struct transform *t, double complex *blocks, bool to_columns)
{
    size_t lines = t->columns * t->ny;
#pragma omp parallel for schedule(static)
    for (size_t line = 0; line < lines; line++) {
        for (size_t rank = 0; rank < par_size(); rank++) {
            double complex *column = t->by_columns + line * t->nz + rank * t->planes;
            double complex *block = blocks + (rank * lines + line) * t->planes;
            if (to_columns) {
                memcpy(column, block, t->planes * sizeof *column);
            } else {
                memcpy(block, column, t->planes * sizeof *column);
            }
        }
    }
}

static void planes_to_columns(const struct transform *t)
{
    if (par_size() == 1) {
        turn(t, t->by_columns, true);
        return;
    }
    turn(t, t->by_columns, true); /* as scratch */
    par_exchange(t->by_columns, t->exchanged,
                 t->columns * t->ny * t->planes * sizeof *t->exchanged);
    join(t, t->exchanged, true);
}

static void columns_to_planes(const struct transform *t)
{
    if (par_size() == 1) {
        turn(t, t->by_columns, false);
        return;
    }
    join(t, t->exchanged, false);
    par_exchange(t->exchanged, t->by_columns,
                 t->columns * t->ny * t->planes * sizeof *t->exchanged);
    turn(t, t->by_columns, false);
}

static void start_values(const struct transform *t)
{
    size_t plane = t->nx * t->ny, first = par_rank() * t->planes;
#pragma omp parallel for schedule(static)
    for (size_t z = 0; z < t->planes; z++) {
        uint64_t state = nas_jump(SEED, 2 * (uint64_t)plane * (first + z));
        for (size_t i = 0; i < plane; i++) {
            double real = nas_next(&state), imaginary = nas_next(&state);
            t->by_planes[z * plane + i] = CMPLX(real, imaginary);
        }
    }
}

/* Frequency of index k of n, squared: k or k - n. */
static double squared(size_t k, size_t n)
{
    double f = k < n / 2 ? (double)k : (double)k - (double)n;
    return f * f;
}

static void decay_factors(const struct transform *t)
{
    double rate = -4.0 * DIFFUSION * M_PI * M_PI;
    size_t first = par_rank() * t->columns;
#pragma omp parallel for schedule(static)
    for (size_t x = 0; x < t->columns; x++) {
        for (size_t y = 0; y < t->ny; y++) {
            double *line = t->decay + (x * t->ny + y) * t->nz;
            double here = squared(first + x, t->nx) + squared(y, t->ny);
            for (size_t z = 0; z < t->nz; z++) {
                line[z] = exp(rate * (here + squared(z, t->nz)));
            }
        }
    }
}

static void evolve(const struct transform *t)
{
    size_t count = t->columns * t->ny * t->nz;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < count; i++) {
        t->spectrum[i] *= t->decay[i];
        t->by_columns[i] = t->spectrum[i];
    }
}

static double complex checksum(const struct transform *t)
{
    double sums[2] = {0.0, 0.0};
    size_t first = par_rank() * t->planes;
    for (size_t j = 1; j <= CHECKSUM_POINTS; j++) {
        size_t x = j % t->nx, y = 3 * j % t->ny, z = 5 * j % t->nz;
        if (z >= first && z - first < t->planes) {
            double complex value = t->by_planes[((z - first) * t->ny + y) * t->nx + x];
            sums[0] += creal(value);
            sums[1] += cimag(value);
        }
    }
    par_sum(sums, 2);
    double points = (double)t->nx * (double)t->ny * (double)t->nz;
    return CMPLX(sums[0] / points, sums[1] / points);
}

static void make(struct transform *t, const struct ft_problem *what)
{
    *t = (struct transform){.nx = what->nx, .ny = what->ny, .nz = what->nz};
    t->planes = t->nz / par_size();
    t->columns = t->nx / par_size();
    size_t points = t->planes * t->ny * t->nx;
    t->spectrum = kernel_memory(points, sizeof *t->spectrum);
    t->by_columns = kernel_memory(points, sizeof *t->by_columns);
    t->by_planes = kernel_memory(points, sizeof *t->by_planes);
    t->exchanged = par_size() > 1 ? kernel_memory(points, sizeof *t->exchanged) : NULL;
    t->decay = kernel_memory(points, sizeof *t->decay);
    t->roots_x = fft_roots(t->nx);
    t->roots_y = fft_roots(t->ny);
    t->roots_z = fft_roots(t->nz);
}

static void drop(struct transform *t)
{
    void *owned[] = {t->spectrum, t->by_columns, t->by_planes, t->exchanged,
                     t->decay,    t->roots_x,    t->roots_y,   t->roots_z};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
        free(owned[i]);
    }
}

static void forward(const struct transform *t)
{
    start_values(t);
    transform_planes(t, -1);
    planes_to_columns(t);
    transform_columns(t, -1);
    memcpy(t->spectrum, t->by_columns, t->columns * t->ny * t->nz * sizeof *t->spectrum);
}

static bool time_step(const struct transform *t, int step, double complex published)
{
    evolve(t);
    transform_columns(t, 1);
    columns_to_planes(t);
    transform_planes(t, 1);
    double complex sum = checksum(t);
    double error = cabs((sum - published) / published);
    if (par_rank() == 0) {
        printf("checksum %-5d %.12e %.12e   error %.1e\n", step, creal(sum), cimag(sum), error);
    }
    return error <= TOLERANCE;
}

bool kernel_run(char problem, struct kernel_result *result, const char **reason)
{
    const struct ft_problem *what = &ft_problems[kernel_class_index(problem)];
    size_t ranks = par_size();
    *reason = "expected a power of two of ranks, at most the planes of the grid";
    if ((ranks & (ranks - 1)) || ranks > what->nz || ranks > what->nx) {
        return false;
    }
    struct transform t;
    make(&t, what);
    par_barrier();
    double start = par_seconds();
    decay_factors(&t);
    forward(&t);
    int right = 0;
    for (int step = 1; step <= what->steps; step++) {
        right += time_step(&t, step, what->checksums[step - 1]);
    }
    result->seconds = par_seconds() - start;
    double points = (double)t.nx * (double)t.ny * (double)t.nz, l = log(points);
    result->rate = 1e-6 * points * (14.8157 + 7.19641 * l + (5.23518 + 7.21113 * l) * what->steps) /
                   result->seconds;
    result->unit = "Mop/s";
    result->verified = right == what->steps;
    drop(&t);
    return true;
}
