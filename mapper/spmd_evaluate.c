#include "spmd_evaluate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "spmd_binding.h"
#include "spmd_characterise.h"
#include "spmd_program.h"
#include "spmd_report.h"

/* What the rounds gave; [round]. */
struct rounds {
    double *planned_s, *plain_s; /* of an iteration */
    double *task_s;              /* right before the run with the plan, or in the one without */
    double *ratio;               /* planned to plain */
    double *planned_off;         /* of the model as it was asked when the plan was made: relative */
    double *off;                 /* of the model that is given task_s */
    double few_s, many_s;        /* least time of a serial run, and of one of SERIAL_LONGER times the iterations */
};

/* A start takes as long as hundreds of iterations: only the difference of two lengths is theirs. */
#define SERIAL_LONGER 3

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

/* What the model says with a task that takes so long. */
static double predict(const struct spmd_planner *p, const struct spmd_choice *choice, double task_s)
{
    struct spmd_problem problem = p->options.problem;
    problem.comp_s = task_s;
    return spmd_predict(&problem, &choice->tile, choice->times.comm_s).iteration_s;
}

/* The machine of another minute is another machine ("parallel computers are like the weather"), so the task is measured
 * again before each run: what the model says of that run is said before it. */
static void run_round(const struct spmd_planner *p, const struct spmd_choice *choice, const struct spmd_run *planned,
                      const struct spmd_run *plain, struct rounds *rounds, size_t i)
{
    const struct spmd_options *o = &p->options;
    double task_s = o->problem.comp_s;
    if (o->characterise) {
        task_s = spmd_characterise_once(p, &o->problem, &choice->tile, planned->bind).comp_s;
    }
    struct spmd_measured with = run_one(planned, "--evaluate"), without = with;
    if (o->against) {
        without = run_one(plain, "--against");
        run_serial(plain, rounds);
    }
    if (!o->characterise && without.compute_s > 0) {
        task_s = without.compute_s / ((double)choice->tile.x * (double)choice->tile.y);
    }
    rounds->planned_s[i] = with.iteration_s;
    rounds->plain_s[i] = without.iteration_s;
    rounds->ratio[i] = with.iteration_s / without.iteration_s;
    rounds->task_s[i] = task_s;
    rounds->planned_off[i] = choice->times.iteration_s / with.iteration_s - 1;
    rounds->off[i] = predict(p, choice, task_s) / with.iteration_s - 1;
}

static void run_rounds(const struct spmd_planner *p, const struct spmd_choice *choice, const struct spmd_run *planned,
                       const struct spmd_run *plain, struct rounds *rounds)
{
    size_t count = p->options.rounds;
    double *values = calloc(6 * count, sizeof *values);
    if (!values) {
        cli_fail("out of memory");
    }
    *rounds = (struct rounds){.planned_s = values,
                              .plain_s = values + count,
                              .task_s = values + 2 * count,
                              .ratio = values + 3 * count,
                              .planned_off = values + 4 * count,
                              .off = values + 5 * count,
                              .few_s = INFINITY,
                              .many_s = INFINITY};
    for (size_t i = 0; i < count; i++) {
        run_round(p, choice, planned, plain, rounds, i);
    }
}

/* -- the whole -- */

static void report(const struct spmd_planner *p, const struct spmd_choice *choice, struct rounds *rounds)
{
    size_t count = p->options.rounds;
    struct spmd_evaluation e = {.rounds = count,
                                .planned_s = profile_median(rounds->planned_s, count),
                                .task_s = profile_median(rounds->task_s, count),
                                .planned_off = profile_median(rounds->planned_off, count),
                                .off = profile_median(rounds->off, count),
                                .before = p->options.characterise != NULL,
                                .serial_s = choice->times.serial_s};
    if (p->options.against) {
        e.against = true;
        e.plain_s = profile_median(rounds->plain_s, count);
        e.ratio = profile_median(rounds->ratio, count);
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
