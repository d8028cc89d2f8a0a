#include "spmd_planner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "spmd_plan.h"

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
static double comm_from_profile(void *context, const struct spmd_problem *problem, const struct spmd_tile *tile)
{
    const struct spmd_planner *planner = context;
    struct spmd_grid grid;
    struct servet_error error;
    int rc = spmd_grid_map(planner->profile, planner->allowed, &problem->stencil, tile->n, tile->m, &grid, &error);
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
    p->profile = common_machine_open(&o->machine);
    p->allowed = o->machine.cpuset.count ? &o->machine.cpuset : NULL;
    p->pus = count_pus(p->profile, p->allowed);
    p->comm = o->comm_s > 0 ? spmd_comm_per_task : comm_from_profile;
    p->comm_context = o->comm_s > 0 ? (void *)&o->comm_s : (void *)p;
    if (!p->pus) {
        cli_usage("--cpuset: expected PUs of the profile");
    }
    if (!(o->comm_s > 0) && !p->profile->measured && p->pus > 1) {
        cli_usage(
            "--comm: missing, expected the time to communicate one edge task (the profile has no measured times)");
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

struct spmd_choice spmd_planner_distribute(const struct spmd_planner *p)
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

struct spmd_grid spmd_planner_grid(const struct spmd_planner *p, const struct spmd_tile *tile)
{
    struct spmd_grid grid;
    struct servet_error error;
    int rc = spmd_grid_map(p->profile, p->allowed, &p->options.problem.stencil, tile->n, tile->m, &grid, &error);
    if (rc < 0) {
        spmd_give_up(rc, &error);
    }
    return grid;
}

void spmd_planner_save(const struct spmd_planner *p, const struct spmd_choice *choice, const struct spmd_grid *grid,
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
