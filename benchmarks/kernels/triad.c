/* TRIAD: a[i] = b[i] + s c[i] over arrays that no cache holds (from class W on): memory bandwidth,
 * as STREAM's triad counts it (3 x 8 bytes an element; the line fetched because it is written to is
 * not counted). Each rank has its share of the arrays; pages are touched first by the thread that
 * uses them. */
#include <stdlib.h>

#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/par.h"
#include "profile/base/clock.h"

const char kernel_name[] = "TRIAD";

#define SCALAR 3.0
#define PASSES 20

static const size_t elements[] = {1 << 16, 1 << 22, 1 << 24, 1 << 26};

static double best_pass(double *a, const double *b, const double *c, size_t count)
{
    double best = 0.0;
    for (int pass = 0; pass < PASSES; pass++) {
        par_barrier();
        double start = profile_now_s();
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < count; i++) {
            a[i] = b[i] + SCALAR * c[i];
        }
        double seconds = par_maximum(profile_now_s() - start);
        best = pass == 0 || seconds < best ? seconds : best;
    }
    return best;
}

bool kernel_run(char problem, struct kernel_result *result)
{
    size_t total = elements[kernel_class_index(problem)], first, count;
    par_share(total, par_rank(), &first, &count);
    double *a = kernel_memory(count, sizeof *a), *b = kernel_memory(count, sizeof *b);
    double *c = kernel_memory(count, sizeof *c);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < count; i++) {
        b[i] = (double)(first + i);
        c[i] = 2.0;
    }
    par_barrier();
    double start = profile_now_s(), best = best_pass(a, b, c, count), wrong = 0.0;
    result->seconds = par_maximum(profile_now_s() - start);
    for (size_t i = 0; i < count; i++) {
        wrong += a[i] != (double)(first + i) + 2.0 * SCALAR;
    }
    result->rate = 3.0 * sizeof(double) * (double)total / best * 1e-9;
    result->unit = "GB/s (best pass)";
    result->verified = par_sum(wrong) == 0.0;
    result->checked = "every element has its exact value";
    free(a);
    free(b);
    free(c);
    return true;
}
