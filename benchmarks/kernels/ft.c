/* FT (RNR-94-007, Section 2.5): a diffusion equation solved by a 3-D Fourier transform forward, and
 * one backward per time step, each followed by a checksum. Planes (z) are dealt out to ranks; for
 * the transform along z everything is exchanged, so that each rank has all of z for its part of
 * x. */
#include <complex.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/nas_random.h"
#include "benchmarks/kernels/par.h"

/* In Debian 12 the C library's header offers it to gcc alone. */
#ifndef CMPLX
#define CMPLX(real, imaginary) __builtin_complex((double)(real), (double)(imaginary))
#endif

const char kernel_name[] = "FT";

/* -- transforms of many lines -- */

/* Discrete Fourier transforms of FFT_LINES lines at once (a block), Stockham's radix 2: the lines
 * lie side by side, so that every step is a vector operation. */

#define FFT_LINES 8

/* `count` lines, the first element of line i at first[i * line_step], elements element_step
 * apart. */
struct fft_lines {
    double complex *first;
    size_t count, line_step, element_step;
};

/* exp(2 pi i k / n) for k < n / 2, as a new array. n: a power of two. */
static double complex *fft_roots(size_t n)
{
    double complex *roots = kernel_memory(n / 2 + 1, sizeof *roots);
    for (size_t k = 0; k < n / 2; k++) {
        double angle = 2.0 * M_PI * (double)k / (double)n;
        roots[k] = CMPLX(cos(angle), sin(angle));
    }
    return roots;
}

/* out[0..] = a + b, out[1..] = w (a - b), for each line. Written in real numbers: C's complex
 * product checks for NaN.
 */
static inline void butterfly(const double *a, const double *b, double wr, double wi, double *sum,
                             double *difference)
{
    for (size_t i = 0; i < 2 * FFT_LINES; i += 2) {
        double dr = a[i] - b[i], di = a[i + 1] - b[i + 1];
        sum[i] = a[i] + b[i];
        sum[i + 1] = a[i + 1] + b[i + 1];
        difference[i] = wr * dr - wi * di;
        difference[i + 1] = wr * di + wi * dr;
    }
}

/* Transforms the block data[n][FFT_LINES]; `work` has the same size. sign -1: forward, +1: backward
 * (not scaled). The result is in `data`. */
static void fft_block(size_t n, const double complex *roots, int sign, double complex *data,
                      double complex *work)
{
    enum { LINE = 2 * FFT_LINES };
    double *from = (double *)data, *to = (double *)work;
    for (size_t half = n / 2, stride = 1; half >= 1; half /= 2, stride *= 2) {
        for (size_t p = 0; p < half; p++) {
            double wr = creal(roots[p * stride]), wi = sign * cimag(roots[p * stride]);
            for (size_t q = 0; q < stride; q++) {
                butterfly(from + (q + stride * p) * LINE, from + (q + stride * (p + half)) * LINE,
                          wr, wi, to + (q + stride * 2 * p) * LINE,
                          to + (q + stride * (2 * p + 1)) * LINE);
            }
        }
        double *swap = from;
        from = to;
        to = swap;
    }
    if (from != (double *)data) {
        memcpy(data, work, n * FFT_LINES * sizeof *data);
    }
}

/* The same for lines of n elements; `work` has room for two blocks. */
static void fft_lines(size_t n, const double complex *roots, int sign,
                      const struct fft_lines *lines, double complex *work)
{
    size_t line_step = lines->line_step, element_step = lines->element_step;
    double complex *block = work, *scratch = work + n * FFT_LINES;
    for (size_t first = 0; first < lines->count; first += FFT_LINES) {
        size_t left = lines->count - first, here = left < FFT_LINES ? left : FFT_LINES;
        if (here < FFT_LINES) {
            memset(block, 0, n * FFT_LINES * sizeof *block);
        }
        for (size_t e = 0; e < n; e++) {
            for (size_t l = 0; l < here; l++) {
                block[e * FFT_LINES + l] = lines->first[(first + l) * line_step + e * element_step];
            }
        }
        fft_block(n, roots, sign, block, scratch);
        for (size_t e = 0; e < n; e++) {
            for (size_t l = 0; l < here; l++) {
                lines->first[(first + l) * line_step + e * element_step] = block[e * FFT_LINES + l];
            }
        }
    }
}

/* -- published checksums -- */

/* The published checksums of the FT kernel, per time step. */

#define FT_STEPS_LIMIT 20

struct ft_problem {
    size_t nx, ny, nz;
    int steps;
    double complex checksums[FT_STEPS_LIMIT];
};

static const struct ft_problem ft_problems[4] = {
    {64,
     64,
     64,
     6,
     {CMPLX(5.546087004964e+02, 4.845363331978e+02), CMPLX(5.546385409189e+02, 4.865304269511e+02),
      CMPLX(5.546148406171e+02, 4.883910722336e+02), CMPLX(5.545423607415e+02, 4.901273169046e+02),
      CMPLX(5.544255039624e+02, 4.917475857993e+02),
      CMPLX(5.542683411902e+02, 4.932597244941e+02)}},
    {128,
     128,
     32,
     6,
     {CMPLX(5.673612178944e+02, 5.293246849175e+02), CMPLX(5.631436885271e+02, 5.282149986629e+02),
      CMPLX(5.594024089970e+02, 5.270996558037e+02), CMPLX(5.560698047020e+02, 5.260027904925e+02),
      CMPLX(5.530898991250e+02, 5.249400845633e+02),
      CMPLX(5.504159734538e+02, 5.239212247086e+02)}},
    {256,
     256,
     128,
     6,
     {CMPLX(5.046735008193e+02, 5.114047905510e+02), CMPLX(5.059412319734e+02, 5.098809666433e+02),
      CMPLX(5.069376896287e+02, 5.098144042213e+02), CMPLX(5.077892868474e+02, 5.101336130759e+02),
      CMPLX(5.085233095391e+02, 5.104914655194e+02),
      CMPLX(5.091487099959e+02, 5.107917842803e+02)}},
    {512, 256, 256, 20, {CMPLX(5.177643571579e+02, 5.077803458597e+02),
                         CMPLX(5.154521291263e+02, 5.088249431599e+02),
                         CMPLX(5.146409228649e+02, 5.096208912659e+02),
                         CMPLX(5.142378756213e+02, 5.101023387619e+02),
                         CMPLX(5.139626667737e+02, 5.103976610617e+02),
                         CMPLX(5.137423460082e+02, 5.105948019802e+02),
                         CMPLX(5.135547056878e+02, 5.107404165783e+02),
                         CMPLX(5.133910925466e+02, 5.108576573661e+02),
                         CMPLX(5.132470705390e+02, 5.109577278523e+02),
                         CMPLX(5.131197729984e+02, 5.110460304483e+02),
                         CMPLX(5.130070319283e+02, 5.111252433800e+02),
                         CMPLX(5.129070537032e+02, 5.111968077718e+02),
                         CMPLX(5.128182883502e+02, 5.112616233064e+02),
                         CMPLX(5.127393733383e+02, 5.113203605551e+02),
                         CMPLX(5.126691062020e+02, 5.113735928093e+02),
                         CMPLX(5.126064276004e+02, 5.114218460548e+02),
                         CMPLX(5.125504076570e+02, 5.114656139760e+02),
                         CMPLX(5.125002331720e+02, 5.115053595966e+02),
                         CMPLX(5.124551951846e+02, 5.115415130407e+02),
                         CMPLX(5.124146770029e+02, 5.115744692211e+02)}},
};

/* -- the kernel -- */

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
