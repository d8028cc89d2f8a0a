/* Which of many measured values are "similar": the rule that the papers leave open (2010 paper,
 * Figures 6 and 7).
 *
 * The threshold is the noise of the measurement, not a number of ours. `spread` is the relative
 * deviation of one figure, from measurements of the same pair that were repeated
 * (probe_layers_spread()); below 2 % it counts as 2 %: pairs of one layer differ by 1 to 5 % themselves.
 * On the logarithm of the values:
 *
 *   1. A Gaussian kernel density with a bandwidth of 1.5 spreads is cut at every valley that is
 *   lower than half of the
 *      lower of its two peaks. (Two single values are cut apart from 5 spreads on.)
 *   2. Neighbours whose medians lie less than four of their own deviations apart are joined again:
 *   Ashman's D, which is
 *      2.65 for the halves of a Gaussian and 3.46 for those of a flat distribution, so that one
 *      layer whose pairs
 * differ by more than the measurement does is not taken for several. A deviation counts as one
 * spread at least.
 *   3. Clusters of fewer than 1.5 % of the values, and of fewer than two, are joined to their
 *   nearest neighbour (when
 *      there are more than eight values): those are outliers, not layers.
 *
 * How often that errs on simulated pairs is printed by benchmarks/probes/layer_errors, whose limits
 * are a test.
 */
#ifndef SERVET_PROBES_PAIRS_LAYERS_H
#define SERVET_PROBES_PAIRS_LAYERS_H

#include <stddef.h>
#include <stdint.h>

#define CLUSTERS_MAX 16

/* Where nothing was measured twice: that of latencies between virtual machines of one host. */
#define CLUSTER_USUAL_SPREAD 0.027

struct clusters {
    size_t count;
    double centre[CLUSTERS_MAX]; /* median of the cluster, ascending */
    size_t size[CLUSTERS_MAX];
};

/* `values` > 0. cluster_of[i] is set for each. 0, -EINVAL (no values, or one that is not positive)
 * or -ENOMEM. */
int probe_layers_cluster(const double *values, size_t count, double spread, uint32_t *cluster_of,
                         struct clusters *out);

/* Relative deviation of one figure from pairs of figures of the same thing: logs[i] is the
 * logarithm of the ratio of the two (reordered). By the median, so that outliers do not count; 0
 * without any. */
double probe_layers_spread(double *logs, size_t count);

#endif
