/* servet-spmd: the SPMD execution tool. How many cores, which tile, which PU, which order. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "print.h"
#include "spmd_options.h"
#include "spmd_plan.h"
#include "spmd_report.h"
#include "spmd_simulate.h"

struct planner {
    struct spmd_options options;
    struct servet_profile *profile;
    const struct profile_set *allowed;
    uint64_t pus;
    spmd_comm_function *comm;
    void *comm_context;
};

static _Noreturn void give_up(int rc, const struct servet_error *error)
{
    if (rc == -EINVAL || rc == -ENOENT || rc == -EACCES || rc == -EISDIR) {
        cli_usage("%s", error->text);
    }
    cli_fail("%s", error->text);
}

/* -- the machine -- */

static struct servet_profile *of_this_machine(void)
{
    char path[4096];
    struct servet_profile *profile;
    struct servet_error error;
    int rc = profile_find(path, sizeof path);
    rc = rc == -ENOENT ? profile_from_hwloc(NULL, &profile, &error)
         : rc < 0      ? profile_error(&error, rc, "SERVET_PROFILE: %s", strerror(-rc))
                       : profile_load(path, &profile, &error);
    if (rc < 0) {
        give_up(rc, &error);
    }
    return profile;
}

static struct servet_profile *open_profile(const struct spmd_options *options)
{
    struct servet_profile *profile;
    struct servet_error error;
    if (options->topology && profile_from_hwloc(options->topology, &profile, &error) < 0) {
        cli_usage("--topology: %s", error.text);
    }
    if (options->topology) {
        return profile;
    }
    if (!options->profile) {
        return of_this_machine();
    }
    int rc = profile_load(options->profile, &profile, &error);
    if (rc < 0) {
        give_up(rc, &error);
    }
    return profile;
}

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
static double comm_from_profile(void *context, const struct spmd_problem *problem, const struct spmd_tile *tile)
{
    const struct planner *planner = context;
    struct spmd_grid grid;
    struct servet_error error;
    int rc = spmd_grid_map(planner->profile, planner->allowed, &problem->stencil, tile->n, tile->m, &grid, &error);
    if (rc < 0) {
        give_up(rc, &error);
    }
    double seconds = spmd_grid_comm(planner->profile, problem, tile, &grid);
    spmd_grid_free(&grid);
    return seconds;
}

/* -- characterisation -- */

/* A small instance of the application tells the time of a task and the bytes of an edge task. */
static void characterise(struct spmd_options *o)
{
    struct spmd_run run = {.command = o->characterise,
                           .x = o->instance_x,
                           .y = o->instance_y,
                           .n = o->instance_n,
                           .m = o->instance_m,
                           .iterations = o->iterations};
    struct spmd_problem instance = o->problem;
    struct spmd_measured measured;
    struct spmd_tile tile;
    struct servet_error error;
    instance.x = run.x;
    instance.y = run.y;
    if (spmd_tile_of_grid(&instance, run.n, run.m, &tile) < 0 || run.n * run.m < 2) {
        cli_usage("--instance: expected tasks that a grid of at least 2 processes (%llux%llu) divides, got %llux%llu",
                  (unsigned long long)run.n, (unsigned long long)run.m, (unsigned long long)run.x,
                  (unsigned long long)run.y);
    }
    int rc = spmd_program_run(&run, &measured, &error);
    if (rc < 0) {
        cli_usage("--characterise: %s", error.text);
    }
    double one = 1, edge = spmd_comm_per_task(&one, &instance, &tile);
    if (!(measured.compute_s > 0) || !(measured.bytes > 0) || measured.iterations < 2) {
        cli_usage("--characterise: '%s' sends nothing from one iteration to the next", o->characterise);
    }
    o->problem.comp_s = measured.compute_s / ((double)tile.x * (double)tile.y);
    o->problem.bytes = measured.bytes / edge;
    printf("characterised  %.4g s for a task, %.4g bytes for an edge task (%llu iterations)\n", o->problem.comp_s,
           o->problem.bytes, (unsigned long long)measured.iterations);
}

/* -- distribution -- */

static struct spmd_choice of_tile(const struct planner *p)
{
    const struct spmd_options *o = &p->options;
    struct spmd_choice choice;
    uint64_t n = o->problem.x / o->tile_x, m = o->problem.y / o->tile_y;
    if (n * m > p->pus) {
        cli_usage("--tile: expected one for at most %llu cores (the PUs of the profile), this one needs %llu",
                  (unsigned long long)p->pus, (unsigned long long)(n * m));
    }
    if (spmd_tile_of_grid(&o->problem, n, m, &choice.tile) < 0) {
        cli_usage("--tile: expected one that is not thinner than the stencil reaches, got %llu x %llu",
                  (unsigned long long)o->tile_x, (unsigned long long)o->tile_y);
    }
    double comm_s = n * m > 1 ? p->comm(p->comm_context, &o->problem, &choice.tile) : 0;
    choice.times = spmd_predict(&o->problem, &choice.tile, comm_s);
    return choice;
}

static struct spmd_choice distribute(const struct planner *p)
{
    const struct spmd_options *o = &p->options;
    struct spmd_choice choice;
    if (o->tile_x) {
        return of_tile(p);
    }
    if (o->cores > p->pus) {
        cli_usage("--cores: expected at most %llu (the PUs of the profile), got %llu", (unsigned long long)p->pus,
                  (unsigned long long)o->cores);
    }
    int rc = spmd_choose(&o->problem, o->cores ? o->cores : p->pus, o->cores > 0, p->comm, p->comm_context, &choice);
    if (rc == -ERANGE && o->cores) {
        cli_usage("--cores: expected a number of processes whose grid divides the problem of %llu x %llu, got %llu",
                  (unsigned long long)o->problem.x, (unsigned long long)o->problem.y, (unsigned long long)o->cores);
    }
    if (rc < 0) {
        cli_fail("no tile: %s", strerror(-rc));
    }
    return choice;
}

/* -- curves -- */

static struct spmd_grid map_grid(const struct planner *p, const struct spmd_tile *tile)
{
    struct spmd_grid grid;
    struct servet_error error;
    int rc = spmd_grid_map(p->profile, p->allowed, &p->options.problem.stencil, tile->n, tile->m, &grid, &error);
    if (rc < 0) {
        give_up(rc, &error);
    }
    return grid;
}

static void simulate(const struct planner *p, const struct spmd_choice *choice)
{
    struct spmd_grid grid = map_grid(p, &choice->tile);
    struct spmd_simulation simulation = {.comm_s = p->options.comm_s, .noise = 0.02, .iterations = 100, .seed = 1};
    double seconds[2];
    for (int planned = 0; planned < 2; planned++) {
        simulation.planned = planned;
        if (spmd_simulate(p->profile, &p->options.problem, &choice->tile, &grid, &simulation, &seconds[planned]) < 0) {
            cli_fail("out of memory");
        }
    }
    spmd_report_simulation(stdout, choice, seconds[0], seconds[1]);
    spmd_grid_free(&grid);
}

static void print_curves(const struct planner *p, uint64_t chosen)
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

static void print_mapping(const struct planner *p, const struct spmd_grid *grid)
{
    struct map_plan plan;
    struct servet_error error;
    if (map_plan_make(p->profile, grid->pus, grid->n * grid->m, NULL, &plan) < 0) {
        cli_fail("out of memory");
    }
    plan.priority = MAP_COMMUNICATION;
    int rc = map_format_print(stdout, p->options.format, &plan, &error);
    map_plan_free(&plan);
    if (rc < 0) {
        give_up(rc, &error);
    }
}

static void save_plan(const struct planner *p, const struct spmd_choice *choice, const struct spmd_grid *grid,
                      const char *path)
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

enum { EVALUATION_RUNS = 3 };

/* With and without the plan in turns, each as often; the best of each counts. */
static void run_in_turns(const struct spmd_options *o, struct spmd_run *planned, struct spmd_run *plain,
                         struct spmd_measured best[2])
{
    struct servet_error error;
    for (int i = 0; i < EVALUATION_RUNS; i++) {
        struct spmd_run *runs[] = {planned, plain};
        for (int k = 0; k < (o->against ? 2 : 1); k++) {
            struct spmd_measured measured;
            if (spmd_program_run(runs[k], &measured, &error) < 0) {
                cli_usage("%s: %s", k ? "--against" : "--evaluate", error.text);
            }
            if (!(measured.iteration_s > 0)) { /* a single process sends nothing: its whole time counts */
                measured.iteration_s = measured.seconds / (double)runs[k]->iterations;
            }
            if (i == 0 || measured.iteration_s < best[k].iteration_s) {
                best[k] = measured;
            }
        }
    }
}

/* Arguments of mpirun that put the ranks where the mapping wants them. */
struct binding {
    const char *arguments[6];
    char *list;        /* PUs of one node */
    char rankfile[32]; /* several nodes */
};

static void bind_ranks(const struct planner *p, const struct spmd_grid *grid, struct binding *out)
{
    struct map_plan plan;
    size_t size = 0;
    *out = (struct binding){.rankfile = ""};
    if (map_plan_make(p->profile, grid->pus, grid->n * grid->m, NULL, &plan) < 0) {
        cli_fail("out of memory");
    }
    bool one_node = map_plan_one_node(&plan, 0, plan.place_count);
    FILE *text = open_memstream(&out->list, &size);
    if (!text || (one_node ? print_list(text, &plan, 0, plan.place_count)
                           : print_rankfile(text, &plan, 0, plan.place_count)) < 0) {
        cli_fail("out of memory");
    }
    fclose(text);
    map_plan_free(&plan);
    if (one_node) {
        out->list[strcspn(out->list, "\n")] = '\0';
        memcpy(out->arguments, (const char *[]){"--bind-to", "cpu-list:ordered", "--cpu-list", out->list, NULL},
               5 * sizeof *out->arguments);
        return;
    }
    strcpy(out->rankfile, "/tmp/servet-ranks-XXXXXX");
    int fd = mkstemp(out->rankfile);
    if (fd < 0 || dprintf(fd, "%s", out->list) < 0 || close(fd) < 0) {
        cli_fail("%s: %s", out->rankfile, strerror(errno));
    }
    memcpy(out->arguments,
           (const char *[]){"--mca", "rmaps_rank_file_physical", "1", "--rankfile", out->rankfile, NULL},
           6 * sizeof *out->arguments);
}

static void evaluate(const struct planner *p, const struct spmd_choice *choice, const struct spmd_grid *grid)
{
    const struct spmd_options *o = &p->options;
    char path[] = "/tmp/servet-plan-XXXXXX";
    const char *plan = o->plan ? o->plan : path;
    struct servet_error error;
    struct spmd_measured best[2];
    double serial_s;
    int fd = o->plan ? -1 : mkstemp(path);
    if (!o->plan && fd < 0) {
        cli_fail("%s: %s", path, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
        save_plan(p, choice, grid, path);
    }
    struct spmd_run planned = {.command = o->evaluate,
                               .x = o->problem.x,
                               .y = o->problem.y,
                               .n = choice->tile.n,
                               .m = choice->tile.m,
                               .iterations = o->iterations,
                               .plan = plan};
    struct spmd_run plain = planned;
    struct binding binding;
    bind_ranks(p, grid, &binding);
    planned.bind = binding.arguments;
    plain.plan = NULL;
    plain.command = o->against ? o->against : o->evaluate;
    run_in_turns(o, &planned, &plain, best);
    if (binding.rankfile[0]) {
        unlink(binding.rankfile);
    }
    free(binding.list);
    int rc = o->against ? spmd_program_serial(&plain, &serial_s, &error) : 0;
    if (!o->plan) {
        unlink(path);
    }
    if (rc < 0) {
        cli_usage("--against: %s", error.text);
    }
    spmd_report_evaluation(stdout, choice, o->against ? serial_s : choice->times.serial_s, &best[0],
                           o->against ? &best[1] : NULL);
}

int main(int argc, char **argv)
{
    struct planner planner = {0};
    struct spmd_options *o = &planner.options;
    spmd_options_parse(argc, argv, o);
    planner.profile = open_profile(o);
    planner.allowed = o->cpuset.count ? &o->cpuset : NULL;
    planner.pus = count_pus(planner.profile, planner.allowed);
    planner.comm = o->comm_s > 0 ? spmd_comm_per_task : comm_from_profile;
    planner.comm_context = o->comm_s > 0 ? (void *)&o->comm_s : (void *)&planner;
    if (!planner.pus) {
        cli_usage("--cpuset: expected PUs of the profile");
    }
    if (!(o->comm_s > 0) && !planner.profile->measured && planner.pus > 1) {
        cli_usage(
            "--comm: missing, expected the time to communicate one edge task (the profile has no measured times)");
    }
    if (o->characterise) {
        characterise(o);
    }
    struct spmd_choice choice = distribute(&planner);
    struct spmd_grid grid = map_grid(&planner, &choice.tile);
    if (o->plan) {
        save_plan(&planner, &choice, &grid, o->plan);
    }
    if (o->format) {
        print_mapping(&planner, &grid);
    } else {
        spmd_report_choice(stdout, &o->problem, &choice, &grid);
    }
    if (o->curve || o->simulate) {
        print_curves(&planner, choice.times.cores);
    }
    if (o->evaluate) {
        evaluate(&planner, &choice, &grid);
    }
    spmd_grid_free(&grid);
    profile_set_free(&o->cpuset);
    profile_free(planner.profile);
    return cli_finish(CLI_OK);
}
