/* Processes of a grid on PUs: filled block by block along the groups of the machine, then bettered
 * by exchanges; and the time of their messages. */
#include "mapper/spmd/spmd.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/traffic/traffic.h"
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
    int64_t i = (int64_t)(rank % grid->n) + direction.dx,
            j = (int64_t)(rank / grid->n) + direction.dy;
    bool outside = i < 0 || j < 0 || i >= (int64_t)grid->n || j >= (int64_t)grid->m;
    return outside ? -1 : j * (int64_t)grid->n + i;
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
    uint64_t block = j / b->h * (grid->n / b->w) + i / b->w, x = i % b->w, y = j % b->h;
    uint64_t inner = y / b->ih * (b->w / b->iw) + x / b->iw;
    return block * b->w * b->h + inner * b->iw * b->ih + y % b->ih * b->iw + x % b->iw;
}

static void lay_out(struct layout *layout, const struct blocks *blocks)
{
    for (uint64_t rank = 0; rank < layout->count; rank++) {
        uint64_t i = rank % layout->grid->n, j = rank / layout->grid->n;
        layout->place[rank] = (uint32_t)fill_order(layout->grid, blocks, i, j);
    }
}

static void best_blocks(struct layout *layout)
{
    uint64_t n = layout->grid->n, m = layout->grid->m;
    struct blocks best = {n, m, n, m};
    int64_t counts[SPMD_LAYERS], lowest[SPMD_LAYERS];
    lay_out(layout, &best);
    count_all(layout, lowest);
    for (struct blocks b = {.w = 1}; b.w <= n; b.w++) {
        for (b.h = 1; n % b.w == 0 && b.h <= m; b.h++) {
            for (b.iw = 1; m % b.h == 0 && b.iw <= b.w; b.iw++) {
                for (b.ih = 1; b.w % b.iw == 0 && b.ih <= b.h; b.ih++) {
                    if (b.h % b.ih) {
                        continue;
                    }
                    lay_out(layout, &b);
                    count_all(layout, counts);
                    if (better(counts, lowest)) {
                        best = b;
                        memcpy(lowest, counts, sizeof lowest);
                    }
                }
            }
        }
    }
    lay_out(layout, &best);
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
    unsigned char *layer = malloc(count * count);
    for (uint64_t a = 0; layer && a < count; a++) {
        for (uint64_t b = 0; b < count; b++) {
            layer[a * count + b] = (unsigned char)spmd_layer(profile, pus[a], pus[b], NULL);
        }
    }
    return layer;
}

static uint32_t node_of(const struct servet_profile *profile, uint32_t pu)
{
    struct profile_place place = {0};
    return profile_locate(profile, pu, &place) ? place.node : UINT32_MAX;
}

/* The mapper's choice, put together by node: within a node it follows the mapper, who goes to the
 * nearest PU next. */
static void order_by_node(const struct servet_profile *profile, uint32_t *pus, uint64_t count)
{
    for (uint64_t begin = 0, end; begin < count; begin = end) {
        const uint32_t node = node_of(profile, pus[begin]);
        end = begin + 1;
        for (uint64_t i = end; i < count; i++) {
            const uint32_t pu = pus[i];
            if (node_of(profile, pu) == node) {
                memmove(pus + end + 1, pus + end, (i - end) * sizeof *pus);
                pus[end++] = pu;
            }
        }
    }
}

static int place_processes(const struct servet_profile *profile, const struct spmd_stencil *stencil,
                           struct spmd_grid *grid)
{
    struct layout layout = {.grid = grid, .count = grid->n * grid->m};
    int64_t counts[SPMD_LAYERS];
    FREED uint32_t *order = malloc(layout.count * sizeof *order);
    FREED uint32_t *place = malloc(layout.count * sizeof *place);
    FREED unsigned char *layer = layer_matrix(profile, grid->pus, layout.count);
    if (!order || !place || !layer) {
        return -ENOMEM;
    }
    layout.place = place;
    layout.layer = layer;
    layout.direction_count = spmd_directions(stencil, layout.directions);
    memcpy(order, grid->pus, layout.count * sizeof *order);
    best_blocks(&layout);
    if (layout.count <= EXCHANGE_LIMIT) {
        map_exchange_all(&layout, (uint32_t)layout.count, EXCHANGE_PASSES, try_exchange);
    }
    count_all(&layout, counts);
    for (uint64_t rank = 0; rank < layout.count; rank++) {
        grid->pus[rank] = order[place[rank]];
    }
    for (size_t i = 0; i < SPMD_LAYERS; i++) {
        grid->messages[i] = (uint64_t)counts[i];
    }
    return 0;
}

int spmd_grid_map(const struct servet_profile *profile, const struct profile_set *allowed,
                  const struct spmd_stencil *stencil, struct spmd_grid *out,
                  struct servet_error *error)
{
    uint64_t n = out->n, m = out->m;
    struct spmd_grid grid = {.n = n, .m = m, .pus = calloc(n * m, sizeof *grid.pus)};
    struct map_request request = {
        .priority = MAP_COMMUNICATION, .workers = n * m, .allowed = allowed};
    int rc = grid.pus ? map_workers(profile, &request, grid.pus, NULL, error) : -ENOMEM;
    if (rc == 0) {
        order_by_node(profile, grid.pus, n * m);
        rc = place_processes(profile, stencil, &grid);
    }
    if (rc < 0) {
        spmd_grid_free(&grid);
        return map_out_of_memory(rc, error);
    }
    *out = grid;
    return 0;
}

/* -- times -- */

double spmd_grid_comm(const struct servet_profile *profile, const struct spmd_problem *problem,
                      const struct spmd_tile *tile, const struct spmd_grid *grid)
{
    struct spmd_direction directions[SPMD_DIRECTIONS];
    size_t count = spmd_directions(&problem->stencil, directions);
    double slowest = 0;
    for (uint64_t rank = 0; rank < grid->n * grid->m; rank++) {
        for (size_t d = 0; d < count; d++) {
            struct profile_link link = {0};
            int64_t other = spmd_neighbour(grid, rank, directions[d]);
            size_t index =
                other < 0 ? 0 : spmd_layer(profile, grid->pus[rank], grid->pus[other], &link);
            if (other < 0 || !link.layer) {
                continue;
            }
            double bytes =
                (double)spmd_edge_tasks(&problem->stencil, tile, directions[d]) * problem->bytes;
            double seconds =
                profile_message_seconds(link.layer, link.communication->message_bytes, ceil(bytes));
            slowest =
                fmax(slowest, seconds * profile_messages_slower(link.layer, grid->messages[index]));
        }
    }
    return slowest;
}
