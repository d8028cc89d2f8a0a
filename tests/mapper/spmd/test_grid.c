/* Do grids keep their messages off slow links, and does a plan cut every tile into edges and
 * inside? */
#include "profile/scope.h"
#include <string.h>

#include "mapper/spmd/spmd.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"

static struct spmd_problem problem(const char *text, uint64_t x, uint64_t y, double comp_s)
{
    struct spmd_problem out = {.x = x, .y = y, .comp_s = comp_s, .bytes = 8, .efficiency = 0.85};
    struct servet_error error;
    ck_assert_int_eq(spmd_stencil_parse(text, &out.stencil, &error), 0);
    return out;
}

static struct spmd_grid mapped(const struct servet_profile *profile, const struct spmd_problem *p,
                               uint64_t n, uint64_t m)
{
    struct spmd_grid grid = {.n = n, .m = m};
    struct servet_error error;
    ck_assert_msg(spmd_grid_map(profile, NULL, &p->stencil, &grid, &error) == 0, "%s", error.text);
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
    for (uint64_t rank = 0; rank < s->grid->n * s->grid->m; rank++) {
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
    size_t count = s->grid->n * s->grid->m;
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
    struct servet_profile *profile = loaded(small[_i].profile);
    struct spmd_problem p = problem(small[_i].stencil, 5040, 5040, 1);
    FREED_BY(profile_set_free) struct profile_set allowed = {0};
    struct servet_error error;
    struct search s = {.best = {[SPMD_LAYERS - 1] = INT64_MAX}};
    FREED_BY(spmd_grid_free) struct spmd_grid grid = {.n = small[_i].n, .m = small[_i].m};
    ck_assert_int_eq(small[_i].allowed ? profile_set_parse(small[_i].allowed, &allowed) : 0, 0);
    ck_assert_int_eq(
        spmd_grid_map(profile, small[_i].allowed ? &allowed : NULL, &p.stencil, &grid, &error), 0);
    s.grid = &grid;
    s.direction_count = spmd_directions(&p.stencil, s.directions);
    for (uint32_t a = 0; a < grid.n * grid.m; a++) {
        s.at[a] = a;
        for (uint32_t b = 0; b < grid.n * grid.m; b++) {
            s.layer[a][b] = (unsigned char)spmd_layer(profile, grid.pus[a], grid.pus[b], NULL);
        }
    }
    try_orders(&s, 0);
    for (size_t i = 0; i < SPMD_LAYERS; i++) {
        ck_assert_msg((int64_t)grid.messages[i] == s.best[i],
                      "layer %d: %d messages, the best order has %d", (int)i, (int)grid.messages[i],
                      (int)s.best[i]);
    }
}

TEST(the_boxes_of_a_plan_are_the_tile_by_priority)
{
    struct servet_profile *profile = loaded(FIXTURES "/spmd-dell.json");
    const char *stencils[] = {"2d5", "2d9", "2:0,-1:0,0:3,0:-1"};
    for (size_t k = 0; k < 3; k++) {
        struct spmd_problem p = problem(stencils[k], 60, 50, 1);
        struct spmd_grid grid = mapped(profile, &p, 3, 5);
        struct spmd_tile tile;
        ck_assert_int_eq(spmd_tile_of_grid(&p, 3, 5, &tile), 0);
        for (uint64_t rank = 0; rank < 15; rank++) {
            struct spmd_box boxes[SPMD_BOXES];
            size_t count = spmd_boxes(&p, &tile, &grid, rank, boxes);
            unsigned char seen[10][20] = {{0}};
            for (size_t b = 0; b < count; b++) {
                ck_assert(b == 0 || boxes[b].priority >= boxes[b - 1].priority);
                for (uint64_t y = boxes[b].y0; y < boxes[b].y1; y++) {
                    for (uint64_t x = boxes[b].x0; x < boxes[b].x1; x++) {
                        seen[y][x]++;
                        /* who waits for this task? */
                        bool i0 = rank % 3 > 0 && x < p.stencil.right,
                             i1 = rank % 3 < 2 && x + p.stencil.left >= 20;
                        bool j0 = rank / 3 > 0 && y < p.stencil.up,
                             j1 = rank / 3 < 4 && y + p.stencil.down >= 10;
                        ck_assert_int_eq(boxes[b].priority, 3 - (i0 || i1) - (j0 || j1));
                    }
                }
            }
            for (size_t i = 0; i < sizeof seen; i++) {
                ck_assert_int_eq(((unsigned char *)seen)[i], 1);
            }
        }
        spmd_grid_free(&grid);
    }
}

TEST(messages_over_slow_links_are_posted_first)
{
    struct servet_profile *profile = loaded(FIXTURES "/spmd-dell.json");
    struct spmd_problem p = problem("2d5", 8500, 4000, 1);
    FREED_BY(spmd_grid_free) struct spmd_grid grid = mapped(profile, &p, 4, 4);
    struct spmd_tile tile;
    size_t mixed = 0;
    ck_assert_int_eq(spmd_tile_of_grid(&p, 4, 4, &tile), 0);
    for (uint64_t rank = 0; rank < 16; rank++) {
        struct spmd_message messages[SPMD_DIRECTIONS];
        size_t count = spmd_messages(profile, &p, &tile, &grid, rank, messages);
        ck_assert_uint_ge(count, 2);
        for (size_t i = 1; i < count; i++) {
            ck_assert_uint_le(messages[i].layer, messages[i - 1].layer);
            mixed += messages[i].layer < messages[i - 1].layer;
        }
        for (size_t i = 0; i < count; i++) {
            ck_assert_int_eq((int64_t)messages[i].to,
                             spmd_neighbour(&grid, rank, messages[i].direction));
        }
    }
    ck_assert_uint_gt(mixed, 0);
}

/* Two processes send two messages at once. */
TEST(messages_at_once_take_as_long_as_was_measured)
{
    struct servet_profile *profile = loaded(FIXTURES "/spmd-amd.json");
    struct spmd_problem p = problem("1d3", 10800, 1, 1e-8);
    FREED_BY(spmd_grid_free) struct spmd_grid grid = mapped(profile, &p, 2, 1);
    struct profile_layer *layer = &profile->classes[0].communication.layers[0], as_loaded = *layer;
    struct spmd_tile tile;
    ck_assert_int_eq(spmd_tile_of_grid(&p, 2, 1, &tile), 0);
    ck_assert_uint_eq(grid.messages[0], 2);
    layer->concurrency = NULL;
    layer->concurrency_count = 0;
    double alone = spmd_grid_comm(profile, &p, &tile, &grid);
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
        ck_assert_double_eq_tol(spmd_grid_comm(profile, &p, &tile, &grid) / alone, cases[i].slower,
                                1e-9);
    }
    *layer = as_loaded;
}
