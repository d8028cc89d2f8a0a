/* servet-spmd: the SPMD execution tool. How many cores, which tile, which PU, which order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapper/formats/formats.h"
#include "mapper/spmd/spmd.h"
#include "profile/base/cli.h"
#include "profile/base/file.h"

typedef unsigned long long ull;

/* -- the machine -- */

/* Tcomm of a tile from the profile's layers, with the processes where the mapper puts them. */
static double comm_from_profile(void *context, const struct spmd_problem *problem,
                                const struct spmd_tile *tile)
{
    const struct spmd_planner *planner = context;
    struct spmd_grid grid = spmd_planner_grid(planner, tile);
    double seconds = spmd_grid_comm(planner->profile, problem, tile, &grid);
    spmd_grid_free(&grid);
    return seconds;
}

/* By the options; planner->options is set already. */
static void open_planner(struct spmd_planner *p)
{
    struct spmd_options *o = &p->options;
    struct servet_error error;
    p->profile = map_common_machine_open(&o->machine);
    struct map_limits limits = {.pus = o->machine.cpuset.count ? &o->machine.cpuset : NULL,
                                .kind = MAP_KIND_ANY};
    cli_check(map_allowed_pus(p->profile, &limits, &p->allowed, &error), &error);
    p->pus = p->allowed.count;
    p->comm = o->comm_s > 0 ? spmd_comm_per_task : comm_from_profile;
    p->comm_context = o->comm_s > 0 ? (void *)&o->comm_s : (void *)p;
    map_refuse_if(!(o->comm_s > 0) && !profile_latencies_known(p->profile) && p->pus > 1,
                  "--comm: missing, expected the time to communicate one edge task (the profile "
                  "has no measured times of messages)");
}

static void close_planner(struct spmd_planner *p)
{
    profile_set_free(&p->allowed);
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
                  (ull)p->pus, (ull)(n * m));
    }
    if (spmd_tile_of_grid(&o->problem, n, m, &choice.tile) < 0) {
        cli_usage(
            "--tile: expected one that is not thinner than the stencil reaches, got %llu x %llu",
            (ull)o->tile_x, (ull)o->tile_y);
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
        cli_usage("--cores: expected at most %llu (the PUs of the profile), got %llu", (ull)p->pus,
                  (ull)o->cores);
    }
    int rc = spmd_choose(&o->problem, o->cores ? o->cores : p->pus, o->cores > 0, p->comm,
                         p->comm_context, &choice);
    if (rc == -ERANGE && o->cores) {
        cli_usage("--cores: expected a number of processes whose grid divides the problem of %llu "
                  "x %llu, got %llu",
                  (ull)o->problem.x, (ull)o->problem.y, (ull)o->cores);
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
    cli_check(spmd_grid_map(p->profile, &p->allowed, &p->options.problem.stencil, &grid, &error),
              &error);
    return grid;
}

void spmd_planner_save(const struct spmd_planner *p, const struct spmd_choice *choice,
                       const struct spmd_grid *grid, const char *path)
{
    struct servet_error error;
    char *text = cli_needed(spmd_plan_json(p, choice, grid));
    int rc = profile_save_file(path, text, strlen(text), &error);
    free(text);
    if (rc < 0) {
        cli_usage("--plan: %s", error.text);
    }
}

/* -- output -- */

static void print_choice(const struct spmd_problem *problem, const struct spmd_choice *choice,
                         const struct spmd_grid *grid)
{
    const struct spmd_tile *tile = &choice->tile;
    const struct spmd_times *t = &choice->times;
    printf("problem        %llu x %llu tasks of %.4g s, %.4g bytes each\n", (ull)problem->x,
           (ull)problem->y, problem->comp_s, problem->bytes);
    printf("tile           %llu x %llu tasks\n", (ull)tile->x, (ull)tile->y);
    printf("cores          %llu (%llu x %llu)\n", (ull)t->cores, (ull)tile->n, (ull)tile->m);
    printf("edge tasks     %.6g s\ninternal tasks %.6g s\n", t->edge_s, t->internal_s);
    printf("communication  %.6g s%s\n", t->comm_s,
           t->comm_s > t->internal_s ? " (longer than the internal tasks)" : "");
    printf("iteration      %.6g s (predicted)\n", t->iteration_s);
    printf("speed-up       %.4g\nefficiency     %.4g (wanted: %.4g%s)\n", t->speedup, t->efficiency,
           problem->efficiency, t->kept ? "" : "; the communication is not hidden enough for it");
    printf("messages      ");
    bool any = false;
    for (size_t layer = 0; layer < SPMD_LAYERS; layer++) {
        if (grid->messages[layer]) {
            printf("%s %llu over layer %zu", any ? "," : "", (ull)grid->messages[layer], layer);
            any = true;
        }
    }
    printf("%s\n", any ? " in each iteration" : " none");
}

/* One line for each number of cores; the chosen one is marked, and below it is said where
 * efficiency and speed-up begin to fall. */
static void print_curve(const struct spmd_planner *p, uint64_t chosen)
{
    const struct spmd_problem *problem = &p->options.problem;
    uint64_t falls = 0, fastest = 0;
    double best = 0;
    struct spmd_choice *curve;
    size_t count;
    int rc = spmd_curve(problem, p->pus, p->comm, p->comm_context, &curve, &count);
    if (rc < 0) {
        cli_fail("no curve: %s", strerror(-rc));
    }
    printf("\n# cores     tile        iteration_s  speed-up  efficiency\n");
    for (size_t i = 0; i < count; i++) {
        const struct spmd_times *t = &curve[i].times;
        char tile[48];
        snprintf(tile, sizeof tile, "%llux%llu", (ull)curve[i].tile.x, (ull)curve[i].tile.y);
        printf("%7llu %11s  %14.6g %9.4g %11.4g%s\n", (ull)t->cores, tile, t->iteration_s,
               t->speedup, t->efficiency, t->cores == chosen ? "  *" : "");
        falls = !falls && t->efficiency < problem->efficiency ? t->cores : falls;
        fastest = t->speedup > best ? t->cores : fastest;
        best = t->speedup > best ? t->speedup : best;
    }
    free(curve);
    if (falls) {
        printf("# efficiency falls below %.4g from %llu cores on\n", problem->efficiency,
               (ull)falls);
    }
    printf("# highest speed-up %.4g at %llu cores\n", best, (ull)fastest);
}

static void print_mapping(const struct spmd_planner *p, const struct spmd_grid *grid)
{
    struct map_mapping plan;
    struct servet_error error;
    cli_done(map_mapping_make(p->profile, grid->pus, grid->n * grid->m, NULL, &plan));
    plan.priority = MAP_COMMUNICATION;
    int rc = map_format_print(stdout, p->options.format, &plan, &error);
    map_mapping_free(&plan);
    cli_check(rc, &error);
}

int main(int argc, char **argv)
{
    struct spmd_planner planner = {0};
    struct spmd_options *o = &planner.options;
    spmd_options_parse(argc, argv, o);
    open_planner(&planner);
    if (o->characterise) {
        spmd_characterise(&planner);
    }
    struct spmd_choice choice = spmd_planner_distribute(&planner);
    struct spmd_grid grid = spmd_planner_grid(&planner, &choice.tile);
    if (o->format) {
        print_mapping(&planner, &grid);
    } else {
        print_choice(&o->problem, &choice, &grid);
    }
    if (!o->format && spmd_is_same_tile(&planner.measured_tile, &choice.tile)) {
        const struct profile_median *s = &planner.measured;
        printf("measured       %.6g s [%.6g, %.6g] an iteration: the model is off by %+.1f %%\n",
               s->median, s->low, s->high, 100 * (choice.times.iteration_s / s->median - 1));
    }
    if (o->curve) {
        print_curve(&planner, choice.times.cores);
    }
    if (o->plan) { /* last: a program that does not run leaves an older plan alone */
        spmd_planner_save(&planner, &choice, &grid, o->plan);
    }
    spmd_grid_free(&grid);
    close_planner(&planner);
    return cli_finish(CLI_OK);
}
