/* The command line of servet-spmd, and what it prints. */
#include "mapper/spmd/spmd.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    PLAN,
    CURVE,
    SIMULATE,
    CHARACTERISE,
    INSTANCE,
    INSTANCE_GRID,
    EVALUATE,
    AGAINST,
    ITERATIONS,
    ROUNDS
};

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
    {"characterise", CHARACTERISE, "COMMAND", 0,
     "measure --comp and --bytes: run it under a trace of its MPI calls; {problem}, {grid}, "
     "{cores} and {iterations} "
     "are "
     "filled in",
     1},
    {"instance", INSTANCE, "XxY", 0,
     "tasks of a small instance to measure (default: the whole problem cut as it is chosen, until "
     "the choice stays)",
     1},
    {"instance-grid", INSTANCE_GRID, "NxM", 0,
     "processes of that instance along x and y (default 2x1)", 1},
    {"comm", COMM, "SECONDS", 0,
     "time to communicate one edge task, instead of what the profile's layers say; needed with "
     "--topology",
     1},
    {0, 0, 0, 0, "What is wanted:", 3},
    {"efficiency", EFFICIENCY, "E", 0, "least efficiency, above 0 and below 1 (default 0.85)", 3},
    {"cores", CORES, "N", 0, "exactly so many cores, whatever the efficiency", 3},
    {"tile", TILE, "XxY", 0, "exactly this tile, whatever the efficiency", 3},
    {0, 0, 0, 0, "What is given out:", 4},
    {"curve", CURVE, NULL, 0, "time, speed-up and efficiency against cores", 4},
    {"simulate", SIMULATE, NULL, 0,
     "the curve with and without the plan, run on a simulation of the profile", 4},
    {"format", FORMAT, "NAME", 0, "the mapping in this language ('help' shows all)", 4},
    {"plan", PLAN, "FILE", 0, "write the plan, for servet_spmd.h", 4},
    {"evaluate", EVALUATE, "COMMAND", 0,
     "run this program by the plan and report predicted against measured", 4},
    {"against", AGAINST, "COMMAND", 0, "with --evaluate: the program without the plan", 4},
    {"rounds", ROUNDS, "N", 0,
     "with --characterise, --evaluate: how often each runs, in turns (default 7)", 4},
    {"iterations", ITERATIONS, "K", 0, "what {iterations} becomes (default 100)", 4},
    {0},
};

/* "800x600", or "800" when `alone` is allowed (then *b is 1). */
static void parse_pair(const char *option, const char *text, bool alone, uint64_t *a, uint64_t *b)
{
    char *end;
    errno = 0;
    long x = strtol(text, &end, 10), y = 1;
    bool second = end != text && *end == 'x';
    if (second) {
        const char *at = end + 1;
        y = strtol(at, &end, 10);
        second = end != at;
    }
    if (errno || end == text || *end || (!second && (!alone || strchr(text, 'x'))) || x < 1 ||
        y < 1 || x > TASKS_MAX || y > TASKS_MAX) {
        cli_usage("%s: expected %stwo numbers above 0 such as 800x600, got '%s'", option,
                  alone ? "one or " : "", text);
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

static double parse_efficiency(const char *text)
{
    double value = cli_number("--efficiency", text, 0, 1);
    if (!(value > 0 && value < 1)) {
        cli_usage("--efficiency: expected a number above 0 and below 1, got '%s'", text);
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

static error_t parse_application(int key, char *argument, struct spmd_options *options)
{
    struct spmd_problem *problem = &options->problem;
    switch (key) {
    case PROBLEM:
        parse_pair("--problem", argument, true, &problem->x, &problem->y);
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
        problem->efficiency = parse_efficiency(argument);
        return 0;
    case CHARACTERISE:
        options->characterise = argument;
        return 0;
    case INSTANCE:
        parse_pair("--instance", argument, true, &options->instance_x, &options->instance_y);
        return 0;
    case INSTANCE_GRID:
        parse_pair("--instance-grid", argument, false, &options->instance_n, &options->instance_m);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct spmd_options *options = state->input;
    switch (key) {
    case CORES:
        options->cores = (uint64_t)cli_integer("--cores", argument, 1, MAP_WORKER_LIMIT - 1);
        return 0;
    case TILE:
        parse_pair("--tile", argument, true, &options->tile_x, &options->tile_y);
        return 0;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->machine;
        return 0;
    case FORMAT:
        options->format = map_common_format(argument);
        return 0;
    case PLAN:
        options->plan = argument;
        return 0;
    case CURVE:
        options->curve = true;
        return 0;
    case SIMULATE:
        options->simulate = true;
        return 0;
    case EVALUATE:
        options->evaluate = argument;
        return 0;
    case AGAINST:
        options->against = argument;
        return 0;
    case ITERATIONS:
        options->iterations = (uint64_t)cli_integer("--iterations", argument, 2, ITERATIONS_MAX);
        return 0;
    case ROUNDS:
        options->rounds = (uint32_t)cli_integer("--rounds", argument, 1, SPMD_ROUNDS_MAX);
        return 0;
    default:
        return parse_application(key, argument, options);
    }
}

static void check_application(struct spmd_options *o)
{
    struct spmd_problem *problem = &o->problem;
    if (!problem->x) {
        cli_usage("--problem: missing, expected the tasks of the problem such as 8500x4000");
    }
    if (problem->stencil.one_dimension && problem->y != 1) {
        cli_usage("--problem: expected one number for a stencil of one dimension, got two");
    }
    if (problem->comp_s > 0 && o->characterise) {
        cli_usage("--comp, --characterise: expected one of them, not both");
    }
    if (!(problem->comp_s > 0) && !o->characterise) {
        cli_usage(
            "--comp: missing, expected the time of one task in seconds, or --characterise COMMAND");
    }
    if (!o->characterise && (o->instance_x || o->instance_n)) {
        cli_usage("--instance, --instance-grid: expected --characterise with them");
    }
    if (o->instance_n && !o->instance_x) {
        cli_usage("--instance-grid: expected --instance with it");
    }
    if (!o->instance_n) {
        o->instance_n = 2;
        o->instance_m = 1;
    }
}

static void check(struct spmd_options *o)
{
    const struct spmd_problem *problem = &o->problem;
    check_application(o);
    map_common_machine_check(&o->machine);
    if (o->cores && o->tile_x) {
        cli_usage("--cores, --tile: expected one of them, not both");
    }
    if (o->tile_x && (problem->x % o->tile_x || problem->y % o->tile_y)) {
        cli_usage(
            "--tile: expected a tile that divides the problem of %llu x %llu, got %llu x %llu",
            (unsigned long long)problem->x, (unsigned long long)problem->y,
            (unsigned long long)o->tile_x, (unsigned long long)o->tile_y);
    }
    if (o->against && !o->evaluate) {
        cli_usage("--against: expected --evaluate with it");
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
    bool one_dimension = false;
    for (int i = 1; i < argc; i++) { /* the default stencil depends on the problem */
        one_dimension |=
            strcmp(argv[i], "--problem") == 0 && i + 1 < argc && !strchr(argv[i + 1], 'x');
        one_dimension |= strncmp(argv[i], "--problem=", 10) == 0 && !strchr(argv[i] + 10, 'x');
    }
    parse_stencil(out, one_dimension ? "1d3" : "2d5");
    cli_parse(&argp, argc, argv, 0, NULL, out);
    check(out);
}

typedef unsigned long long ull;

void spmd_report_choice(FILE *out, const struct spmd_problem *problem,
                        const struct spmd_choice *choice, const struct spmd_grid *grid)
{
    const struct spmd_tile *tile = &choice->tile;
    const struct spmd_times *t = &choice->times;
    fprintf(out, "problem        %llu x %llu tasks of %.4g s, %.4g bytes each\n", (ull)problem->x,
            (ull)problem->y, problem->comp_s, problem->bytes);
    fprintf(out, "tile           %llu x %llu tasks\n", (ull)tile->x, (ull)tile->y);
    fprintf(out, "cores          %llu (%llu x %llu)\n", (ull)t->cores, (ull)tile->n, (ull)tile->m);
    fprintf(out, "edge tasks     %.6g s\ninternal tasks %.6g s\n", t->edge_s, t->internal_s);
    fprintf(out, "communication  %.6g s%s\n", t->comm_s,
            t->comm_s > t->internal_s ? " (longer than the internal tasks)" : "");
    fprintf(out, "iteration      %.6g s (predicted)\n", t->iteration_s);
    fprintf(out, "speed-up       %.4g\nefficiency     %.4g (wanted: %.4g%s)\n", t->speedup,
            t->efficiency, problem->efficiency,
            t->kept ? "" : "; the communication is not hidden enough for it");
    fprintf(out, "messages      ");
    bool any = false;
    for (size_t layer = 0; layer < SPMD_LAYERS; layer++) {
        if (grid->messages[layer]) {
            fprintf(out, "%s %llu over layer %zu", any ? "," : "", (ull)grid->messages[layer],
                    layer);
            any = true;
        }
    }
    fprintf(out, "%s\n", any ? " in each iteration" : " none");
}

void spmd_report_curve(FILE *out, const struct spmd_problem *problem,
                       const struct spmd_choice *curve, size_t count, uint64_t chosen)
{
    uint64_t falls = 0, fastest = 0;
    double best = 0;
    fprintf(out, "# cores     tile        iteration_s  speed-up  efficiency\n");
    for (size_t i = 0; i < count; i++) {
        const struct spmd_times *t = &curve[i].times;
        char tile[48];
        snprintf(tile, sizeof tile, "%llux%llu", (ull)curve[i].tile.x, (ull)curve[i].tile.y);
        fprintf(out, "%7llu %11s  %14.6g %9.4g %11.4g%s\n", (ull)t->cores, tile, t->iteration_s,
                t->speedup, t->efficiency, t->cores == chosen ? "  *" : "");
        falls = !falls && t->efficiency < problem->efficiency ? t->cores : falls;
        if (t->speedup > best) {
            best = t->speedup;
            fastest = t->cores;
        }
    }
    if (falls) {
        fprintf(out, "# efficiency falls below %.4g from %llu cores on\n", problem->efficiency,
                (ull)falls);
    }
    fprintf(out, "# highest speed-up %.4g at %llu cores\n", best, (ull)fastest);
}

void spmd_report_simulation_head(FILE *out)
{
    fprintf(out, "#             without the plan                      with the plan\n"
                 "# cores  iteration_s  speed-up  efficiency  iteration_s  speed-up  efficiency\n");
}

void spmd_report_simulation(FILE *out, const struct spmd_choice *choice, double plain_s,
                            double planned_s)
{
    double serial = choice->times.serial_s, cores = (double)choice->times.cores;
    fprintf(out, "%7llu %12.6g %9.4g %11.4g %12.6g %9.4g %11.4g\n", (ull)choice->times.cores,
            plain_s, serial / plain_s, serial / plain_s / cores, planned_s, serial / planned_s,
            serial / planned_s / cores);
}

static void measured_line(FILE *out, const char *name, const struct profile_median *iteration_s,
                          double serial_s, uint64_t cores)
{
    fprintf(out, "%-18s %12.6g %9.4g %11.4g  [%.4g, %.4g]\n", name, iteration_s->median,
            serial_s / iteration_s->median, serial_s / iteration_s->median / (double)cores,
            iteration_s->low, iteration_s->high);
}

/* A speed-up this far above the number of cores is another program's doing: caches alone were seen
 * to give 1.05. */
#define IMPOSSIBLE_EFFICIENCY 1.2

void spmd_report_evaluation(FILE *out, const struct spmd_problem *problem,
                            const struct spmd_choice *choice, const struct spmd_evaluation *e)
{
    const struct spmd_times *t = &choice->times;
    uint64_t cores = t->cores;
    fprintf(out, "\n                    iteration_s  speed-up  efficiency  %s of %zu rounds\n",
            e->rounds < 6 ? "[least, most]" : "[95 % interval]", e->rounds);
    fprintf(out, "%-18s %12.6g %9.4g %11.4g\n", "predicted", t->iteration_s, t->speedup,
            t->efficiency);
    measured_line(out, "with the plan", &e->planned_s, e->serial_s, cores);
    if (e->against) {
        measured_line(out, "without the plan", &e->plain_s, e->serial_s, cores);
    }
    fprintf(out, "one core           %12.6g (predicted %.6g)\n", e->serial_s, t->serial_s);
    if (e->against) {
        fprintf(out, "with to without    %12.4g  [%.4g, %.4g], round by round\n", e->ratio.median,
                e->ratio.low, e->ratio.high);
    }
    if (e->serial_s > IMPOSSIBLE_EFFICIENCY * e->planned_s.median * (double)cores) {
        fprintf(out, "speed-up and efficiency mean nothing here: one core was slower than the "
                     "others together, so the "
                     "machine was busy\n");
    }
    const char *when = e->before ? "right before each run" : "in these runs";
    fprintf(out, "the model is off by %+.1f %% [%+.1f, %+.1f]\n",
            100 * (t->iteration_s / e->planned_s.median - 1), 100 * e->planned_off.low,
            100 * e->planned_off.high);
    fprintf(out, "a task took %.4g s %s [%.4g, %.4g], %.4g s when it was planned\n",
            e->task_s.median, when, e->task_s.low, e->task_s.high, problem->comp_s);
    fprintf(out, "with the time of a task %s the model is off by %+.1f %% [%+.1f, %+.1f]\n", when,
            100 * e->off.median, 100 * e->off.low, 100 * e->off.high);
}
