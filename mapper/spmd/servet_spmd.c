/* servet-spmd: the SPMD execution tool. How many cores, which tile, which PU, which order. */
#include <stdio.h>

#include "mapper/formats/formats.h"
#include "mapper/spmd/spmd.h"
#include "profile/base/cli.h"
#include "profile/scope.h"

/* By the options; planner->options is set already. */
static void open_planner(struct spmd_planner *p)
{
    struct spmd_options *o = &p->options;
    p->profile = map_common_machine_open(&o->machine);
    struct map_limits limits = {.pus = o->machine.cpuset.count ? &o->machine.cpuset : NULL,
                                .kind = MAP_KIND_ANY};
    p->allowed = map_allowed_pus(p->profile, &limits);
    map_refuse_if(!(o->comm_s > 0) && !profile_latencies_known(p->profile) && p->allowed.count > 1,
                  "--comm: missing, expected the time to communicate one edge task (the profile "
                  "has no measured times of messages)");
}

static void close_planner(struct spmd_planner *p)
{
    profile_set_free(&p->allowed);
    profile_set_free(&p->options.machine.cpuset);
    profile_free(p->profile);
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
    size_t count;
    FREED struct spmd_choice *curve = spmd_curve(p, p->allowed.count, &count);
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
    if (falls) {
        printf("# efficiency falls below %.4g from %llu cores on\n", problem->efficiency,
               (ull)falls);
    }
    printf("# highest speed-up %.4g at %llu cores\n", best, (ull)fastest);
}

int main(int argc, char **argv)
{
    struct spmd_planner planner = {0};
    struct spmd_options *o = &planner.options;
    struct servet_error error;
    spmd_options_parse(argc, argv, o);
    open_planner(&planner);
    if (o->characterise) {
        spmd_characterise(&planner);
    }
    struct spmd_choice choice = spmd_choose(&planner);
    struct spmd_grid grid = spmd_grid_map(&planner, &choice.tile);
    if (o->format) {
        FREED_BY(map_mapping_free) struct map_mapping mapping = spmd_mapping(&planner, &grid);
        cli_check(map_format_print(stdout, o->format, &mapping, &error), &error);
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
        spmd_plan_save(&planner, &choice.times, &grid, o->plan);
    }
    spmd_grid_free(&grid);
    close_planner(&planner);
    return cli_finish(CLI_OK);
}
