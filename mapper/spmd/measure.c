/* Runs of the application under the trace of its MPI calls: what a task costs, and whether the plan
 * keeps what it promised. */
#include "mapper/spmd/spmd.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/child.h"
#include "profile/base/cli.h"
#include "profile/base/statistics.h"

#define TRACE_LIBRARY "libservet_trace.so"

enum { WORDS = 128, FILE_NAME = 64 };

/* -- finding -- */

/* In the preload folder beside this command's (build folder), in its prefix's library folder, or
 * where it was to be installed. */
static int find_trace(char *path, size_t size)
{
    static const char *const beside[] = {"/../preload/", "/../" SERVET_SPMD_LIBDIR "/"};
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    for (size_t i = 0; length > 0 && i < sizeof beside / sizeof *beside; i++) {
        self[length] = '\0';
        int folder = (int)(strrchr(self, '/') - self);
        int needed = snprintf(path, size, "%.*s%s" TRACE_LIBRARY, folder, self, beside[i]);
        if (needed < (int)size && access(path, R_OK) == 0) {
            return 0;
        }
    }
    snprintf(path, size, "%s", SERVET_SPMD_PREFIX "/" SERVET_SPMD_LIBDIR "/" TRACE_LIBRARY);
    return access(path, R_OK) == 0 ? 0 : -ENOENT;
}

/* -- command line -- */

static void expand_word(const struct spmd_run *run, const char *word, char *out, size_t size)
{
    size_t used = 0;
    while (*word && used + 1 < size) {
        char text[64] = "";
        size_t skip = 1;
        if (strncmp(word, "{problem}", 9) == 0) {
            snprintf(text, sizeof text, "%llux%llu", (unsigned long long)run->x,
                     (unsigned long long)run->y);
            skip = 9;
        } else if (strncmp(word, "{grid}", 6) == 0) {
            snprintf(text, sizeof text, "%llux%llu", (unsigned long long)run->n,
                     (unsigned long long)run->m);
            skip = 6;
        } else if (strncmp(word, "{cores}", 7) == 0) {
            snprintf(text, sizeof text, "%llu", (unsigned long long)(run->n * run->m));
            skip = 7;
        } else if (strncmp(word, "{iterations}", 12) == 0) {
            snprintf(text, sizeof text, "%llu", (unsigned long long)run->iterations);
            skip = 12;
        } else {
            text[0] = *word;
        }
        int n = snprintf(out + used, size - used, "%s", text);
        used += n > 0 ? (size_t)n : 0;
        word += skip;
    }
    out[used < size ? used : size - 1] = '\0';
}

struct words {
    char *list[WORDS];
    size_t count;
};

static void add(struct words *words, const char *word)
{
    if (words->count + 1 < WORDS) {
        words->list[words->count++] = strdup(word);
    }
}

static void make_words(const struct spmd_run *run, struct words *words)
{
    char count[24], *copy = strdup(run->command), *rest = copy, *word;
    snprintf(count, sizeof count, "%llu", (unsigned long long)(run->n * run->m));
    add(words, SERVET_MPIRUN);
    add(words, "-np");
    add(words, count);
#ifdef SERVET_MPIRUN_EXPORTS
    /* Open MPI starts ranks of other nodes with what it is told to export only, and all ranks must
     * be traced. */
    static const char *const exported[] = {"LD_PRELOAD", "SERVET_TRACE", "SERVET_TRACE_TIMES",
                                           "SERVET_SPMD_PLAN"};
    for (size_t i = 0; i < sizeof exported / sizeof *exported - !run->plan; i++) {
        add(words, "-x");
        add(words, exported[i]);
    }
#endif
    for (size_t i = 0; run->bind && run->bind[i]; i++) {
        add(words, run->bind[i]);
    }
    while (copy && (word = strsep(&rest, " "))) {
        char expanded[PATH_MAX];
        if (*word) {
            expand_word(run, word, expanded, sizeof expanded);
            add(words, expanded);
        }
    }
    free(copy);
}

static void free_words(struct words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        free(words->list[i]);
    }
}

/* -- running -- */

/* The ranks' lines of a trace are comments of the matrix:
 *     % rank RANK messages N bytes N largest BYTES seconds S mpi S iterations N iteration S compute
 *     S */
static int read_trace(const char *path, struct spmd_measured *out)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0, ranks = 0;
    struct spmd_measured found = {.iterations = UINT64_MAX};
    while (file && getline(&line, &size, file) > 0) {
        double largest, seconds, iteration, compute;
        unsigned long long marks;
        if (sscanf(line,
                   "%% rank %*d messages %*u bytes %*u largest %lf seconds %lf mpi %*f iterations "
                   "%llu iteration %lf "
                   "compute %lf",
                   &largest, &seconds, &marks, &iteration, &compute) != 5) {
            continue;
        }
        ranks++;
        found.seconds = fmax(found.seconds, seconds);
        found.iteration_s = fmax(found.iteration_s, iteration);
        found.compute_s = fmax(found.compute_s, compute);
        found.iterations = marks && marks < found.iterations ? marks : found.iterations;
        found.bytes = fmax(found.bytes, largest);
    }
    free(line);
    if (file) {
        fclose(file);
    }
    if (!ranks) {
        return -EINVAL;
    }
    found.iterations = found.iterations == UINT64_MAX ? 0 : found.iterations;
    *out = found;
    return 0;
}

/* The environment of a traced run, as profile_child wants it: its words are in it. */
struct environment {
    char trace[FILE_NAME + 16], library[PATH_MAX + 16], plan[PATH_MAX + 32];
    const char *list[10];
};

static void make_environment(const struct spmd_run *run, const char *library, const char *trace,
                             struct environment *out)
{
    size_t count = 0;
    snprintf(out->trace, sizeof out->trace, "SERVET_TRACE=%s", trace);
    snprintf(out->library, sizeof out->library, "LD_PRELOAD=%s", library);
    out->list[count++] = out->trace;
    out->list[count++] = out->library;
    out->list[count++] = "SERVET_TRACE_TIMES=1";
    out->list[count++] = "SERVET_AUTO";
    out->list[count++] = "SERVET_DISABLE";
    if (run->plan) {
        snprintf(out->plan, sizeof out->plan, "SERVET_SPMD_PLAN=%s", run->plan);
        out->list[count++] = out->plan;
    }
    if (geteuid() == 0) { /* Open MPI wants to be told that root knows */
        out->list[count++] = "OMPI_ALLOW_RUN_AS_ROOT=1";
        out->list[count++] = "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
    }
    out->list[count] = NULL;
}

static int run_words(const struct spmd_run *run, struct words *words, const char *library,
                     const char *trace, struct servet_error *error)
{
    struct environment environment;
    char line[256];
    int errors = profile_child_file();
    if (errors < 0) {
        return profile_error(error, errors, "cannot start %s: %s", SERVET_MPIRUN,
                             strerrordesc_np(-errors));
    }
    make_environment(run, library, trace, &environment);
    const struct profile_child child = {.argv = words->list,
                                        .environment = environment.list,
                                        .in = PROFILE_CHILD_NOTHING,
                                        .out = PROFILE_CHILD_NOTHING,
                                        .errors = errors};
    int rc = profile_child_run(&child);
    profile_child_complaint(errors, line, sizeof line);
    close(errors);
    if (rc < 0) {
        return profile_error(error, rc, "cannot start %s: %s", SERVET_MPIRUN, strerrordesc_np(-rc));
    }
    return rc == 0 ? 0
                   : profile_error(error, -EINVAL, "'%s' does not run on %llu processes%s%s",
                                   run->command, (unsigned long long)(run->n * run->m),
                                   line[0] ? ": " : "", line);
}

/* 0; -ENOENT (mpirun or the trace library is not there), -EINVAL (the program does not run, or says
 * nothing to the trace: `error` names it and its own first line), -errno. */
static int run_program(const struct spmd_run *run, struct spmd_measured *out,
                       struct servet_error *error)
{
    char library[PATH_MAX], trace[FILE_NAME] = "/tmp/servet-spmd-XXXXXX";
    struct words words = {0};
    if (find_trace(library, sizeof library) < 0) {
        return profile_error(error, -ENOENT, "%s is not installed", TRACE_LIBRARY);
    }
    int fd = mkstemp(trace);
    if (fd < 0) {
        return profile_error(error, -errno, "%s: %s", trace, strerror(errno));
    }
    close(fd);
    make_words(run, &words);
    int rc = run_words(run, &words, library, trace, error);
    free_words(&words);
    if (rc == 0 && read_trace(trace, out) < 0) {
        rc = profile_error(error, -EINVAL,
                           "'%s' left no trace: expected an MPI program that ends in MPI_Finalize",
                           run->command);
    }
    unlink(trace);
    return rc;
}

typedef unsigned long long ull;

/* Measured and chosen so often at most: a choice that goes to and fro lies between two tiles that
 * are alike. */
enum { CHOICES = 4 };

/* One run of `problem` in tiles like `tile`, placed by `bind` (as in struct spmd_run). */
static struct spmd_task characterise_once(const struct spmd_planner *p,
                                          const struct spmd_problem *problem,
                                          const struct spmd_tile *tile, const char *const *bind)
{
    const struct spmd_options *o = &p->options;
    struct spmd_run run = {.command = o->characterise,
                           .x = problem->x,
                           .y = problem->y,
                           .n = tile->n,
                           .m = tile->m,
                           .iterations = o->iterations,
                           .bind = bind};
    struct spmd_measured measured;
    struct servet_error error;
    if (run_program(&run, &measured, &error) < 0) {
        cli_usage("--characterise: %s", error.text);
    }
    double one = 1, edge = spmd_comm_per_task(&one, problem, tile);
    if (!(measured.compute_s > 0) || !(measured.bytes > 0) || measured.iterations < 2) {
        cli_usage("--characterise: '%s' sends nothing from one iteration to the next",
                  o->characterise);
    }
    return (struct spmd_task){measured.compute_s / ((double)tile->x * (double)tile->y),
                              measured.bytes / edge, measured.iterations};
}

/* Runs of `problem` cut into n x m tiles. */
static void measure(struct spmd_planner *p, const struct spmd_problem *problem,
                    const struct spmd_tile *tile, const char *const *bind)
{
    uint32_t rounds = p->options.rounds;
    double *seconds = calloc(rounds, sizeof *seconds);
    struct spmd_task task = {0};
    if (!seconds) {
        cli_fail("out of memory");
    }
    for (uint32_t i = 0; i < rounds; i++) {
        task = characterise_once(p, problem, tile, bind);
        seconds[i] = task.comp_s;
    }
    struct profile_median found = profile_median(seconds, rounds);
    free(seconds);
    p->options.problem.comp_s = found.median;
    p->options.problem.bytes = task.bytes;
    printf("characterised  %.4g s for a task [%.4g, %.4g], %.4g bytes for an edge task (%u run%s "
           "of %llu iterations, "
           "tiles of %llu x %llu on %llu cores)\n",
           found.median, found.low, found.high, task.bytes, rounds, rounds == 1 ? "" : "s",
           (ull)task.iterations, (ull)tile->x, (ull)tile->y, (ull)(tile->n * tile->m));
}

static void measure_instance(struct spmd_planner *p)
{
    const struct spmd_options *o = &p->options;
    struct spmd_problem instance = o->problem;
    struct spmd_tile tile;
    instance.x = o->instance_x;
    instance.y = o->instance_y;
    if (spmd_tile_of_grid(&instance, o->instance_n, o->instance_m, &tile) < 0 ||
        o->instance_n * o->instance_m < 2) {
        cli_usage("--instance: expected tasks that a grid of at least 2 processes (%llux%llu) "
                  "divides, got %llux%llu",
                  (ull)o->instance_n, (ull)o->instance_m, (ull)instance.x, (ull)instance.y);
    }
    measure(p, &instance, &tile, NULL);
}

/* Before anything is known: as many cores as divide the problem, whatever the efficiency. */
static struct spmd_choice first_choice(struct spmd_planner *p)
{
    struct spmd_choice *curve, choice;
    size_t count;
    if (p->options.cores || p->options.tile_x) {
        return spmd_planner_distribute(p);
    }
    if (spmd_curve(&p->options.problem, p->pus, p->comm, p->comm_context, &curve, &count) < 0) {
        cli_fail("out of memory");
    }
    choice = curve[count - 1];
    free(curve);
    return choice;
}

static void measure_tiles(struct spmd_planner *p)
{
    p->options.problem.comp_s = 1; /* so long that communication is nothing beside it */
    struct spmd_choice choice = first_choice(p);
    struct spmd_tile measured = {0};
    for (int i = 0; i < CHOICES && (choice.tile.n != measured.n || choice.tile.m != measured.m);
         i++) {
        if (choice.times.cores < 2) {
            if (!measured.n) {
                cli_usage("--characterise: expected a problem for at least 2 cores (a single "
                          "process sends nothing), or "
                          "--comp SECONDS");
            }
            break; /* one core is enough by what two or more have shown */
        }
        struct spmd_grid grid = spmd_planner_grid(p, &choice.tile);
        struct spmd_binding binding;
        spmd_bind(p->profile, &grid, &binding);
        measure(p, &p->options.problem, &choice.tile, binding.arguments);
        spmd_unbind(&binding);
        spmd_grid_free(&grid);
        measured = choice.tile;
        choice = spmd_planner_distribute(p);
    }
}

void spmd_characterise(struct spmd_planner *planner)
{
    if (planner->options.instance_x) {
        measure_instance(planner);
    } else {
        measure_tiles(planner);
    }
}

/* What the rounds gave; [round]. */
struct rounds {
    double *planned_s, *plain_s; /* of an iteration */
    double *task_s;              /* right before the run with the plan, or in the one without */
    double *ratio;               /* planned to plain */
    double *planned_off;         /* of the model as it was asked when the plan was made: relative */
    double *off;                 /* of the model that is given task_s */
    double few_s,
        many_s; /* least time of a serial run, and of one of SERIAL_LONGER times the iterations */
};

/* A start takes as long as hundreds of iterations: only the difference of two lengths is theirs. */
#define SERIAL_LONGER 3

/* -- running -- */

static struct spmd_measured run_one(const struct spmd_run *run, const char *option)
{
    struct spmd_measured measured;
    struct servet_error error;
    if (run_program(run, &measured, &error) < 0) {
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

/* The machine of another minute is another machine ("parallel computers are like the weather"), so
 * the task is measured again before each run: what the model says of that run is said before it. */
static void run_round(const struct spmd_planner *p, const struct spmd_choice *choice,
                      const struct spmd_run *planned, const struct spmd_run *plain,
                      struct rounds *rounds, size_t i)
{
    const struct spmd_options *o = &p->options;
    double task_s = o->problem.comp_s;
    if (o->characterise) {
        task_s = characterise_once(p, &o->problem, &choice->tile, planned->bind).comp_s;
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

static void run_rounds(const struct spmd_planner *p, const struct spmd_choice *choice,
                       const struct spmd_run *planned, const struct spmd_run *plain,
                       struct rounds *rounds)
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

static void report(const struct spmd_planner *p, const struct spmd_choice *choice,
                   struct rounds *rounds)
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
        e.serial_s = (rounds->many_s - rounds->few_s) /
                     ((SERIAL_LONGER - 1) * (double)p->options.iterations);
    }
    if (!(e.serial_s > 0)) {
        cli_usage("--against: '%s': its time on one core does not grow with its iterations; take "
                  "more of them",
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

void spmd_evaluate(const struct spmd_planner *p, const struct spmd_choice *choice,
                   const struct spmd_grid *grid)
{
    const struct spmd_options *o = &p->options;
    static struct spmd_binding binding;
    struct rounds rounds;
    if (o->against && !strstr(o->against, "{iterations}")) {
        cli_usage("--against: '%s': expected {iterations} in it, which is set to two numbers",
                  o->against);
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
