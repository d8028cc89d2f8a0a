#include "probe_message.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

enum { SWEEPS = 2, BATCHES = 5, CONCURRENCY_MAX = 64 };
static const double sweeps_agree = 0.05;                 /* relative; otherwise a third sweep of that pair */
static const size_t curve_from = 1, curve_to = 4u << 20; /* bytes, doubling every other step */

/* A single short message is all start-up and skew: 0.11 us where a batch of fifty reads 0.14. */
static uint32_t round_trips_for(size_t bytes)
{
    return bytes <= 4096 ? 50 : bytes <= (128u << 10) ? 10 : 2;
}

static int exchange(struct probe *probe, size_t bytes, const struct profile_pair *pairs, size_t count, double *seconds)
{
    const struct machine_exchange what = {bytes, round_trips_for(bytes), BATCHES};
    return machine_exchange(probe->machine, &what, pairs, count, seconds);
}

/* -- inference -- */

int probe_message_layers(const struct profile_set *pus, const double *pair_seconds, struct profile_communication *out)
{
    struct profile_communication result = {0};
    struct pair_classes classes;
    struct clusters clusters;
    size_t pairs = pair_count(pus->count);
    uint32_t *cluster_of = malloc(pairs * sizeof *cluster_of);
    int rc = cluster_of ? pair_classes_init(&classes, pus) : -ENOMEM;
    if (rc < 0) {
        free(cluster_of);
        return rc;
    }
    rc = cluster_values(pair_seconds, pairs, cluster_of, &clusters);
    if (rc == 0) {
        result.layers = calloc(clusters.count, sizeof *result.layers);
        rc = result.layers ? 0 : -ENOMEM;
    }
    for (size_t i = 0; i < pairs && rc == 0; i++) {
        classes.of[i] = (uint8_t)cluster_of[i];
    }
    for (size_t i = 0; rc == 0 && i < clusters.count; i++) {
        result.layers[i].seconds = clusters.centre[i];
        result.layers[i].quality =
            (struct profile_quality){.origin = PROFILE_MEASURED, .repetitions = SWEEPS * BATCHES, .spread = -1};
        rc = relation_from_classes(&classes, 0, (uint8_t)i, &result.layers[i].members);
        result.layer_count += rc == 0;
    }
    pair_classes_free(&classes);
    free(cluster_of);
    if (rc < 0) {
        probe_message_free(&result);
        return rc;
    }
    *out = result;
    return 0;
}

/* -- all pairs -- */

static int sweep(struct probe *probe, size_t bytes, int number, double *least, double *apart)
{
    const struct profile_set *pus = &probe->machine->pus;
    size_t all = pair_count(pus->count);
    for (size_t i = 0, k = 0; i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count; j++, k++) {
            const struct profile_pair pair = {pus->ids[i], pus->ids[j]};
            double seconds;
            if (number >= SWEEPS && apart[k] <= sweeps_agree) {
                continue;
            }
            int rc = exchange(probe, bytes, &pair, 1, &seconds);
            if (rc < 0) {
                return rc;
            }
            apart[k] = number ? fabs(seconds / least[k] - 1) : 0;
            least[k] = number == 0 || seconds < least[k] ? seconds : least[k];
            probe_tell(probe, 0.6 * ((double)number + (double)(k + 1) / (double)all) / (SWEEPS + 1),
                       "messages between PUs %u and %u", pair.a, pair.b);
        }
    }
    return 0;
}

/* -- one layer -- */

/* A pair that is in this layer and in none before it. */
static bool find_pair(const struct profile_set *pus, const double *pair_seconds,
                      const struct profile_communication *result, size_t layer, struct profile_pair *out)
{
    double best = INFINITY;
    for (size_t i = 0, k = 0; i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count; j++, k++) {
            double distance = fabs(log(pair_seconds[k] / result->layers[layer].seconds));
            if (distance < best) {
                best = distance;
                *out = (struct profile_pair){pus->ids[i], pus->ids[j]};
            }
        }
    }
    return best < INFINITY;
}

static int measure_curve(struct probe *probe, const struct profile_pair *pair, struct profile_layer *layer)
{
    enum { POINTS_MAX = 32 };
    layer->curve = calloc(POINTS_MAX, sizeof *layer->curve);
    if (!layer->curve) {
        return -ENOMEM;
    }
    for (size_t bytes = curve_from; bytes <= curve_to && layer->curve_count < POINTS_MAX; bytes *= 2) {
        double first, second;
        int rc = exchange(probe, bytes, pair, 1, &first);
        rc = rc < 0 ? rc : exchange(probe, bytes, pair, 1, &second);
        if (rc < 0) {
            return rc;
        }
        layer->curve[layer->curve_count++] = (struct profile_message_point){bytes, fmin(first, second)};
        probe_tell(probe, 0.8, "messages of %zu bytes", bytes);
    }
    return 0;
}

/* Disjoint pairs of the layer, greedily in the order of the PUs. */
static size_t disjoint_pairs(const struct profile_set *pus, const double *pair_seconds, double low, double high,
                             struct profile_pair *out)
{
    size_t count = 0;
    bool taken[2 * CONCURRENCY_MAX + 1];
    size_t n = pus->count < 2 * CONCURRENCY_MAX ? pus->count : 2 * CONCURRENCY_MAX;
    memset(taken, 0, sizeof taken);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n && !taken[i]; j++) {
            double seconds = pair_seconds[pair_index(pus->count, i, j)];
            if (!taken[j] && seconds >= low && seconds <= high) {
                taken[i] = taken[j] = true;
                out[count++] = (struct profile_pair){pus->ids[i], pus->ids[j]};
            }
        }
    }
    return count;
}

static int measure_concurrency(struct probe *probe, size_t bytes, const struct profile_pair *pairs, size_t count,
                               struct profile_layer *layer)
{
    double seconds[CONCURRENCY_MAX];
    layer->concurrency = calloc(count ? count : 1, sizeof *layer->concurrency);
    if (!layer->concurrency) {
        return -ENOMEM;
    }
    for (size_t messages = 1; messages <= count;
         messages = messages < count && 2 * messages > count ? count : 2 * messages) {
        double slowest = 0;
        int rc = exchange(probe, bytes, pairs, messages, seconds);
        if (rc < 0) {
            return rc;
        }
        for (size_t i = 0; i < messages; i++) {
            slowest = fmax(slowest, seconds[i]);
        }
        layer->concurrency[layer->concurrency_count++] =
            (struct profile_concurrency_point){(uint32_t)messages, slowest};
    }
    return 0;
}

static int measure_layers(struct probe *probe, const double *pair_seconds, struct profile_communication *result)
{
    const struct profile_set *pus = &probe->machine->pus;
    for (size_t i = 0; i < result->layer_count; i++) {
        struct profile_layer *layer = &result->layers[i];
        struct profile_pair pair, pairs[CONCURRENCY_MAX];
        if (!find_pair(pus, pair_seconds, result, i, &pair)) {
            continue;
        }
        double low = i ? sqrt(result->layers[i - 1].seconds * layer->seconds) : 0;
        double high = i + 1 < result->layer_count ? sqrt(result->layers[i + 1].seconds * layer->seconds) : INFINITY;
        size_t count = disjoint_pairs(pus, pair_seconds, low, high, pairs);
        int rc = measure_curve(probe, &pair, layer);
        rc = rc < 0 ? rc : measure_concurrency(probe, result->message_bytes, pairs, count, layer);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int measure(struct probe *probe, size_t bytes, struct profile_communication *result)
{
    const struct profile_set *pus = &probe->machine->pus;
    size_t pairs = pair_count(pus->count);
    double *least = calloc(pairs + 1, sizeof *least), *apart = calloc(pairs + 1, sizeof *apart);
    int rc = least && apart ? 0 : -ENOMEM;
    for (int number = 0; number <= SWEEPS && rc == 0; number++) {
        rc = sweep(probe, bytes, number, least, apart);
    }
    rc = rc < 0 ? rc : probe_message_layers(pus, least, result);
    if (rc == 0) {
        result->message_bytes = bytes;
        rc = measure_layers(probe, least, result);
    }
    free(least);
    free(apart);
    return rc;
}

int probe_message(struct probe *probe, size_t message_bytes, struct profile_communication *out,
                  struct servet_error *error)
{
    struct profile_communication result = {.message_bytes = message_bytes};
    int rc = probe->machine->pus.count > 1 ? measure(probe, message_bytes, &result) : 0;
    if (rc < 0) {
        probe_message_free(&result);
        return probe_error(error, rc, "measuring messages");
    }
    *out = result;
    return 0;
}

void probe_message_free(struct profile_communication *result)
{
    for (size_t i = 0; i < result->layer_count; i++) {
        struct profile_layer *layer = &result->layers[i];
        relation_free(&layer->members);
        free(layer->name);
        free(layer->curve);
        free(layer->concurrency);
        free(layer->quality.note);
    }
    free(result->layers);
    relation_free(&result->measured);
    memset(result, 0, sizeof *result);
}
