/* CG (RNR-94-007, Section 2.4): the smallest eigenvalue of a sparse matrix by inverse iteration,
 * each step one run of 25 conjugate gradient iterations. Each rank has a block of rows; the search
 * direction is gathered on all of them. */
#include <math.h>
#include <stdlib.h>

#include "benchmarks/kernels/cg_matrix.h"
#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/par.h"

const char kernel_name[] = "CG";

#define INNER_ITERATIONS 25
#define TOLERANCE 1e-10

static const struct problem {
    size_t n, nonzeros;
    int iterations;
    double shift, zeta;
} problems[] = {
    {1400, 7, 15, 10.0, 8.5971775078648},
    {7000, 8, 15, 12.0, 10.362595087124},
    {14000, 11, 15, 20.0, 17.130235054029},
    {75000, 13, 75, 60.0, 22.712745482631},
};

struct solver {
    struct cg_matrix matrix;
    size_t rows, *parts;   /* bytes of p where each rank's rows start */
    double *p;             /* of all rows */
    double *x, *z, *r, *q; /* of this rank's */
};

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0.0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (size_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    par_sum(&sum, 1);
    return sum;
}

/* out = A p for this rank's rows. */
static void multiply(const struct cg_matrix *matrix, const double *p, double *out)
{
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < matrix->rows; row++) {
        double sum = 0.0;
        for (size_t e = matrix->row_first[row]; e < matrix->row_first[row + 1]; e++) {
            sum += matrix->values[e] * p[matrix->columns[e]];
        }
        out[row] = sum;
    }
}

/* Residual norm |x - A z| after the inner iterations for A z = x. */
static double conjugate_gradient(struct solver *s)
{
    size_t n = s->rows;
    double *mine = s->p + s->matrix.first_row;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) {
        s->z[i] = 0.0;
        mine[i] = s->r[i] = s->x[i];
    }
    double rho = dot(s->r, s->r, n);
    for (int iteration = 0; iteration < INNER_ITERATIONS; iteration++) {
        par_gather_parts(s->p, s->parts);
        multiply(&s->matrix, s->p, s->q);
        double alpha = rho / dot(mine, s->q, n), before = rho;
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++) {
            s->z[i] += alpha * mine[i];
            s->r[i] -= alpha * s->q[i];
        }
        rho = dot(s->r, s->r, n);
        double beta = rho / before;
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++) {
            mine[i] = s->r[i] + beta * mine[i];
        }
    }
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) {
        mine[i] = s->z[i];
    }
    par_gather_parts(s->p, s->parts);
    multiply(&s->matrix, s->p, s->q);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) {
        s->r[i] = s->x[i] - s->q[i];
    }
    return sqrt(dot(s->r, s->r, n));
}

/* One step of the inverse iteration; the estimate of the eigenvalue. */
static double step(struct solver *s, double shift)
{
    conjugate_gradient(s);
    double zeta = shift + 1.0 / dot(s->x, s->z, s->rows);
    double scale = 1.0 / sqrt(dot(s->z, s->z, s->rows));
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < s->rows; i++) {
        s->x[i] = scale * s->z[i];
    }
    return zeta;
}

static void start_vector(struct solver *s)
{
    for (size_t i = 0; i < s->rows; i++) {
        s->x[i] = 1.0;
    }
}

static void make(struct solver *s, const struct problem *what)
{
    size_t first;
    par_share(what->n, par_rank(), &first, &s->rows);
    s->parts = kernel_memory(par_size() + 1, sizeof *s->parts);
    for (size_t rank = 0; rank < par_size(); rank++) {
        size_t from, count;
        par_share(what->n, rank, &from, &count);
        s->parts[rank + 1] = (from + count) * sizeof(double);
    }
    cg_matrix_make(what->n, what->nonzeros, what->shift, first, s->rows, &s->matrix);
    s->p = kernel_memory(what->n, sizeof *s->p);
    double **vectors[] = {&s->x, &s->z, &s->r, &s->q};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        *vectors[i] = kernel_memory(s->rows, sizeof(double));
    }
}

static void drop(struct solver *s)
{
    cg_matrix_free(&s->matrix);
    void *owned[] = {s->parts, s->p, s->x, s->z, s->r, s->q};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
        free(owned[i]);
    }
}

/* Floating-point operations, as the specification counts them. */
static double operations(const struct problem *what)
{
    double per_row = (double)(what->nonzeros * (what->nonzeros + 1));
    return 2.0 * what->iterations * (double)what->n *
           (3.0 + per_row + INNER_ITERATIONS * (5.0 + per_row) + 3.0);
}

bool kernel_run(char problem, struct kernel_result *result, const char **reason)
{
    const struct problem *what = &problems[kernel_class_index(problem)];
    *reason = "expected no more ranks than rows";
    if (par_size() > what->n) {
        return false;
    }
    struct solver solver;
    make(&solver, what);
    start_vector(&solver);
    step(&solver, what->shift); /* untimed: touches everything once */
    start_vector(&solver);
    par_barrier();
    double start = par_seconds(), zeta = 0.0;
    for (int i = 0; i < what->iterations; i++) {
        zeta = step(&solver, what->shift);
    }
    result->seconds = par_seconds() - start;
    result->rate = operations(what) / result->seconds * 1e-6;
    result->unit = "Mop/s";
    result->verified = kernel_compare("zeta", zeta, what->zeta, TOLERANCE);
    drop(&solver);
    return true;
}
