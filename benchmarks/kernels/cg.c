/* CG (RNR-94-007, Section 2.4): the smallest eigenvalue of a sparse matrix by inverse iteration,
 * each step one run of 25 conjugate gradient iterations. Each rank has a block of rows; the search
 * direction is gathered on all of them. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/nas_random.h"
#include "benchmarks/kernels/par.h"

const char kernel_name[] = "CG";

/* -- the matrix -- */

/* The matrix of the CG kernel (RNR-94-007, Section 2.4): a sparse, symmetric, random matrix whose
 * smallest eigenvalues are known to lie near `shift`: sum over i of w(i) x(i) x(i)^T + (rcond -
 * shift) I, with sparse random vectors x(i) and weights w(i) falling geometrically from 1 to
 * rcond. */

struct cg_matrix {
    size_t first_row, rows; /* those of this rank */
    size_t *row_first;      /* rows + 1 places in the two arrays below */
    uint32_t *columns;
    double *values;
};

#define SEED UINT64_C(314159265)
#define CONDITION 0.1 /* rcond of the specification */
#define NONZERO_LIMIT 16

struct sparse {
    size_t count;
    uint32_t index[NONZERO_LIMIT];
    double value[NONZERO_LIMIT];
};

static size_t find(const struct sparse *vector, uint32_t index)
{
    size_t i = 0;
    while (i < vector->count && vector->index[i] != index) {
        i++;
    }
    return i;
}

/* `nonzeros` different places drawn below the next power of two; those past n are thrown away. */
static void draw(uint64_t *state, size_t n, size_t power, size_t nonzeros, struct sparse *out)
{
    out->count = 0;
    while (out->count < nonzeros) {
        double value = nas_next(state);
        uint32_t index = (uint32_t)((double)power * nas_next(state));
        if (index >= n || find(out, index) < out->count) {
            continue;
        }
        out->index[out->count] = index;
        out->value[out->count++] = value;
    }
}

static void set(struct sparse *vector, uint32_t index, double value)
{
    size_t at = find(vector, index);
    vector->index[at] = index;
    vector->value[at] = value;
    if (at == vector->count) {
        vector->count++;
    }
}

static struct sparse *draw_all(size_t n, size_t nonzeros)
{
    struct sparse *vectors = kernel_memory(n, sizeof *vectors);
    uint64_t state = SEED;
    nas_next(&state); /* the specification draws, and drops, one number first */
    size_t power = 1;
    while (power < n) {
        power *= 2;
    }
    for (size_t i = 0; i < n; i++) {
        draw(&state, n, power, nonzeros, &vectors[i]);
        set(&vectors[i], (uint32_t)i, 0.5);
    }
    return vectors;
}

/* Adds up equal columns of one row, and sorts it by insertion: the row is built of a few short
 * runs. */
static size_t add_entry(uint32_t *columns, double *values, size_t count, uint32_t column,
                        double value)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (columns[middle] < column) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < count && columns[low] == column) {
        values[low] += value;
        return count;
    }
    memmove(columns + low + 1, columns + low, (count - low) * sizeof *columns);
    memmove(values + low + 1, values + low, (count - low) * sizeof *values);
    columns[low] = column;
    values[low] = value;
    return count + 1;
}

/* Room that each row may need: the lengths of all vectors that it occurs in. */
static void count_room(const struct sparse *vectors, size_t n, struct cg_matrix *out)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t e = 0; e < vectors[i].count; e++) {
            size_t row = vectors[i].index[e] - out->first_row;
            if (vectors[i].index[e] >= out->first_row && row < out->rows) {
                out->row_first[row + 1] += vectors[i].count;
            }
        }
    }
    for (size_t row = 0; row < out->rows; row++) {
        out->row_first[row + 1] += out->row_first[row];
    }
}

static void add_vector(const struct sparse *vector, double weight, double diagonal, size_t self,
                       struct cg_matrix *out, size_t *filled)
{
    for (size_t e = 0; e < vector->count; e++) {
        size_t row = vector->index[e] - out->first_row;
        if (vector->index[e] < out->first_row || row >= out->rows) {
            continue;
        }
        size_t at = out->row_first[row];
        double scale = weight * vector->value[e];
        for (size_t f = 0; f < vector->count; f++) {
            double value = vector->value[f] * scale;
            if (vector->index[e] == self && vector->index[f] == self) {
                value += diagonal;
            }
            filled[row] = add_entry(out->columns + at, out->values + at, filled[row],
                                    vector->index[f], value);
        }
    }
}

static void close_gaps(struct cg_matrix *out, const size_t *filled)
{
    size_t to = 0;
    for (size_t row = 0; row < out->rows; row++) {
        size_t from = out->row_first[row];
        memmove(out->columns + to, out->columns + from, filled[row] * sizeof *out->columns);
        memmove(out->values + to, out->values + from, filled[row] * sizeof *out->values);
        out->row_first[row] = to;
        to += filled[row];
    }
    out->row_first[out->rows] = to;
}

/* Rows first_row … of the matrix of order n; every rank draws all random vectors and keeps its own
 * rows. */
static void cg_matrix_make(size_t n, size_t nonzeros, double shift, size_t first_row, size_t rows,
                           struct cg_matrix *out)
{
    struct sparse *vectors = draw_all(n, nonzeros);
    *out = (struct cg_matrix){.first_row = first_row, .rows = rows};
    out->row_first = kernel_memory(rows + 1, sizeof *out->row_first);
    count_room(vectors, n, out);
    out->columns = kernel_memory(out->row_first[rows], sizeof *out->columns);
    out->values = kernel_memory(out->row_first[rows], sizeof *out->values);
    size_t *filled = kernel_memory(rows, sizeof *filled);
    double weight = 1.0, ratio = pow(CONDITION, 1.0 / (double)n);
    for (size_t i = 0; i < n; i++) {
        add_vector(&vectors[i], weight, CONDITION - shift, i, out, filled);
        weight *= ratio;
    }
    close_gaps(out, filled);
    free(filled);
    free(vectors);
}

static void cg_matrix_free(struct cg_matrix *matrix)
{
    free(matrix->row_first);
    free(matrix->columns);
    free(matrix->values);
}

/* -- the kernel -- */

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
