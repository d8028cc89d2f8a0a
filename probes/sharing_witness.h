/* A second witness of whether two PUs share a cache: how long one line takes from one to the other.
 *
 * PUs that share a cache hand a line over through it, others through the next outer one or through memory, so sharing
 * pairs are nearer than the others that share the same outer level. That tells distance, not capacity: it is asked
 * only where the ratio alone/together (probe_sharing.h) leaves doubt, and held against pairs of the same level on which
 * the ratio left none. Noise only slows down, so the smallest of three exchanges counts for each pair.
 */
#ifndef SERVET_PROBES_SHARING_WITNESS_H
#define SERVET_PROBES_SHARING_WITNESS_H

#include "probe.h"

enum sharing_opinion { OPINION_NONE, OPINION_SHARED, OPINION_PRIVATE };

enum { SHARING_REFERENCES = 16 }; /* pairs of each kind that are looked at */

struct sharing_witness {
    double near[SHARING_REFERENCES], far[SHARING_REFERENCES]; /* seconds, of pairs that share and that do not */
    size_t near_count, far_count;
};

/* What `seconds` of a pair say. With both kinds decided: the nearer of near's upper and far's lower quartile (in the
 * logarithm), none if those are less than 10 % apart. With one kind only: a pair a fourth nearer than the pairs that do
 * not share shares, one a fourth farther than those that share does not. A pair like the only kind known says nothing:
 * where all latencies are alike, as those of threads of one core and of one package on some machines, the others may be
 * just as far. */
enum sharing_opinion sharing_witness_rule(const struct sharing_witness *witness, double seconds);

/* Latency of one line between two PUs. 0 or the machine's -errno (-ENOTSUP: it exchanges no messages). */
int sharing_witness_measure(struct probe *probe, const struct profile_pair *pair, double *seconds);

#endif
