/* Runs of the application under the trace of its MPI calls: what a task costs, and how far the
 * model is off. */
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
#include "profile/base/file.h"
#include "profile/base/statistics.h"
#include "profile/scope.h"

#define TRACE_LIBRARY "libservet_trace.so"

enum { WORDS = 128, FILE_NAME = 64 };

typedef unsigned long long ull;

struct spmd_measured {
    uint64_t iterations; /* messages to the first neighbour, fewest of all ranks that have one */
    double iteration_s;  /* of the slowest rank; 0 where no rank sends */
    double compute_s;    /* of one iteration outside of MPI: of the slowest rank, for which its
                            neighbours wait */
    double bytes;        /* largest message of any rank */
};

/* The files that a run needs; whatever ends the program, they are gone. */
static struct {
    char plan[FILE_NAME], trace[FILE_NAME], ranks[FILE_NAME];
    /* Of mpirun, ending with NULL: ranks go where the mapping wants them. */
    const char *arguments[7];
    char *list; /* PUs of one node */
} files;

static void remove_file(char name[FILE_NAME])
{
    if (name[0]) {
        unlink(name);
        name[0] = '\0';
    }
}

static void remove_files(void)
{
    remove_file(files.plan);
    remove_file(files.trace);
    remove_file(files.ranks);
    free(files.list);
    files.list = NULL;
}

/* A file with this text; its name ends with XXXXXX at first. */
static void make_file(char name[FILE_NAME], const char *wanted, const char *text)
{
    strcpy(name, wanted);
    int fd = mkstemp(name);
    if (fd < 0 || dprintf(fd, "%s", text) < 0 || close(fd) < 0) {
        cli_fail("%s: %s", name, strerror(errno));
    }
}

/* -- command line -- */

/* The command, in which {problem} has become XxY, {grid} NxM, {cores} N, {iterations} K. */
static char *expand_command(const struct spmd_planner *p, const struct spmd_tile *tile)
{
    const uint64_t n = tile->n, m = tile->m;
    const struct {
        const char *name;
        uint64_t first, second; /* 0: there is one number */
    } names[] = {{"{problem}", tile->x * n, tile->y * m},
                 {"{grid}", n, m},
                 {"{cores}", n * m, 0},
                 {"{iterations}", p->options.iterations, 0}};
    const char *at = p->options.characterise;
    char *text;
    size_t size, k;
    FILE *out = cli_needed(profile_stream_open(&text, &size));
    while (*at) {
        for (k = 0; k < 4 && strncmp(at, names[k].name, strlen(names[k].name)) != 0; k++) {
        }
        if (k == 4) {
            fputc(*at++, out);
            continue;
        }
        fprintf(out, "%llu", (ull)names[k].first);
        if (names[k].second) {
            fprintf(out, "x%llu", (ull)names[k].second);
        }
        at += strlen(names[k].name);
    }
    cli_done(fclose(out));
    return text;
}

struct words {
    char *list[WORDS]; /* borrowed; the last one is NULL */
    size_t count;
};

static void add_word(struct words *words, const char *word)
{
    if (words->count + 1 < WORDS) {
        words->list[words->count++] = (char *)word;
    }
}

/* Those of mpirun, and of the command, which is split at blanks. */
static void make_words(const char *ranks, char *command, struct words *words)
{
    add_word(words, SERVET_MPIRUN);
    add_word(words, "-np");
    add_word(words, ranks);
#ifdef SERVET_MPIRUN_EXPORTS
    /* Open MPI gives ranks of other nodes only the variables that it is to export, and all ranks
     * must be traced. */
    static const char *const exported[] = {"LD_PRELOAD", "SERVET_TRACE", "SERVET_TRACE_TIMES",
                                           "SERVET_SPMD_PLAN"};
    for (size_t i = 0; i < sizeof exported / sizeof *exported; i++) {
        add_word(words, "-x");
        add_word(words, exported[i]);
    }
#endif
    for (size_t i = 0; files.arguments[i]; i++) {
        add_word(words, files.arguments[i]);
    }
    for (char *word; (word = strsep(&command, " "));) {
        if (*word) {
            add_word(words, word);
        }
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
        double largest, iteration, compute;
        unsigned long long marks;
        if (sscanf(line,
                   "%% rank %*d messages %*u bytes %*u largest %lf seconds %*f mpi %*f iterations "
                   "%llu iteration %lf "
                   "compute %lf",
                   &largest, &marks, &iteration, &compute) != 4) {
            continue;
        }
        ranks++;
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

/* Runs the command under the trace of its MPI calls, in such tiles; ends the program when it does
 * not run. */
static void run_traced(const struct spmd_planner *p, const struct spmd_tile *tile)
{
    char library[PATH_MAX], preload[PATH_MAX + 16], trace[FILE_NAME + 16], plan[FILE_NAME + 32];
    char line[256], ranks[24];
    /* in the build folder, in this command's prefix, or where it was to be installed */
    static const char *const places[] = {"../preload", "../" SERVET_SPMD_LIBDIR,
                                         SERVET_SPMD_PREFIX "/" SERVET_SPMD_LIBDIR, NULL};
    if (profile_child_find(places, TRACE_LIBRARY, R_OK, library) < 0) {
        cli_usage("--characterise: %s is not installed", TRACE_LIBRARY);
    }
    make_file(files.trace, "/tmp/servet-spmd-XXXXXX", "");
    snprintf(trace, sizeof trace, "SERVET_TRACE=%s", files.trace);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
    snprintf(plan, sizeof plan, "SERVET_SPMD_PLAN=%s", files.plan);
    /* Open MPI refuses root otherwise. */
    const char *as_root = geteuid() == 0 ? "OMPI_ALLOW_RUN_AS_ROOT=1" : NULL;
    const char *const environment[] = {trace,
                                       preload,
                                       "SERVET_TRACE_TIMES=1",
                                       "SERVET_AUTO",
                                       "SERVET_DISABLE",
                                       plan,
                                       as_root,
                                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                       NULL};
    struct words words = {0};
    FREED char *command = expand_command(p, tile);
    snprintf(ranks, sizeof ranks, "%llu", (ull)(tile->n * tile->m));
    make_words(ranks, command, &words);
    int errors = profile_child_file();
    const struct profile_child child = {.argv = words.list,
                                        .environment = environment,
                                        .in = PROFILE_CHILD_NOTHING,
                                        .out = PROFILE_CHILD_NOTHING,
                                        .errors = errors};
    int rc = errors < 0 ? errors : profile_child_run(&child);
    if (rc < 0) {
        cli_usage("--characterise: cannot start %s: %s", SERVET_MPIRUN, strerrordesc_np(-rc));
    }
    profile_child_complaint(errors, line, sizeof line);
    close(errors);
    if (rc > 0) {
        cli_usage("--characterise: '%s' does not run on %s processes%s%s", p->options.characterise,
                  ranks, line[0] ? ": " : "", line);
    }
}

/* -- characterisation -- */

/* Measured and chosen so often at most: a choice that goes to and fro lies between two tiles that
 * are alike. */
enum { CHOICES = 4 };

static void bind_ranks(const struct servet_profile *profile, const struct spmd_grid *grid)
{
    struct map_mapping plan;
    size_t size = 0;
    cli_done(map_mapping_make(profile, grid->pus, grid->n * grid->m, NULL, &plan));
    bool one_node = map_mapping_one_node(&plan);
    const struct map_format *format = map_format_find(one_node ? "list" : "rankfile");
    FILE *text = cli_needed(profile_stream_open(&files.list, &size));
    cli_done(format->print(text, format, &plan));
    cli_done(fclose(text));
    map_mapping_free(&plan);
    if (one_node) {
        files.list[strcspn(files.list, "\n")] = '\0';
        memcpy(files.arguments,
               (const char *[]){"--bind-to", "cpu-list:ordered", "--cpu-list", files.list, NULL},
               5 * sizeof *files.arguments);
        return;
    }
    make_file(files.ranks, "/tmp/servet-ranks-XXXXXX", files.list);
    memcpy(files.arguments,
           (const char *[]){"--use-hwthread-cpus", "--mca", "rmaps_rank_file_physical", "1",
                            "--rankfile", files.ranks, NULL},
           7 * sizeof *files.arguments);
}

static void make_files(const struct spmd_planner *p, const struct spmd_choice *choice)
{
    struct spmd_grid grid = spmd_planner_grid(p, &choice->tile);
    make_file(files.plan, "/tmp/servet-plan-XXXXXX", "");
    spmd_planner_save(p, choice, &grid, files.plan);
    bind_ranks(p->profile, &grid);
    spmd_grid_free(&grid);
}

static struct spmd_measured run_once(const struct spmd_planner *p, const struct spmd_tile *tile)
{
    const char *command = p->options.characterise;
    struct spmd_measured measured;
    run_traced(p, tile);
    if (read_trace(files.trace, &measured) < 0) {
        cli_usage("--characterise: '%s' left no trace: expected an MPI program that ends in "
                  "MPI_Finalize",
                  command);
    }
    remove_file(files.trace);
    if (!(measured.compute_s > 0) || !(measured.bytes > 0) || measured.iterations < 2) {
        cli_usage("--characterise: '%s' sends nothing from one iteration to the next", command);
    }
    return measured;
}

/* Runs in the tiles of `choice`, on the PUs where they will be. */
static void measure_iteration(struct spmd_planner *p, const struct spmd_choice *choice)
{
    const struct spmd_tile *tile = &choice->tile;
    uint32_t rounds = p->options.rounds;
    double one = 1, *seconds = cli_needed(calloc(2 * rounds, sizeof *seconds));
    struct spmd_measured measured = {0};
    make_files(p, choice);
    for (uint32_t i = 0; i < rounds; i++) {
        measured = run_once(p, tile);
        seconds[i] = measured.compute_s / ((double)tile->x * (double)tile->y);
        seconds[rounds + i] = measured.iteration_s;
    }
    remove_files();
    struct profile_median task = profile_median(seconds, rounds);
    p->measured = profile_median(seconds + rounds, rounds);
    p->measured_tile = *tile;
    free(seconds);
    p->options.problem.comp_s = task.median;
    p->options.problem.bytes = measured.bytes / spmd_comm_per_task(&one, &p->options.problem, tile);
    printf("characterised  %.4g s for a task [%.4g, %.4g], %.4g bytes for an edge task (%u run%s "
           "of %llu iterations, tiles of %llu x %llu on %llu cores)\n",
           task.median, task.low, task.high, p->options.problem.bytes, rounds,
           rounds == 1 ? "" : "s", (ull)measured.iterations, (ull)tile->x, (ull)tile->y,
           (ull)(tile->n * tile->m));
}

/* Before anything is known: as many cores as divide the problem, whatever the efficiency. */
static struct spmd_choice first_choice(struct spmd_planner *p)
{
    struct spmd_choice *curve, choice;
    size_t count;
    if (p->options.cores || p->options.tile_x) {
        return spmd_planner_distribute(p);
    }
    cli_done(spmd_curve(&p->options.problem, p->pus, p->comm, p->comm_context, &curve, &count));
    choice = curve[count - 1];
    free(curve);
    return choice;
}

bool spmd_is_same_tile(const struct spmd_tile *a, const struct spmd_tile *b)
{
    return a->n == b->n && a->m == b->m;
}

void spmd_characterise(struct spmd_planner *p)
{
    p->options.problem.comp_s = 1; /* so long that communication is nothing beside it */
    struct spmd_choice choice = first_choice(p);
    atexit(remove_files);
    map_refuse_if(choice.times.cores < 2,
                  "--characterise: expected a problem for at least 2 cores (a single process sends "
                  "nothing), or --comp SECONDS");
    for (int i = 0; i < CHOICES && choice.times.cores > 1 &&
                    !spmd_is_same_tile(&choice.tile, &p->measured_tile);
         i++) {
        measure_iteration(p, &choice);
        choice = spmd_planner_distribute(p);
    }
}
