/* A plan: who computes what where, in which order, and how mpirun is told; and what the parts of
 * servet-spmd share. */
#include "mapper/spmd/spmd.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mapper/formats/formats.h"
#include "profile/base/cli.h"
#include "profile/base/stream.h"

void spmd_bind(const struct servet_profile *profile, const struct spmd_grid *grid,
               struct spmd_binding *out)
{
    struct map_mapping plan;
    size_t size = 0;
    *out = (struct spmd_binding){.rankfile = ""};
    if (map_mapping_make(profile, grid->pus, grid->n * grid->m, NULL, &plan) < 0) {
        cli_fail("out of memory");
    }
    bool one_node = map_mapping_one_node(&plan, 0, plan.place_count);
    FILE *text = profile_stream_open(&out->list, &size);
    if (!text || (one_node ? map_print_list(text, &plan, 0, plan.place_count)
                           : map_print_rankfile(text, &plan, 0, plan.place_count)) < 0) {
        cli_fail("out of memory");
    }
    if (fclose(text) != 0) {
        cli_fail("out of memory");
    }
    map_mapping_free(&plan);
    if (one_node) {
        out->list[strcspn(out->list, "\n")] = '\0';
        memcpy(out->arguments,
               (const char *[]){"--bind-to", "cpu-list:ordered", "--cpu-list", out->list, NULL},
               5 * sizeof *out->arguments);
        return;
    }
    strcpy(out->rankfile, "/tmp/servet-ranks-XXXXXX");
    int fd = mkstemp(out->rankfile);
    if (fd < 0 || dprintf(fd, "%s", out->list) < 0 || close(fd) < 0) {
        cli_fail("%s: %s", out->rankfile, strerror(errno));
    }
    memcpy(out->arguments,
           (const char *[]){"--mca", "rmaps_rank_file_physical", "1", "--rankfile", out->rankfile,
                            NULL},
           6 * sizeof *out->arguments);
}

void spmd_unbind(struct spmd_binding *binding)
{
    if (binding->rankfile[0]) {
        unlink(binding->rankfile);
    }
    free(binding->list);
    *binding = (struct spmd_binding){.rankfile = ""};
}

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

static bool before(const struct spmd_message *a, const struct spmd_message *b)
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
        for (; place && before(&message, &out[place - 1]); place--) {
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

static json_t *tasks_of(const struct spmd_problem *problem, const struct spmd_choice *choice,
                        const struct spmd_grid *grid, uint64_t rank)
{
    struct spmd_box boxes[SPMD_BOXES];
    size_t count = spmd_boxes(problem, &choice->tile, grid, rank, boxes);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_pack("{s:i, s:o, s:o}", "priority", boxes[i].priority, "x",
                                              pair(boxes[i].x0, boxes[i].x1), "y",
                                              pair(boxes[i].y0, boxes[i].y1)));
    }
    return list;
}

static json_t *messages_of(const struct servet_profile *profile, const struct spmd_problem *problem,
                           const struct spmd_choice *choice, const struct spmd_grid *grid,
                           uint64_t rank)
{
    struct spmd_message messages[SPMD_DIRECTIONS];
    size_t count = spmd_messages(profile, problem, &choice->tile, grid, rank, messages);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct spmd_message *m = &messages[i];
        json_array_append_new(list, json_pack("{s:I, s:[i, i], s:I, s:f}", "to", (json_int_t)m->to,
                                              "direction", m->direction.dx, m->direction.dy,
                                              "layer", (json_int_t)m->layer, "bytes", m->bytes));
    }
    return list;
}

static json_t *ranks_of(const struct servet_profile *profile, const struct spmd_problem *problem,
                        const struct spmd_choice *choice, const struct spmd_grid *grid,
                        const struct map_mapping *plan)
{
    json_t *list = json_array();
    for (uint64_t rank = 0; rank < grid->n * grid->m; rank++) {
        char node[256];
        map_mapping_node_name(plan, plan->places[rank].node, node, sizeof node);
        json_array_append_new(list, json_pack("{s:I, s:o, s:s, s:I, s:I, s:o, s:o}", "rank",
                                              (json_int_t)rank, "at",
                                              pair(rank % grid->n, rank / grid->n), "node", node,
                                              "pu", (json_int_t)plan->places[rank].pu, "os_index",
                                              (json_int_t)plan->places[rank].os_index, "tasks",
                                              tasks_of(problem, choice, grid, rank), "messages",
                                              messages_of(profile, problem, choice, grid, rank)));
    }
    return list;
}

char *spmd_plan_json(const struct servet_profile *profile, const struct spmd_problem *problem,
                     const struct spmd_choice *choice, const struct spmd_grid *grid)
{
    struct map_mapping plan;
    const struct spmd_times *t = &choice->times;
    const struct spmd_stencil *s = &problem->stencil;
    if (map_mapping_make(profile, grid->pus, grid->n * grid->m, NULL, &plan) < 0) {
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
        "kept", (int)t->kept, "ranks", ranks_of(profile, problem, choice, grid, &plan));
    char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    map_mapping_free(&plan);
    if (!text) {
        return NULL;
    }
    char *line;
    int length = asprintf(&line, "%s\n", text);
    free(text);
    return length < 0 ? NULL : line;
}

_Noreturn void spmd_give_up(int rc, const struct servet_error *error)
{
    if (rc == -EINVAL || rc == -ENOENT || rc == -EACCES || rc == -EISDIR) {
        cli_usage("%s", error->text);
    }
    cli_fail("%s", error->text);
}

/* -- the machine -- */

static uint64_t count_pus(const struct servet_profile *profile, const struct profile_set *allowed)
{
    uint64_t count = 0;
    for (uint32_t node = 0; node < profile_node_count(profile); node++) {
        const struct profile_set *pus = &profile_node_class(profile, node)->pus;
        uint32_t first = profile_node_first_pu(profile, node);
        for (size_t i = 0; i < pus->count; i++) {
            count += !allowed || profile_set_has(allowed, first + pus->ids[i]);
        }
    }
    return count;
}

/* Tcomm of a tile from the profile's layers, with the processes where the mapper puts them. */
static double comm_from_profile(void *context, const struct spmd_problem *problem,
                                const struct spmd_tile *tile)
{
    const struct spmd_planner *planner = context;
    struct spmd_grid grid = {.n = tile->n, .m = tile->m};
    struct servet_error error;
    int rc = spmd_grid_map(planner->profile, planner->allowed, &problem->stencil, &grid, &error);
    if (rc < 0) {
        spmd_give_up(rc, &error);
    }
    double seconds = spmd_grid_comm(planner->profile, problem, tile, &grid);
    spmd_grid_free(&grid);
    return seconds;
}

void spmd_planner_open(struct spmd_planner *p)
{
    struct spmd_options *o = &p->options;
    p->profile = map_common_machine_open(&o->machine);
    p->allowed = o->machine.cpuset.count ? &o->machine.cpuset : NULL;
    p->pus = count_pus(p->profile, p->allowed);
    p->comm = o->comm_s > 0 ? spmd_comm_per_task : comm_from_profile;
    p->comm_context = o->comm_s > 0 ? (void *)&o->comm_s : (void *)p;
    if (!p->pus) {
        cli_usage("--cpuset: expected PUs of the profile");
    }
    if (!(o->comm_s > 0) && !profile_latencies_known(p->profile) && p->pus > 1) {
        cli_usage("--comm: missing, expected the time to communicate one edge task (the profile "
                  "has no measured times of messages)");
    }
}

void spmd_planner_close(struct spmd_planner *p)
{
    profile_set_free(&p->options.machine.cpuset);
    profile_free(p->profile);
}

/* -- distribution -- */

static struct spmd_choice of_tile(const struct spmd_planner *p)
{
    const struct spmd_options *o = &p->options;
    struct spmd_choice choice;
    uint64_t n = o->problem.x / o->tile_x, m = o->problem.y / o->tile_y;
    if (n * m > p->pus) {
        cli_usage("--tile: expected one for at most %llu cores (the PUs of the profile), this one "
                  "needs %llu",
                  (unsigned long long)p->pus, (unsigned long long)(n * m));
    }
    if (spmd_tile_of_grid(&o->problem, n, m, &choice.tile) < 0) {
        cli_usage(
            "--tile: expected one that is not thinner than the stencil reaches, got %llu x %llu",
            (unsigned long long)o->tile_x, (unsigned long long)o->tile_y);
    }
    double comm_s = n * m > 1 ? p->comm(p->comm_context, &o->problem, &choice.tile) : 0;
    choice.times = spmd_predict(&o->problem, &choice.tile, comm_s);
    return choice;
}

struct spmd_choice spmd_planner_distribute(const struct spmd_planner *p)
{
    const struct spmd_options *o = &p->options;
    struct spmd_choice choice;
    if (o->tile_x) {
        return of_tile(p);
    }
    if (o->cores > p->pus) {
        cli_usage("--cores: expected at most %llu (the PUs of the profile), got %llu",
                  (unsigned long long)p->pus, (unsigned long long)o->cores);
    }
    int rc = spmd_choose(&o->problem, o->cores ? o->cores : p->pus, o->cores > 0, p->comm,
                         p->comm_context, &choice);
    if (rc == -ERANGE && o->cores) {
        cli_usage("--cores: expected a number of processes whose grid divides the problem of %llu "
                  "x %llu, got %llu",
                  (unsigned long long)o->problem.x, (unsigned long long)o->problem.y,
                  (unsigned long long)o->cores);
    }
    if (rc < 0) {
        cli_fail("no tile: %s", strerror(-rc));
    }
    return choice;
}

struct spmd_grid spmd_planner_grid(const struct spmd_planner *p, const struct spmd_tile *tile)
{
    struct spmd_grid grid = {.n = tile->n, .m = tile->m};
    struct servet_error error;
    int rc = spmd_grid_map(p->profile, p->allowed, &p->options.problem.stencil, &grid, &error);
    if (rc < 0) {
        spmd_give_up(rc, &error);
    }
    return grid;
}

void spmd_planner_save(const struct spmd_planner *p, const struct spmd_choice *choice,
                       const struct spmd_grid *grid, const char *path)
{
    struct servet_error error;
    char *text = spmd_plan_json(p->profile, &p->options.problem, choice, grid);
    if (!text) {
        cli_fail("out of memory");
    }
    int rc = profile_save_text(text, path, &error);
    free(text);
    if (rc < 0) {
        cli_usage("--plan: %s", error.text);
    }
}
