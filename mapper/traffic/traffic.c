/* Places ranks by the bytes that they send one another: from the top of the machine down, and by
 * changes of places. The time of a pair is that of one message with all its
 * bytes. */
#include "mapper/traffic/traffic.h"

#include <string.h>

#include "mapper/worth/worth.h"
#include "profile/query.h"
#include "profile/scope.h"

/* Rounds of swaps; each looks at all pairs of ranks. Gains after the third were nowhere seen. */
#define MOST_ROUNDS 3

/* Above this many ranks the swaps (ranks x ranks x partners) take seconds, and what is left to gain
 * is near the partners: descent.c. */
#define MOST_SWAPPED_RANKS 256

/* A gain smaller than this part of the cost is rounding. */
#define LEAST_GAIN 1e-9

static double cost_of_two(const struct map_traffic *t, uint32_t a, uint32_t b)
{
    return map_traffic_of_rank(t, a, t->place[a]) + map_traffic_of_rank(t, b, t->place[b]);
}

bool map_traffic_exchange(struct map_traffic *t, uint32_t a, uint32_t b)
{
    const uint32_t of_a = t->place[a], of_b = t->place[b];
    const double before = cost_of_two(t, a, b);
    t->place[a] = of_b;
    t->place[b] = of_a;
    if (cost_of_two(t, a, b) < before * (1 - LEAST_GAIN)) {
        return true;
    }
    t->place[a] = of_a;
    t->place[b] = of_b;
    return false;
}

void map_exchange_all(void *context, uint32_t count, int rounds,
                      bool (*exchange)(void *context, uint32_t a, uint32_t b))
{
    bool improved = true;
    for (int round = 0; improved && round < rounds; round++) {
        improved = false;
        for (uint32_t a = 0; a < count; a++) {
            for (uint32_t b = a + 1; b < count; b++) {
                improved |= exchange(context, a, b);
            }
        }
    }
}

static bool exchange_two(void *context, uint32_t a, uint32_t b)
{
    return map_traffic_exchangeable(context, a, b) && map_traffic_exchange(context, a, b);
}

/* Many ranks are cut level by level. With uneven numbers of threads, regions of one size change
 * owners, while that saves time: the cuts know nothing of sizes. */
static int place_many(struct map_traffic *t)
{
    if (!t->matrix->threads) {
        return map_place_by_descent(t);
    }
    memcpy(t->place, t->leaves, t->matrix->ranks * sizeof *t->place);
    return map_improve_nearby(t);
}

/* Few ranks change places while that saves time, from there on and from rank order, as programs
 * often number their ranks well already; the better end counts. */
static int place_greedily(struct map_traffic *t)
{
    uint32_t ranks = t->matrix->ranks;
    uint32_t *other = map_arena_get(&t->view->arena, ranks, sizeof *other);
    TRY(map_arena_check(&t->view->arena));
    TRY(place_many(t));
    if (ranks > MOST_SWAPPED_RANKS) {
        return 0;
    }
    map_exchange_all(t, ranks, MOST_ROUNDS, exchange_two);
    double seconds = map_traffic_total(t);
    memcpy(other, t->place, ranks * sizeof *other);
    memcpy(t->place, t->leaves, ranks * sizeof *t->place);
    map_exchange_all(t, ranks, MOST_ROUNDS, exchange_two);
    if (map_traffic_total(t) > seconds) {
        memcpy(t->place, other, ranks * sizeof *other);
    }
    return 0;
}

/* -- the time of a message -- */

double map_message_seconds(const struct map_view *view, uint32_t a, uint32_t b, double bytes)
{
    const struct map_family *between = map_between(view, a, b);
    if (!between) {
        return 0;
    }
    return view->latencies_known
               ? profile_message_seconds(between->layer, between->in->message_bytes, bytes)
               : between->distance * bytes;
}

/* -- the time of a placement -- */

double map_traffic_of_rank(const struct map_traffic *t, uint32_t rank, uint32_t leaf)
{
    double seconds = 0;
    for (size_t e = t->matrix->start[rank]; e < t->matrix->start[rank + 1]; e++) {
        uint32_t other = t->place[t->matrix->entries[e].to];
        if (other != MAP_NONE) {
            seconds += map_message_seconds(t->view, leaf, other, t->matrix->entries[e].bytes);
        }
    }
    return seconds;
}

double map_traffic_total(const struct map_traffic *t)
{
    double seconds = 0;
    for (uint32_t r = 0; r < t->matrix->ranks; r++) {
        seconds += map_traffic_of_rank(t, r, t->place[r]);
    }
    return seconds / 2; /* every pair was seen from both ends */
}

/* Leaves become their numbers in t->leaves, each once. Several regions may begin on one leaf, and
 * keep their size. */
static int number_places(struct map_traffic *t)
{
    const uint32_t ranks = t->matrix->ranks;
    uint32_t *first = map_arena_get(&t->view->arena, t->view->leaf_count, sizeof *first);
    uint32_t *next = map_arena_get(&t->view->arena, ranks, sizeof *next);
    TRY(map_arena_check(&t->view->arena));
    memset(first, 0xff, t->view->leaf_count * sizeof *first); /* MAP_NONE */
    for (uint32_t i = ranks; i-- > 0;) {
        next[i] = first[t->leaves[i]];
        first[t->leaves[i]] = i;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t *at = &first[t->place[r]];
        while (!map_traffic_exchangeable(t, r, *at)) {
            at = &next[*at];
        }
        t->place[r] = *at;
        *at = next[*at];
    }
    return 0;
}

int map_place_ranks(struct map_view *view, const struct map_matrix *matrix, const uint32_t *leaves,
                    uint32_t *out, struct map_traffic_seconds *seconds)
{
    struct map_traffic t = {.view = view, .matrix = matrix, .leaves = leaves, .place = out};
    memcpy(out, leaves, matrix->ranks * sizeof *out);
    seconds->in_order = map_traffic_total(&t);
    TRY(place_greedily(&t));
    seconds->greedy = map_traffic_total(&t);
    if (!(seconds->greedy < seconds->in_order)) {
        memcpy(out, leaves, matrix->ranks * sizeof *out);
    }
    return number_places(&t);
}
