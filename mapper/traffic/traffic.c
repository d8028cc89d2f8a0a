/* Places ranks by the bytes that they send one another: from the top of the machine down, and by
 * changes of places. The time of a pair is that of one message with all its
 * bytes. */
#include "mapper/traffic/traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/worth/worth.h"
#include "profile/base/child.h"
#include "profile/query.h"

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

static void improve_by_swaps(struct map_traffic *t)
{
    bool improved = t->matrix->ranks <= MOST_SWAPPED_RANKS;
    for (int round = 0; improved && round < MOST_ROUNDS; round++) {
        improved = false;
        for (uint32_t a = 0; a < t->matrix->ranks; a++) {
            for (uint32_t b = a + 1; b < t->matrix->ranks; b++) {
                improved |= map_traffic_exchangeable(t, a, b) && map_traffic_exchange(t, a, b);
            }
        }
    }
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
    int rc = other ? place_many(t) : -ENOMEM;
    if (rc < 0 || ranks > MOST_SWAPPED_RANKS) {
        return rc;
    }
    improve_by_swaps(t);
    double seconds = map_traffic_total(t);
    memcpy(other, t->place, ranks * sizeof *other);
    memcpy(t->place, t->leaves, ranks * sizeof *t->place);
    improve_by_swaps(t);
    if (map_traffic_total(t) > seconds) {
        memcpy(t->place, other, ranks * sizeof *other);
    }
    return 0;
}

const char *const map_placer_names[MAP_PLACERS] = {"rank order", "greedy", "Scotch"};

/* -- the time of a message -- */

static double seconds_of(const struct map_view *view, const struct map_between *between,
                         double bytes)
{
    if (!between->layer) {
        return 0;
    }
    return view->latencies_known ? profile_message_seconds(
                                       between->layer, between->communication->message_bytes, bytes)
                                 : between->distance * bytes;
}

double map_message_seconds(const struct map_view *view, uint32_t a, uint32_t b, double bytes)
{
    const struct map_between between = map_between(view, a, b);
    return seconds_of(view, &between, bytes);
}

/* -- the time of a placement -- */

/* Entries x layers above this are not worth their memory (256 MiB): pairs are asked one by one. */
#define MOST_COSTS ((size_t)1 << 25)

/* Names of the groups of a leaf, as map_between() looks for a common one: layers inside the node,
 * then those between nodes. A group is named by its lowest leaf; a leaf in none by itself. */
static void fill_path(const struct map_view *view, uint32_t levels, uint32_t leaf, uint32_t *path)
{
    uint32_t node = map_view_node(view, leaf), first = view->nodes[node].first_leaf;
    const struct map_class *class = &view->classes[view->nodes[node].class_index];
    size_t layers = class->of->communication.layer_count, inside = levels - view->network_count;
    for (size_t i = 0; i < levels; i++) {
        path[i] = leaf;
    }
    for (size_t i = 0; i < layers; i++) {
        const struct map_groups *groups = &class->families[class->family_count - layers + i].groups;
        path[i] = first + map_groups_lowest(groups, leaf - first);
    }
    for (size_t i = 0; i < view->network_count; i++) {
        const struct map_groups *groups = &view->network[i].groups;
        uint32_t group = groups->group_of[node];
        path[inside + i] = group == MAP_NONE
                               ? leaf
                               : view->nodes[groups->members[groups->start[group]]].first_leaf;
    }
}

static bool has_pairs(const struct map_view *view)
{
    for (size_t i = 0; i < view->network_count; i++) {
        if (view->network[i].groups.pair_start) {
            return true;
        }
    }
    for (size_t c = 0; c < view->class_count; c++) {
        for (size_t f = 0; f < view->classes[c].family_count; f++) {
            if (view->classes[c].families[f].groups.pair_start) {
                return true;
            }
        }
    }
    return false;
}

/* The layer of two leaves among all that there are; the last is the farthest. */
static uint32_t layer_of(const struct map_traffic *t, uint32_t a, uint32_t b)
{
    const uint32_t *x = t->path + (size_t)a * t->levels, *y = t->path + (size_t)b * t->levels;
    uint32_t inside = t->levels - (uint32_t)t->view->network_count, level = 0;
    while (level < t->levels && x[level] != y[level]) {
        level++;
    }
    if (level >= inside) {
        return t->layers - 1 - (t->levels - level);
    }
    return t->first_layer[t->view->nodes[map_view_node(t->view, a)].class_index] + level;
}

/* The costs of a message on each layer of `in`; returns where they end. */
static double *add_costs(const struct map_view *view, const struct profile_communication *in,
                         double bytes, double *cost)
{
    for (size_t i = 0; i < in->layer_count; i++) {
        struct map_between layer = {.communication = in, .layer = &in->layers[i]};
        if (!view->latencies_known) {
            layer.distance = profile_layer_distance(view->profile, in, i);
        }
        *cost++ = seconds_of(view, &layer, bytes);
    }
    return cost;
}

static void fill_costs(struct map_traffic *t)
{
    const struct map_view *view = t->view;
    const struct map_between farthest = map_farthest(view->profile);
    for (size_t e = 0; e < t->matrix->start[t->matrix->ranks]; e++) {
        double *cost = t->cost + e * t->layers, bytes = t->matrix->bytes[e];
        for (size_t c = 0; c < view->class_count; c++) {
            cost = add_costs(view, &view->classes[c].of->communication, bytes, cost);
        }
        cost = add_costs(view, &view->profile->network, bytes, cost);
        *cost = seconds_of(view, &farthest, bytes);
    }
}

int map_traffic_make(struct map_view *view, const struct map_matrix *matrix, const uint32_t *leaves,
                     uint32_t *place, struct map_traffic *out)
{
    struct map_traffic t = {.view = view, .matrix = matrix, .leaves = leaves, .place = place};
    size_t entries = matrix->start[matrix->ranks];
    uint32_t most = 0;
    t.first_layer = map_arena_get(&view->arena, view->class_count, sizeof *t.first_layer);
    for (size_t c = 0; t.first_layer && c < view->class_count; c++) {
        uint32_t layers = (uint32_t)view->classes[c].of->communication.layer_count;
        t.first_layer[c] = t.layers;
        t.layers += layers;
        most = layers > most ? layers : most;
    }
    t.layers += (uint32_t)view->network_count + 1;
    t.levels = most + (uint32_t)view->network_count;
    t.path = map_arena_get(&view->arena, (size_t)view->leaf_count * t.levels, sizeof *t.path);
    if (!t.first_layer || !t.path) {
        return -ENOMEM;
    }
    for (uint32_t leaf = 0; leaf < view->leaf_count; leaf++) {
        fill_path(view, t.levels, leaf, t.path + (size_t)leaf * t.levels);
    }
    if (entries <= MOST_COSTS / t.layers && !has_pairs(view)) {
        t.cost = map_arena_get(&view->arena, entries * t.layers, sizeof *t.cost);
        if (!t.cost) {
            return -ENOMEM;
        }
        fill_costs(&t);
    }
    *out = t;
    return 0;
}

double map_traffic_of_rank(const struct map_traffic *t, uint32_t rank, uint32_t leaf)
{
    double seconds = 0;
    for (size_t e = t->matrix->start[rank]; e < t->matrix->start[rank + 1]; e++) {
        uint32_t other = t->place[t->matrix->with[e]];
        if (other == MAP_NONE || other == leaf) {
            continue;
        }
        seconds += t->cost ? t->cost[e * t->layers + layer_of(t, leaf, other)]
                           : map_message_seconds(t->view, leaf, other, t->matrix->bytes[e]);
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

#ifdef SERVET_SCOTCH
static const bool scotch_built = true;
#else
static const bool scotch_built = false;

int map_place_by_scotch(struct map_traffic *t)
{
    (void)t;
    return -ENOTSUP;
}
#endif

bool map_placer_built(enum map_placer placer)
{
    return placer != MAP_SCOTCH || scotch_built;
}

static int place_by_scotch(void *traffic)
{
    struct map_traffic *t = traffic;
    return t->matrix->threads ? place_many(t) : map_place_by_scotch(t);
}

int map_place_ranks(struct map_view *view, enum map_placer placer, const struct map_matrix *matrix,
                    const uint32_t *leaves, uint32_t *out, double *seconds)
{
    struct map_traffic t;
    int rc = map_traffic_make(view, matrix, leaves, out, &t);
    if (rc < 0) {
        return rc;
    }
    if (placer == MAP_RANK_ORDER) {
        memcpy(out, leaves, matrix->ranks * sizeof *out);
    } else if (placer == MAP_GREEDY) {
        rc = place_greedily(&t);
    } else {
        /* Scotch crashes when memory runs out, and on some degenerate graphs. */
        rc = profile_child_call(place_by_scotch, &t, out, matrix->ranks * sizeof *out);
    }
    if (rc == 0 && seconds) {
        *seconds = map_traffic_total(&t);
    }
    return rc;
}
