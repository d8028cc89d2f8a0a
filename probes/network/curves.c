/* Curves of one layer between nodes: latency by message size, and the cost of many messages at once
 * (2010 paper, Section III-D, Figure 10). Measured on one pair of each layer, since pairs of a
 * layer are alike. */
#include "probes/network/network.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile/base/file.h"
#include "profile/query.h"

/* Points of a curve, where the least of both sweeps counts; batches of messages at once. */
enum { CURVE_MAX = 32, CURVE_SWEEPS = 2, BATCHES = 3, PAIRS_MAX = 64 };
/* As far as the curves of the OSU benchmarks go. */
static const uint64_t curve_to_bytes = 4u << 20;
/* 50 round trips up to the one, 2 above the other, 10 between them. */
static const uint64_t short_bytes = 4096, long_bytes = 128u << 10;
/* One long message against many short ones: beyond what two runs differ by. */
static const double clearly = 0.9;

/* Round trips of one batch: fewer where messages take `about_s`, since a batch that lasts longer
 * than a scheduler's time slice is more often disturbed, not more exact. */
static uint32_t round_trips(size_t bytes, double about_s)
{
    uint32_t trips = bytes <= short_bytes ? 50 : bytes <= long_bytes ? 10 : 2;
    double most = about_s > 0 ? SURVEY_BATCH_S / (2 * about_s) : trips;
    return most < 1 ? 1 : most < trips ? (uint32_t)most : trips;
}

static int exchange(struct survey *survey, size_t bytes, double about_s,
                    const struct profile_pair *pus, size_t count, double *seconds)
{
    const struct machine_exchange what = {bytes, round_trips(bytes, about_s), BATCHES, false};
    survey->rounds++;
    survey->measurements += count;
    return probe_machine_exchange(survey->probe->machine, &what, pus, count, seconds);
}

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

/* -- by size -- */

/* The lesser of two figures that lie apart in time; `before` NULL: there is one. */
static struct profile_message_point both_sweeps(uint64_t bytes, double seconds,
                                                const struct profile_message_point *before)
{
    double sweeps[] = {seconds, before ? before->seconds : 0};
    return (struct profile_message_point){
        .bytes = bytes,
        .seconds = before ? fmin(seconds, before->seconds) : seconds,
        .repetitions = (before ? before->repetitions : 0) + BATCHES,
        .spread = before ? probe_spread(sweeps, 2) : -1};
}

static int measure_curve(struct survey *survey, const struct survey_edge *edge,
                         struct profile_layer *layer)
{
    const struct profile_pair pair = pus_of(survey, edge->a, edge->b, 0);
    struct profile_message_point *curve = calloc(CURVE_MAX, sizeof *curve);
    size_t count = 0;
    int rc = curve ? 0 : -ENOMEM;
    for (int sweep = 0; rc == 0 && sweep < CURVE_SWEEPS; sweep++) {
        size_t point = 0;
        double about_s = layer->seconds;
        for (uint64_t bytes = 1; rc == 0 && bytes <= curve_to_bytes && !probe_survey_over(survey);
             bytes *= 2, point++) {
            double seconds;
            rc = exchange(survey, bytes, about_s, &pair, 1, &seconds);
            if (rc < 0) {
                break;
            }
            const struct profile_message_point *before = point < count ? &curve[point] : NULL;
            curve[point] = both_sweeps(bytes, seconds, before);
            count = point < count ? count : point + 1;
            about_s = curve[point].seconds;
        }
    }
    layer->curve = curve;
    layer->curve_count = rc == 0 ? count : 0;
    return rc;
}

/* -- many at once -- */

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
    bool *used = calloc(survey->layout.nodes, sizeof *used);
    if (!used) {
        return -ENOMEM;
    }
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
    free(used);
    return 0;
}

static int measure_concurrency(struct survey *survey, uint64_t bytes,
                               const struct profile_pair *pairs, size_t count,
                               struct profile_layer *layer)
{
    double seconds[PAIRS_MAX];
    layer->concurrency = calloc(count + 1, sizeof *layer->concurrency);
    int rc = layer->concurrency ? 0 : -ENOMEM;
    for (size_t messages = 1; rc == 0 && messages <= count && !probe_survey_over(survey);) {
        double slowest = 0;
        rc = exchange(survey, bytes, layer->seconds, pairs, messages, seconds);
        for (size_t i = 0; rc == 0 && i < messages; i++) {
            slowest = fmax(slowest, seconds[i]);
        }
        if (rc == 0) {
            layer->concurrency[layer->concurrency_count++] =
                (struct profile_concurrency_point){(uint32_t)messages, slowest, BATCHES, -1};
        }
        messages = messages < count && 2 * messages > count ? count : 2 * messages;
    }
    return rc;
}

/* -- what follows -- */

/* N messages of S at once against one of N * S: as long as that is on the curve. */
static void note_scaling(FILE *out, const struct profile_layer *layer, uint64_t message_bytes)
{
    const struct profile_concurrency_point *many = NULL;
    for (size_t i = 0; i < layer->concurrency_count; i++) {
        if (layer->concurrency[i].messages > 1 &&
            layer->concurrency[i].messages * message_bytes <= curve_to_bytes) {
            many = &layer->concurrency[i];
        }
    }
    if (!many || layer->curve_count < 2) {
        fprintf(out, "only one pair at a time was possible");
        return;
    }
    double one =
        profile_message_seconds(layer, message_bytes, (double)(many->messages * message_bytes));
    fprintf(out,
            "%u messages at once take %.3g times as long as one; one of %llu bytes takes %.3g of "
            "that: %s",
            many->messages, many->seconds / layer->concurrency[0].seconds,
            (unsigned long long)(many->messages * message_bytes), one / many->seconds,
            one < clearly * many->seconds ? "gather messages where the program can"
                                          : "gathering gains nothing");
}

/* The note on a measured layer, a new string, or NULL. */
static char *curve_note(const struct profile_layer *layer, uint64_t message_bytes)
{
    char *text = NULL;
    size_t size;
    FILE *out = profile_stream_open(&text, &size);
    if (!out) {
        return NULL;
    }
    note_scaling(out, layer, message_bytes);
    return fclose(out) == 0 ? text : NULL;
}

int probe_survey_curves(struct survey *survey, struct profile_communication *network)
{
    for (size_t i = 0; i < network->layer_count; i++) {
        struct profile_layer *layer = &network->layers[i];
        const struct survey_edge *edge = representative(survey, network, i);
        struct profile_pair pairs[PAIRS_MAX];
        size_t count = 0;
        if (!edge || probe_survey_over(survey)) {
            continue;
        }
        int rc = measure_curve(survey, edge, layer);
        rc = rc < 0 ? rc : find_pairs(survey, network, i, edge, pairs, &count);
        rc = rc < 0 ? rc : measure_concurrency(survey, network->message_bytes, pairs, count, layer);
        if (rc < 0) {
            return rc;
        }
        if (!survey->out_of_time) {
            layer->quality.note = curve_note(layer, network->message_bytes);
            rc = layer->quality.note ? 0 : -ENOMEM;
        }
        if (rc < 0) {
            return rc;
        }
        probe_tell(survey->probe, (double)(i + 1) / (double)network->layer_count,
                   "messages in network layer %zu", i);
    }
    return 0;
}
