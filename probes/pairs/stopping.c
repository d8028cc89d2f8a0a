/* Rules that say how often a figure is measured (stopping.h). */
#include "probes/pairs/stopping.h"

#include <math.h>
#include <string.h>

#include "probes/probe.h"
#include "profile/base/statistics.h"

enum { MOST = 64 }; /* values that are looked at */

double probe_repeat_half_width(const double *values, size_t count)
{
    double sorted[MOST];
    if (count == 0 || count > MOST) {
        return INFINITY;
    }
    memcpy(sorted, values, count * sizeof *sorted);
    struct profile_median found = profile_median(sorted, count);
    return (found.high - found.low) / 2 / found.median;
}

bool probe_repeat_median_settled(const double *values, size_t count)
{
    return count >= REPEAT_MEDIAN_MOST ||
           (count >= REPEAT_MEDIAN_LEAST && probe_repeat_half_width(values, count) < REPEAT_AGREE);
}

bool probe_repeat_minimum_settled(const double *values, size_t count)
{
    double least = INFINITY, second = INFINITY;
    for (size_t i = 0; i < count; i++) {
        second = values[i] < least ? least : fmin(second, values[i]);
        least = fmin(least, values[i]);
    }
    return count >= REPEAT_MINIMUM_MOST || (count > 0 && second <= (1 + REPEAT_AGREE) * least);
}

void probe_repeat_look_again(double *seconds, double *spread, uint32_t *repetitions,
                             const struct probe_settled *again)
{
    *repetitions += again->repetitions;
    if (*spread < 0 && again->seconds < *seconds) {
        *seconds = again->seconds;
        *spread = again->spread;
        return;
    }
    const double least = fmin(*seconds, again->seconds),
                 end = fmax(*seconds * (1 + fmax(*spread, 0)),
                            again->seconds * (1 + fmax(again->spread, 0)));
    *spread = probe_spread_rounded(end / least - 1);
    *seconds = least;
}
