/* How often is a figure measured? Until it is known well enough, or the patience is over: the quiet
 * figures of a quiet machine cost little, and those that are not get the time. */
#ifndef SERVET_PROBES_PAIRS_REPEAT_H
#define SERVET_PROBES_PAIRS_REPEAT_H

#include <stdbool.h>
#include <stddef.h>

/* Measurements of one figure that is a median, and of one that is a minimum. */
enum {
    REPEAT_MEDIAN_LEAST = 3,
    REPEAT_MEDIAN_MOST = 9,
    REPEAT_MINIMUM_LEAST = 2,
    REPEAT_MINIMUM_MOST = 5
};

/* Half of the interval that holds the median with a probability of 95 %, as a share of the median:
 * between order statistics, whatever the distribution. Fewer than six values say that of no
 * interval: then all they span, which is 75 % for three and 94 % for five. INFINITY for none. */
double probe_repeat_half_width(const double *values, size_t count);

/* Is the half-width below 5 %, or the figure measured REPEAT_MEDIAN_MOST times? Never before
 * REPEAT_MEDIAN_LEAST. */
bool probe_repeat_median_settled(const double *values, size_t count);

/* The same of a time that disturbance can only lengthen: do the two smallest agree within 5 %? */
bool probe_repeat_minimum_settled(const double *values, size_t count);

#endif
