/* Placing by Scotch's static mapping: the matrix onto the complete graph of PUs with latencies as
 * lengths. */
#include <errno.h>
#include <scotch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/command/predict.h"
#include "mapper/traffic/traffic.h"

const bool map_scotch_built = true;

/* Loads and lengths are integers there; this many steps keep their ratios without overflowing
 * sums. */
#define STEPS 1000

/* The target graph is complete, so its size is the square of the ranks. */
#define MOST_RANKS 1024

struct lists {
    SCOTCH_Num *start, *with, *load;
};

static bool alloc_lists(struct map_arena *arena, size_t vertices, size_t edges, struct lists *out)
{
    out->start = map_arena_get(arena, vertices + 1, sizeof *out->start);
    out->with = map_arena_get(arena, edges, sizeof *out->with);
    out->load = map_arena_get(arena, edges, sizeof *out->load);
    return out->start && out->with && out->load;
}

static SCOTCH_Num steps_of(double value, double highest)
{
    double steps = value / highest * STEPS;
    return steps < 1 ? 1 : (SCOTCH_Num)steps;
}

static void fill_ranks(const struct map_matrix *matrix, struct lists *out)
{
    double highest = 0;
    size_t edges = matrix->start[matrix->ranks];
    for (size_t i = 0; i < edges; i++) {
        highest = matrix->bytes[i] > highest ? matrix->bytes[i] : highest;
        out->with[i] = (SCOTCH_Num)matrix->with[i];
    }
    for (size_t i = 0; i < edges; i++) {
        out->load[i] = steps_of(matrix->bytes[i], highest);
    }
    for (uint32_t r = 0; r <= matrix->ranks; r++) {
        out->start[r] = (SCOTCH_Num)matrix->start[r];
    }
}

static void fill_pus(const struct map_traffic *t, struct lists *out)
{
    uint32_t ranks = t->matrix->ranks;
    double highest = 0;
    for (uint32_t a = 0; a < ranks; a++) {
        double latency = map_pair_latency(t->view, t->leaves[0], t->leaves[a]);
        highest = latency > highest ? latency : highest;
    }
    size_t at = 0;
    for (uint32_t a = 0; a < ranks; a++) {
        out->start[a] = (SCOTCH_Num)at;
        for (uint32_t b = 0; b < ranks; b++) {
            if (a != b) {
                out->with[at] = (SCOTCH_Num)b;
                out->load[at++] = steps_of(map_pair_latency(t->view, t->leaves[a], t->leaves[b]),
                                           highest > 0 ? highest : 1);
            }
        }
    }
    out->start[ranks] = (SCOTCH_Num)at;
}

/* Scotch balances, and may put two ranks on one PU: the later one gets a PU that stayed empty. */
static int spread_out(struct map_traffic *t, const SCOTCH_Num *part)
{
    uint32_t ranks = t->matrix->ranks, empty = 0;
    bool *used = map_arena_get(&t->view->arena, ranks, sizeof *used);
    if (!used) {
        return -ENOMEM;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        bool first = part[r] >= 0 && part[r] < (SCOTCH_Num)ranks && !used[part[r]];
        t->place[r] = first ? t->leaves[part[r]] : MAP_NONE;
        if (first) {
            used[part[r]] = true;
        }
    }
    for (uint32_t r = 0; r < ranks; r++) {
        while (t->place[r] == MAP_NONE && used[empty]) {
            empty++;
        }
        if (t->place[r] == MAP_NONE) {
            used[empty] = true;
            t->place[r] = t->leaves[empty];
        }
    }
    return 0;
}

static int map_graph(SCOTCH_Graph *source, SCOTCH_Graph *target, SCOTCH_Num *part)
{
    SCOTCH_Arch arch;
    SCOTCH_Strat build, map;
    SCOTCH_archInit(&arch);
    SCOTCH_stratInit(&build);
    SCOTCH_stratInit(&map);
    SCOTCH_randomReset(); /* the same matrix gives the same placement */
    bool done = SCOTCH_archBuild(&arch, target, 0, NULL, &build) == 0 &&
                SCOTCH_graphMap(source, &arch, &map, part) == 0;
    SCOTCH_stratExit(&map);
    SCOTCH_stratExit(&build);
    SCOTCH_archExit(&arch);
    return done ? 0 : -ENOMEM;
}

int map_place_by_scotch(struct map_traffic *t)
{
    uint32_t ranks = t->matrix->ranks;
    if (ranks < 2 || ranks > MOST_RANKS || !t->matrix->start[ranks]) {
        return map_place_greedily(t);
    }
    struct map_arena *arena = &t->view->arena;
    struct lists from, onto;
    SCOTCH_Num *part = map_arena_get(arena, ranks, sizeof *part);
    if (!part || !alloc_lists(arena, ranks, t->matrix->start[ranks], &from) ||
        !alloc_lists(arena, ranks, (size_t)ranks * (ranks - 1), &onto)) {
        return -ENOMEM;
    }
    fill_ranks(t->matrix, &from);
    fill_pus(t, &onto);
    SCOTCH_Graph source, target;
    SCOTCH_graphInit(&source);
    SCOTCH_graphInit(&target);
    bool built = SCOTCH_graphBuild(&source, 0, (SCOTCH_Num)ranks, from.start, NULL, NULL, NULL,
                                   from.start[ranks], from.with, from.load) == 0 &&
                 SCOTCH_graphBuild(&target, 0, (SCOTCH_Num)ranks, onto.start, NULL, NULL, NULL,
                                   onto.start[ranks], onto.with, onto.load) == 0;
    int rc = built ? map_graph(&source, &target, part) : -ENOMEM;
    SCOTCH_graphExit(&target);
    SCOTCH_graphExit(&source);
    rc = rc < 0 ? rc : spread_out(t, part);
    if (rc == 0) {
        map_improve_by_swaps(t);
    }
    return rc;
}
