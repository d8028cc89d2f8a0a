/* CG: the conjugate gradient method on a sparse, symmetric matrix. Each rank has a block of rows;
 * the search direction is gathered on all of them, and each row reads it at scattered places.
 *
 * Row i has 1 + 2 K on the diagonal, and -1 in the columns i + d and i - d (modulo n) for each of K
 * distances d: symmetric, with eigenvalues between 1 and 1 + 4 K, so that 60 iterations are enough
 * whatever n is. The right side is that of a known solution. */
#include <math.h>
#include <stdlib.h>

#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/par.h"
#include "profile/base/clock.h"

const char kernel_name[] = "CG";

enum { DISTANCES = 8, ITERATIONS = 60 };
/* As shares of n: near the diagonal and far from it. */
static const double distance_shares[DISTANCES] = {1e-5,  1e-4,  1e-3,  0.013,
                                                  0.057, 0.138, 0.311, 0.471};
static const double tolerance = 1e-6; /* of entries below 1 */

static const struct problem {
    size_t n;
    int solves;
} problems[] = {{1 << 14, 4}, {1 << 17, 8}, {1 << 20, 8}, {1 << 22, 16}};

struct solver {
    size_t n, first, rows;
    size_t distances[DISTANCES];
    size_t *parts; /* ranks + 1, in bytes, of the gathered vector */
    double *p;     /* of all ranks */
    double *x, *r, *q;
};

/* The known solution. */
static double solution(size_t i)
{
    return (double)(i * 2654435761u % 1000) / 1000;
}

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (size_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return par_sum(sum);
}

/* Own rows of the product of the matrix and the gathered vector. */
static void multiply(const struct solver *s, double *out)
{
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < s->rows; row++) {
        size_t i = s->first + row;
        double sum = (1 + 2 * DISTANCES) * s->p[i];
        for (int k = 0; k < DISTANCES; k++) {
            size_t d = s->distances[k], up = i + d, down = i + s->n - d;
            sum -= s->p[up < s->n ? up : up - s->n] + s->p[down < s->n ? down : down - s->n];
        }
        out[row] = sum;
    }
}

static void solve(struct solver *s)
{
    double *mine = s->p + s->first;
    for (size_t row = 0; row < s->rows; row++) {
        mine[row] = solution(s->first + row);
    }
    par_gather_parts(s->p, s->parts);
    multiply(s, s->r);
    for (size_t row = 0; row < s->rows; row++) {
        s->x[row] = 0;
        mine[row] = s->r[row];
    }
    double rho = dot(s->r, s->r, s->rows);
    for (int iteration = 0; iteration < ITERATIONS && rho > 0; iteration++) {
        par_gather_parts(s->p, s->parts);
        multiply(s, s->q);
        double alpha = rho / dot(mine, s->q, s->rows), before = rho;
#pragma omp parallel for schedule(static)
        for (size_t row = 0; row < s->rows; row++) {
            s->x[row] += alpha * mine[row];
            s->r[row] -= alpha * s->q[row];
        }
        rho = dot(s->r, s->r, s->rows);
#pragma omp parallel for schedule(static)
        for (size_t row = 0; row < s->rows; row++) {
            mine[row] = s->r[row] + rho / before * mine[row];
        }
    }
}

static void make(struct solver *s, size_t n)
{
    *s = (struct solver){.n = n, .parts = kernel_memory(par_size() + 1, sizeof *s->parts)};
    for (int k = 0; k < DISTANCES; k++) {
        s->distances[k] = 1 + (size_t)(distance_shares[k] * (double)n);
    }
    for (size_t rank = 0; rank < par_size(); rank++) {
        size_t from, count;
        par_share(n, rank, &from, &count);
        s->parts[rank + 1] = (from + count) * sizeof(double);
    }
    par_share(n, par_rank(), &s->first, &s->rows);
    s->p = kernel_memory(n, sizeof *s->p);
    s->x = kernel_memory(s->rows, sizeof *s->x);
    s->r = kernel_memory(s->rows, sizeof *s->r);
    s->q = kernel_memory(s->rows, sizeof *s->q);
}

bool kernel_run(char problem, struct kernel_result *result)
{
    const struct problem *what = &problems[kernel_class_index(problem)];
    struct solver s;
    make(&s, what->n);
    solve(&s); /* untimed: touches everything once */
    par_barrier();
    double start = profile_now_s(), worst = 0;
    for (int i = 0; i < what->solves; i++) {
        solve(&s);
    }
    result->seconds = par_maximum(profile_now_s() - start);
    for (size_t row = 0; row < s.rows; row++) {
        worst = fmax(worst, fabs(s.x[row] - solution(s.first + row)));
    }
    worst = par_maximum(worst);
    result->rate =
        what->solves * ITERATIONS * (double)what->n * (4 * DISTANCES + 12) / result->seconds * 1e-6;
    result->unit = "Mop/s";
    result->verified = worst < tolerance;
    result->checked = "the solution is the one that the right side was made of";
    free(s.parts);
    free(s.p);
    free(s.x);
    free(s.r);
    free(s.q);
    return true;
}
