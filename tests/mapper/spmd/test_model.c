/* Are the equations of the SPMD execution tool kept, and is the tile that is chosen the best that
 * keeps the wanted efficiency? (Its Table 1: golden/spmd.golden.) */
#include <errno.h>
#include <stdlib.h>

#include "mapper/spmd/spmd.h"
#include "tests/base/runner.h"
#include "tests/base/within.h"

static struct spmd_stencil stencil(const char *text)
{
    struct spmd_stencil out;
    struct servet_error error;
    ck_assert_msg(spmd_stencil_parse(text, &out, &error) == 0, "%s", error.text);
    return out;
}

TEST(equations_1_to_3_by_hand)
{
    struct spmd_problem problem = {
        .x = 60, .y = 40, .stencil = stencil("2d5"), .comp_s = 2, .efficiency = 0.9};
    struct spmd_tile tile;
    ck_assert_int_eq(spmd_tile_of_grid(&problem, 3, 4, &tile), 0);
    struct spmd_times times = spmd_predict(&problem, &tile, 1000);
    assert_within(times.internal_s, 18 * 8 * 2.0, 1e-15);
    assert_within(times.edge_s, (20 * 10 - 18 * 8) * 2.0, 1e-15);
    assert_within(times.compute_s, 400, 1e-15);
    assert_within(times.iteration_s, 112 + 1000.0, 1e-15);
    assert_within(times.speedup, 4800 / 1112.0, 1e-15);
    ck_assert_uint_eq(times.cores, 12);
    ck_assert(!times.kept);
    ck_assert(spmd_predict(&problem, &tile, 288 * 1.1 - 1e-9).kept); /* equation (4) */
    ck_assert(!spmd_predict(&problem, &tile, 288 * 1.1 + 1e-9).kept);
}

TEST(what_keeps_the_constraint_keeps_the_efficiency)
{
    struct spmd_planner p = {0};
    struct spmd_problem *problem = &p.options.problem;
    size_t count, kept = 0;
    *problem = (struct spmd_problem){.x = 720, .y = 240, .stencil = stencil("2d9"), .comp_s = 1e-6};
    for (problem->efficiency = 0.05; problem->efficiency < 1; problem->efficiency += 0.05) {
        for (p.options.comm_s = 1e-7; p.options.comm_s < 1e-3; p.options.comm_s *= 3) {
            struct spmd_choice *curve = spmd_curve(&p, 48, &count);
            for (size_t i = 0; i < count; i++) {
                kept += curve[i].times.kept;
                ck_assert(!curve[i].times.kept || curve[i].times.efficiency >= problem->efficiency);
            }
            free(curve);
        }
    }
    ck_assert_uint_gt(kept, 100);
}

/* Every grid tried by hand: none keeps the constraint with more cores, or is faster with as
 * many. */
TEST(the_choice_is_the_best_of_all_grids)
{
    const struct spmd_planner p = {.options = {.problem = {.x = 360,
                                                           .y = 200,
                                                           .stencil = stencil("2d5"),
                                                           .comp_s = 1e-7,
                                                           .bytes = 8,
                                                           .efficiency = 0.85},
                                               .comm_s = 4e-6},
                                   .allowed.count = 100};
    const struct spmd_choice choice = spmd_choose(&p);
    ck_assert(choice.times.kept);
    for (uint64_t n = 1; n <= 100; n++) {
        for (uint64_t m = 1; n * m <= 100; m++) {
            struct spmd_tile tile;
            if (spmd_tile_of_grid(&p.options.problem, n, m, &tile) < 0) {
                continue;
            }
            struct spmd_times t = spmd_predict(&p.options.problem, &tile, spmd_comm(&p, &tile));
            ck_assert(!t.kept || n * m < choice.times.cores ||
                      (n * m == choice.times.cores && t.iteration_s >= choice.times.iteration_s));
        }
    }
}

/* Where all tiles hide their communication only rounding told their times apart, and a plan went to
 * and fro. */
TEST(of_tiles_that_take_as_long_the_squarer_is_chosen)
{
    struct spmd_planner p = {.options = {.problem = {.x = 2000,
                                                     .y = 1000,
                                                     .stencil = stencil("2d5"),
                                                     .bytes = 8,
                                                     .efficiency = 0.85},
                                         .comm_s = 1e-9,
                                         .cores = 2},
                             .allowed.count = 2};
    for (int i = 0; i < 1000; i++) {
        p.options.problem.comp_s = 1e-9 * (1 + i * 1.234e-3);
        const struct spmd_choice choice = spmd_choose(&p);
        ck_assert_msg(choice.tile.x == 1000 && choice.tile.y == 1000, "comp %.17g: %llu x %llu",
                      p.options.problem.comp_s, (ull)choice.tile.x, (ull)choice.tile.y);
    }
}

TEST(stencils_say_who_is_a_neighbour)
{
    struct spmd_direction directions[SPMD_DIRECTIONS];
    struct spmd_stencil wide = stencil("2:0,-1:0,0:3");
    ck_assert_uint_eq(wide.right, 2);
    ck_assert_uint_eq(wide.left, 1);
    ck_assert_uint_eq(wide.up, 3);
    ck_assert_uint_eq(wide.down, 0);
    struct {
        const char *text;
        size_t neighbours;
    } cases[] = {{"1d3", 2}, {"2d5", 4}, {"2d9", 8}, {"2:0,-1:0,0:3", 4}, {"1:0", 2}, {"1:1", 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct spmd_stencil s = stencil(cases[i].text);
        ck_assert_uint_eq(spmd_directions(&s, directions), cases[i].neighbours);
    }
    /* who reaches 2 to the right is sent two columns by its right neighbour */
    struct spmd_tile tile = {.x = 10, .y = 7};
    ck_assert_uint_eq(spmd_edge_tasks(&wide, &tile, (struct spmd_direction){-1, 0}), 14);
    ck_assert_uint_eq(spmd_edge_tasks(&wide, &tile, (struct spmd_direction){1, 0}), 7);
    ck_assert_uint_eq(spmd_edge_tasks(&wide, &tile, (struct spmd_direction){0, -1}), 30);
}

TEST(what_is_no_stencil_is_refused)
{
    const char *wrong[] = {"", "3d7", "1", "1:", "1:0,", "0:0", "1:0;0:1", "99999:0", "a:b"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct spmd_stencil out;
        struct servet_error error;
        ck_assert_msg(spmd_stencil_parse(wrong[i], &out, &error) == -EINVAL, "'%s'", wrong[i]);
    }
}

TEST(grids_that_do_not_divide_or_are_too_thin_are_refused)
{
    struct spmd_problem problem = {
        .x = 12, .y = 4, .stencil = stencil("2d5"), .comp_s = 1, .efficiency = 0.5};
    struct spmd_tile tile;
    ck_assert_int_eq(spmd_tile_of_grid(&problem, 5, 1, &tile), -EINVAL);
    ck_assert_int_eq(spmd_tile_of_grid(&problem, 0, 1, &tile), -EINVAL);
    ck_assert_int_eq(spmd_tile_of_grid(&problem, 12, 1, &tile),
                     -EINVAL); /* left edge and right edge are one */
    ck_assert_int_eq(spmd_tile_of_grid(&problem, 6, 2, &tile), 0);
}
