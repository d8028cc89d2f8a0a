/* Ranks of uneven numbers of threads by their traffic: regions of one size may change owners, those
 * of different sizes may not. The ways that cut all ranks into parts know nothing of that, so they
 * are given the ranks of one size at a time; what the sizes send each other counts in the changes
 * of places afterwards. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/traffic/traffic.h"

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

int map_place_by_threads(struct map_traffic *t, int (*place)(struct map_traffic *traffic))
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
