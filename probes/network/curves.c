/* Curves of one layer between nodes (network.h), measured on one pair of each. */
#include "probes/network/network.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/messages.h"
#include "probes/pairs/sample.h"
#include "profile/query.h"

enum { PAIRS_MAX = 64 };

static struct profile_pair pus_of(const struct survey *survey, uint32_t a, uint32_t b,
                                  uint32_t number)
{
    const struct survey_layout *layout = &survey->layout;
    return (struct profile_pair){layout->pus[layout->first[a] + number],
                                 layout->pus[layout->first[b] + number]};
}

static uint32_t pus_in_common(const struct survey *survey, uint32_t a, uint32_t b)
{
    const uint32_t *first = survey->layout.first;
    uint32_t of_a = first[a + 1] - first[a], of_b = first[b + 1] - first[b];
    return of_a < of_b ? of_a : of_b;
}

/* The measured pair of the layer that is nearest to its figure. */
static const struct survey_edge *representative(const struct survey *survey,
                                                const struct profile_communication *network,
                                                size_t layer)
{
    const struct survey_edge *best = NULL;
    double least = INFINITY;
    for (size_t i = 0; i < survey->edge_count; i++) {
        const struct survey_edge *edge = &survey->edges[i];
        size_t index = 0;
        double distance = fabs(log(edge->seconds / network->layers[layer].seconds));
        if (distance < least && profile_layer_of(network, edge->a, edge->b, &index) &&
            index == layer) {
            least = distance;
            best = edge;
        }
    }
    return best;
}

static size_t add_pairs(const struct survey *survey, uint32_t a, uint32_t b,
                        struct profile_pair *pairs, size_t count)
{
    uint32_t common = pus_in_common(survey, a, b);
    for (uint32_t i = 0; i < common && count < PAIRS_MAX; i++) {
        pairs[count++] = pus_of(survey, a, b, i);
    }
    return count;
}

/* Pairs of the layer that have no node in common, the representative first. */
static int find_pairs(const struct survey *survey, const struct profile_communication *network,
                      size_t layer, const struct survey_edge *first, struct profile_pair *pairs,
                      size_t *count)
{
    FREED bool *used = calloc(survey->layout.nodes, sizeof *used);
    TRY(used ? 0 : -ENOMEM);
    *count = add_pairs(survey, first->a, first->b, pairs, 0);
    used[first->a] = used[first->b] = true;
    for (size_t i = 0; i < survey->edge_count && *count < PAIRS_MAX; i++) {
        const struct survey_edge *edge = &survey->edges[i];
        size_t index = 0;
        if (!used[edge->a] && !used[edge->b] &&
            profile_layer_of(network, edge->a, edge->b, &index) && index == layer) {
            used[edge->a] = used[edge->b] = true;
            *count = add_pairs(survey, edge->a, edge->b, pairs, *count);
        }
    }
    return 0;
}

/* The note on a measured layer, a new string, or NULL: N messages of S at once against one of N *
 * S, as long as that is on the curve. */
static char *curve_note(const struct profile_layer *layer, uint64_t message_bytes)
{
    const struct profile_concurrency_point *many = NULL;
    const uint64_t last = layer->curve_count ? layer->curve[layer->curve_count - 1].bytes : 0;
    for (size_t i = 0; i < layer->concurrency_count; i++) {
        if (layer->concurrency[i].messages > 1 &&
            layer->concurrency[i].messages * message_bytes <= last) {
            many = &layer->concurrency[i];
        }
    }
    if (!many || layer->curve_count < 2) {
        return strdup("only one pair at a time was possible");
    }
    const uint64_t bytes = many->messages * message_bytes;
    const double one = profile_message_seconds(layer, message_bytes, (double)bytes);
    char *note;
    return asprintf(&note,
                    "%u messages at once take %.3g times as long as one; one of %llu bytes takes "
                    "%.3g of that: %s",
                    many->messages, many->seconds / layer->concurrency[0].seconds,
                    (unsigned long long)bytes, one / many->seconds,
                    (1 + CONCURRENT_TOLERATED) * one < many->seconds
                        ? "gather messages where the program can"
                        : "gathering gains nothing") < 0
               ? NULL
               : note;
}

int probe_survey_curves(struct survey *survey, struct profile_communication *network)
{
    struct probe *probe = survey->probe;
    probe->deadline = survey->options.until_s;
    for (size_t i = 0; i < network->layer_count; i++) {
        struct profile_layer *layer = &network->layers[i];
        const struct survey_edge *edge = representative(survey, network, i);
        struct profile_pair pairs[PAIRS_MAX];
        size_t count = 0;
        if (!edge || probe_survey_over(survey)) {
            continue;
        }
        const struct profile_pair pair = pus_of(survey, edge->a, edge->b, 0);
        TRY(find_pairs(survey, network, i, edge, pairs, &count));
        TRY(probe_message_curves(probe, network->message_bytes, &pair, pairs, count, layer));
        if (!probe_survey_over(survey)) {
            layer->quality.note = curve_note(layer, network->message_bytes);
            TRY(layer->quality.note ? 0 : -ENOMEM);
        }
        probe_tell(probe, (double)(i + 1) / (double)network->layer_count,
                   "messages in network layer %zu", i);
    }
    return 0;
}
