/* Latency of messages between PUs: layers, curves, and messages at a time (2010 paper, Section
 * III-D). Two sweeps apart in time, of which the smaller figure counts: disturbance only adds. */
#include "probes/pairs/messages.h"
#include "probes/pairs/layers.h"
#include "probes/pairs/partition.h"
#include "probes/pairs/sample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SWEEPS = 2, PILOTS = 5 };
static const size_t curve_from = 1, curve_to = 4u << 20; /* bytes, doubling every other step */

/* A single short message is all start-up and skew: 0.11 us where a batch of fifty reads 0.14.
 * Messages that take `about_s` (0: not known) are fewer. */
static uint32_t round_trips_for(size_t bytes, double about_s)
{
    const double usual = bytes <= 4096           ? 50
                         : bytes <= (128u << 10) ? 10
                                                 : 2,
                 most = about_s > 0 ? PROBE_MESSAGE_BATCH_S / (2 * about_s) : usual;
    return (uint32_t)fmax(1, fmin(usual, most));
}

static int exchange_pairs(struct probe *probe, size_t bytes, double about_s,
                          const struct profile_pair *pairs, size_t count, double *seconds)
{
    const struct machine_exchange what = {bytes, round_trips_for(bytes, about_s),
                                          PROBE_MESSAGE_BATCHES, probe->unwritten};
    return probe_machine_exchange(probe->machine, &what, pairs, count, seconds);
}

/* -- pairs -- */

/* The figures that there are when the time is over stay. */
static int in_time(int rc)
{
    return rc == -ETIME ? 0 : rc;
}

struct question {
    struct probe *probe;
    size_t bytes;
    struct sampling_outcome *outcome; /* for the second sweep */
    double *logs;                     /* of the ratios of two figures of one pair */
    size_t ratios;                    /* room for one of every pair */
    size_t calm;                      /* of them, in which no other process is known to have run */
    double spread;                    /* of one figure, from them */
    uint32_t sweeps;
};

static double spread_so_far(const struct question *question)
{
    double sorted[PILOTS];
    memcpy(sorted, question->logs, question->ratios * sizeof *sorted);
    return probe_layers_spread(sorted, question->ratios);
}

static int exchange_all(const struct question *question, const struct pair_position *positions,
                        size_t count, double done, double *seconds)
{
    const uint32_t *ids = question->probe->machine->pus.ids;
    struct profile_pair pairs[CONCURRENT_MOST];
    for (size_t k = 0; k < count; k++) {
        pairs[k] = (struct profile_pair){ids[positions[k].i], ids[positions[k].j]};
    }
    probe_tell(question->probe, done, "messages between PUs %u and %u", pairs[0].a, pairs[0].b);
    return exchange_pairs(question->probe, question->bytes, 0, pairs, count, seconds);
}

static int ask_pairs(void *argument, const struct pair_position *pairs, size_t count,
                     double *seconds, double *figures)
{
    struct question *question = argument;
    double twice[CONCURRENT_MOST];
    TRY(exchange_all(question, pairs, count, 0.2, seconds));
    /* The first pairs twice: whether a class's pairs agree is asked before the second sweep. */
    if (question->ratios < PILOTS && !probe_late(question->probe)) {
        int rc = exchange_all(question, pairs, count, 0.2, twice);
        TRY(in_time(rc));
        for (size_t k = 0; k < count && rc == 0; k++) {
            if (question->ratios < PILOTS) {
                question->logs[question->ratios++] = log(twice[k] / seconds[k]);
            }
            seconds[k] = fmin(seconds[k], twice[k]);
        }
        question->spread = rc == 0 ? spread_so_far(question) : question->spread;
    }
    memcpy(figures, seconds, count * sizeof *figures);
    return 0;
}

/* A pair whose two sweeps differ is asked again, alone, until its two smallest figures agree or
 * the time is over. */
static int settle_pair(const struct question *question, const struct pair_position *pair,
                       double first, double second, double *least)
{
    double sweeps[REPEAT_MINIMUM_MOST] = {first, second};
    *least = fmin(first, second);
    for (size_t count = SWEEPS;
         !probe_repeat_minimum_settled(sweeps, count) && !probe_late(question->probe); count++) {
        TRY(exchange_all(question, pair, 1, 0.4, &sweeps[count]));
        *least = fmin(*least, sweeps[count]);
    }
    return 0;
}

/* The smaller of two figures that lie apart in time, and beside other pairs if there were any. */
static int ask_again(void *argument, const struct pair_position *pairs, size_t count,
                     double *seconds, double *figures)
{
    struct question *question = argument;
    const struct machine *machine = question->probe->machine;
    const size_t pus = machine->pus.count, disturbed = machine->guard.disturbed;
    TRY(exchange_all(question, pairs, count, 0.4, seconds));
    question->calm += machine->guard.disturbed == disturbed ? count : 0;
    for (size_t k = 0; k < count; k++) {
        double *value = &question->outcome->values[probe_pair_index(pus, pairs[k].i, pairs[k].j)];
        const double sweeps[] = {*value, seconds[k]};
        if (count > 1 && !probe_repeat_minimum_settled(
                             sweeps, SWEEPS)) { /* it may have been the others beside it */
            TRY(exchange_all(question, &pairs[k], 1, 0.4, &seconds[k]));
        }
        question->logs[question->ratios++] = log(seconds[k] / *value);
        TRY(settle_pair(question, &pairs[k], *value, seconds[k], value));
        figures[k] = *value;
    }
    return 0;
}

static int second_sweep(struct sampling *sampling, struct question *question,
                        struct sampling_outcome *outcome)
{
    question->ratios = question->calm = 0;
    question->outcome = outcome;
    int rc = probe_sampling_again(sampling, outcome, ++question->probe->seed, ask_again, question);
    question->spread = probe_layers_spread(question->logs, question->ratios);
    return rc;
}

/* Leaves the spread of one figure in the question; < 0: not known. */
static int measure_pairs(struct question *question, struct sampling_outcome *outcome)
{
    struct probe *probe = question->probe;
    FREED_BY(probe_sampling_free) struct sampling sampling;
    TRY(probe_sampling_init(&sampling, &probe->machine->pus, probe->declared));
    sampling.spread = &question->spread;
    sampling.exhaustive = probe->exhaustive;
    sampling.agree = probe_layers_agree;
    sampling.cheap = true;
    sampling.probe = probe;
    sampling.at_once = probe_concurrent_most(probe, CONCURRENT_MOST);
    TRY(probe_sampling_run(&sampling, NULL, ++probe->seed, ask_pairs, question, outcome));
    question->sweeps = 1;
    if (!outcome->cut_short && !probe_late(probe)) {
        int rc = second_sweep(&sampling, question, outcome);
        question->sweeps = rc == 0 ? SWEEPS : 1;
        TRY(in_time(rc));
    }
    /* probe_layers_cluster() takes that for none, too */
    question->spread = question->ratios > 0 ? question->spread : -1;
    return 0;
}

/* Most ratios are of the machine alone, and so is what their spread says. */
static bool is_calm(const struct question *question)
{
    return question->sweeps < SWEEPS || 2 * question->calm > question->ratios;
}

/* -- inference -- */

/* Layers from the latency of every pair, of which one figure deviates by the spread (layers.c);
 * without curves and names. 0 or -ENOMEM, -EINVAL. */
static int message_layers(const struct question *question, const struct sampling_outcome *outcome,
                          struct profile_communication *out)
{
    const struct profile_set *pus = &question->probe->machine->pus;
    const size_t pairs = probe_pair_count(pus->count);
    const bool known = question->spread >= 0 && is_calm(question);
    const double spread = known ? 2 * LAYERS_MAD_OF_DEVIATION * question->spread : -1;
    struct clusters clusters;
    FREED uint32_t *cluster_of = malloc(pairs * sizeof *cluster_of);
    out->message_data = strdup(question->probe->unwritten ? "unwritten" : "written");
    TRY(cluster_of && out->message_data ? 0 : -ENOMEM);
    TRY(probe_layers_of_pairs(pus->count, outcome->values, question->spread, cluster_of,
                              &clusters));
    out->layers = calloc(clusters.count, sizeof *out->layers);
    TRY(out->layers ? 0 : -ENOMEM);
    for (size_t i = 0; i < clusters.count; i++) {
        struct profile_layer *layer = &out->layers[out->layer_count++];
        layer->seconds = clusters.centre[i];
        layer->quality =
            (struct profile_quality){.origin = PROFILE_INFERRED,
                                     .repetitions = question->sweeps * PROBE_MESSAGE_BATCHES,
                                     .spread = spread};
        TRY(probe_relation_from_classes(pus, cluster_of, (uint32_t)i, &layer->members));
        TRY(probe_sampling_note(outcome, &layer->quality.note));
    }
    for (size_t k = 0; k < pairs; k++) {
        if (outcome->measured[k]) {
            out->layers[cluster_of[k]].quality.origin = PROFILE_MEASURED;
        }
    }
    return 0;
}

/* -- one layer -- */

/* The measured pair that is the nearest to the layer. */
static bool find_nearest_pair(const struct profile_communication *result, size_t layer,
                              struct profile_pair *out, double *seconds)
{
    double best = INFINITY;
    for (size_t i = 0; i < result->message_time_count; i++) {
        const struct profile_pair_figure *figure = &result->message_times[i];
        double distance = fabs(log(figure->value / result->layers[layer].seconds));
        if (distance < best) {
            best = distance;
            *out = (struct profile_pair){figure->a, figure->b};
            *seconds = figure->value;
        }
    }
    return best < INFINITY;
}

/* The slowest of the pairs, from as many measurements as it takes for the two smallest to agree.
 * Those in which other processes are known to have run do not count for the dispersion, which one
 * rank that waits for its PU would make hundredfold. Without two others it is not known (< 0). */
static int exchange_settled(struct probe *probe, size_t bytes, double about_s,
                            const struct profile_pair *pairs, size_t count,
                            struct probe_settled *out)
{
    FREED double *seconds = malloc(count * sizeof *seconds);
    double slowest[REPEAT_MINIMUM_MOST], least = INFINITY;
    const struct machine_guard *guard = &probe->machine->guard;
    size_t turn = 0, calm = 0;
    TRY(seconds ? 0 : -ENOMEM);
    for (; turn < REPEAT_MINIMUM_MOST && !probe_repeat_minimum_settled(slowest, calm) &&
           !(turn > 0 && probe_late(probe));
         turn++) {
        const size_t disturbed = guard->disturbed;
        TRY(exchange_pairs(probe, bytes, about_s, pairs, count, seconds));
        slowest[calm] = 0;
        for (size_t i = 0; i < count; i++) {
            slowest[calm] = fmax(slowest[calm], seconds[i]);
        }
        least = fmin(least, slowest[calm]);
        calm += guard->disturbed == disturbed;
    }
    *out = (struct probe_settled){least, probe_spread(slowest, calm),
                                  (uint32_t)turn * PROBE_MESSAGE_BATCHES};
    return 0;
}

static int measure_message_curve(struct probe *probe, const struct profile_pair *pair,
                                 struct profile_layer *layer)
{
    enum { POINTS_MAX = 32, CURVE_LEAST = 2 }; /* of fewer points nothing is interpolated */
    double about_s = layer->seconds;
    layer->curve = calloc(POINTS_MAX, sizeof *layer->curve);
    TRY(layer->curve ? 0 : -ENOMEM);
    for (size_t bytes = curve_from; bytes <= curve_to && layer->curve_count < POINTS_MAX &&
                                    (layer->curve_count < CURVE_LEAST || !probe_late(probe));
         bytes *= 2) {
        struct probe_settled least;
        int rc = exchange_settled(probe, bytes, about_s, pair, 1, &least);
        if (rc < 0) {
            layer->curve_count = layer->curve_count < CURVE_LEAST ? 0 : layer->curve_count;
            return rc;
        }
        layer->curve[layer->curve_count++] =
            (struct profile_message_point){bytes, least.seconds, least.repetitions, least.spread};
        about_s = least.seconds;
        probe_tell(probe, 0.8, "messages of %zu bytes", bytes);
    }
    return 0;
}

/* Disjoint pairs of the layer, greedily in the order of the PUs; up to all PUs (2010 paper, Figure
 * 10b). 0 or -ENOMEM. */
static int disjoint_pairs(const struct profile_set *pus, const double *pair_seconds, double low,
                          double high, struct profile_pair *pairs, size_t *count)
{
    FREED bool *taken = calloc(pus->count, sizeof *taken);
    TRY(taken && pairs ? 0 : -ENOMEM);
    for (size_t i = 0; i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count && !taken[i]; j++) {
            double seconds = pair_seconds[probe_pair_index(pus->count, i, j)];
            if (!taken[j] && seconds >= low && seconds <= high) {
                taken[i] = taken[j] = true;
                pairs[(*count)++] = (struct profile_pair){pus->ids[i], pus->ids[j]};
            }
        }
    }
    return 0;
}

int probe_message_curves(struct probe *probe, size_t bytes, const struct profile_pair *pair,
                         const struct profile_pair *pairs, size_t count,
                         struct profile_layer *layer)
{
    TRY(measure_message_curve(probe, pair, layer));
    layer->concurrency = calloc(count ? count : 1, sizeof *layer->concurrency);
    TRY(layer->concurrency ? 0 : -ENOMEM);
    for (size_t messages = 1; messages <= count && !probe_late(probe);
         messages = messages < count && 2 * messages > count ? count : 2 * messages) {
        struct probe_settled slowest;
        TRY(exchange_settled(probe, bytes, layer->seconds, pairs, messages, &slowest));
        layer->concurrency[layer->concurrency_count++] = (struct profile_concurrency_point){
            (uint32_t)messages, slowest.seconds, slowest.repetitions, slowest.spread};
    }
    return 0;
}

static int measure_layers(struct probe *probe, const double *pair_seconds,
                          struct profile_communication *result)
{
    const struct profile_set *pus = &probe->machine->pus;
    for (size_t i = 0; i < result->layer_count && !probe_late(probe); i++) {
        struct profile_layer *layer = &result->layers[i];
        FREED struct profile_pair *pairs = calloc(pus->count, sizeof *pairs);
        struct profile_pair pair;
        size_t count = 0, most = probe_machine_at_once(probe->machine) / 2;
        double seconds;
        if (!find_nearest_pair(result, i, &pair, &seconds)) {
            continue;
        }
        double low = i ? sqrt(result->layers[i - 1].seconds * layer->seconds) : 0;
        double high = i + 1 < result->layer_count
                          ? sqrt(result->layers[i + 1].seconds * layer->seconds)
                          : INFINITY;
        TRY(disjoint_pairs(pus, pair_seconds, low, high, pairs, &count));
        TRY(probe_message_curves(probe, result->message_bytes, &pair, pairs,
                                 count < most ? count : most, layer));
    }
    return 0;
}

/* -- looks apart in time -- */

/* One batch of so many bytes; its own repetitions do not replace a second look. A longer time does
 * not count where other processes are known to have run (exchange_settled()). */
static int look(struct probe *probe, size_t bytes, const struct profile_pair *pair, double *seconds,
                double *spread, uint32_t *repetitions)
{
    const struct machine_guard *guard = &probe->machine->guard;
    const size_t disturbed = guard->disturbed;
    double again;
    TRY(exchange_pairs(probe, bytes, 0, pair, 1, &again));
    if (guard->disturbed == disturbed || again < *seconds) {
        probe_repeat_look_again(seconds, spread, repetitions,
                                &(struct probe_settled){again, -1, PROBE_MESSAGE_BATCHES});
    }
    return 0;
}

/* The times of a layer whose only pair was looked at again are that pair's. */
static void follow_level(struct profile_communication *result, size_t index, double seconds)
{
    struct profile_layer *layer = &result->layers[index];
    double floor = index ? result->layers[index - 1].seconds : 0;
    if (result->message_time_count == 1) {
        result->message_times[0].value = probe_pair_rounded(seconds);
        layer->seconds = fmax(floor, seconds);
    }
}

static int look_at_layer(struct probe *probe, struct profile_communication *result, size_t index)
{
    struct profile_layer *layer = &result->layers[index];
    struct profile_pair pair;
    double seconds;
    if (!layer->curve_count || !find_nearest_pair(result, index, &pair, &seconds)) {
        return 0;
    }
    TRY(look(probe, result->message_bytes, &pair, &seconds, &layer->quality.spread,
             &layer->quality.repetitions));
    follow_level(result, index, seconds);
    for (size_t i = 0; i < layer->curve_count && !probe_late(probe); i++) {
        struct profile_message_point *point = &layer->curve[i];
        TRY(look(probe, point->bytes, &pair, &point->seconds, &point->spread, &point->repetitions));
    }
    /* The same holds for one message and for those that are sent at a time. */
    for (size_t i = 0; i < layer->concurrency_count; i++) {
        layer->concurrency[i].spread = fmax(layer->concurrency[i].spread, layer->quality.spread);
    }
    return 0;
}

int probe_message_look_again(struct probe *probe, struct profile_communication *result,
                             struct servet_error *error)
{
    for (size_t i = 0; i < result->layer_count && !probe_late(probe); i++) {
        probe_tell(probe, 0.95, "messages once more");
        TRY(probe_error(error, look_at_layer(probe, result, i), "measuring messages again"));
    }
    return 0;
}

static int measure_messages(struct probe *probe, size_t bytes, struct profile_communication *result)
{
    const struct profile_set *pus = &probe->machine->pus;
    const size_t pairs = probe_pair_count(pus->count);
    FREED_BY(probe_sampling_outcome_free) struct sampling_outcome outcome = {0};
    FREED double *logs = malloc((pairs + PILOTS) * sizeof *logs);
    struct question question = {.probe = probe, .bytes = bytes, .logs = logs};
    TRY(logs ? probe_sampling_outcome_init(&outcome, pairs) : -ENOMEM);
    TRY(measure_pairs(&question, &outcome));
    TRY(message_layers(&question, &outcome, result));
    TRY(outcome.measured_count < outcome.pair_count
            ? probe_relation_of_pairs(pus, outcome.measured, &result->measured)
            : 0);
    TRY(probe_pair_figures(pus, outcome.values, outcome.measured, &result->message_times,
                           &result->message_time_count));
    return in_time(measure_layers(probe, outcome.values, result));
}

size_t probe_message_usual_bytes(const struct profile_class *node_class)
{
    static const size_t without_first_level = 32u << 10;
    /* Arm and RISC-V systems tell that there is a cache, and not always how large it is. */
    bool known = node_class->cache_count > 0 && node_class->caches[0].size_bytes > 0;
    return known ? node_class->caches[0].size_bytes : without_first_level;
}

int probe_message(struct probe *probe, size_t message_bytes, struct profile_communication *out,
                  struct servet_error *error)
{
    FREED_BY(profile_communication_free)
    struct profile_communication result = {.message_bytes = message_bytes};
    if (probe->machine->pus.count > 1) {
        TRY(probe_error(error, measure_messages(probe, message_bytes, &result),
                        "measuring messages"));
    }
    *out = TAKE(result);
    return 0;
}

int probe_message_pair(struct probe *probe, size_t bytes, const struct profile_pair *pair,
                       double *seconds)
{
    return exchange_pairs(probe, bytes, 0, pair, 1, seconds);
}
