/* One cache line from PU to PU (messages.h). Two threads of this process hand it to and fro,
 * whatever the messages of the layers went through.
 *
 * The time of a line is bimodal over seconds on virtual machines (24 to 27 and 149 to 154 ns):
 * rounds go through all pairs before they come back to the first one, and a second look later
 * covers more than that. */
#include "probes/pairs/layers.h"
#include "probes/pairs/messages.h"
#include "probes/pairs/partition.h"
#include "probes/pairs/sample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "profile/base/random.h"
#include "profile/query.h"

/* ROUNDS: through the sample. SAMPLE: pairs of each layer. */
enum { ROUNDS = REPEAT_MEDIAN_LEAST, SAMPLE = 8 };

struct lines {
    struct probe *probe;
    struct profile_communication *communication;
    double *seconds; /* by probe_pair_index(): the least so far. Owned, as the next */
    bool *measured;
    /* of each layer: the pairs of the sample */
    struct pair_position sample[CLUSTERS_MAX][SAMPLE];
    size_t sampled[CLUSTERS_MAX];
    double before[CLUSTERS_MAX]; /* median of the sample in an earlier look; 0: there was none */
};

/* -- which pairs -- */

/* As many pairs of each layer as there is room for, each with the same chance (reservoir sampling:
 * Vitter, ACM TOMS 1985, algorithm R). */
static void choose_sample(struct lines *lines)
{
    const struct profile_set *pus = &lines->probe->machine->pus;
    struct random random = {0}; /* in each run: the same pairs are asked again later */
    size_t seen[CLUSTERS_MAX] = {0}, layer;
    for (size_t i = 0; i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count; j++) {
            if (!profile_layer_of(lines->communication, pus->ids[i], pus->ids[j], &layer)) {
                continue;
            }
            size_t place = seen[layer]++;
            place = place < SAMPLE ? place : (size_t)random_below(&random, place + 1);
            if (place < SAMPLE) {
                lines->sample[layer][place] = (struct pair_position){i, j};
            }
        }
    }
    for (layer = 0; layer < lines->communication->layer_count; layer++) {
        lines->sampled[layer] = seen[layer] < SAMPLE ? seen[layer] : SAMPLE;
    }
}

static double median_of_sample(const struct lines *lines, size_t layer)
{
    const size_t n = lines->probe->machine->pus.count;
    double seconds[SAMPLE];
    for (size_t i = 0; i < lines->sampled[layer]; i++) {
        const struct pair_position *at = &lines->sample[layer][i];
        seconds[i] = lines->seconds[probe_pair_index(n, at->i, at->j)];
    }
    return lines->sampled[layer] ? profile_median_value(seconds, lines->sampled[layer]) : 0;
}

/* The figures of an earlier look. */
static void recall(struct lines *lines)
{
    const struct profile_set *pus = &lines->probe->machine->pus;
    for (size_t i = 0; i < lines->communication->line_time_count; i++) {
        const struct profile_pair_figure *figure = &lines->communication->line_times[i];
        size_t pair = probe_pair_index(pus->count, profile_set_position(pus, figure->a),
                                       profile_set_position(pus, figure->b));
        lines->seconds[pair] = figure->value;
        lines->measured[pair] = true;
    }
    for (size_t layer = 0; layer < lines->communication->layer_count; layer++) {
        lines->before[layer] = median_of_sample(lines, layer);
    }
}

static void lines_free(struct lines *lines)
{
    free(lines->seconds);
    free(lines->measured);
}

static int lines_init(struct probe *probe, struct profile_communication *communication,
                      struct lines *lines)
{
    size_t pairs = probe_pair_count(probe->machine->pus.count);
    *lines = (struct lines){.probe = probe,
                            .communication = communication,
                            .seconds = calloc(pairs + 1, sizeof *lines->seconds),
                            .measured = calloc(pairs + 1, sizeof *lines->measured)};
    TRY(lines->seconds && lines->measured ? 0 : -ENOMEM);
    choose_sample(lines);
    recall(lines);
    return 0;
}

/* -- measuring -- */

static int measure_pair(struct lines *lines, const struct pair_position *at, double *seconds)
{
    const uint32_t *ids = lines->probe->machine->pus.ids;
    const struct profile_pair pair = {ids[at->i], ids[at->j]};
    size_t k = probe_pair_index(lines->probe->machine->pus.count, at->i, at->j);
    TRY(probe_message_pair(lines->probe, MACHINE_LINE_BYTES, &pair, seconds));
    lines->seconds[k] = lines->measured[k] ? fmin(lines->seconds[k], *seconds) : *seconds;
    lines->measured[k] = true;
    return 0;
}

/* Once through the sample; medians[i][round]: of the i-th layer's pairs. */
static int one_round(struct lines *lines, size_t round, double medians[][ROUNDS])
{
    for (size_t layer = 0; layer < lines->communication->layer_count; layer++) {
        double seconds[SAMPLE];
        for (size_t i = 0; i < lines->sampled[layer]; i++) {
            TRY(measure_pair(lines, &lines->sample[layer][i], &seconds[i]));
        }
        medians[layer][round] = profile_median_value(seconds, lines->sampled[layer]);
    }
    return 0;
}

/* All that the sample leaves, once each. */
static int measure_others(struct lines *lines)
{
    const struct profile_set *pus = &lines->probe->machine->pus;
    for (size_t i = 0; i < pus->count; i++) {
        for (size_t j = i + 1; j < pus->count && !probe_late(lines->probe); j++) {
            double seconds;
            if (!lines->measured[probe_pair_index(pus->count, i, j)] &&
                profile_layer_of(lines->communication, pus->ids[i], pus->ids[j], NULL)) {
                TRY(measure_pair(lines, &(struct pair_position){i, j}, &seconds));
            }
        }
        probe_tell(lines->probe, 0.9, "cache lines of PU %u", pus->ids[i]);
    }
    return 0;
}

/* -- what comes of it -- */

/* A layer has the median of its measured pairs, and none without. 0 or -ENOMEM. */
static int set_seconds(struct profile_communication *all)
{
    const size_t pairs = all->line_time_count;
    FREED double *values = malloc((pairs + 1) * sizeof *values);
    FREED size_t *layer_of = malloc((pairs + 1) * sizeof *layer_of);
    TRY(values && layer_of ? 0 : -ENOMEM);
    for (size_t k = 0; k < pairs; k++) {
        const struct profile_pair_figure *figure = &all->line_times[k];
        layer_of[k] = all->layer_count; /* unless one holds it */
        (void)profile_layer_of(all, figure->a, figure->b, &layer_of[k]);
    }
    for (size_t i = 0; i < all->layer_count; i++) {
        size_t count = 0;
        for (size_t k = 0; k < pairs; k++) {
            if (layer_of[k] == i) {
                values[count++] = all->line_times[k].value;
            }
        }
        all->layers[i].line_seconds =
            count ? probe_pair_rounded(profile_median_value(values, count)) : 0;
    }
    return 0;
}

/* `rounds`: this look's medians of the layer. */
static void conclude_layer(struct lines *lines, size_t layer, double *rounds, size_t count)
{
    struct profile_quality *quality = &lines->communication->layers[layer].line_quality;
    if (!lines->sampled[layer] || !count) {
        return;
    }
    double least = INFINITY;
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, rounds[i]);
    }
    /* of evidence a spread that is not known is 0, and left out (profile/codec/fields.c) */
    struct probe_settled look = {least, fmax(probe_spread(rounds, count), 0),
                                 (uint32_t)(count * PROBE_MESSAGE_BATCHES)};
    if (lines->before[layer] > 0) {
        probe_repeat_look_again(&lines->before[layer], &quality->spread, &quality->repetitions,
                                &look);
    } else {
        *quality = (struct profile_quality){
            .origin = PROFILE_MEASURED, .repetitions = look.repetitions, .spread = look.spread};
    }
}

static int measure_lines(struct lines *lines)
{
    struct profile_communication *communication = lines->communication;
    double medians[CLUSTERS_MAX][ROUNDS];
    const bool first = communication->line_time_count == 0;
    size_t done = 0;
    while (done < ROUNDS && !(done > 0 && probe_late(lines->probe))) {
        probe_tell(lines->probe, 0.85, "cache lines from PU to PU");
        TRY(one_round(lines, done++, medians));
    }
    TRY(first && lines->probe->exhaustive ? measure_others(lines) : 0);
    for (size_t layer = 0; layer < communication->layer_count; layer++) {
        conclude_layer(lines, layer, medians[layer], done);
    }
    TRY(probe_pair_figures(&lines->probe->machine->pus, lines->seconds, lines->measured,
                           &communication->line_times, &communication->line_time_count));
    return set_seconds(communication);
}

int probe_lines(struct probe *probe, struct profile_communication *communication,
                struct servet_error *error)
{
    FREED_BY(lines_free) struct lines lines;
    const bool room = lines_init(probe, communication, &lines) == 0;
    return probe_error(error, room ? measure_lines(&lines) : -ENOMEM, "measuring cache lines");
}

/* -- other layers -- */

int probe_lines_move(struct profile_communication *from, struct profile_communication *to)
{
    free(to->line_times);
    to->line_times = from->line_times;
    to->line_time_count = from->line_time_count;
    from->line_times = NULL;
    from->line_time_count = 0;
    for (size_t k = 0; k < to->line_time_count; k++) {
        const uint32_t a = to->line_times[k].a, b = to->line_times[k].b;
        const struct profile_layer *of = profile_layer_of(from, a, b, NULL);
        size_t index;
        if (!of || !profile_layer_of(to, a, b, &index)) {
            continue;
        }
        struct profile_quality *quality = &to->layers[index].line_quality;
        const struct profile_quality *seen = &of->line_quality;
        const bool first = quality->origin != PROFILE_MEASURED,
                   fewer = first || seen->repetitions < quality->repetitions;
        quality->origin = PROFILE_MEASURED;
        quality->repetitions = fewer ? seen->repetitions : quality->repetitions;
        quality->spread = first ? seen->spread : fmax(quality->spread, seen->spread);
    }
    return set_seconds(to);
}
