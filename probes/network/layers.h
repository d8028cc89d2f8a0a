/* From the latencies of some pairs of nodes to the layers of all (2010 paper, Section III-D, over
 * nodes). */
#ifndef SERVET_PROBES_NETWORK_LAYERS_H
#define SERVET_PROBES_NETWORK_LAYERS_H

#include "probes/network/survey.h"

/* Latencies that belong together, fastest first. */
struct survey_layers {
    size_t count;
    double seconds[CLUSTERS_MAX];
    double up_to[CLUSTERS_MAX]; /* largest latency of the layer; the last one's is infinite */
};

/* Relative deviation of the latency of one pair, from its two least figures; that of virtual
 * machines on one host (cluster.h) where too few pairs were measured twice. */
double probe_survey_spread(const struct survey *survey);
/* Clusters as far apart as that spread demands. 0, -ENOMEM, -EINVAL (no edge). */
int probe_survey_cluster(const struct survey *survey, struct survey_layers *out);
size_t probe_survey_layer_of(const struct survey_layers *layers, double seconds);

/* component[node]: the lowest node that can be reached over edges of the layers up to `layer`. */
int probe_survey_components(const struct survey *survey, const struct survey_layers *layers,
                            size_t layer, uint32_t *component);

/* Measures blocks, blocks of representatives, and so on. */
int probe_survey_hierarchy(struct survey *survey);

struct survey_result {
    struct profile_communication network; /* layers without curves; owned */
    size_t all_pairs, measured_pairs;
    size_t checked,
        elsewhere; /* random pairs measured, and those found in another layer than inferred */
    size_t contradictions;      /* measured pairs that are slower than the group they are in */
    struct profile_pair slower; /* one of them */
    uint32_t unreached;         /* nodes without any measured pair (out of time) */
};

/* Hierarchy, check, and the layers. -ETIME when not one pair was measured in time. */
int probe_survey_run(struct survey *survey, struct survey_result *out);

#endif
