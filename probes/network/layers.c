/* From the latencies of some pairs of nodes to the layers of all (network.h). */
#include "probes/network/network.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/layers.h"
#include "probes/pairs/messages.h"
#include "probes/pairs/partition.h"

/* Latencies that the clusters are made of; more would only cost time. */
#define CLUSTER_SAMPLE 4096u
/* Latencies between neighbours by name that are taken in any case. */
#define CLUSTER_LEAST 256u
/* Inferred pairs that are measured to verify: one in so many nodes, and at least as many as
 * the nodes of which every pair is measured. */
#define CHECK_PER_NODES 4u

/* -- which latencies belong together -- */

/* Clusters that are too near to the one before them become part of it. */
static void merge_near(struct clusters *clusters, uint32_t *of, size_t count)
{
    size_t kept = 0;
    uint32_t renamed[CLUSTERS_MAX] = {0};
    for (size_t i = 1; i < clusters->count; i++) {
        kept += clusters->centre[i] > LAYERS_APART * clusters->centre[kept];
        renamed[i] = (uint32_t)kept;
        if (renamed[i] != renamed[i - 1]) {
            clusters->centre[kept] = clusters->centre[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        of[i] = renamed[of[i]];
    }
    clusters->count = kept + 1;
}

/* Latencies that speak for all pairs. Most are of neighbours by name, while most pairs are far from
 * each other: of the neighbours only as many are taken as there are others, or the farthest layer
 * would drown. */
static size_t sample(const struct survey *survey, double *values)
{
    size_t far = 0, count = 0, taken = 0;
    for (size_t i = 0; i < survey->edge_count; i++) {
        far += !survey->edges[i].local;
    }
    size_t local = survey->edge_count - far, enough = far > CLUSTER_LEAST ? far : CLUSTER_LEAST;
    size_t step = far + (local < enough ? local : enough), every = step / CLUSTER_SAMPLE + 1;
    size_t every_local = (local / enough + 1) * every;
    for (size_t i = 0, near = 0; i < survey->edge_count; i++) {
        const struct survey_edge *edge = &survey->edges[i];
        bool take = edge->local ? near++ % every_local == 0 : taken++ % every == 0;
        if (take) {
            values[count++] = edge->seconds;
        }
    }
    return count;
}

double probe_survey_spread(const struct survey *survey)
{
    double logs[CLUSTER_SAMPLE];
    size_t every = survey->edge_count / CLUSTER_SAMPLE + 1, count = 0;
    for (size_t i = 0; i < survey->edge_count && count < CLUSTER_SAMPLE; i += every) {
        const struct survey_edge *edge = &survey->edges[i];
        if (edge->sweeps > 1) {
            logs[count++] = log(edge->next / edge->seconds);
        }
    }
    return probe_layers_spread(logs, count);
}

/* Latencies that belong together, fastest first. */
struct survey_layers {
    size_t count;
    double seconds[CLUSTERS_MAX];
    double up_to[CLUSTERS_MAX]; /* largest latency of the layer; the last one's is infinite */
    /* [layer * nodes + node]: reach_over() up to the layer (infer_layers()). Owned */
    uint32_t *components;
};

static void free_layers(struct survey_layers *layers)
{
    free(layers->components);
}

/* Clusters as far apart as that spread demands. 0, -ENOMEM, -EINVAL (no edge). */
static int cluster_latencies(const struct survey *survey, struct survey_layers *out)
{
    double highest[CLUSTERS_MAX] = {0}, lowest[CLUSTERS_MAX];
    FREED double *values = calloc(survey->edge_count + 1, sizeof *values);
    FREED uint32_t *of = calloc(survey->edge_count + 1, sizeof *of);
    struct clusters clusters;
    TRY(values && of ? 0 : -ENOMEM);
    const size_t count = sample(survey, values);
    TRY(probe_layers_cluster(values, count, probe_survey_spread(survey), of, &clusters));
    merge_near(&clusters, of, count);
    for (size_t i = 0; i < CLUSTERS_MAX; i++) {
        lowest[i] = INFINITY;
    }
    for (size_t i = 0; i < count; i++) {
        highest[of[i]] = fmax(highest[of[i]], values[i]);
        lowest[of[i]] = fmin(lowest[of[i]], values[i]);
    }
    *out = (struct survey_layers){.count = clusters.count};
    for (size_t i = 0; i < clusters.count; i++) {
        out->seconds[i] = clusters.centre[i];
        out->up_to[i] = i + 1 < clusters.count ? sqrt(highest[i] * lowest[i + 1]) : INFINITY;
    }
    return 0;
}

static size_t layer_of(const struct survey_layers *layers, double seconds)
{
    size_t layer = 0;
    while (layer + 1 < layers->count && seconds > layers->up_to[layer]) {
        layer++;
    }
    return layer;
}

/* -- which nodes belong together -- */

/* component[node]: the lowest node that can be reached over edges of the layers up to `layer`. */
static void reach_over(const struct survey *survey, const struct survey_layers *layers,
                       size_t layer, uint32_t *component)
{
    for (uint32_t i = 0; i < survey->layout.nodes; i++) {
        component[i] = i;
    }
    for (size_t i = 0; i < survey->edge_count; i++) {
        const struct survey_edge *edge = &survey->edges[i];
        if (layer_of(layers, edge->seconds) <= layer) {
            probe_partition_unite(component, edge->a, edge->b);
        }
    }
    for (uint32_t i = 0; i < survey->layout.nodes; i++) {
        component[i] = probe_partition_root(component, i);
    }
}

/* Representatives of the components among `items`: of the lowest layers that leave half of them or
 * fewer. */
static int thin_out(const struct survey *survey, uint32_t *items, size_t *count,
                    uint32_t *component)
{
    struct survey_layers layers;
    TRY(cluster_latencies(survey, &layers));
    size_t left = *count, kept = 0;
    for (size_t layer = 0; layer < layers.count && 2 * left > *count; layer++) {
        reach_over(survey, &layers, layer, component);
        left = 0;
        for (size_t i = 0; i < *count; i++) {
            left += component[items[i]] == items[i];
        }
    }
    for (size_t i = 0; i < *count; i++) {
        if (component[items[i]] == items[i]) {
            items[kept++] = items[i];
        }
    }
    *count = kept;
    return 0;
}

/* Measures blocks, blocks of representatives, and so on. -ETIME: not one pair. */
static int measure_hierarchy(struct survey *survey)
{
    size_t count = survey->layout.nodes;
    bool all = survey->options.exhaustive || count <= SURVEY_ALL_UP_TO;
    FREED uint32_t *items = calloc(count + 1, sizeof *items),
                   *component = calloc(count + 1, sizeof *component);
    TRY(items && component ? 0 : -ENOMEM);
    for (uint32_t i = 0; i < count; i++) {
        items[i] = i;
    }
    while (count > 1 && !probe_survey_over(survey)) {
        size_t block = all || count <= SURVEY_BLOCK ? count : SURVEY_BLOCK;
        TRY(probe_survey_blocks(survey, items, count, block));
        if (block == count || probe_survey_over(survey)) {
            break;
        }
        TRY(thin_out(survey, items, &count, component));
    }
    return survey->edge_count == 0 ? -ETIME : 0;
}

/* -- layers of all pairs -- */

/* Layers, and the nodes that each connects. 0, -ENOMEM, -EINVAL (no edge). */
static int infer_layers(const struct survey *survey, struct survey_layers *out)
{
    const size_t nodes = survey->layout.nodes;
    TRY(cluster_latencies(survey, out));
    out->components = calloc(nodes * out->count + 1, sizeof *out->components);
    for (size_t i = 0; out->components && i < out->count; i++) {
        reach_over(survey, out, i, out->components + i * nodes);
    }
    return out->components ? 0 : -ENOMEM;
}

/* First layer in which both are reached; the last one for those that are not (out of time). */
static size_t inferred_layer(const struct survey *survey, const struct survey_layers *layers,
                             size_t a, size_t b)
{
    const uint32_t *component = layers->components;
    size_t layer = 0;
    for (; layer + 1 < layers->count && component[a] != component[b]; layer++) {
        component += survey->layout.nodes;
    }
    return layer;
}

static int exact_relations(const struct survey *survey, const struct survey_layers *layers,
                           const struct profile_set *nodes, struct profile_communication *network)
{
    const uint32_t count = survey->layout.nodes;
    FREED uint32_t *class_of = malloc((probe_pair_count(count) + 1) * sizeof *class_of);
    TRY(class_of ? 0 : -ENOMEM);
    PROBE_EACH_PAIR(count, i, j, k)
    {
        const struct survey_edge *edge = probe_survey_find(survey, (uint32_t)i, (uint32_t)j);
        class_of[k] = (uint32_t)(edge ? layer_of(layers, edge->seconds)
                                      : inferred_layer(survey, layers, i, j));
    }
    for (size_t l = 0; l < layers->count; l++) {
        TRY(probe_relation_from_classes(nodes, class_of, (uint32_t)l, &network->layers[l].members));
    }
    return 0;
}

/* The last layer also holds the nodes that were not reached in time. */
static int group_relations(const struct survey_layers *layers, const struct profile_set *nodes,
                           struct profile_communication *network)
{
    memset(layers->components + (layers->count - 1) * nodes->count, 0,
           nodes->count * sizeof *layers->components);
    for (size_t l = 0; l < layers->count; l++) {
        const struct partition components_of = {.pus = nodes->count,
                                                .unit = layers->components + l * nodes->count,
                                                .count = (uint32_t)nodes->count};
        TRY(probe_partition_groups(&components_of, nodes, &network->layers[l].members));
    }
    return 0;
}

static void count_contradictions(const struct survey *survey, const struct survey_layers *layers,
                                 struct survey_result *result)
{
    for (size_t i = 0; i < survey->edge_count; i++) {
        const struct survey_edge *edge = &survey->edges[i];
        if (layer_of(layers, edge->seconds) > inferred_layer(survey, layers, edge->a, edge->b)) {
            result->slower = (struct profile_pair){edge->a, edge->b};
            result->contradictions++;
        }
    }
}

/* How far the latencies of a layer lie apart: the quartiles of a sample. */
static double spread_of(const struct survey *survey, const struct survey_layers *layers,
                        size_t layer)
{
    double values[CLUSTER_SAMPLE];
    size_t count = 0;
    for (size_t i = 0; i < survey->edge_count && count < CLUSTER_SAMPLE; i++) {
        if (layer_of(layers, survey->edges[i].seconds) == layer) {
            values[count++] = survey->edges[i].seconds;
        }
    }
    return probe_spread(values, count);
}

static int make_layers(const struct survey *survey, struct survey_result *result)
{
    FREED_BY(free_layers) struct survey_layers layers = {0};
    struct profile_communication *network = &result->network;
    network->layers = calloc(CLUSTERS_MAX, sizeof *network->layers);
    FREED_BY(profile_set_free)
    struct profile_set nodes = {calloc(survey->layout.nodes, sizeof *nodes.ids), 0};
    TRY(network->layers && nodes.ids ? infer_layers(survey, &layers) : -ENOMEM);
    for (uint32_t i = 0; i < survey->layout.nodes; i++) {
        nodes.ids[nodes.count++] = i;
    }
    for (size_t i = 0; i < layers.count; i++) {
        struct profile_layer *layer = &network->layers[network->layer_count++];
        layer->seconds = layers.seconds[i];
        layer->quality.origin =
            survey->edge_count == result->all_pairs ? PROFILE_MEASURED : PROFILE_INFERRED;
        layer->quality.repetitions = 2; /* a pair is measured until two sweeps agree */
        layer->quality.spread = spread_of(survey, &layers, i);
    }
    if (survey->layout.nodes <= SURVEY_ALL_UP_TO) {
        return exact_relations(survey, &layers, &nodes, network);
    }
    count_contradictions(survey, &layers, result);
    return group_relations(&layers, &nodes, network);
}

/* -- the whole -- */

/* Random pairs against what follows from the others. */
static int check_layers(struct survey *survey, struct survey_result *result)
{
    FREED_BY(free_layers) struct survey_layers layers = {0};
    size_t wanted = survey->layout.nodes / CHECK_PER_NODES, first = 0,
           unknown = result->all_pairs - survey->edge_count;
    wanted = wanted > SURVEY_ALL_UP_TO ? wanted : SURVEY_ALL_UP_TO;
    wanted = wanted < unknown ? wanted : unknown;
    if (!wanted || probe_survey_over(survey)) {
        return 0;
    }
    TRY(infer_layers(survey, &layers));
    TRY(probe_survey_random(survey, wanted, &first));
    for (size_t i = first; i < survey->edge_count; i++) {
        const struct survey_edge *edge = &survey->edges[i];
        result->checked++;
        result->elsewhere +=
            layer_of(&layers, edge->seconds) != inferred_layer(survey, &layers, edge->a, edge->b);
    }
    return 0;
}

static int count_unreached(const struct survey *survey, struct survey_result *result)
{
    FREED bool *reached = calloc(survey->layout.nodes + 1, sizeof *reached);
    TRY(reached ? 0 : -ENOMEM);
    for (size_t i = 0; i < survey->edge_count; i++) {
        reached[survey->edges[i].a] = reached[survey->edges[i].b] = true;
    }
    for (uint32_t i = 0; i < survey->layout.nodes; i++) {
        result->unreached += !reached[i];
    }
    return 0;
}

static int survey_layers(struct survey *survey, struct survey_result *result)
{
    TRY(measure_hierarchy(survey));
    TRY(check_layers(survey, result));
    TRY(make_layers(survey, result));
    TRY(count_unreached(survey, result));
    return probe_survey_measured(survey, &result->network.measured);
}

int probe_survey_run(struct survey *survey, struct survey_result *out)
{
    size_t nodes = survey->layout.nodes;
    struct survey_result result = {.all_pairs = nodes * (nodes - 1) / 2,
                                   .network.message_bytes = survey->options.message_bytes};
    int rc = nodes < 2 ? 0 : survey_layers(survey, &result);
    result.measured_pairs = survey->edge_count;
    if (rc < 0) {
        profile_communication_free(&result.network);
        return rc;
    }
    *out = result;
    return 0;
}
