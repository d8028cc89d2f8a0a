#include "sharing_witness.h"

#include <math.h>
#include <string.h>

enum { LINE_BYTES = 64, ROUND_TRIPS = 50, BATCHES = 5, SWEEPS = 3 };
static const double alike = 1.1;  /* pairs of one kind: twice the 1 to 5 % that they were seen to differ by */
static const double apart = 1.25; /* pairs of two kinds, where only one of them is known */

/* `above` of four: the third quartile for 3, the first one for 1. */
static double quartile(const double *values, size_t count, size_t above)
{
    double sorted[SHARING_REFERENCES];
    memcpy(sorted, values, count * sizeof *sorted);
    probe_median(sorted, count); /* sorts */
    return sorted[above * (count - 1) / 4];
}

static enum sharing_opinion between(double near, double far, double seconds)
{
    if (near * alike >= far) {
        return OPINION_NONE;
    }
    return seconds < sqrt(near * far) ? OPINION_SHARED : OPINION_PRIVATE;
}

enum sharing_opinion sharing_witness_rule(const struct sharing_witness *witness, double seconds)
{
    double near = witness->near_count ? quartile(witness->near, witness->near_count, 3) : 0;
    double far = witness->far_count ? quartile(witness->far, witness->far_count, 1) : INFINITY;
    if (witness->near_count && witness->far_count) {
        return between(near, far, seconds);
    }
    if (witness->near_count && seconds >= near * apart) {
        return OPINION_PRIVATE;
    }
    return witness->far_count && seconds <= far / apart ? OPINION_SHARED : OPINION_NONE;
}

int sharing_witness_measure(struct probe *probe, const struct profile_pair *pair, double *seconds)
{
    const struct machine_exchange what = {LINE_BYTES, ROUND_TRIPS, BATCHES};
    double least = INFINITY;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double now;
        int rc = machine_exchange(probe->machine, &what, pair, 1, &now);
        if (rc < 0) {
            return rc;
        }
        least = fmin(least, now);
    }
    *seconds = least;
    return 0;
}
