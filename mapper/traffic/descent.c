/* Ranks are cut level by level, as the machine is built: the dearest boundary, the network, first.
 *
 * Within a level all groups are equally far from one another (pairs of one layer have one latency),
 * so that each cut is a plain graph partition into parts of given sizes, and the whole costs n log
 * n on any machine, also where the chosen PUs do not form a regular tree. */
#include "mapper/traffic/traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Changes of places: rounds, and how far each looks. */
#define MOST_ROUNDS 8
#define MOST_PARTNERS 8
#define MOST_NEAR 16

/* A round that saves less than this part of the time is the last. */
#define WORTH_A_ROUND 1e-3

/* -- cutting by growth -- */

/* A heap of ranks by their bytes to the growing part, the lowest number on ties. */
struct heap {
    uint32_t *items, *at; /* at[r]: where rank r stands, MAP_NONE: nowhere */
    double *bytes;
    uint32_t count;
};

static bool before(const struct heap *heap, uint32_t a, uint32_t b)
{
    if (heap->bytes[a] > heap->bytes[b] || heap->bytes[a] < heap->bytes[b]) {
        return heap->bytes[a] > heap->bytes[b];
    }
    return a < b;
}

static void set_item(struct heap *heap, uint32_t at, uint32_t rank)
{
    heap->items[at] = rank;
    heap->at[rank] = at;
}

static void rise(struct heap *heap, uint32_t at)
{
    uint32_t rank = heap->items[at];
    while (at > 0 && before(heap, rank, heap->items[(at - 1) / 2])) {
        set_item(heap, at, heap->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    set_item(heap, at, rank);
}

static uint32_t take_first(struct heap *heap)
{
    uint32_t first = heap->items[0], last = heap->items[--heap->count], at = 0;
    heap->at[first] = MAP_NONE;
    while (heap->count && 2 * at + 1 < heap->count) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < heap->count && before(heap, heap->items[child + 1], heap->items[child])) {
            child++;
        }
        if (!before(heap, heap->items[child], last)) {
            break;
        }
        set_item(heap, at, heap->items[child]);
        at = child;
    }
    if (heap->count) {
        set_item(heap, at, last);
    }
    return first;
}

static void add_bytes(struct heap *heap, uint32_t rank, double bytes)
{
    heap->bytes[rank] += bytes;
    if (heap->at[rank] == MAP_NONE) {
        set_item(heap, heap->count++, rank);
    }
    rise(heap, heap->at[rank]);
}

struct descent {
    struct map_traffic *t;
    uint32_t *ranks;  /* all ranks; those of one part lie together */
    uint32_t *leaves; /* the places; those of one group lie together */
    uint32_t *room;   /* as long, for sorting */
    uint32_t *sizes;  /* of the parts at hand */
    /* The subgraph at hand: some ranks, numbered from 0, and what they send to one another. */
    uint32_t *local;           /* by rank: its number; MAP_NONE: not in it */
    uint32_t *part;            /* by number; MAP_NONE: in none yet */
    uint32_t fresh;            /* the lowest number that may still be in none */
    size_t *start;             /* by number, and one more: where its partners begin */
    struct map_entry *entries; /* from number to number */
    struct heap heap;          /* of the cut at hand */
};

/* The rank with the most bytes to part p, else the lowest that is in none, is in it now. */
static void grow_side(struct descent *d, uint32_t p)
{
    while (d->heap.count == 0 && d->part[d->fresh] != MAP_NONE) {
        d->fresh++;
    }
    uint32_t rank = d->heap.count ? take_first(&d->heap) : d->fresh;
    d->part[rank] = p;
    for (size_t e = d->start[rank]; e < d->start[rank + 1]; e++) {
        if (d->part[d->entries[e].to] == MAP_NONE) {
            add_bytes(&d->heap, d->entries[e].to, d->entries[e].bytes);
        }
    }
}

/* Cuts the `count` ranks of the subgraph into `parts` parts of exactly sizes[p] ranks (their sum is
 * the count), so that few bytes go between parts: one after the other, each grown from the lowest
 * rank that is left, next always the rank with the most bytes to the part. n log n. */
static void cut_by_growth(struct descent *d, uint32_t count, const uint32_t *sizes, uint32_t parts)
{
    struct heap *heap = &d->heap;
    d->fresh = 0;
    memset(heap->at, 0xff, count * sizeof *heap->at);
    memset(heap->bytes, 0, count * sizeof *heap->bytes);
    memset(d->part, 0xff, count * sizeof *d->part);
    for (uint32_t p = 0; p < parts; p++) {
        for (uint32_t n = 0; n < sizes[p]; n++) {
            grow_side(d, p);
        }
        while (heap->count) { /* what touches this part is free for the next */
            heap->bytes[heap->items[--heap->count]] = 0;
            heap->at[heap->items[heap->count]] = MAP_NONE;
        }
    }
}

/* -- the machine, level by level -- */

/* Levels in all: layers between nodes, the node itself, the layers of the class with the most. */
size_t map_count_levels(const struct map_view *view)
{
    size_t most = 0;
    for (size_t c = 0; c < view->class_count; c++) {
        size_t layers = view->classes[c].of->communication.layer_count;
        most = layers > most ? layers : most;
    }
    return view->network_count + 1 + most;
}

static const struct map_groups *layer_groups(const struct map_class *class, size_t layer)
{
    size_t first = class->family_count - class->of->communication.layer_count;
    return &class->families[first + layer].groups;
}

/* By a number above all groups where it is alone. */
uint64_t map_group_at(const struct map_view *view, size_t level, uint32_t leaf)
{
    uint32_t node = map_view_node(view, leaf), group = MAP_NONE, item = leaf;
    if (level < view->network_count) {
        group = view->network[view->network_count - 1 - level].groups.group_of[node];
        item = node;
    } else if (level == view->network_count) {
        return node;
    } else {
        const struct map_class *class = &view->classes[view->nodes[node].class_index];
        size_t inside = level - view->network_count - 1;
        size_t layers = class->of->communication.layer_count;
        if (inside >= layers) {
            return 0;
        }
        const struct map_groups *groups = layer_groups(class, layers - 1 - inside);
        group = groups->group_of[leaf - view->nodes[node].first_leaf];
    }
    return group == MAP_NONE ? (uint64_t)MAP_NONE + 1 + item : group;
}

static int by_groups(const void *a, const void *b, void *context)
{
    const struct map_view *view = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    size_t levels = map_count_levels(view);
    for (size_t level = 0; level < levels; level++) {
        uint64_t p = map_group_at(view, level, x), q = map_group_at(view, level, y);
        if (p != q) {
            return p < q ? -1 : 1;
        }
    }
    return x < y ? -1 : x > y;
}

void map_sort_by_groups(struct map_view *view, uint32_t *leaves, size_t count)
{
    qsort_r(leaves, count, sizeof *leaves, by_groups, view);
}

/* Counts the leaves [begin, end) of each group that they lie in; returns how many groups. */
static uint32_t count_groups(struct descent *d, size_t level, uint32_t begin, uint32_t end)
{
    uint64_t before = 0;
    uint32_t parts = 0;
    for (uint32_t i = begin; i < end; i++) {
        uint64_t group = map_group_at(d->t->view, level, d->leaves[i]);
        if (i == begin || group != before) {
            d->sizes[parts++] = 0;
        }
        d->sizes[parts - 1]++;
        before = group;
    }
    return parts;
}

/* -- cutting -- */

/* The subgraph at hand is that of the ranks [begin, end). */
static void take_subgraph(struct descent *d, uint32_t begin, uint32_t end)
{
    const struct map_matrix *matrix = d->t->matrix;
    size_t used = 0;
    for (uint32_t i = begin; i < end; i++) {
        d->local[d->ranks[i]] = i - begin;
    }
    for (uint32_t i = begin; i < end; i++) {
        uint32_t rank = d->ranks[i];
        d->start[i - begin] = used;
        for (size_t e = matrix->start[rank]; e < matrix->start[rank + 1]; e++) {
            uint32_t to = d->local[matrix->entries[e].to];
            if (to != MAP_NONE) {
                d->entries[used++] = (struct map_entry){i - begin, to, matrix->entries[e].bytes};
            }
        }
    }
    d->start[end - begin] = used;
    for (uint32_t i = begin; i < end; i++) {
        d->local[d->ranks[i]] = MAP_NONE;
    }
}

/* Ranks of part 0 first, then those of part 1, …, in ascending order within each. */
static void sort_ranks(struct descent *d, uint32_t begin, uint32_t end, uint32_t parts)
{
    uint32_t at = begin;
    memcpy(d->room + begin, d->ranks + begin, (end - begin) * sizeof *d->ranks);
    for (uint32_t p = 0; p < parts; p++) {
        uint32_t size = d->sizes[p];
        d->sizes[p] = at;
        at += size;
    }
    for (uint32_t i = begin; i < end; i++) {
        d->ranks[d->sizes[d->part[i - begin]]++] = d->room[i];
    }
}

static int descend(struct descent *d, size_t level, uint32_t begin, uint32_t end)
{
    if (end - begin <= 1 || level == map_count_levels(d->t->view)) {
        return 0;
    }
    uint32_t parts = count_groups(d, level, begin, end);
    if (parts == 1) {
        return descend(d, level + 1, begin, end);
    }
    uint32_t *sizes = calloc(parts, sizeof *sizes);
    if (!sizes) {
        return -ENOMEM;
    }
    memcpy(sizes, d->sizes, parts * sizeof *sizes);
    take_subgraph(d, begin, end);
    cut_by_growth(d, end - begin, sizes, parts);
    sort_ranks(d, begin, end, parts);
    int rc = 0;
    for (uint32_t p = 0, at = begin; rc == 0 && p < parts; at += sizes[p++]) {
        rc = descend(d, level + 1, at, at + sizes[p]);
    }
    free(sizes);
    return rc;
}

/* -- changing places -- */

/* Exchanges the places of two ranks if that saves time, in `rank_at` (by leaf) too. */
static bool change_places(struct map_traffic *t, uint32_t *rank_at, uint32_t a, uint32_t b)
{
    const bool changed = map_traffic_exchange(t, a, b);
    rank_at[t->place[a]] = a;
    rank_at[t->place[b]] = b;
    return changed;
}

/* Tries to bring rank `a` into the nearest groups of its partner's place: only where `a` itself
 * would be better off, which nearly all pairs are not, and which one rank's messages tell. */
static bool move_near(struct map_traffic *t, uint32_t *rank_at, uint32_t a, uint32_t partner)
{
    const struct map_view *view = t->view;
    uint32_t leaf = t->place[partner], node = map_view_node(view, leaf);
    uint32_t first = view->nodes[node].first_leaf;
    const struct map_class *class = &view->classes[view->nodes[node].class_index];
    double now = map_traffic_of_rank(t, a, t->place[a]);
    for (size_t layer = 0; layer < class->of->communication.layer_count; layer++) {
        const struct map_groups *groups = layer_groups(class, layer);
        uint32_t group = groups->group_of[leaf - first], tried = 0;
        if (group == MAP_NONE) {
            continue;
        }
        for (uint32_t m = groups->start[group]; m < groups->start[group + 1]; m++) {
            uint32_t other = rank_at[first + groups->members[m]];
            if (other == a) {
                return false; /* near enough already */
            }
            if (other == MAP_NONE || other == partner || !map_traffic_exchangeable(t, a, other)) {
                continue;
            }
            if (!tried && map_traffic_of_rank(t, a, t->place[other]) >= now) {
                break;
            }
            if (tried++ == MOST_NEAR) {
                break;
            }
            if (change_places(t, rank_at, a, other)) {
                return true;
            }
        }
    }
    return false;
}

/* The heaviest entries of a rank, heaviest first; their number. */
static size_t heaviest_entries(const struct map_matrix *matrix, uint32_t rank,
                               struct map_entry best[MOST_PARTNERS])
{
    size_t count = 0;
    for (size_t e = matrix->start[rank]; e < matrix->start[rank + 1]; e++) {
        size_t at = count;
        while (at > 0 && best[at - 1].bytes < matrix->entries[e].bytes) {
            at--;
        }
        if (at < MOST_PARTNERS) {
            count += count < MOST_PARTNERS;
            memmove(best + at + 1, best + at, (count - at - 1) * sizeof *best);
            best[at] = matrix->entries[e];
        }
    }
    return count;
}

int map_improve_nearby(struct map_traffic *t)
{
    double before = map_traffic_total(t), now;
    uint32_t *rank_at = map_arena_get(&t->view->arena, t->view->leaf_count, sizeof *rank_at);
    if (!rank_at) {
        return -ENOMEM;
    }
    memset(rank_at, 0xff, t->view->leaf_count * sizeof *rank_at);
    for (uint32_t r = 0; r < t->matrix->ranks; r++) {
        rank_at[t->place[r]] = r;
    }
    for (int round = 0; round < MOST_ROUNDS; round++) {
        for (uint32_t r = 0; r < t->matrix->ranks; r++) {
            struct map_entry heaviest[MOST_PARTNERS];
            size_t count = heaviest_entries(t->matrix, r, heaviest);
            for (size_t p = 0; p < count; p++) {
                move_near(t, rank_at, r, heaviest[p].to);
            }
        }
        now = map_traffic_total(t);
        if (now >= before * (1 - WORTH_A_ROUND)) {
            break;
        }
        before = now;
    }
    return 0;
}

int map_place_by_descent(struct map_traffic *t)
{
    struct map_arena *arena = &t->view->arena;
    uint32_t ranks = t->matrix->ranks;
    size_t entries = t->matrix->start[ranks];
    struct descent d = {
        .t = t,
        .ranks = map_arena_get(arena, ranks, sizeof *d.ranks),
        .leaves = map_arena_get(arena, ranks, sizeof *d.leaves),
        .local = map_arena_get(arena, ranks, sizeof *d.local),
        .part = map_arena_get(arena, ranks, sizeof *d.part),
        .room = map_arena_get(arena, ranks, sizeof *d.room),
        .sizes = map_arena_get(arena, ranks, sizeof *d.sizes),
        .start = map_arena_get(arena, (size_t)ranks + 1, sizeof *d.start),
        .entries = map_arena_get(arena, entries, sizeof *d.entries),
        .heap = {.items = map_arena_get(arena, ranks, sizeof *d.heap.items),
                 .at = map_arena_get(arena, ranks, sizeof *d.heap.at),
                 .bytes = map_arena_get(arena, ranks, sizeof *d.heap.bytes)},
    };
    if (arena->is_short) {
        return -ENOMEM;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        d.ranks[r] = r;
        d.leaves[r] = t->leaves[r];
        d.local[r] = MAP_NONE;
    }
    map_sort_by_groups(t->view, d.leaves, ranks);
    int rc = descend(&d, 0, 0, ranks);
    if (rc < 0) {
        return rc;
    }
    for (uint32_t i = 0; i < ranks; i++) {
        t->place[d.ranks[i]] = d.leaves[i];
    }
    return map_improve_nearby(t);
}
