#include "cluster_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probe_message.h"
#include "query.h"
#include "result.h"

/* Up to this factor two nodes of a class are equal here; see cluster_nodes.c. */
static const double same_latency = 2;
enum { ROUND_TRIPS = 10, BATCHES = 3 };

/* One node as a machine whose PU numbers are its own. */
struct node_machine {
    struct machine *all;
    const struct profile_set *pus;
    const uint32_t *ranks; /* of the i-th PU */
};

static uint32_t rank_on(const struct node_machine *node, uint32_t pu)
{
    size_t i = 0;
    while (node->pus->ids[i] != pu) {
        i++;
    }
    return node->ranks[i];
}

static int node_exchange(struct machine *machine, const struct machine_exchange *what, const struct profile_pair *pairs,
                         size_t count, double *seconds)
{
    const struct node_machine *node = machine->state;
    struct profile_pair *ranks = calloc(count, sizeof *ranks);
    if (!ranks) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        ranks[i] = (struct profile_pair){rank_on(node, pairs[i].a), rank_on(node, pairs[i].b)};
    }
    int rc = machine_exchange(node->all, what, ranks, count, seconds);
    free(ranks);
    return rc;
}

static const struct machine_ops node_ops = {.exchange = node_exchange};

static int measure_class(struct probe *probe, const struct survey_layout *layout, uint32_t node,
                         struct profile_class *node_class, size_t message_bytes, struct servet_error *error)
{
    struct node_machine state = {probe->machine, &node_class->pus, layout->pus + layout->first[node]};
    struct machine machine = {
        .ops = &node_ops, .name = "mpi", .pus = node_class->pus, .cancel = probe->machine->cancel, .state = &state};
    struct probe inside = *probe;
    struct profile_communication found;
    inside.machine = &machine;
    int rc = probe_message(&inside, message_bytes, &found, error);
    probe->seed = inside.seed;
    if (rc < 0) {
        return rc;
    }
    rc = result_set_layers(node_class, &found);
    return rc < 0 ? profile_error(error, rc, "messages inside a node: %s", strerror(-rc)) : 0;
}

/* A pair of PUs of the layer. */
static bool find_pair(const struct profile_class *node_class, size_t layer, size_t *a, size_t *b)
{
    const struct profile_set *pus = &node_class->pus;
    for (*a = 0; *a < pus->count; ++*a) {
        for (*b = *a + 1; *b < pus->count; ++*b) {
            size_t index;
            if (profile_layer_of(&node_class->communication, pus->ids[*a], pus->ids[*b], &index) && index == layer) {
                return true;
            }
        }
    }
    return false;
}

/* The same pair on all nodes of the class. */
static int compare(struct probe *probe, const struct survey_layout *layout, const struct cluster_classes *classes,
                   uint32_t c, size_t layer, size_t message_bytes, char *const *names, FILE *outliers)
{
    const struct profile_class *node_class = &classes->profile->classes[c];
    const struct machine_exchange what = {message_bytes, ROUND_TRIPS, BATCHES};
    double usual = node_class->communication.layers[layer].seconds;
    size_t a, b;
    if (!find_pair(node_class, layer, &a, &b)) {
        return 0;
    }
    for (uint32_t node = 0; node < layout->nodes; node++) {
        const uint32_t *ranks = layout->pus + layout->first[node];
        double seconds, again;
        if (classes->class_of[node] != c || node == classes->representative[c]) {
            continue;
        }
        const struct profile_pair pair = {ranks[a], ranks[b]};
        int rc = machine_exchange(probe->machine, &what, &pair, 1, &seconds);
        if (rc == 0 && seconds > same_latency * usual) { /* disturbed, or really so? */
            rc = machine_exchange(probe->machine, &what, &pair, 1, &again);
            seconds = rc == 0 && again < seconds ? again : seconds;
        }
        if (rc < 0) {
            return rc;
        }
        if (seconds > same_latency * usual || usual > same_latency * seconds) {
            fprintf(outliers, "%s: messages between its PUs %u and %u take %.3g us, not %.3g as on %s\n", names[node],
                    node_class->pus.ids[a], node_class->pus.ids[b], seconds * 1e6, usual * 1e6,
                    names[classes->representative[c]]);
        }
    }
    return 0;
}

int inside_measure(struct probe *probe, const struct survey_layout *layout, struct cluster_classes *classes,
                   const bool *covered, size_t message_bytes, char *const *names, FILE *outliers,
                   struct servet_error *error)
{
    for (uint32_t c = 0; c < classes->profile->class_count; c++) {
        struct profile_class *node_class = &classes->profile->classes[c];
        if (!covered[c] || node_class->pus.count < 2) {
            continue;
        }
        int rc = measure_class(probe, layout, classes->representative[c], node_class, message_bytes, error);
        for (size_t layer = 0; rc == 0 && layer < node_class->communication.layer_count; layer++) {
            rc = compare(probe, layout, classes, c, layer, message_bytes, names, outliers);
            if (rc < 0) {
                profile_error(error, rc, "comparing nodes: %s", machine_strerror(rc));
            }
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}
