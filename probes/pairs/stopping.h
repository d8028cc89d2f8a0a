/* A stopping rule says how often a figure is measured: until it is known well enough, or a most. So
 * quiet figures cost little, and the others get the time. */
#ifndef SERVET_PROBES_PAIRS_STOPPING_H
#define SERVET_PROBES_PAIRS_STOPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Relative. Rounds of copies and sweeps of messages differ by 4 to 7 % on a shared machine, by 1 to
 * 2 % on one's own. */
#define REPEAT_AGREE 0.05

/* Measurements of one figure that is a median, and of one that is a minimum. */
enum { REPEAT_MEDIAN_LEAST = 3, REPEAT_MEDIAN_MOST = 9, REPEAT_MINIMUM_MOST = 5 };

/* Half of the interval that holds the median with a probability of 95 %, as a share of the median:
 * between order statistics, whatever the distribution. Fewer than six values say that of no
 * interval: then all they span, which is 75 % for three and 94 % for five. INFINITY for none. */
double probe_repeat_half_width(const double *values, size_t count);

/* Is the half-width below 5 %, or the figure measured REPEAT_MEDIAN_MOST times? Never before
 * REPEAT_MEDIAN_LEAST. */
bool probe_repeat_median_settled(const double *values, size_t count);
/* The same of a time that disturbance can only lengthen: do the two smallest agree within 5 %? */
bool probe_repeat_minimum_settled(const double *values, size_t count);

/* The least time of several batches, and their spread. */
struct probe_settled {
    double seconds, spread;
    uint32_t repetitions;
};

/* A figure is looked at again, apart in time: the smaller one counts, and its spread reaches to the
 * end of that of the other one, so that it covers what a second run would say. Within one burst
 * figures agree that differ twofold from run to run. Where the spread is not known (< 0), a
 * shorter time takes its place. */
void probe_repeat_look_again(double *seconds, double *spread, uint32_t *repetitions,
                             const struct probe_settled *again);

#endif
