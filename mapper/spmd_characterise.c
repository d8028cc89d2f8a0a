#include "spmd_characterise.h"

#include <stdlib.h>

#include "cli.h"
#include "median.h"
#include "spmd_binding.h"
#include "spmd_program.h"

typedef unsigned long long ull;

/* Measured and chosen so often at most: a choice that goes to and fro lies between two tiles that are alike. */
enum { CHOICES = 4 };

struct spmd_task spmd_characterise_once(const struct spmd_planner *p, const struct spmd_problem *problem,
                                        const struct spmd_tile *tile, const char *const *bind)
{
    const struct spmd_options *o = &p->options;
    struct spmd_run run = {.command = o->characterise,
                           .x = problem->x,
                           .y = problem->y,
                           .n = tile->n,
                           .m = tile->m,
                           .iterations = o->iterations,
                           .bind = bind};
    struct spmd_measured measured;
    struct servet_error error;
    if (spmd_program_run(&run, &measured, &error) < 0) {
        cli_usage("--characterise: %s", error.text);
    }
    double one = 1, edge = spmd_comm_per_task(&one, problem, tile);
    if (!(measured.compute_s > 0) || !(measured.bytes > 0) || measured.iterations < 2) {
        cli_usage("--characterise: '%s' sends nothing from one iteration to the next", o->characterise);
    }
    return (struct spmd_task){measured.compute_s / ((double)tile->x * (double)tile->y), measured.bytes / edge,
                              measured.iterations};
}

/* Runs of `problem` cut into n x m tiles. */
static void measure(struct spmd_planner *p, const struct spmd_problem *problem, const struct spmd_tile *tile,
                    const char *const *bind)
{
    uint32_t rounds = p->options.rounds;
    double *seconds = calloc(rounds, sizeof *seconds);
    struct spmd_task task = {0};
    if (!seconds) {
        cli_fail("out of memory");
    }
    for (uint32_t i = 0; i < rounds; i++) {
        task = spmd_characterise_once(p, problem, tile, bind);
        seconds[i] = task.comp_s;
    }
    struct profile_median found = profile_median(seconds, rounds);
    free(seconds);
    p->options.problem.comp_s = found.median;
    p->options.problem.bytes = task.bytes;
    printf("characterised  %.4g s for a task [%.4g, %.4g], %.4g bytes for an edge task (%u run%s of %llu iterations, "
           "tiles of %llu x %llu on %llu cores)\n",
           found.median, found.low, found.high, task.bytes, rounds, rounds == 1 ? "" : "s", (ull)task.iterations,
           (ull)tile->x, (ull)tile->y, (ull)(tile->n * tile->m));
}

static void measure_instance(struct spmd_planner *p)
{
    const struct spmd_options *o = &p->options;
    struct spmd_problem instance = o->problem;
    struct spmd_tile tile;
    instance.x = o->instance_x;
    instance.y = o->instance_y;
    if (spmd_tile_of_grid(&instance, o->instance_n, o->instance_m, &tile) < 0 || o->instance_n * o->instance_m < 2) {
        cli_usage("--instance: expected tasks that a grid of at least 2 processes (%llux%llu) divides, got %llux%llu",
                  (ull)o->instance_n, (ull)o->instance_m, (ull)instance.x, (ull)instance.y);
    }
    measure(p, &instance, &tile, NULL);
}

/* Before anything is known: as many cores as divide the problem, whatever the efficiency. */
static struct spmd_choice first_choice(struct spmd_planner *p)
{
    struct spmd_choice *curve, choice;
    size_t count;
    if (p->options.cores || p->options.tile_x) {
        return spmd_planner_distribute(p);
    }
    if (spmd_curve(&p->options.problem, p->pus, p->comm, p->comm_context, &curve, &count) < 0) {
        cli_fail("out of memory");
    }
    choice = curve[count - 1];
    free(curve);
    return choice;
}

static void measure_tiles(struct spmd_planner *p)
{
    p->options.problem.comp_s = 1; /* so long that communication is nothing beside it */
    struct spmd_choice choice = first_choice(p);
    struct spmd_tile measured = {0};
    for (int i = 0; i < CHOICES && (choice.tile.n != measured.n || choice.tile.m != measured.m); i++) {
        if (choice.times.cores < 2) {
            if (!measured.n) {
                cli_usage(
                    "--characterise: expected a problem for at least 2 cores (a single process sends nothing), or "
                    "--comp SECONDS");
            }
            break; /* one core is enough by what two or more have shown */
        }
        struct spmd_grid grid = spmd_planner_grid(p, &choice.tile);
        struct spmd_binding binding;
        spmd_bind(p->profile, &grid, &binding);
        measure(p, &p->options.problem, &choice.tile, binding.arguments);
        spmd_unbind(&binding);
        spmd_grid_free(&grid);
        measured = choice.tile;
        choice = spmd_planner_distribute(p);
    }
}

void spmd_characterise(struct spmd_planner *planner)
{
    if (planner->options.instance_x) {
        measure_instance(planner);
    } else {
        measure_tiles(planner);
    }
}
