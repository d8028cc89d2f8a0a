#include "spmd_evaluate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "spmd_binding.h"
#include "spmd_program.h"
#include "spmd_report.h"

/* What the rounds gave; [round]. */
struct rounds {
    double *planned_s, *plain_s; /* of an iteration */
    double *task_s;              /* in the runs themselves */
    double *ratio;               /* planned to plain */
    double *off;                 /* of the model that is given task_s: relative */
    double few_s, many_s;        /* least time of a serial run, and of one of SERIAL_LONGER times the iterations */
};

/* A start takes as long as hundreds of iterations: only the difference of two lengths is theirs. */
#define SERIAL_LONGER 3

/* -- statistics -- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spmd_median spmd_median(double *values, size_t count)
{
    double chance = pow(0.5, (double)count), below = 0;
    size_t skip = 0;
    qsort(values, count, sizeof *values, compare);
    /* The median is under the k-th smallest value with the chance of fewer than k heads in `count` throws. */
    while (below + chance <= 0.025) {
        below += chance;
        chance *= (double)(count - skip) / (double)(skip + 1);
        skip++;
    }
    skip = skip ? skip - 1 : 0;
    double median = (values[(count - 1) / 2] + values[count / 2]) / 2;
    return (struct spmd_median){median, values[skip], values[count - 1 - skip]};
}

/* -- running -- */

static struct spmd_measured run_one(const struct spmd_run *run, const char *option)
{
    struct spmd_measured measured;
    struct servet_error error;
    if (spmd_program_run(run, &measured, &error) < 0) {
        cli_usage("%s: %s", option, error.text);
    }
    if (!(measured.iteration_s > 0)) { /* a single process sends nothing: its whole time counts */
        measured.iteration_s = measured.seconds / (double)run->iterations;
    }
    return measured;
}

static void run_serial(const struct spmd_run *plain, struct rounds *rounds)
{
    struct spmd_run one = *plain;
    one.n = one.m = 1;
    rounds->few_s = fmin(rounds->few_s, run_one(&one, "--against").seconds);
    one.iterations *= SERIAL_LONGER;
    rounds->many_s = fmin(rounds->many_s, run_one(&one, "--against").seconds);
}

static void run_round(const struct spmd_planner *p, const struct spmd_choice *choice, const struct spmd_run *planned,
                      const struct spmd_run *plain, struct rounds *rounds, size_t i)
{
    const struct spmd_options *o = &p->options;
    struct spmd_problem problem = o->problem;
    struct spmd_measured with = run_one(planned, "--evaluate"), without = with;
    if (o->against) {
        without = run_one(plain, "--against");
        run_serial(plain, rounds);
    }
    rounds->planned_s[i] = with.iteration_s;
    rounds->plain_s[i] = without.iteration_s;
    rounds->ratio[i] = with.iteration_s / without.iteration_s;
    if (without.compute_s > 0) {
        problem.comp_s = without.compute_s / ((double)choice->tile.x * (double)choice->tile.y);
    }
    rounds->task_s[i] = problem.comp_s;
    struct spmd_times times = spmd_predict(&problem, &choice->tile, choice->times.comm_s);
    rounds->off[i] = times.iteration_s / with.iteration_s - 1;
}

static void run_rounds(const struct spmd_planner *p, const struct spmd_choice *choice, const struct spmd_run *planned,
                       const struct spmd_run *plain, struct rounds *rounds)
{
    size_t count = p->options.rounds;
    double *values = calloc(5 * count, sizeof *values);
    if (!values) {
        cli_fail("out of memory");
    }
    *rounds = (struct rounds){values,   values + count, values + 2 * count, values + 3 * count, values + 4 * count,
                              INFINITY, INFINITY};
    for (size_t i = 0; i < count; i++) {
        run_round(p, choice, planned, plain, rounds, i);
    }
}

/* -- the whole -- */

static void report(const struct spmd_planner *p, const struct spmd_choice *choice, struct rounds *rounds)
{
    size_t count = p->options.rounds;
    struct spmd_evaluation e = {.rounds = count,
                                .planned_s = spmd_median(rounds->planned_s, count),
                                .task_s = spmd_median(rounds->task_s, count),
                                .off = spmd_median(rounds->off, count),
                                .serial_s = choice->times.serial_s};
    if (p->options.against) {
        e.against = true;
        e.plain_s = spmd_median(rounds->plain_s, count);
        e.ratio = spmd_median(rounds->ratio, count);
        e.serial_s = (rounds->many_s - rounds->few_s) / ((SERIAL_LONGER - 1) * (double)p->options.iterations);
    }
    if (!(e.serial_s > 0)) {
        cli_usage("--against: '%s': its time on one core does not grow with its iterations; take more of them",
                  p->options.against);
    }
    spmd_report_evaluation(stdout, &p->options.problem, choice, &e);
}

static char *temporary_plan(const struct spmd_planner *p, const struct spmd_choice *choice,
                            const struct spmd_grid *grid)
{
    static char path[] = "/tmp/servet-plan-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) {
        cli_fail("%s: %s", path, strerror(errno));
    }
    close(fd);
    spmd_planner_save(p, choice, grid, path);
    return path;
}

/* Whatever ends the program: the files are gone. */
static const char *plan_to_remove;
static struct spmd_binding *binding_to_remove;

static void remove_files(void)
{
    unlink(plan_to_remove);
    spmd_unbind(binding_to_remove);
}

void spmd_evaluate(const struct spmd_planner *p, const struct spmd_choice *choice, const struct spmd_grid *grid)
{
    const struct spmd_options *o = &p->options;
    static struct spmd_binding binding;
    struct rounds rounds;
    if (o->against && !strstr(o->against, "{iterations}")) {
        cli_usage("--against: '%s': expected {iterations} in it, which is set to two numbers", o->against);
    }
    spmd_bind(p->profile, grid, &binding);
    char *plan = temporary_plan(p, choice, grid);
    plan_to_remove = plan;
    binding_to_remove = &binding;
    atexit(remove_files);
    struct spmd_run planned = {.command = o->evaluate,
                               .x = o->problem.x,
                               .y = o->problem.y,
                               .n = choice->tile.n,
                               .m = choice->tile.m,
                               .iterations = o->iterations,
                               .plan = plan,
                               .bind = binding.arguments};
    struct spmd_run plain = planned;
    plain.plan = NULL;
    plain.bind = NULL;
    plain.command = o->against;
    run_rounds(p, choice, &planned, &plain, &rounds);
    report(p, choice, &rounds);
    free(rounds.planned_s);
}
