#include "profile/base/statistics.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct profile_median profile_median(double *values, size_t count)
{
    double chance = pow(0.5, (double)count), below = 0;
    size_t skip = 0;
    qsort(values, count, sizeof *values, compare);
    /* The median is under the k-th smallest value with the chance of fewer than k heads in `count`
     * throws. */
    while (below + chance <= 0.025) {
        below += chance;
        chance *= (double)(count - skip) / (double)(skip + 1);
        skip++;
    }
    skip = skip ? skip - 1 : 0;
    double median = (values[(count - 1) / 2] + values[count / 2]) / 2;
    return (struct profile_median){median, values[skip], values[count - 1 - skip]};
}
