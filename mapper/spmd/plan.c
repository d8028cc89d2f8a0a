/* A plan: who computes what where, and in which order. */
#include "mapper/spmd/spmd.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "mapper/formats/formats.h"

static bool there(const struct spmd_grid *grid, uint64_t rank, int dx, int dy)
{
    return spmd_neighbour(grid, rank, (struct spmd_direction){dx, dy}) >= 0;
}

static int by_priority(const void *a, const void *b)
{
    const struct spmd_box *x = a, *y = b;
    return x->priority - y->priority;
}

size_t spmd_boxes(const struct spmd_problem *problem, const struct spmd_tile *tile,
                  const struct spmd_grid *grid, uint64_t rank, struct spmd_box out[SPMD_BOXES])
{
    const struct spmd_stencil *s = &problem->stencil;
    /* The tasks at the left side go to the left neighbour, who reaches right for them. */
    uint64_t left = there(grid, rank, -1, 0) ? s->right : 0,
             right = there(grid, rank, 1, 0) ? s->left : 0;
    uint64_t low = there(grid, rank, 0, -1) ? s->up : 0,
             high = there(grid, rank, 0, 1) ? s->down : 0;
    uint64_t xs[] = {0, left, tile->x - right, tile->x}, ys[] = {0, low, tile->y - high, tile->y};
    size_t count = 0;
    for (int j = 0; j < 3; j++) {
        for (int i = 0; i < 3; i++) {
            struct spmd_box box = {xs[i], xs[i + 1], ys[j], ys[j + 1], 3 - (i != 1) - (j != 1)};
            if (box.x0 < box.x1 && box.y0 < box.y1) {
                out[count++] = box;
            }
        }
    }
    qsort(out, count, sizeof *out, by_priority);
    return count;
}

static bool message_before(const struct spmd_message *a, const struct spmd_message *b)
{
    return a->layer != b->layer ? a->layer > b->layer : a->bytes > b->bytes;
}

size_t spmd_messages(const struct servet_profile *profile, const struct spmd_problem *problem,
                     const struct spmd_tile *tile, const struct spmd_grid *grid, uint64_t rank,
                     struct spmd_message out[SPMD_DIRECTIONS])
{
    struct spmd_direction directions[SPMD_DIRECTIONS];
    size_t all = spmd_directions(&problem->stencil, directions), count = 0;
    size_t turn = (rank % grid->n + rank / grid->n) % 2 ? all / 2 : 0;
    for (size_t k = 0; k < all; k++) {
        struct spmd_direction d = directions[(k + turn) % all];
        int64_t to = spmd_neighbour(grid, rank, d);
        if (to < 0) {
            continue;
        }
        double bytes = (double)spmd_edge_tasks(&problem->stencil, tile, d) * problem->bytes;
        size_t layer = spmd_layer(profile, grid->pus[rank], grid->pus[to], NULL);
        struct spmd_message message = {(uint64_t)to, d, layer, bytes};
        size_t place = count++;
        for (; place && message_before(&message, &out[place - 1]); place--) {
            out[place] = out[place - 1];
        }
        out[place] = message;
    }
    return count;
}

/* -- JSON -- */

static json_t *pair(uint64_t a, uint64_t b)
{
    return json_pack("[I, I]", (json_int_t)a, (json_int_t)b);
}

static json_t *tasks_of(const struct spmd_planner *p, const struct spmd_choice *choice,
                        const struct spmd_grid *grid, uint64_t rank)
{
    struct spmd_box boxes[SPMD_BOXES];
    size_t count = spmd_boxes(&p->options.problem, &choice->tile, grid, rank, boxes);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_pack("{s:i, s:o, s:o}", "priority", boxes[i].priority, "x",
                                              pair(boxes[i].x0, boxes[i].x1), "y",
                                              pair(boxes[i].y0, boxes[i].y1)));
    }
    return list;
}

static json_t *messages_of(const struct spmd_planner *p, const struct spmd_choice *choice,
                           const struct spmd_grid *grid, uint64_t rank)
{
    struct spmd_message messages[SPMD_DIRECTIONS];
    size_t count =
        spmd_messages(p->profile, &p->options.problem, &choice->tile, grid, rank, messages);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct spmd_message *m = &messages[i];
        json_array_append_new(list, json_pack("{s:I, s:[i, i], s:I, s:f}", "to", (json_int_t)m->to,
                                              "direction", m->direction.dx, m->direction.dy,
                                              "layer", (json_int_t)m->layer, "bytes", m->bytes));
    }
    return list;
}

static json_t *ranks_of(const struct spmd_planner *p, const struct spmd_choice *choice,
                        const struct spmd_grid *grid, const struct map_mapping *plan)
{
    json_t *list = json_array();
    for (uint64_t rank = 0; rank < grid->n * grid->m; rank++) {
        const struct map_place *place = &plan->places[rank];
        char node[256];
        map_mapping_node_name(plan, place->node, node, sizeof node);
        json_array_append_new(
            list, json_pack("{s:I, s:o, s:s, s:I, s:I, s:o, s:o}", "rank", (json_int_t)rank, "at",
                            pair(rank % grid->n, rank / grid->n), "node", node, "pu",
                            (json_int_t)place->pu, "os_index", (json_int_t)place->os_index, "tasks",
                            tasks_of(p, choice, grid, rank), "messages",
                            messages_of(p, choice, grid, rank)));
    }
    return list;
}

char *spmd_plan_json(const struct spmd_planner *p, const struct spmd_choice *choice,
                     const struct spmd_grid *grid)
{
    const struct spmd_problem *problem = &p->options.problem;
    struct map_mapping plan;
    const struct spmd_times *t = &choice->times;
    const struct spmd_stencil *s = &problem->stencil;
    if (map_mapping_make(p->profile, grid->pus, grid->n * grid->m, NULL, &plan) < 0) {
        return NULL;
    }
    json_t *root = json_pack(
        "{s:i, s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I}, s:f, s:f, s:{s:f, s:f, s:f, s:f, s:f, s:f, "
        "s:f, s:b}, s:o}",
        "servet_spmd_plan", 1, "problem", pair(problem->x, problem->y), "grid",
        pair(choice->tile.n, choice->tile.m), "tile", pair(choice->tile.x, choice->tile.y), "halo",
        "left", (json_int_t)s->left, "right", (json_int_t)s->right, "down", (json_int_t)s->down,
        "up", (json_int_t)s->up, "bytes_per_task", problem->bytes, "efficiency",
        problem->efficiency, "predicted", "edge_seconds", t->edge_s, "internal_seconds",
        t->internal_s, "compute_seconds", t->compute_s, "communication_seconds", t->comm_s,
        "iteration_seconds", t->iteration_s, "speedup", t->speedup, "efficiency", t->efficiency,
        "kept", (int)t->kept, "ranks", ranks_of(p, choice, grid, &plan));
    char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL, *line;
    int length = text ? asprintf(&line, "%s\n", text) : -1;
    json_decref(root);
    map_mapping_free(&plan);
    free(text);
    return length < 0 ? NULL : line;
}
