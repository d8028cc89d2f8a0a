#include "repeat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Relative. Rounds of copies and sweeps of messages differ by 4 to 7 % on a shared machine, by 1 to 2 % on one's own.
 */
static const double target = 0.05;
static const double outside = 0.05; /* probability that the median is not in its interval */
enum { MOST = 64 };                 /* values that are looked at */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The interval reaches from the k-th smallest to the k-th largest value: the largest k that keeps the median inside.
 * Of n values fewer than k are below it with a probability of sum_{i<k} C(n, i) / 2^n, and the same above. */
static size_t order_of(size_t count)
{
    double term = pow(0.5, (double)count), below = 0;
    size_t k = 0;
    while (k < count / 2 && 2 * (below + term) <= outside) {
        below += term;
        k++;
        term *= (double)(count - k + 1) / (double)k;
    }
    return k > 0 ? k : 1;
}

double repeat_half_width(const double *values, size_t count)
{
    double sorted[MOST];
    if (count == 0 || count > MOST) {
        return INFINITY;
    }
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, ascending);
    size_t k = order_of(count);
    double middle = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
    return (sorted[count - k] - sorted[k - 1]) / 2 / middle;
}

bool repeat_median_settled(const double *values, size_t count)
{
    return count >= REPEAT_MEDIAN_MOST || (count >= REPEAT_MEDIAN_LEAST && repeat_half_width(values, count) < target);
}

bool repeat_minimum_settled(const double *values, size_t count)
{
    double least = INFINITY, second = INFINITY;
    for (size_t i = 0; i < count; i++) {
        second = values[i] < least ? least : fmin(second, values[i]);
        least = fmin(least, values[i]);
    }
    return count >= REPEAT_MINIMUM_MOST || (count >= REPEAT_MINIMUM_LEAST && second <= (1 + target) * least);
}
