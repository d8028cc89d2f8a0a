/* Latency between the nodes of a cluster without measuring all pairs (network.h). */
#include "probes/network/network.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/pairs/messages.h"
#include "probes/pairs/sample.h"
#include "profile/base/random.h"

enum { ROUND_TRIPS = 5, WIDTH_SAMPLE = 8 };

/* -- edges -- */

int probe_survey_open(struct survey *survey, struct probe *probe,
                      const struct survey_layout *layout, const struct survey_options *options)
{
    const size_t room = layout->nodes + 1;
    *survey = (struct survey){.probe = probe,
                              .layout = *layout,
                              .options = *options,
                              .disturbance = 1,
                              .last = calloc(room, sizeof *survey->last),
                              .round = calloc(room, sizeof *survey->round),
                              .pus = calloc(room, sizeof *survey->pus),
                              .seconds = calloc(room, sizeof *survey->seconds)};
    return survey->last && survey->round && survey->pus && survey->seconds ? 0 : -ENOMEM;
}

void probe_survey_close(struct survey *survey)
{
    for (size_t i = 0; i < survey->block_count; i++) {
        profile_set_free(&survey->blocks[i]);
    }
    free(survey->blocks);
    free(survey->edges);
    free(survey->last);
    free(survey->round);
    free(survey->pus);
    free(survey->seconds);
    memset(survey, 0, sizeof *survey);
}

bool probe_survey_over(struct survey *survey)
{
    if (survey->options.until_s > 0 &&
        probe_machine_elapsed(survey->probe->machine) > survey->options.until_s) {
        survey->out_of_time = true;
    }
    return survey->out_of_time;
}

/* Random pairs and rounds give a node some dozens of edges: they are gone through. */
struct survey_edge *probe_survey_find(const struct survey *survey, uint32_t a, uint32_t b)
{
    const uint32_t higher = a > b ? a : b;
    uint32_t at = survey->last[a < b ? a : b];
    while (at && survey->edges[at - 1].b != higher) {
        at = survey->edges[at - 1].before;
    }
    return at ? &survey->edges[at - 1] : NULL;
}

static int add_edge(struct survey *survey, struct profile_pair pair, double seconds)
{
    if (survey->edge_count == survey->edge_room) {
        const size_t room = 2 * survey->edge_room + survey->layout.nodes;
        struct survey_edge *edges = realloc(survey->edges, room * sizeof *edges);
        TRY(edges ? 0 : -ENOMEM);
        survey->edges = edges;
        survey->edge_room = room;
    }
    const uint32_t a = pair.a < pair.b ? pair.a : pair.b, b = pair.a < pair.b ? pair.b : pair.a;
    survey->edges[survey->edge_count++] = (struct survey_edge){.a = a,
                                                               .b = b,
                                                               .seconds = seconds,
                                                               .next = INFINITY,
                                                               .sweeps = 1,
                                                               .before = survey->last[a],
                                                               .local = !survey->spread_out};
    survey->last[a] = (uint32_t)survey->edge_count;
    return 0;
}

static int record(struct survey *survey, struct profile_pair pair, double seconds)
{
    struct survey_edge *edge = probe_survey_find(survey, pair.a, pair.b);
    if (!edge) {
        return add_edge(survey, pair, seconds);
    }
    edge->next = fmin(edge->next, fmax(edge->seconds, seconds));
    edge->seconds = fmin(edge->seconds, seconds);
    edge->sweeps++;
    return 0;
}

/* -- rounds -- */

/* Fewer in a batch where messages are slow: a long batch is more often disturbed, not more
 * exact. */
static uint32_t round_trips(const struct survey *survey, const struct profile_pair *nodes,
                            size_t count)
{
    double most = ROUND_TRIPS;
    for (size_t i = 0; i < count; i++) {
        const struct survey_edge *edge = probe_survey_find(survey, nodes[i].a, nodes[i].b);
        most = edge ? fmin(most, PROBE_MESSAGE_BATCH_S / (2 * edge->seconds)) : most;
    }
    return most < 1 ? 1 : (uint32_t)most;
}

/* Sets survey->seconds. */
static int exchange_nodes(struct survey *survey, const struct profile_pair *nodes, size_t count)
{
    const struct machine_exchange what = {survey->options.message_bytes,
                                          round_trips(survey, nodes, count), PROBE_MESSAGE_BATCHES,
                                          false};
    for (size_t i = 0; i < count; i++) {
        survey->pus[i].a = survey->layout.pus[survey->layout.first[nodes[i].a]];
        survey->pus[i].b = survey->layout.pus[survey->layout.first[nodes[i].b]];
    }
    return probe_machine_exchange(survey->probe->machine, &what, survey->pus, count,
                                  survey->seconds);
}

/* The most pairs at the same time that do not disturb each other: half as many until a sample
 * agrees with itself. */
static int choose_width(struct survey *survey, const struct profile_pair *pairs, size_t count)
{
    double alone[WIDTH_SAMPLE], ratio[WIDTH_SAMPLE];
    size_t sample = count < WIDTH_SAMPLE ? count : WIDTH_SAMPLE;
    for (size_t i = 0; i < sample; i++) {
        TRY(exchange_nodes(survey, &pairs[i], 1));
        alone[i] = survey->seconds[0];
    }
    for (survey->width = count; survey->width > 1; survey->width /= 2) {
        TRY(exchange_nodes(survey, pairs, survey->width));
        size_t compared = survey->width < sample ? survey->width : sample;
        for (size_t i = 0; i < compared; i++) {
            ratio[i] = survey->seconds[i] / alone[i];
        }
        survey->disturbance = profile_median_value(ratio, compared);
        if (survey->disturbance <= 1 + CONCURRENT_TOLERATED || probe_survey_over(survey)) {
            break;
        }
    }
    return 0;
}

/* The pairs of a round that this sweep asks for, `width` at a time. */
static int sweep_round(struct survey *survey, const struct profile_pair *pairs, size_t count,
                       int sweep)
{
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++) {
        const struct survey_edge *edge =
            sweep ? probe_survey_find(survey, pairs[i].a, pairs[i].b) : NULL;
        bool again = edge && edge->next > (1 + REPEAT_AGREE) * edge->seconds;
        if (!sweep || again) {
            survey->round[wanted++] = pairs[i];
        }
    }
    for (size_t done = 0; done < wanted && !probe_survey_over(survey);) {
        size_t now = wanted - done < survey->width ? wanted - done : survey->width;
        TRY(exchange_nodes(survey, &survey->round[done], now));
        for (size_t i = 0; i < now; i++) {
            TRY(record(survey, survey->round[done + i], survey->seconds[i]));
        }
        done += now;
    }
    return 0;
}

/* Measures pairs of nodes: `rounds` rounds, of which number r are the pairs from start[r] to
 * start[r + 1] - 1; those of one round are disjoint, and none is larger than the first. Two sweeps,
 * more (up to five) of the pairs whose two least figures differ by more than 5 % (probe.h).
 * Pairs left when time is over are not edges. 0 or -errno. */
static int measure_rounds(struct survey *survey, const struct profile_pair *pairs,
                          const size_t *start, size_t rounds)
{
    if (rounds == 0 || start[1] == start[0]) {
        return 0;
    }
    TRY(survey->width ? 0 : choose_width(survey, pairs + start[0], start[1] - start[0]));
    for (int sweep = 0; sweep < REPEAT_MINIMUM_MOST; sweep++) {
        for (size_t r = 0; r < rounds && !probe_survey_over(survey); r++) {
            TRY(sweep_round(survey, pairs + start[r], start[r + 1] - start[r], sweep));
            probe_tell(survey->probe,
                       ((double)sweep + (double)r / (double)rounds) / REPEAT_MINIMUM_MOST,
                       "%zu pairs of nodes", survey->edge_count);
        }
    }
    return 0;
}

/* -- which pairs -- */

/* Round `round` of a tournament of `count` players by the circle method: the last one stays, the
 * others turn. */
static size_t tournament_round(const uint32_t *items, size_t count, size_t round,
                               struct profile_pair *out)
{
    size_t even = count + count % 2, pairs = 0;
    for (size_t i = 0; i < even / 2; i++) {
        size_t x = i == 0 ? even - 1 : (round + i) % (even - 1),
               y = (round + even - 1 - i) % (even - 1);
        if (x < count && y < count) {
            out[pairs++] = (struct profile_pair){items[x], items[y]};
        }
    }
    return pairs;
}

/* Last of each block against the first of the next, in two rounds: a block of one would be in two
 * pairs of one. */
static void chain(const uint32_t *items, size_t count, size_t block, struct profile_pair *pairs,
                  size_t *start, size_t *rounds)
{
    for (size_t parity = 0; parity < 2; parity++) {
        size_t used = start[*rounds];
        for (size_t next = block * (parity + 1); next < count; next += 2 * block) {
            pairs[used++] = (struct profile_pair){items[next - 1], items[next]};
        }
        start[++*rounds] = used;
    }
}

/* Notes that all pairs of each block are edges. */
static int note_blocks(struct survey *survey, const uint32_t *items, size_t count, size_t block)
{
    size_t blocks = (count + block - 1) / block;
    struct profile_set *all = realloc(survey->blocks, (survey->block_count + blocks) * sizeof *all);
    TRY(all ? 0 : -ENOMEM);
    survey->blocks = all;
    for (size_t first = 0; first < count; first += block) {
        size_t players = count - first < block ? count - first : block;
        for (size_t i = 0; i < players; i++) {
            for (size_t j = i + 1; j < players; j++) {
                probe_survey_find(survey, items[first + i], items[first + j])->in_block = true;
            }
        }
        if (players > 1) {
            TRY(profile_set_from_array(items + first, players,
                                       &survey->blocks[survey->block_count]));
            survey->block_count++;
        }
    }
    return 0;
}

static int by_nodes(const void *a, const void *b)
{
    const struct profile_pair *x = a, *y = b;
    if (x->a != y->a) {
        return x->a < y->a ? -1 : 1;
    }
    return (x->b > y->b) - (x->b < y->b);
}

int probe_survey_measured(const struct survey *survey, struct profile_relation *out)
{
    FREED_BY(profile_relation_free)
    struct profile_relation measured = {
        .groups = calloc(survey->block_count + 1, sizeof *measured.groups),
        .pairs = calloc(survey->edge_count + 1, sizeof *measured.pairs)};
    TRY(measured.groups && measured.pairs ? 0 : -ENOMEM);
    for (size_t i = 0; i < survey->block_count; i++) {
        TRY(profile_set_copy(&survey->blocks[i], &measured.groups[i]));
        measured.group_count++;
    }
    for (size_t i = 0; i < survey->edge_count; i++) {
        if (!survey->edges[i].in_block) {
            measured.pairs[measured.pair_count++] =
                (struct profile_pair){survey->edges[i].a, survey->edges[i].b};
        }
    }
    qsort(measured.pairs, measured.pair_count, sizeof *measured.pairs, by_nodes);
    *out = TAKE(measured);
    return 0;
}

int probe_survey_blocks(struct survey *survey, const uint32_t *items, size_t count, size_t block)
{
    size_t per_block = block * (block - 1) / 2, blocks = (count + block - 1) / block;
    FREED struct profile_pair *pairs = calloc(blocks * per_block + blocks + 1, sizeof *pairs);
    FREED size_t *start = calloc(block + 4, sizeof *start);
    size_t rounds = 0;
    TRY(pairs && start ? 0 : -ENOMEM);
    for (size_t round = 0; round < block + block % 2 - 1; round++) {
        size_t used = start[rounds];
        for (size_t first = 0; first < count; first += block) {
            size_t players = count - first < block ? count - first : block;
            if (players > 1 && round < players + players % 2 - 1) {
                used += tournament_round(items + first, players, round, pairs + used);
            }
        }
        start[++rounds] = used;
    }
    chain(items, count, block, pairs, start, &rounds);
    TRY(measure_rounds(survey, pairs, start, rounds));
    TRY(survey->out_of_time ? 0 : note_blocks(survey, items, count, block));
    survey->spread_out = true;
    return 0;
}

int probe_survey_random(struct survey *survey, size_t wanted, size_t *from)
{
    uint32_t nodes = survey->layout.nodes;
    struct random random = {++survey->probe->seed};
    FREED uint32_t *order = calloc(nodes + 1, sizeof *order);
    FREED struct profile_pair *pairs = calloc(nodes + 1, sizeof *pairs);
    TRY(order && pairs ? 0 : -ENOMEM);
    *from = survey->edge_count;
    for (uint32_t i = 0; i < nodes; i++) {
        order[i] = i;
    }
    for (size_t before = SIZE_MAX;
         before != survey->edge_count && survey->edge_count - *from < wanted;) {
        size_t start[2] = {0, 0}, left = wanted - (survey->edge_count - *from);
        before = survey->edge_count;
        random_shuffle(&random, order, nodes, sizeof *order);
        for (uint32_t k = 0; k + 1 < nodes && start[1] < left; k += 2) {
            if (!probe_survey_find(survey, order[k], order[k + 1])) {
                pairs[start[1]++] = (struct profile_pair){order[k], order[k + 1]};
            }
        }
        TRY(measure_rounds(survey, pairs, start, 1));
    }
    return 0;
}
