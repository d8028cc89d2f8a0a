/* Which of many measured values are "similar": the rule that the papers leave open (2010 paper, Figures 6 and 7).
 *
 * Rule: on the logarithm of the values, a Gaussian kernel density with a bandwidth of 4 % is cut at every valley that
 * is lower than half of the lower of its two peaks. Clusters of fewer than 1.5 % of the values, and of fewer than two,
 * are joined to their nearest neighbour (when there are more than eight values): those are outliers, not layers.
 * On simulated pairs with the noise measured on virtual machines (1-5 % between pairs, 5 % outliers) layers that are
 * 35 % apart are told apart without error at 3 %; layers 20 % apart are not.
 */
#ifndef SERVET_PROBES_CLUSTER_H
#define SERVET_PROBES_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#define CLUSTERS_MAX 16

struct clusters {
    size_t count;
    double centre[CLUSTERS_MAX]; /* median of the cluster, ascending */
    size_t size[CLUSTERS_MAX];
};

/* `values` > 0. cluster_of[i] is set for each. 0, -EINVAL (no values, or one that is not positive) or -ENOMEM. */
int cluster_values(const double *values, size_t count, uint32_t *cluster_of, struct clusters *out);

#endif
