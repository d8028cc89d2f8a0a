/* A plan: who computes what where, and in which order. */
#include "mapper/spmd/spmd.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "mapper/formats/formats.h"
#include "profile/base/cli.h"
#include "profile/base/file.h"
#include "profile/scope.h"

static json_t *pair(uint64_t a, uint64_t b)
{
    return json_pack("[I, I]", (json_int_t)a, (json_int_t)b);
}

/* -- tasks -- */

static bool there(const struct spmd_grid *grid, uint64_t rank, int dx, int dy)
{
    return spmd_neighbour(grid, rank, (struct spmd_direction){dx, dy}) >= 0;
}

/* The tile of a rank cut into corners, sides and the inside, by priority: a side without a
 * neighbour is internal. */
static json_t *tasks_of(const struct spmd_stencil *s, const struct spmd_grid *grid, uint64_t rank)
{
    const struct spmd_tile *tile = &grid->tile;
    /* The tasks at the left side go to the left neighbour, who reaches right for them. */
    uint64_t left = there(grid, rank, -1, 0) ? s->right : 0,
             right = there(grid, rank, 1, 0) ? s->left : 0;
    uint64_t low = there(grid, rank, 0, -1) ? s->up : 0,
             high = there(grid, rank, 0, 1) ? s->down : 0;
    uint64_t xs[] = {0, left, tile->x - right, tile->x}, ys[] = {0, low, tile->y - high, tile->y};
    json_t *list = json_array();
    for (int priority = 1; priority <= 3; priority++) {
        for (int k = 0; k < 9; k++) {
            const int i = k % 3, j = k / 3;
            if (3 - (i != 1) - (j != 1) == priority && xs[i] < xs[i + 1] && ys[j] < ys[j + 1]) {
                json_array_append_new(list, json_pack("{s:i, s:o, s:o}", "priority", priority, "x",
                                                      pair(xs[i], xs[i + 1]), "y",
                                                      pair(ys[j], ys[j + 1])));
            }
        }
    }
    return list;
}

/* -- messages -- */

struct message {
    uint64_t to;
    struct spmd_direction direction;
    size_t layer;
    double bytes;
};

static bool comes_before(const struct message *a, const struct message *b)
{
    return a->layer != b->layer ? a->layer > b->layer : a->bytes > b->bytes;
}

static json_t *messages_of_rank(const struct spmd_planner *p, const struct spmd_grid *grid,
                                uint64_t rank)
{
    const struct spmd_problem *problem = &p->options.problem;
    struct message list[SPMD_DIRECTIONS];
    struct spmd_direction directions[SPMD_DIRECTIONS];
    size_t all = spmd_directions(&problem->stencil, directions), count = 0;
    size_t turn = (rank % grid->tile.n + rank / grid->tile.n) % 2 ? all / 2 : 0;
    for (size_t k = 0; k < all; k++) {
        struct spmd_direction d = directions[(k + turn) % all];
        int64_t to = spmd_neighbour(grid, rank, d);
        if (to < 0) {
            continue;
        }
        const struct message message = {
            .to = (uint64_t)to,
            .direction = d,
            .layer = spmd_layer(p->profile, grid->pus[rank], grid->pus[to], NULL),
            .bytes = (double)spmd_edge_tasks(&problem->stencil, &grid->tile, d) * problem->bytes};
        size_t place = count++;
        for (; place && comes_before(&message, &list[place - 1]); place--) {
            list[place] = list[place - 1];
        }
        list[place] = message;
    }
    json_t *out = json_array();
    for (const struct message *m = list; m < list + count; m++) {
        json_array_append_new(out, json_pack("{s:I, s:[i, i], s:I, s:f}", "to", (json_int_t)m->to,
                                             "direction", m->direction.dx, m->direction.dy, "layer",
                                             (json_int_t)m->layer, "bytes", m->bytes));
    }
    return out;
}

/* -- the whole -- */

static json_t *ranks_of(const struct spmd_planner *p, const struct spmd_grid *grid)
{
    FREED_BY(map_mapping_free) struct map_mapping mapping = spmd_mapping(p, grid);
    json_t *list = json_array();
    for (uint64_t rank = 0; rank < mapping.rank_count; rank++) {
        const struct map_place *place = &mapping.places[rank];
        char node[256];
        map_mapping_node_name(&mapping, place->node, node, sizeof node);
        json_array_append_new(
            list, json_pack("{s:I, s:o, s:s, s:I, s:I, s:o, s:o}", "rank", (json_int_t)rank, "at",
                            pair(rank % grid->tile.n, rank / grid->tile.n), "node", node, "pu",
                            (json_int_t)place->pu, "os_index", (json_int_t)place->os_index, "tasks",
                            tasks_of(&p->options.problem.stencil, grid, rank), "messages",
                            messages_of_rank(p, grid, rank)));
    }
    return list;
}

void spmd_plan_save(const struct spmd_planner *p, const struct spmd_times *t,
                    const struct spmd_grid *grid, const char *path)
{
    const struct spmd_problem *problem = &p->options.problem;
    const struct spmd_stencil *s = &problem->stencil;
    const struct spmd_tile *tile = &grid->tile;
    FREED char *text = NULL;
    size_t length;
    struct servet_error error;
    json_t *root = cli_needed(json_pack(
        "{s:i, s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I}, s:f, s:f, s:{s:f, s:f, s:f, s:f, s:f, s:f, "
        "s:f, s:b}, s:o}",
        "servet_spmd_plan", 1, "problem", pair(problem->x, problem->y), "grid",
        pair(tile->n, tile->m), "tile", pair(tile->x, tile->y), "halo", "left", (json_int_t)s->left,
        "right", (json_int_t)s->right, "down", (json_int_t)s->down, "up", (json_int_t)s->up,
        "bytes_per_task", problem->bytes, "efficiency", problem->efficiency, "predicted",
        "edge_seconds", t->edge_s, "internal_seconds", t->internal_s, "compute_seconds",
        t->compute_s, "communication_seconds", t->comm_s, "iteration_seconds", t->iteration_s,
        "speedup", t->speedup, "efficiency", t->efficiency, "kept", (int)t->kept, "ranks",
        ranks_of(p, grid)));
    FILE *out = cli_needed(profile_stream_open(&text, &length));
    cli_done(json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(17)));
    json_decref(root);
    fputc('\n', out);
    cli_done(fclose(out));
    if (profile_save_file(path, text, length, &error) < 0) {
        cli_usage("--plan: %s", error.text);
    }
}
