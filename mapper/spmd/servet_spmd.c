/* servet-spmd: the SPMD execution tool. How many cores, which tile, which PU, which order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mapper/formats/formats.h"
#include "mapper/spmd/spmd.h"
#include "profile/base/cli.h"
#include "profile/base/file.h"

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
    struct spmd_grid grid = spmd_planner_grid(planner, tile);
    double seconds = spmd_grid_comm(planner->profile, problem, tile, &grid);
    spmd_grid_free(&grid);
    return seconds;
}

/* By the options; planner->options is set already. */
static void open_planner(struct spmd_planner *p)
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

static void close_planner(struct spmd_planner *p)
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
    cli_check(spmd_grid_map(p->profile, p->allowed, &p->options.problem.stencil, &grid, &error),
              &error);
    return grid;
}

void spmd_planner_save(const struct spmd_planner *p, const struct spmd_choice *choice,
                       const struct spmd_grid *grid, const char *path)
{
    struct servet_error error;
    char *text = map_needed(spmd_plan_json(p->profile, &p->options.problem, choice, grid));
    int rc = profile_save_text(text, path, &error);
    free(text);
    if (rc < 0) {
        cli_usage("--plan: %s", error.text);
    }
}

/* -- arguments of mpirun -- */

void spmd_bind(const struct servet_profile *profile, const struct spmd_grid *grid,
               struct spmd_binding *out)
{
    struct map_mapping plan;
    size_t size = 0;
    *out = (struct spmd_binding){.rankfile = ""};
    map_done(map_mapping_make(profile, grid->pus, grid->n * grid->m, NULL, &plan));
    bool one_node = map_mapping_one_node(&plan);
    const struct map_format *format = map_format_find(one_node ? "list" : "rankfile");
    FILE *text = map_needed(profile_stream_open(&out->list, &size));
    map_done(format->print(text, format, &plan));
    map_done(fclose(text));
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
           (const char *[]){"--use-hwthread-cpus", "--mca", "rmaps_rank_file_physical", "1",
                            "--rankfile", out->rankfile, NULL},
           7 * sizeof *out->arguments);
}

void spmd_unbind(struct spmd_binding *binding)
{
    if (binding->rankfile[0]) {
        unlink(binding->rankfile);
    }
    free(binding->list);
    *binding = (struct spmd_binding){.rankfile = ""};
}

/* -- output -- */

static void print_curve(const struct spmd_planner *p, uint64_t chosen)
{
    struct spmd_choice *curve;
    size_t count;
    int rc = spmd_curve(&p->options.problem, p->pus, p->comm, p->comm_context, &curve, &count);
    if (rc < 0) {
        cli_fail("no curve: %s", strerror(-rc));
    }
    putchar('\n');
    spmd_report_curve(stdout, &p->options.problem, curve, count, chosen);
    free(curve);
}

static void print_mapping(const struct spmd_planner *p, const struct spmd_grid *grid)
{
    struct map_mapping plan;
    struct servet_error error;
    map_done(map_mapping_make(p->profile, grid->pus, grid->n * grid->m, NULL, &plan));
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
        spmd_report_choice(stdout, &o->problem, &choice, &grid);
    }
    if (!o->format && planner.measured_tile.n &&
        spmd_is_same_tile(&planner.measured_tile, &choice.tile)) {
        spmd_report_measured(stdout, &choice, &planner.measured);
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
