/* Processes of a grid on PUs: filled block by block along the groups of the machine, then bettered
 * by exchanges; and the time of their messages. */
#include "mapper/spmd/spmd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/traffic/traffic.h"
#include "profile/base/cli.h"
#include "profile/query.h"
#include "profile/scope.h"

/* Exchanging pairs costs the square of the processes; beyond this many the blocks alone must do. */
#define EXCHANGE_LIMIT 256
#define EXCHANGE_PASSES 8

struct layout {
    const struct spmd_grid *grid;
    uint64_t count;
    struct spmd_direction directions[SPMD_DIRECTIONS];
    size_t direction_count;
    const unsigned char *layer; /* [a * count + b], by position in the order of PUs */
    uint32_t *place;            /* by rank: position in the order of PUs */
};

void spmd_grid_free(struct spmd_grid *grid)
{
    free(grid->pus);
    *grid = (struct spmd_grid){0};
}

int64_t spmd_neighbour(const struct spmd_grid *grid, uint64_t rank, struct spmd_direction direction)
{
    int64_t i = (int64_t)(rank % grid->tile.n) + direction.dx,
            j = (int64_t)(rank / grid->tile.n) + direction.dy;
    bool outside = i < 0 || j < 0 || i >= (int64_t)grid->tile.n || j >= (int64_t)grid->tile.m;
    return outside ? -1 : j * (int64_t)grid->tile.n + i;
}

size_t spmd_layer(const struct servet_profile *profile, uint32_t a, uint32_t b,
                  struct profile_link *out)
{
    struct profile_link link = {0};
    bool known = profile_link_of(profile, a, b, &link);
    if (out) {
        *out = link;
    }
    return known && link.rank < SPMD_LAYERS ? link.rank - 1 : SPMD_LAYERS - 1;
}

/* -- counting -- */

static void count_rank(const struct layout *layout, uint64_t rank, int64_t sign,
                       int64_t counts[SPMD_LAYERS])
{
    for (size_t d = 0; d < layout->direction_count; d++) {
        int64_t other = spmd_neighbour(layout->grid, rank, layout->directions[d]);
        if (other >= 0) {
            counts[layout->layer[layout->place[rank] * layout->count + layout->place[other]]] +=
                sign;
        }
    }
}

static void count_all(const struct layout *layout, int64_t counts[SPMD_LAYERS])
{
    memset(counts, 0, SPMD_LAYERS * sizeof *counts);
    for (uint64_t rank = 0; rank < layout->count; rank++) {
        count_rank(layout, rank, 1, counts);
    }
}

/* Fewer on the slowest layer counts first. Differences of counts may be compared with zeros too. */
static bool better(const int64_t a[SPMD_LAYERS], const int64_t b[SPMD_LAYERS])
{
    for (size_t layer = SPMD_LAYERS; layer-- > 0;) {
        if (a[layer] != b[layer]) {
            return a[layer] < b[layer];
        }
    }
    return false;
}

/* -- blocks -- */

struct blocks {
    uint64_t w, h;   /* of a block, in processes */
    uint64_t iw, ih; /* of a block within a block */
};

/* The position in the order of process (i, j) when the grid is filled block by block, each block by
 * its inner ones. */
static uint64_t fill_order(const struct spmd_grid *grid, const struct blocks *b, uint64_t i,
                           uint64_t j)
{
    uint64_t block = j / b->h * (grid->tile.n / b->w) + i / b->w, x = i % b->w, y = j % b->h;
    uint64_t inner = y / b->ih * (b->w / b->iw) + x / b->iw;
    return block * b->w * b->h + inner * b->iw * b->ih + y % b->ih * b->iw + x % b->iw;
}

static void lay_out_blocks(struct layout *layout, const struct blocks *blocks)
{
    for (uint64_t rank = 0; rank < layout->count; rank++) {
        uint64_t i = rank % layout->grid->tile.n, j = rank / layout->grid->tile.n;
        layout->place[rank] = (uint32_t)fill_order(layout->grid, blocks, i, j);
    }
}

static void best_blocks(struct layout *layout)
{
    uint64_t n = layout->grid->tile.n, m = layout->grid->tile.m;
    struct blocks best = {n, m, n, m};
    int64_t counts[SPMD_LAYERS], lowest[SPMD_LAYERS];
    lay_out_blocks(layout, &best);
    count_all(layout, lowest);
    for (struct blocks b = {.w = 1}; b.w <= n; b.w++) {
        for (b.h = 1; n % b.w == 0 && b.h <= m; b.h++) {
            for (b.iw = 1; m % b.h == 0 && b.iw <= b.w; b.iw++) {
                for (b.ih = 1; b.w % b.iw == 0 && b.ih <= b.h; b.ih++) {
                    if (b.h % b.ih) {
                        continue;
                    }
                    lay_out_blocks(layout, &b);
                    count_all(layout, counts);
                    if (better(counts, lowest)) {
                        best = b;
                        memcpy(lowest, counts, sizeof lowest);
                    }
                }
            }
        }
    }
    lay_out_blocks(layout, &best);
}

/* -- exchanges -- */

static void swap_places(struct layout *layout, uint64_t a, uint64_t b)
{
    uint32_t place = layout->place[a];
    layout->place[a] = layout->place[b];
    layout->place[b] = place;
}

static bool try_exchange(void *context, uint32_t a, uint32_t b)
{
    static const int64_t nothing[SPMD_LAYERS];
    struct layout *layout = context;
    int64_t change[SPMD_LAYERS] = {0};
    count_rank(layout, a, -1, change);
    count_rank(layout, b, -1, change);
    swap_places(layout, a, b);
    count_rank(layout, a, 1, change);
    count_rank(layout, b, 1, change);
    if (better(change, nothing)) {
        return true;
    }
    swap_places(layout, a, b);
    return false;
}

/* -- the whole -- */

static unsigned char *layer_matrix(const struct servet_profile *profile, const uint32_t *pus,
                                   uint64_t count)
{
    unsigned char *layer = cli_needed(malloc(count * count));
    for (uint64_t i = 0; i < count * count; i++) {
        layer[i] = (unsigned char)spmd_layer(profile, pus[i / count], pus[i % count], NULL);
    }
    return layer;
}

static uint32_t node_of_pu(const struct servet_profile *profile, uint32_t pu)
{
    struct profile_place place = {0};
    return profile_locate(profile, pu, &place) ? place.node : UINT32_MAX;
}

/* The mapper's choice, put together by node: within a node it follows the mapper, who goes to the
 * nearest PU next. */
static void order_by_node(const struct servet_profile *profile, uint32_t *pus, uint64_t count)
{
    for (uint64_t begin = 0, end; begin < count; begin = end) {
        const uint32_t node = node_of_pu(profile, pus[begin]);
        end = begin + 1;
        for (uint64_t i = end; i < count; i++) {
            const uint32_t pu = pus[i];
            if (node_of_pu(profile, pu) == node) {
                memmove(pus + end + 1, pus + end, (i - end) * sizeof *pus);
                pus[end++] = pu;
            }
        }
    }
}

/* `order`: the PUs to be used. */
static void place_processes(const struct spmd_planner *p, const uint32_t *order,
                            struct spmd_grid *grid)
{
    const uint64_t count = grid->tile.n * grid->tile.m;
    int64_t counts[SPMD_LAYERS];
    FREED uint32_t *place = cli_needed(malloc(count * sizeof *place));
    FREED unsigned char *layer = layer_matrix(p->profile, order, count);
    struct layout layout = {.grid = grid, .count = count, .layer = layer, .place = place};
    layout.direction_count = spmd_directions(&p->options.problem.stencil, layout.directions);
    best_blocks(&layout);
    if (count <= EXCHANGE_LIMIT) {
        map_exchange_all(&layout, (uint32_t)count, EXCHANGE_PASSES, try_exchange);
    }
    count_all(&layout, counts);
    for (uint64_t rank = 0; rank < count; rank++) {
        grid->pus[rank] = order[place[rank]];
    }
    for (size_t i = 0; i < SPMD_LAYERS; i++) {
        grid->messages[i] = (uint64_t)counts[i];
    }
}

struct spmd_grid spmd_grid_map(const struct spmd_planner *p, const struct spmd_tile *tile)
{
    const uint64_t count = tile->n * tile->m;
    struct spmd_grid grid = {.tile = *tile, .pus = cli_needed(calloc(count, sizeof *grid.pus))};
    FREED uint32_t *order = cli_needed(calloc(count, sizeof *order));
    const struct map_request request = {
        .priority = MAP_COMMUNICATION, .workers = count, .allowed = &p->allowed};
    struct servet_error error;
    cli_check(map_workers(p->profile, &request, order, NULL, &error), &error);
    order_by_node(p->profile, order, count);
    place_processes(p, order, &grid);
    return grid;
}

struct map_mapping spmd_mapping(const struct spmd_planner *p, const struct spmd_grid *grid)
{
    struct map_mapping mapping =
        map_mapping_make(p->profile, grid->pus, grid->tile.n * grid->tile.m, NULL);
    mapping.priority = MAP_COMMUNICATION;
    return mapping;
}

/* -- times -- */

double spmd_grid_comm(const struct spmd_planner *p, const struct spmd_grid *grid)
{
    const struct spmd_problem *problem = &p->options.problem;
    struct spmd_direction directions[SPMD_DIRECTIONS];
    size_t count = spmd_directions(&problem->stencil, directions);
    double slowest = 0;
    for (uint64_t rank = 0; rank < grid->tile.n * grid->tile.m; rank++) {
        for (size_t d = 0; d < count; d++) {
            struct profile_link link = {0};
            int64_t other = spmd_neighbour(grid, rank, directions[d]);
            size_t index =
                other < 0 ? 0 : spmd_layer(p->profile, grid->pus[rank], grid->pus[other], &link);
            if (other < 0 || !link.layer) {
                continue;
            }
            double bytes = (double)spmd_edge_tasks(&problem->stencil, &grid->tile, directions[d]) *
                           problem->bytes;
            double seconds =
                profile_message_seconds(link.layer, link.communication->message_bytes, ceil(bytes));
            slowest =
                fmax(slowest, seconds * profile_messages_slower(link.layer, grid->messages[index]));
        }
    }
    return slowest;
}

double spmd_comm(const struct spmd_planner *p, const struct spmd_tile *tile)
{
    const struct spmd_options *o = &p->options;
    if (tile->n * tile->m == 1) {
        return 0;
    }
    if (o->comm_s > 0) {
        return (double)spmd_longest_edge(&o->problem.stencil, tile) * o->comm_s;
    }
    FREED_BY(spmd_grid_free) struct spmd_grid grid = spmd_grid_map(p, tile);
    return spmd_grid_comm(p, &grid);
}
