/* A layer of pairs: figures that are similar, because the pairs have the same distance in the
 * machine. The papers leave open which values are similar (2010 paper, Figures 6 and 7); this is
 * the rule here.
 *
 * The threshold is the noise of the measurement, not a number of ours. `spread` is the relative
 * deviation of one figure, from measurements of the same pair that were repeated
 * (probe_layers_spread()); below 2 % it counts as 2 %: pairs of one layer differ by 1 to 5 %
 * themselves. On the logarithm of the values a Gaussian kernel density with a bandwidth of 1.5
 * spreads is cut at every valley that is lower than half of the lower of its two peaks. (Two single
 * values are cut apart from 5 spreads on.) Then pieces are joined again.
 *
 * For values alone (probe_layers_cluster()):
 *
 *   - neighbours whose medians lie less than four of their own deviations apart: Ashman's D, which
 *     is 2.65 for the halves of a Gaussian and 3.46 for those of a flat distribution. A deviation
 *     counts as one spread at least;
 *   - clusters of fewer than 1.5 % of the values, and of fewer than two, when there are more than
 *     eight values: those are outliers, not layers.
 *
 * For pairs (probe_layers_of_pairs()) a layer is more than a range of values: it divides the PUs
 * into groups that explain the pairs. A cut between two pieces "makes groups" when the pairs below
 * it connect PUs to groups inside of which nearly all pairs are below it. So the siblings of 256
 * cores are a layer, though they are 0.2 % of the pairs, and one odd pair is none.
 *
 *   - A cut that makes groups stays where the medians are four deviations or a factor of 1.4 apart,
 *     unless the groups of both sides are of one kind: of like sizes, and none within another, such
 *     as siblings of which a clock of 5 ns steps says 5 or 10, or of which one is disturbed. One
 *     group counts where both is so.
 *   - A cut that makes none stays where the medians are four deviations and a factor of 1.4 apart
 *     and both sides have as many pairs as there are PUs, two of four PUs: distances in a mesh.
 *
 * How often that errs: layer_errors of simulated pairs, whose limits are a test, and real_layers of
 * measured machines (both in benchmarks/laboratory/probes). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLUSTERS_MAX 16
/* Latencies less than this factor apart are one layer on the machines whose structure is known,
 * unless groups tell the two apart. Noise of 3 % does not make it of one layer. */
#define LAYERS_APART 1.4
/* Pairs of one layer differ by 1 to 5 %, however quiet the machine. */
#define LAYERS_LEAST_SPREAD 0.02
/* For a Gaussian: half the distance of its quartiles, which is the median of its absolute
 * deviation, over its deviation. */
#define LAYERS_MAD_OF_DEVIATION 0.6745

struct clusters {
    size_t count;
    double centre[CLUSTERS_MAX]; /* median of the cluster, ascending */
    size_t size[CLUSTERS_MAX];
};

/* `values` > 0. cluster_of[i] is set for each. 0, -EINVAL (no values, or one that is not positive)
 * or -ENOMEM. */
int probe_layers_cluster(const double *values, size_t count, double spread, uint32_t *cluster_of,
                         struct clusters *out);

/* The same for the figures of all pairs of `pus` PUs, by probe_pair_index(). 0, -EINVAL or
 * -ENOMEM. */
int probe_layers_of_pairs(size_t pus, const double *seconds, double spread, uint32_t *layer_of,
                          struct clusters *out);

/* Relative deviation of one figure from pairs of figures of the same thing: logs[i] is the
 * logarithm of the ratio of the two (reordered). By the median, so that outliers do not count; 0
 * without any. */
double probe_layers_spread(double *logs, size_t count);

/* Do the values agree: are they one cluster? May reorder them, as the next. */
bool probe_layers_one_cluster(double *values, size_t count, double spread);
/* The same for times of pairs; in addition no pair may be clearly faster (by the factor of layers,
 * or by six deviations). Interference only lengthens times, so even one faster pair is structure:
 * siblings are one pair of each core. */
bool probe_layers_agree(double *values, size_t count, double spread);
