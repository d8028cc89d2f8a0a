#include "native.h"

#include <stdlib.h>
#include <time.h>

/* clock_gettime, not the TSC itself: it is the same on every architecture, it does not count a suspended
 * machine, and its cost (some 30 ns through the vDSO) is measured and subtracted. */
uint64_t native_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double native_quantile(double *values, size_t count, double q)
{
    qsort(values, count, sizeof *values, compare);
    return values[(size_t)(q * (double)(count - 1) + 0.5)];
}

void native_clock_calibrate(double *cost_s, double *batch_s)
{
    enum { BATCHES = 64, READS = 64, STEPS_PER_BATCH = 100 };
    double cost[BATCHES], step = 1;
    for (size_t i = 0; i < BATCHES; i++) {
        uint64_t start = native_now_ns(), last = start;
        for (size_t j = 1; j < READS; j++) {
            uint64_t now = native_now_ns();
            if (now > last && (double)(now - last) * 1e-9 < step) {
                step = (double)(now - last) * 1e-9;
            }
            last = now;
        }
        cost[i] = (double)(last - start) * 1e-9 / (READS - 1);
    }
    *cost_s = native_quantile(cost, BATCHES, 0.25);
    *batch_s = 1e-6;
    /* A step no longer than the call itself says nothing about the clock's grain. */
    if (step < 1 && step > 1.5 * *cost_s && step * STEPS_PER_BATCH > *batch_s) {
        *batch_s = step * STEPS_PER_BATCH;
    }
}
