/* Order statistics. They make no assumption about how times are distributed, which is skewed and
 * has spikes: a mean and a deviation describe nothing here. Only libc: rank programs link it. */
#include "profile/base/statistics.h"

#include <math.h>
#include <stdlib.h>

#define OUTSIDE 0.025 /* probability that the median lies below (above) the interval: 95 % inside */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void profile_sort(double *values, size_t count)
{
    if (count) {
        qsort(values, count, sizeof *values, by_value);
    }
}

double profile_quantile(double *values, size_t count, double q)
{
    if (!count) {
        return NAN;
    }
    profile_sort(values, count);
    return values[(size_t)(q * (double)(count - 1) + 0.5)];
}

static double middle(const double *sorted, size_t count)
{
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double profile_median_value(double *values, size_t count)
{
    if (!count) {
        return NAN;
    }
    profile_sort(values, count);
    return middle(values, count);
}

struct profile_median profile_median(double *values, size_t count)
{
    double chance = 1, below = 0;
    size_t skip = 0;
    profile_sort(values, count);
    for (size_t i = 0; i < count; i++) {
        chance /= 2;
    }
    /* The median is under the k-th smallest value with the chance of fewer than k heads in `count`
     * throws; `chance` is that of exactly `skip` heads. */
    while (below + chance <= OUTSIDE) {
        below += chance;
        chance *= (double)(count - skip) / (double)(skip + 1);
        skip++;
    }
    skip = skip ? skip - 1 : 0;
    return (struct profile_median){middle(values, count), values[skip], values[count - 1 - skip]};
}

bool profile_same(double a, double b, double tolerance)
{
    const double x = fabs(a), y = fabs(b);
    return fabs(a - b) <= tolerance * (x < y ? x : y);
}
