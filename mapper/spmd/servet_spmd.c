/* servet-spmd: the SPMD execution tool. How many cores, which tile, which PU, which order. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "mapper/formats/formats.h"
#include "mapper/spmd/spmd.h"
#include "profile/base/cli.h"
#include "profile/scope.h"

/* -- the command line -- */

enum {
    PROBLEM = 256,
    STENCIL,
    COMP,
    COMM,
    BYTES,
    EFFICIENCY,
    CORES,
    TILE,
    FORMAT,
    ITERATIONS,
    ROUNDS
};

#define FLAG(member) CLI_FLAG(struct spmd_options, member)
#define TEXT(member) CLI_TEXT(struct spmd_options, member)

/* Tasks along one axis: their product must fit into 64 bits. */
#define TASKS_MAX (1L << 31)
/* A value larger than this is no task any more. */
#define BYTES_MAX 1e9
#define ITERATIONS_MAX (1L << 30)

static const struct argp_option table[] = {
    {0, 0, 0, 0, "The application:", 1},
    {"problem", PROBLEM, "XxY", 0, "tasks (cells) of the whole problem; X alone is one-dimensional",
     1},
    {"stencil", STENCIL, "NAME", 0,
     "1d3, 2d5 (default), 2d9, or the offsets of all neighbours: 1:0,-1:0,0:1,0:-1", 1},
    {"comp", COMP, "SECONDS", 0, "time of one task (1.3e-7)", 1},
    {"bytes", BYTES, "B", 0, "bytes that one edge task sends to a neighbour (default 8)", 1},
    {"characterise", TEXT(characterise), "COMMAND", 0,
     "measure --comp and --bytes, and an iteration: run it under a trace of its MPI calls, in the "
     "tiles and on the PUs that are chosen; {problem}, {grid}, {cores} and {iterations} are filled "
     "in",
     1},
    {"comm", COMM, "SECONDS", 0,
     "time to communicate one edge task, instead of what the profile's layers say; needed with "
     "--topology",
     1},
    {0, 0, 0, 0, "What is wanted:", 3},
    {"efficiency", EFFICIENCY, "E", 0, "least efficiency, above 0 and below 1 (default 0.85)", 3},
    {"cores", CORES, "N", 0, "exactly so many cores, whatever the efficiency", 3},
    {"tile", TILE, "XxY", 0, "exactly this tile, whatever the efficiency", 3},
    {0, 0, 0, 0, "What is given out:", 4},
    {"curve", FLAG(curve), NULL, 0, "time, speed-up and efficiency against cores", 4},
    {"format", FORMAT, "NAME", 0, "the mapping in this language ('help' shows all)", 4},
    {"plan", TEXT(plan), "FILE", 0, "write the plan, for servet_spmd.h", 4},
    {"rounds", ROUNDS, "N", 0, "with --characterise: how often it runs (default 7)", 4},
    {"iterations", ITERATIONS, "K", 0, "what {iterations} becomes (default 100)", 4},
    {0},
};

/* "800x600", or "800" alone: then *b is 1. */
static void parse_pair(const char *option, const char *text, uint64_t *a, uint64_t *b)
{
    char *end;
    errno = 0;
    long x = strtol(text, &end, 10), y = 1;
    bool good = end != text;
    if (good && *end == 'x') {
        const char *at = end + 1;
        y = strtol(at, &end, 10);
        good = end != at;
    }
    if (errno || !good || *end || x < 1 || y < 1 || x > TASKS_MAX || y > TASKS_MAX) {
        cli_usage("%s: expected one or two numbers above 0 such as 800x600, got '%s'", option,
                  text);
    }
    *a = (uint64_t)x;
    *b = (uint64_t)y;
}

static double parse_positive(const char *option, const char *text, const char *what, double most)
{
    double value = cli_number(option, text, 0, most);
    if (!(value > 0)) {
        cli_usage("%s: expected %s above 0, got '%s'", option, what, text);
    }
    return value;
}

static void parse_stencil(struct spmd_options *options, const char *text)
{
    struct servet_error error;
    if (spmd_stencil_parse(text, &options->problem.stencil, &error) < 0) {
        cli_usage("--stencil: %s", error.text);
    }
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct spmd_options *options = state->input;
    struct spmd_problem *problem = &options->problem;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->machine;
        return 0;
    case PROBLEM:
        parse_pair("--problem", argument, &problem->x, &problem->y);
        return 0;
    case STENCIL:
        parse_stencil(options, argument);
        return 0;
    case COMP:
        problem->comp_s = parse_positive("--comp", argument, "a time", 1e9);
        return 0;
    case COMM:
        options->comm_s = parse_positive("--comm", argument, "a time", 1e9);
        return 0;
    case BYTES:
        problem->bytes = parse_positive("--bytes", argument, "a number of bytes", BYTES_MAX);
        return 0;
    case EFFICIENCY:
        problem->efficiency = cli_number("--efficiency", argument, 0, 1);
        if (!(problem->efficiency > 0 && problem->efficiency < 1)) {
            cli_usage("--efficiency: expected a number above 0 and below 1, got '%s'", argument);
        }
        return 0;
    case CORES:
        options->cores = (uint64_t)cli_integer("--cores", argument, 1, MAP_WORKER_LIMIT - 1);
        return 0;
    case TILE:
        parse_pair("--tile", argument, &options->tile_x, &options->tile_y);
        return 0;
    case FORMAT:
        options->format = map_common_format(argument);
        return 0;
    case ITERATIONS:
        options->iterations = (uint64_t)cli_integer("--iterations", argument, 2, ITERATIONS_MAX);
        return 0;
    case ROUNDS:
        options->rounds = (uint32_t)cli_integer("--rounds", argument, 1, SPMD_ROUNDS_MAX);
        return 0;
    default:
        return cli_set_member(key, argument, options) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

static void check_options(struct spmd_options *o)
{
    const struct spmd_problem *problem = &o->problem;
    const struct spmd_stencil *stencil = &problem->stencil;
    map_refuse_if(!problem->x,
                  "--problem: missing, expected the tasks of the problem such as 8500x4000");
    if (!(stencil->left || stencil->right || stencil->down || stencil->up)) {
        parse_stencil(o, problem->y == 1 ? "1d3" : "2d5");
    }
    map_refuse_if(!stencil->down && !stencil->up && problem->y != 1,
                  "--problem: expected one number for a stencil of one dimension, got two");
    map_refuse_if(problem->comp_s > 0 && o->characterise,
                  "--comp, --characterise: expected one of them, not both");
    map_refuse_if(
        !(problem->comp_s > 0) && !o->characterise,
        "--comp: missing, expected the time of one task in seconds, or --characterise COMMAND");
    map_common_machine_check(&o->machine);
    map_refuse_if(o->cores && o->tile_x, "--cores, --tile: expected one of them, not both");
    if (o->tile_x && (problem->x % o->tile_x || problem->y % o->tile_y)) {
        cli_usage(
            "--tile: expected a tile that divides the problem of %llu x %llu, got %llu x %llu",
            (unsigned long long)problem->x, (unsigned long long)problem->y,
            (unsigned long long)o->tile_x, (unsigned long long)o->tile_y);
    }
}

static void read_options(int argc, char **argv, struct spmd_options *out)
{
    static const struct argp_child children[] = {{&map_common_machine_argp, 0, "The machine:", 2},
                                                 {0}};
    const struct argp argp = {
        .options = table,
        .parser = parse_option,
        .children = children,
        .doc = "Plans how a static, local, regular SPMD application runs: how many cores keep a "
               "wanted efficiency, "
               "which tile of the problem each gets, on which PU, and what is computed first."};
    *out = (struct spmd_options){
        .problem = {.efficiency = 0.85, .bytes = 8}, .iterations = 100, .rounds = SPMD_ROUNDS};
    cli_parse(&argp, argc, argv, 0, NULL, out);
    check_options(out);
}

/* -- the machine -- */

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
    read_options(argc, argv, o);
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
    if (!o->format && spmd_is_measured(&planner, &choice.tile)) {
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
    profile_set_free(&planner.allowed);
    profile_set_free(&o->machine.cpuset);
    profile_free(planner.profile);
    return cli_finish(CLI_OK);
}
