/* The command line of servet-spmd. */
#include "mapper/spmd/spmd.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/base/cli.h"

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

void spmd_options_parse(int argc, char **argv, struct spmd_options *out)
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
