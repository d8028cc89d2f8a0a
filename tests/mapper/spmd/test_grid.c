/* Do grids keep their messages off slow links, and does a plan cut every tile into edges and
 * inside? */
#include <jansson.h>
#include <string.h>

#include "mapper/spmd/spmd.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"

/* Of the PUs in the list; NULL: of all. */
static struct spmd_planner planned(const char *profile, const char *pus, const char *stencil,
                                   uint64_t x, uint64_t y)
{
    struct spmd_planner out = {.profile = loaded(profile)};
    struct servet_error error;
    struct profile_set listed = {0};
    const struct map_limits limits = {.pus = pus ? &listed : NULL, .kind = MAP_KIND_ANY};
    out.options.problem =
        (struct spmd_problem){.x = x, .y = y, .comp_s = 1, .bytes = 8, .efficiency = 0.85};
    ck_assert_int_eq(spmd_stencil_parse(stencil, &out.options.problem.stencil, &error), 0);
    ck_assert_int_eq(pus ? profile_set_parse(pus, &listed) : 0, 0);
    out.allowed = map_allowed_pus(out.profile, &limits);
    kept(out.allowed.ids);
    profile_set_free(&listed);
    return out;
}

static struct spmd_grid mapped(const struct spmd_planner *p, uint64_t n, uint64_t m)
{
    struct spmd_tile tile;
    ck_assert_int_eq(spmd_tile_of_grid(&p->options.problem, n, m, &tile), 0);
    struct spmd_grid grid = spmd_grid_map(p, &tile);
    kept(grid.pus);
    return grid;
}

/* -- against every order there is -- */

struct search {
    const struct spmd_grid *grid;
    struct spmd_direction directions[SPMD_DIRECTIONS];
    size_t direction_count;
    unsigned char layer[9][9];
    uint32_t at[9]; /* by process: position among the PUs */
    int64_t best[SPMD_LAYERS];
};

static bool fewer(const int64_t a[SPMD_LAYERS], const int64_t b[SPMD_LAYERS])
{
    size_t i = SPMD_LAYERS - 1;
    while (i > 0 && a[i] == b[i]) {
        i--;
    }
    return a[i] < b[i];
}

static void judge(struct search *s)
{
    int64_t counts[SPMD_LAYERS] = {0};
    for (uint64_t rank = 0; rank < s->grid->tile.n * s->grid->tile.m; rank++) {
        for (size_t d = 0; d < s->direction_count; d++) {
            int64_t other = spmd_neighbour(s->grid, rank, s->directions[d]);
            if (other >= 0) {
                counts[s->layer[s->at[rank]][s->at[other]]]++;
            }
        }
    }
    if (fewer(counts, s->best)) {
        memcpy(s->best, counts, sizeof counts);
    }
}

static void try_orders(struct search *s, size_t placed)
{
    size_t count = s->grid->tile.n * s->grid->tile.m;
    if (placed == count) {
        judge(s);
        return;
    }
    for (size_t i = placed; i < count; i++) {
        uint32_t keep = s->at[placed];
        s->at[placed] = s->at[i];
        s->at[i] = keep;
        try_orders(s, placed + 1);
        s->at[i] = s->at[placed];
        s->at[placed] = keep;
    }
}

static const struct {
    const char *profile, *allowed, *stencil;
    uint64_t n, m;
} small[] = {
    {FIXTURES "/nehalem-2-nodes.json", NULL, "2d5", 4, 2},
    {FIXTURES "/nehalem-2-nodes.json", "0-3,8-11", "2d5", 2, 4},
    {FIXTURES "/nehalem-2-nodes.json", "0-2,8-12", "2d5", 4, 2}, /* nodes that no rectangle fills */
    {FIXTURES "/nehalem-2-nodes.json", "0-4,8-11", "2d5", 3, 3},
    {FIXTURES "/nehalem-2-nodes.json", "0-3,8-11", "2d9", 4, 2},
    {FIXTURES "/nehalem-2-nodes.json", "0-4,8-11", "2d9", 3, 3},
    {FIXTURES "/nehalem-2-nodes.json", "0-1,8-13", "1:0,-1:0", 8, 1},
    {FIXTURES "/nehalem-2-nodes.json", "0-4,8-10", "1:0,2:0,0:-1", 2, 4},
    {FIXTURES "/nehalem-2-nodes.json", "1-2,9-12", "1:1,-1:-1", 3, 2},
    {FIXTURES "/spmd-dell.json", "0-1,8-9,16-17,24-25", "2d5", 4,
     2}, /* two on each of four nodes */
    {FIXTURES "/spmd-dell.json", "0,8-9,16-18,24-26", "2d5", 3, 3},
    {FIXTURES "/spmd-ibm.json", "0-2,4-6,8-9", "2d5", 2, 4},
    {FIXTURES "/spmd-amd.json", "0-1,3-6", "1d3", 6, 1},
};

TEST(no_other_order_of_the_processes_sends_fewer_over_the_slowest_links,
     .loops = sizeof small / sizeof *small)
{
    struct spmd_planner p =
        planned(small[_i].profile, small[_i].allowed, small[_i].stencil, 5040, 5040);
    struct search s = {.best = {[SPMD_LAYERS - 1] = INT64_MAX}};
    struct spmd_grid grid = mapped(&p, small[_i].n, small[_i].m);
    s.grid = &grid;
    s.direction_count = spmd_directions(&p.options.problem.stencil, s.directions);
    for (uint32_t a = 0; a < small[_i].n * small[_i].m; a++) {
        s.at[a] = a;
        for (uint32_t b = 0; b < small[_i].n * small[_i].m; b++) {
            s.layer[a][b] = (unsigned char)spmd_layer(p.profile, grid.pus[a], grid.pus[b], NULL);
        }
    }
    try_orders(&s, 0);
    for (size_t i = 0; i < SPMD_LAYERS; i++) {
        ck_assert_msg((int64_t)grid.messages[i] == s.best[i],
                      "layer %d: %d messages, the best order has %d", (int)i, (int)grid.messages[i],
                      (int)s.best[i]);
    }
}

/* The ranks of its plan, until the next one. */
static const json_t *ranks_of(const struct spmd_planner *p, const struct spmd_grid *grid)
{
    static json_t *root;
    const char *path = scratch_path("plan");
    const struct spmd_times times = {0};
    spmd_plan_save(p, &times, grid, path);
    json_decref(root);
    root = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(root);
    return json_object_get(root, "ranks");
}

static size_t number_at(const json_t *list, size_t i)
{
    return (size_t)json_integer_value(json_array_get(list, i));
}

TEST(the_tasks_of_a_plan_are_the_tile_by_priority)
{
    const char *stencils[] = {"2d5", "2d9", "2:0,-1:0,0:3,0:-1"};
    for (size_t k = 0; k < 3; k++) {
        struct spmd_planner p = planned(FIXTURES "/spmd-dell.json", NULL, stencils[k], 60, 50);
        const struct spmd_stencil *s = &p.options.problem.stencil;
        struct spmd_grid grid = mapped(&p, 3, 5);
        size_t rank, b;
        const json_t *ranks = ranks_of(&p, &grid), *of_rank, *box;
        json_array_foreach(ranks, rank, of_rank)
        {
            unsigned char seen[10][20] = {{0}};
            json_int_t last = 1;
            json_array_foreach(json_object_get(of_rank, "tasks"), b, box)
            {
                const json_t *xs = json_object_get(box, "x"), *ys = json_object_get(box, "y");
                json_int_t priority = json_integer_value(json_object_get(box, "priority"));
                ck_assert_int_ge(priority, last);
                last = priority;
                for (size_t y = number_at(ys, 0); y < number_at(ys, 1); y++) {
                    for (size_t x = number_at(xs, 0); x < number_at(xs, 1); x++) {
                        seen[y][x]++;
                        /* who waits for this task? */
                        bool i0 = rank % 3 > 0 && x < s->right,
                             i1 = rank % 3 < 2 && x + s->left >= 20;
                        bool j0 = rank / 3 > 0 && y < s->up, j1 = rank / 3 < 4 && y + s->down >= 10;
                        ck_assert_int_eq(priority, 3 - (i0 || i1) - (j0 || j1));
                    }
                }
            }
            for (size_t i = 0; i < sizeof seen; i++) {
                ck_assert_int_eq(((unsigned char *)seen)[i], 1);
            }
        }
        ck_assert_uint_eq(rank, 15);
    }
}

TEST(messages_over_slow_links_are_posted_first)
{
    struct spmd_planner p = planned(FIXTURES "/spmd-dell.json", NULL, "2d5", 8500, 4000);
    struct spmd_grid grid = mapped(&p, 4, 4);
    size_t mixed = 0, rank, i;
    const json_t *ranks = ranks_of(&p, &grid), *of_rank, *message;
    json_array_foreach(ranks, rank, of_rank)
    {
        const json_t *messages = json_object_get(of_rank, "messages");
        json_int_t before = SPMD_LAYERS;
        ck_assert_uint_ge(json_array_size(messages), 2);
        json_array_foreach(messages, i, message)
        {
            const json_int_t layer = json_integer_value(json_object_get(message, "layer"));
            const json_t *direction = json_object_get(message, "direction");
            const struct spmd_direction d = {(int)number_at(direction, 0),
                                             (int)number_at(direction, 1)};
            ck_assert_int_le(layer, before);
            mixed += i && layer < before;
            before = layer;
            ck_assert_int_eq(json_integer_value(json_object_get(message, "to")),
                             spmd_neighbour(&grid, rank, d));
        }
    }
    ck_assert_uint_gt(mixed, 0);
}

/* Two processes send two messages at once. */
TEST(messages_at_once_take_as_long_as_was_measured)
{
    struct spmd_planner p = planned(FIXTURES "/spmd-amd.json", NULL, "1d3", 10800, 1);
    struct spmd_grid grid = mapped(&p, 2, 1);
    struct profile_layer *layer = &p.profile->classes[0].communication.layers[0],
                         as_loaded = *layer;
    ck_assert_uint_eq(grid.messages[0], 2);
    layer->concurrency = NULL;
    layer->concurrency_count = 0;
    double alone = spmd_grid_comm(&p, &grid);
    ck_assert_double_gt(alone, 0);
    struct {
        struct profile_concurrency_point points[2];
        size_t count;
        double slower;
    } cases[] = {{{{1, 1e-6, 0, -1}}, 1, 1}, /* one alone does not show two */
                 {{{1, 1e-6, 0, -1}, {2, 1.5e-6, 0, -1}}, 2, 1.5},
                 {{{1, 1e-6, 0, -1}, {3, 2e-6, 0, -1}}, 2, 1.5},
                 {{{2, 1e-6, 0, -1}, {4, 3e-6, 0, -1}}, 2, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        layer->concurrency = cases[i].points;
        layer->concurrency_count = cases[i].count;
        ck_assert_double_eq_tol(spmd_grid_comm(&p, &grid) / alone, cases[i].slower, 1e-9);
    }
    *layer = as_loaded;
}
