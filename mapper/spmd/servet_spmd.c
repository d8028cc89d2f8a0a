/* servet-spmd: the SPMD execution tool. How many cores, which tile, which PU, which order. */
#include <stdlib.h>
#include <string.h>

#include "mapper/spmd/spmd.h"
#include "profile/base/cli.h"

/* -- curves -- */

static void simulate(const struct spmd_planner *p, const struct spmd_choice *choice)
{
    struct spmd_grid grid = spmd_planner_grid(p, &choice->tile);
    struct spmd_simulation simulation = {
        .comm_s = p->options.comm_s, .noise = 0.02, .iterations = 100, .seed = 1};
    double seconds[2];
    for (int planned = 0; planned < 2; planned++) {
        simulation.planned = planned;
        if (spmd_simulate(p->profile, &p->options.problem, &choice->tile, &grid, &simulation,
                          &seconds[planned]) < 0) {
            cli_fail("out of memory");
        }
    }
    spmd_report_simulation(stdout, choice, seconds[0], seconds[1]);
    spmd_grid_free(&grid);
}

static void print_curves(const struct spmd_planner *p, uint64_t chosen)
{
    struct spmd_choice *curve;
    size_t count;
    int rc = spmd_curve(&p->options.problem, p->pus, p->comm, p->comm_context, &curve, &count);
    if (rc < 0) {
        cli_fail("no curve: %s", strerror(-rc));
    }
    if (p->options.curve) {
        putchar('\n');
        spmd_report_curve(stdout, &p->options.problem, curve, count, chosen);
    }
    if (p->options.simulate) {
        putchar('\n');
        spmd_report_simulation_head(stdout);
    }
    for (size_t i = 0; p->options.simulate && i < count; i++) {
        simulate(p, &curve[i]);
    }
    free(curve);
}

/* -- mapping, plan, evaluation -- */

static void print_mapping(const struct spmd_planner *p, const struct spmd_grid *grid)
{
    struct map_mapping plan;
    struct servet_error error;
    if (map_mapping_make(p->profile, grid->pus, grid->n * grid->m, NULL, &plan) < 0) {
        cli_fail("out of memory");
    }
    plan.priority = MAP_COMMUNICATION;
    int rc = map_format_print(stdout, p->options.format, &plan, &error);
    map_mapping_free(&plan);
    if (rc < 0) {
        spmd_give_up(rc, &error);
    }
}

int main(int argc, char **argv)
{
    struct spmd_planner planner = {0};
    struct spmd_options *o = &planner.options;
    spmd_options_parse(argc, argv, o);
    spmd_planner_open(&planner);
    if (o->characterise) {
        spmd_characterise(&planner);
    }
    struct spmd_choice choice = spmd_planner_distribute(&planner);
    struct spmd_grid grid = spmd_planner_grid(&planner, &choice.tile);
    if (o->format) {
        print_mapping(&planner, &grid);
    } else {
        spmd_report_choice(stdout, &o->problem, &choice, &grid);
    }
    if (o->curve || o->simulate) {
        print_curves(&planner, choice.times.cores);
    }
    if (o->evaluate) {
        spmd_evaluate(&planner, &choice, &grid);
    }
    if (o->plan) { /* last: a program that does not run leaves an older plan alone */
        spmd_planner_save(&planner, &choice, &grid, o->plan);
    }
    spmd_grid_free(&grid);
    spmd_planner_close(&planner);
    return cli_finish(CLI_OK);
}
