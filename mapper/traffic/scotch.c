/* Cutting by Scotch's static mapping: the ranks onto the complete graph of parts, weighted by their
 * sizes. Scotch balances within a tolerance, and a part has exactly so many places: what is too
 * many moves to the part with room that it talks to most.
 */
#include <errno.h>
#include <scotch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/traffic/traffic.h"

const bool map_scotch_built = true;

/* Loads are integers there; this many steps keep their ratios without overflowing sums. */
#define STEPS 1000

struct lists {
    SCOTCH_Num *start, *with, *load, *part, *sizes;
};

static void free_lists(struct lists *lists)
{
    free(lists->start);
    free(lists->with);
    free(lists->load);
    free(lists->part);
    free(lists->sizes);
}

static SCOTCH_Num steps_of(double value, double highest)
{
    double steps = value / highest * STEPS;
    return steps < 1 ? 1 : (SCOTCH_Num)steps;
}

static int make_lists(const struct map_subgraph *graph, const uint32_t *sizes, uint32_t parts,
                      struct lists *out)
{
    size_t edges = graph->start[graph->count];
    struct lists lists = {
        .start = calloc((size_t)graph->count + 1, sizeof *lists.start),
        .with = calloc(edges + 1, sizeof *lists.with),
        .load = calloc(edges + 1, sizeof *lists.load),
        .part = calloc(graph->count, sizeof *lists.part),
        .sizes = calloc(parts, sizeof *lists.sizes),
    };
    if (!lists.start || !lists.with || !lists.load || !lists.part || !lists.sizes) {
        free_lists(&lists);
        return -ENOMEM;
    }
    double highest = 0;
    for (size_t e = 0; e < edges; e++) {
        highest = graph->bytes[e] > highest ? graph->bytes[e] : highest;
    }
    for (size_t e = 0; e < edges; e++) {
        lists.with[e] = (SCOTCH_Num)graph->with[e];
        lists.load[e] = steps_of(graph->bytes[e], highest);
    }
    for (uint32_t r = 0; r <= graph->count; r++) {
        lists.start[r] = (SCOTCH_Num)graph->start[r];
    }
    for (uint32_t p = 0; p < parts; p++) {
        lists.sizes[p] = (SCOTCH_Num)sizes[p];
    }
    *out = lists;
    return 0;
}

static int map_graph(uint32_t count, uint32_t parts, struct lists *lists)
{
    SCOTCH_Graph graph;
    SCOTCH_Arch arch;
    SCOTCH_Strat strategy;
    SCOTCH_graphInit(&graph);
    SCOTCH_archInit(&arch);
    SCOTCH_stratInit(&strategy);
    SCOTCH_randomReset(); /* the same matrix gives the same placement */
    bool done = SCOTCH_graphBuild(&graph, 0, (SCOTCH_Num)count, lists->start, NULL, NULL, NULL,
                                  lists->start[count], lists->with, lists->load) == 0 &&
                SCOTCH_archCmpltw(&arch, (SCOTCH_Num)parts, lists->sizes) == 0 &&
                SCOTCH_graphMap(&graph, &arch, &strategy, lists->part) == 0;
    SCOTCH_stratExit(&strategy);
    SCOTCH_archExit(&arch);
    SCOTCH_graphExit(&graph);
    return done ? 0 : -ENOMEM;
}

/* Bytes of a rank to the ranks of one part. */
static double bytes_to(const struct map_subgraph *graph, uint32_t rank, const uint32_t *part,
                       uint32_t wanted)
{
    double bytes = 0;
    for (size_t e = graph->start[rank]; e < graph->start[rank + 1]; e++) {
        bytes += part[graph->with[e]] == wanted ? graph->bytes[e] : 0;
    }
    return bytes;
}

/* The part with room that the rank talks to most; the first with room where it talks to none. */
static uint32_t best_with_room(const struct map_subgraph *graph, uint32_t rank,
                               const uint32_t *part, const int64_t *room, uint32_t first)
{
    uint32_t best = first;
    double most = 0;
    for (size_t e = graph->start[rank]; e < graph->start[rank + 1]; e++) {
        uint32_t other = part[graph->with[e]];
        double bytes = room[other] > 0 ? bytes_to(graph, rank, part, other) : 0;
        if (bytes > most) {
            best = other;
            most = bytes;
        }
    }
    return best;
}

struct leaving {
    double loss;
    uint32_t rank;
};

static int by_loss(const void *a, const void *b)
{
    const struct leaving *x = a, *y = b;
    if (x->loss < y->loss || x->loss > y->loss) {
        return x->loss < y->loss ? -1 : 1;
    }
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Makes the parts exactly as large as they must be: whoever loses least leaves first. */
static int even_out(const struct map_subgraph *graph, const uint32_t *sizes, uint32_t parts,
                    uint32_t *part)
{
    int64_t *room = calloc(parts, sizeof *room);
    struct leaving *leaving = calloc(graph->count, sizeof *leaving);
    int rc = room && leaving ? 0 : -ENOMEM;
    size_t count = 0;
    for (uint32_t p = 0; rc == 0 && p < parts; p++) {
        room[p] = sizes[p];
    }
    for (uint32_t r = 0; rc == 0 && r < graph->count; r++) {
        room[part[r]]--;
    }
    for (uint32_t r = 0; rc == 0 && r < graph->count; r++) {
        if (room[part[r]] < 0) {
            leaving[count++] = (struct leaving){bytes_to(graph, r, part, part[r]), r};
        }
    }
    qsort(leaving, count, sizeof *leaving, by_loss);
    uint32_t first = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        uint32_t rank = leaving[i].rank;
        if (room[part[rank]] >= 0) {
            continue;
        }
        while (room[first] <= 0) {
            first++;
        }
        uint32_t to = best_with_room(graph, rank, part, room, first);
        room[part[rank]]++;
        room[to]--;
        part[rank] = to;
    }
    free(leaving);
    free(room);
    return rc;
}

static int cut_by_scotch(const struct map_subgraph *graph, const uint32_t *sizes, uint32_t parts,
                         uint32_t *part)
{
    struct lists lists;
    if (!graph->start[graph->count]) {
        return map_cut_by_growth(graph, sizes, parts, part);
    }
    int rc = make_lists(graph, sizes, parts, &lists);
    if (rc < 0) {
        return rc;
    }
    rc = map_graph(graph->count, parts, &lists);
    for (uint32_t r = 0; rc == 0 && r < graph->count; r++) {
        bool known = lists.part[r] >= 0 && lists.part[r] < (SCOTCH_Num)parts;
        part[r] = known ? (uint32_t)lists.part[r] : 0;
    }
    free_lists(&lists);
    return rc < 0 ? rc : even_out(graph, sizes, parts, part);
}

int map_place_by_scotch(struct map_traffic *t)
{
    return map_place_by_descent(t, cut_by_scotch);
}
