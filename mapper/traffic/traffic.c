/* Places ranks by who talks to whom: grown around the heaviest talker for a few ranks, from the
 * top of the machine down for many. The time of a pair is that of one message with all its
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

static double bytes_of_rank(const struct map_matrix *matrix, uint32_t rank)
{
    double bytes = 0;
    for (size_t i = matrix->start[rank]; i < matrix->start[rank + 1]; i++) {
        bytes += matrix->bytes[i];
    }
    return bytes;
}

/* Rank to place next: most bytes to those placed, then most bytes in all, then the lowest. */
static uint32_t next_rank(const struct map_traffic *t, const double *to_placed)
{
    uint32_t best = MAP_NONE;
    for (uint32_t r = 0; r < t->matrix->ranks; r++) {
        if (t->place[r] != MAP_NONE) {
            continue;
        }
        bool better = best == MAP_NONE || to_placed[r] > to_placed[best];
        bool equal =
            best != MAP_NONE && to_placed[r] <= to_placed[best] && to_placed[r] >= to_placed[best];
        if (better || (equal && bytes_of_rank(t->matrix, r) > bytes_of_rank(t->matrix, best))) {
            best = r;
        }
    }
    return best;
}

static uint32_t cheapest_place(const struct map_traffic *t, uint32_t rank, const bool *used)
{
    uint32_t best = MAP_NONE;
    double least = 0;
    for (uint32_t i = 0; i < t->matrix->ranks; i++) {
        if (used[i] || !map_traffic_exchangeable(t, rank, i)) {
            continue;
        }
        double seconds = map_traffic_of_rank(t, rank, t->leaves[i]);
        if (best == MAP_NONE || seconds < least) {
            best = i;
            least = seconds;
        }
    }
    return best;
}

static double cost_of_two(const struct map_traffic *t, uint32_t a, uint32_t b)
{
    return map_traffic_of_rank(t, a, t->place[a]) + map_traffic_of_rank(t, b, t->place[b]);
}

static void swap(struct map_traffic *t, uint32_t a, uint32_t b)
{
    uint32_t leaf = t->place[a];
    t->place[a] = t->place[b];
    t->place[b] = leaf;
}

static void improve_by_swaps(struct map_traffic *t)
{
    bool improved = t->matrix->ranks <= MOST_SWAPPED_RANKS;
    for (int round = 0; improved && round < MOST_ROUNDS; round++) {
        improved = false;
        for (uint32_t a = 0; a < t->matrix->ranks; a++) {
            for (uint32_t b = a + 1; b < t->matrix->ranks; b++) {
                if (!map_traffic_exchangeable(t, a, b)) {
                    continue;
                }
                double before = cost_of_two(t, a, b);
                swap(t, a, b);
                if (cost_of_two(t, a, b) < before * (1 - LEAST_GAIN)) {
                    improved = true;
                } else {
                    swap(t, a, b);
                }
            }
        }
    }
}

static int grow_placement(struct map_traffic *t)
{
    uint32_t ranks = t->matrix->ranks;
    double *to_placed = map_arena_get(&t->view->arena, ranks, sizeof *to_placed);
    bool *used = map_arena_get(&t->view->arena, ranks, sizeof *used);
    if (!to_placed || !used) {
        return -ENOMEM;
    }
    memset(t->place, 0xff, ranks * sizeof *t->place);
    for (uint32_t n = 0; n < ranks; n++) {
        uint32_t rank = next_rank(t, to_placed), at = cheapest_place(t, rank, used);
        used[at] = true;
        t->place[rank] = t->leaves[at];
        for (size_t i = t->matrix->start[rank]; i < t->matrix->start[rank + 1]; i++) {
            to_placed[t->matrix->with[i]] += t->matrix->bytes[i];
        }
    }
    return 0;
}

/* -- ranks of uneven numbers of threads by their traffic: regions of one size may change owners,
 * those of different sizes may not. The ways that cut all ranks into parts know nothing of that, so
 * they are given the ranks of one size at a time; what the sizes send each other counts in the
 * changes of places afterwards. -- */

/* The ranks of one size, and what they send one another. */
struct alike {
    const struct map_traffic *of;
    struct map_matrix matrix;
    uint32_t *ranks; /* ascending */
    uint32_t *local; /* by rank of all: its number here; MAP_NONE: of another size */
    uint32_t *leaves, *place;
    double *cost;
};

static int by_threads(const void *a, const void *b, void *context)
{
    const uint32_t *threads = context, x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (threads[x] != threads[y]) {
        return threads[x] < threads[y] ? -1 : 1;
    }
    return x < y ? -1 : x > y;
}

static int make_alike(const struct map_traffic *t, struct alike *out)
{
    struct map_arena *arena = &t->view->arena;
    size_t ranks = t->matrix->ranks, entries = t->matrix->start[ranks];
    *out = (struct alike){
        .of = t,
        .matrix.start = map_arena_get(arena, ranks + 1, sizeof *out->matrix.start),
        .matrix.with = map_arena_get(arena, entries, sizeof *out->matrix.with),
        .matrix.bytes = map_arena_get(arena, entries, sizeof *out->matrix.bytes),
        .ranks = map_arena_get(arena, ranks, sizeof *out->ranks),
        .local = map_arena_get(arena, ranks, sizeof *out->local),
        .leaves = map_arena_get(arena, ranks, sizeof *out->leaves),
        .place = map_arena_get(arena, ranks, sizeof *out->place),
        .cost = t->cost ? map_arena_get(arena, entries * t->layers, sizeof *out->cost) : NULL,
    };
    if (!out->matrix.start || !out->matrix.with || !out->matrix.bytes || !out->ranks ||
        !out->local || !out->leaves || !out->place || (t->cost && !out->cost)) {
        return -ENOMEM;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        out->ranks[r] = r;
        out->local[r] = MAP_NONE;
    }
    qsort_r(out->ranks, ranks, sizeof *out->ranks, by_threads, (void *)t->matrix->threads);
    return 0;
}

/* The first `count` of these ranks as a program of their own. */
static void take_alike(struct alike *alike, const uint32_t *ranks, uint32_t count)
{
    const struct map_traffic *t = alike->of;
    const struct map_matrix *all = t->matrix;
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        alike->local[ranks[i]] = i;
        alike->leaves[i] = t->leaves[ranks[i]];
    }
    for (uint32_t i = 0; i < count; i++) {
        alike->matrix.start[i] = used;
        for (size_t e = all->start[ranks[i]]; e < all->start[ranks[i] + 1]; e++) {
            uint32_t with = alike->local[all->with[e]];
            if (with == MAP_NONE) {
                continue;
            }
            if (t->cost) {
                memcpy(alike->cost + used * t->layers, t->cost + e * t->layers,
                       t->layers * sizeof *t->cost);
            }
            alike->matrix.with[used] = with;
            alike->matrix.bytes[used++] = all->bytes[e];
        }
    }
    alike->matrix.start[count] = used;
    alike->matrix.ranks = count;
}

/* Ranks of one number of threads after the other by `place`, each as if the others were not there;
 * then all of them change places near their partners. 0, what `place` returns, or -ENOMEM. */
static int place_by_threads(struct map_traffic *t, int (*place)(struct map_traffic *traffic))
{
    struct alike alike;
    const uint32_t *threads = t->matrix->threads;
    uint32_t ranks = t->matrix->ranks;
    int rc = make_alike(t, &alike);
    for (uint32_t low = 0, high; rc == 0 && low < ranks; low = high) {
        for (high = low + 1;
             high < ranks && threads[alike.ranks[high]] == threads[alike.ranks[low]]; high++) {
        }
        const uint32_t *here = alike.ranks + low;
        struct map_traffic part = *t;
        part.matrix = &alike.matrix;
        part.leaves = alike.leaves;
        part.place = alike.place;
        part.cost = alike.cost;
        take_alike(&alike, here, high - low);
        rc = place(&part);
        for (uint32_t i = 0; rc == 0 && i < high - low; i++) {
            t->place[here[i]] = alike.place[i];
            alike.local[here[i]] = MAP_NONE;
        }
    }
    return rc == 0 ? map_improve_nearby(t) : rc;
}

/* -- a few ranks: grown around the heaviest talker -- */

/* Next is always the rank with the most bytes to those placed, on the free PU where that takes
 * least time; then ranks change places while that saves time. Programs often number their ranks
 * well already, so the swaps also start from rank order; the better end counts. */
static int place_greedily(struct map_traffic *t)
{
    uint32_t ranks = t->matrix->ranks;
    if (ranks > MOST_SWAPPED_RANKS && t->matrix->threads) {
        return place_by_threads(t, place_greedily);
    }
    if (ranks > MOST_SWAPPED_RANKS) {
        return map_place_by_descent(t, map_cut_by_growth);
    }
    uint32_t *grown = map_arena_get(&t->view->arena, ranks, sizeof *grown);
    if (!grown || grow_placement(t) < 0) {
        return -ENOMEM;
    }
    improve_by_swaps(t);
    double seconds = map_traffic_total(t);
    memcpy(grown, t->place, ranks * sizeof *grown);
    memcpy(t->place, t->leaves, ranks * sizeof *t->place);
    improve_by_swaps(t);
    if (map_traffic_total(t) > seconds) {
        memcpy(t->place, grown, ranks * sizeof *grown);
    }
    return 0;
}

const char *const map_placer_names[MAP_PLACERS] = {"rank order", "greedy", "Scotch"};

/* -- the time of a message -- */

double map_message_seconds(const struct map_view *view, uint32_t a, uint32_t b, double bytes)
{
    struct map_between between = map_between(view, a, b);
    if (!between.layer) {
        return 0;
    }
    if (!view->latencies_known) {
        return between.distance * bytes;
    }
    return profile_message_seconds(between.layer, between.communication->message_bytes, bytes);
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
        uint32_t group = groups->group_of[leaf - first];
        path[i] = group == MAP_NONE ? leaf : first + groups->members[groups->start[group]];
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

static double layer_seconds(const struct map_view *view, const struct profile_communication *in,
                            size_t layer, double bytes)
{
    return view->latencies_known
               ? profile_message_seconds(&in->layers[layer], in->message_bytes, bytes)
               : profile_layer_distance(view->profile, in, layer) * bytes;
}

/* One message of the farthest layer of all. */
static double farthest_seconds(const struct map_view *view, double bytes)
{
    struct map_between far = map_farthest(view->profile);
    if (!far.layer) {
        return 0;
    }
    return layer_seconds(view, far.communication, (size_t)(far.layer - far.communication->layers),
                         bytes);
}

static void fill_costs(struct map_traffic *t)
{
    const struct map_view *view = t->view;
    for (size_t e = 0; e < t->matrix->start[t->matrix->ranks]; e++) {
        double *cost = t->cost + e * t->layers, bytes = t->matrix->bytes[e];
        for (size_t c = 0; c < view->class_count; c++) {
            const struct profile_communication *in = &view->classes[c].of->communication;
            for (size_t i = 0; i < in->layer_count; i++) {
                *cost++ = layer_seconds(view, in, i, bytes);
            }
        }
        for (size_t i = 0; i < view->network_count; i++) {
            *cost++ = layer_seconds(view, &view->profile->network, i, bytes);
        }
        *cost = farthest_seconds(view, bytes);
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
    return t->matrix->threads ? place_by_threads(t, map_place_by_scotch) : map_place_by_scotch(t);
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
        /* Scotch crashes where memory ends, and has on graphs that nobody would make. */
        rc = profile_child_call(place_by_scotch, &t, out, matrix->ranks * sizeof *out);
    }
    if (rc == 0 && seconds) {
        *seconds = map_traffic_total(&t);
    }
    return rc;
}
