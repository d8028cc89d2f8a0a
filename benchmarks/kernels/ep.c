/* EP, "embarrassingly parallel" (RNR-94-007, Section 2.2): 2^m pairs of uniform numbers become
 * Gaussian deviates by the acceptance-rejection method; their sums and the counts in square annuli
 * are the result. */
#include <math.h>

#include "benchmarks/kernels/kernel.h"
#include "benchmarks/kernels/nas_random.h"
#include "benchmarks/kernels/par.h"

const char kernel_name[] = "EP";

#define SEED UINT64_C(271828183)
#define BATCH_BITS 16 /* pairs that one thread makes from one jump of the generator */
#define ANNULI 10
#define TOLERANCE                                                                                  \
    1e-8 /* relative; as NPB checks. The sums here come within 1e-12 of the published ones */

static const struct problem {
    int m;
    double sum_x, sum_y;
} problems[] = {
    {24, -3.247834652034740e3, -6.958407078382297e3},
    {25, -2.863319731645753e3, -6.320053679109499e3},
    {28, -4.295875165629892e3, -1.580732573678431e4},
    {30, 4.033815542441498e4, -2.660669192809235e4},
};

static void batch(uint64_t index, double *sum_x, double *sum_y, double counts[ANNULI])
{
    uint64_t state = nas_jump(SEED, index << (BATCH_BITS + 1));
    for (uint64_t pair = 0; pair < UINT64_C(1) << BATCH_BITS; pair++) {
        double x = 2.0 * nas_next(&state) - 1.0;
        double y = 2.0 * nas_next(&state) - 1.0;
        double t = x * x + y * y;
        if (t > 1.0) {
            continue;
        }
        double factor = sqrt(-2.0 * log(t) / t);
        x *= factor;
        y *= factor;
        counts[(int)fmax(fabs(x), fabs(y))] += 1.0;
        *sum_x += x;
        *sum_y += y;
    }
}

bool kernel_run(char problem, struct kernel_result *result, const char **reason)
{
    (void)reason;
    const struct problem *what = &problems[kernel_class_index(problem)];
    size_t first, count;
    par_share((size_t)1 << (what->m - BATCH_BITS), par_rank(), &first, &count);
    double sum_x = 0.0, sum_y = 0.0, counts[ANNULI] = {0.0};
    par_barrier();
    double start = par_seconds();
#pragma omp parallel for schedule(static) reduction(+ : sum_x, sum_y, counts)
    for (size_t i = 0; i < count; i++) {
        double x = 0.0, y = 0.0;
        batch(first + i, &x, &y, counts);
        sum_x += x;
        sum_y += y;
    }
    double sums[2 + ANNULI] = {sum_x, sum_y};
    for (size_t i = 0; i < ANNULI; i++) {
        sums[2 + i] = counts[i];
    }
    par_sum(sums, 2 + ANNULI);
    result->seconds = par_seconds() - start;
    result->rate = ldexp(1.0, what->m + 1) / result->seconds * 1e-6;
    result->unit = "Mop/s";
    bool same_x = kernel_compare("sum x", sums[0], what->sum_x, TOLERANCE);
    bool same_y = kernel_compare("sum y", sums[1], what->sum_y, TOLERANCE);
    result->verified = same_x && same_y;
    return true;
}
