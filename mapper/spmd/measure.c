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
#include "profile/text/record.h"

#define TRACE_LIBRARY "libservet_trace.so"

enum { WORDS = 128, FILE_NAME = 64 };

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
    char problem[48], grid[48], *text;
    size_t size;
    FILE *out = cli_needed(profile_stream_open(&text, &size));
    snprintf(problem, sizeof problem, "%llux%llu", (ull)(tile->x * n), (ull)(tile->y * m));
    snprintf(grid, sizeof grid, "%llux%llu", (ull)n, (ull)m);
    profile_record_say(out, p->options.characterise,
                       PROFILE_FACTS(PROFILE_WORD("problem", problem), PROFILE_WORD("grid", grid),
                                     PROFILE_NUMBER("cores", n * m),
                                     PROFILE_NUMBER("iterations", p->options.iterations)));
    cli_done(fclose(out));
    return text;
}

struct words {
    char *list[WORDS]; /* borrowed, or the parts of these; the last one is NULL */
    size_t count;
    char ranks[24], *pus, *command;
};

static void add_word(struct words *words, const char *word)
{
    if (words->count + 1 < WORDS) {
        words->list[words->count++] = (char *)word;
    }
}

static void add_words(struct words *words, const char *const *list)
{
    for (; *list; list++) {
        add_word(words, *list);
    }
}

/* Ranks go where the mapping wants them. */
static void bind_ranks(const struct spmd_planner *p, const struct spmd_grid *grid,
                       struct words *words)
{
    FREED_BY(map_mapping_free) struct map_mapping mapping = spmd_mapping(p, grid);
    size_t size;
    bool one_node = map_mapping_one_node(&mapping);
    const struct map_format *format = map_format_find(one_node ? "list" : "rankfile");
    FILE *text = cli_needed(profile_stream_open(&words->pus, &size));
    format->print(text, format, &mapping);
    cli_done(fclose(text));
    if (one_node) {
        words->pus[strcspn(words->pus, "\n")] = '\0';
        add_words(words, (const char *[]){"--bind-to", "cpu-list:ordered", "--cpu-list", words->pus,
                                          NULL});
        return;
    }
    make_file(files.ranks, "/tmp/servet-ranks-XXXXXX", words->pus);
    add_words(words, (const char *[]){"--use-hwthread-cpus", "--mca", "rmaps_rank_file_physical",
                                      "1", "--rankfile", files.ranks, NULL});
}

/* Those of mpirun, and of the command, which is split at blanks. */
static void make_words(const struct spmd_planner *p, const struct spmd_grid *grid,
                       struct words *words)
{
    snprintf(words->ranks, sizeof words->ranks, "%llu", (ull)(grid->tile.n * grid->tile.m));
    add_words(words, (const char *[]){SERVET_MPIRUN, "-np", words->ranks, NULL});
#ifdef SERVET_MPIRUN_EXPORTS
    /* Open MPI gives ranks of other nodes only the variables that it is to export, and all ranks
     * must be traced. */
    add_words(words, (const char *[]){"-x", "LD_PRELOAD", "-x", "SERVET_TRACE", "-x",
                                      "SERVET_TRACE_TIMES", "-x", "SERVET_SPMD_PLAN", NULL});
#endif
    bind_ranks(p, grid, words);
    words->command = expand_command(p, &grid->tile);
    char *rest = words->command;
    for (char *word; (word = strsep(&rest, " "));) {
        if (*word) {
            add_word(words, word);
        }
    }
}

static void words_free(struct words *words)
{
    free(words->pus);
    free(words->command);
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

/* Runs the command under the trace of its MPI calls; ends the program when it does not run. */
static void run_traced(const struct spmd_planner *p, const struct words *words)
{
    char library[PATH_MAX], preload[PATH_MAX + 16], trace[FILE_NAME + 16], plan[FILE_NAME + 32];
    char line[256];
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
    int errors = profile_child_file();
    const struct profile_child child = {.argv = words->list,
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
                  words->ranks, line[0] ? ": " : "", line);
    }
}

/* -- characterisation -- */

/* Measured and chosen so often at most: a choice that goes to and fro lies between two tiles that
 * are alike. */
enum { CHOICES = 4 };

static struct spmd_measured run_traced_once(const struct spmd_planner *p, const struct words *words)
{
    const char *command = p->options.characterise;
    struct spmd_measured measured;
    run_traced(p, words);
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
    FREED double *seconds = cli_needed(calloc(2 * rounds, sizeof *seconds));
    FREED_BY(spmd_grid_free) struct spmd_grid grid = spmd_grid_map(p, tile);
    FREED_BY(words_free) struct words words = {0};
    struct spmd_measured measured = {0};
    make_file(files.plan, "/tmp/servet-plan-XXXXXX", "");
    spmd_plan_save(p, &choice->times, &grid, files.plan);
    make_words(p, &grid, &words);
    for (uint32_t i = 0; i < rounds; i++) {
        measured = run_traced_once(p, &words);
        seconds[i] = measured.compute_s / ((double)tile->x * (double)tile->y);
        seconds[rounds + i] = measured.iteration_s;
    }
    remove_files();
    struct profile_median task = profile_median(seconds, rounds);
    p->measured = profile_median(seconds + rounds, rounds);
    p->measured_tile = *tile;
    p->options.problem.comp_s = task.median;
    p->options.problem.bytes =
        measured.bytes / (double)spmd_longest_edge(&p->options.problem.stencil, tile);
    printf("characterised  %.4g s for a task [%.4g, %.4g], %.4g bytes for an edge task (%u run%s "
           "of %llu iterations, tiles of %llu x %llu on %llu cores)\n",
           task.median, task.low, task.high, p->options.problem.bytes, rounds,
           rounds == 1 ? "" : "s", (ull)measured.iterations, (ull)tile->x, (ull)tile->y,
           (ull)(tile->n * tile->m));
}

/* Before anything is known: as many cores as divide the problem, whatever the efficiency. */
static struct spmd_choice first_choice(const struct spmd_planner *p)
{
    size_t count;
    if (p->options.cores || p->options.tile_x) {
        return spmd_choose(p);
    }
    FREED struct spmd_choice *curve = spmd_curve(p, p->allowed.count, &count);
    return curve[count - 1];
}

void spmd_characterise(struct spmd_planner *p)
{
    p->options.problem.comp_s = 1; /* so long that communication is nothing beside it */
    struct spmd_choice choice = first_choice(p);
    atexit(remove_files);
    map_refuse_if(choice.times.cores < 2,
                  "--characterise: expected a problem for at least 2 cores (a single process sends "
                  "nothing), or --comp SECONDS");
    for (int i = 0; i < CHOICES && choice.times.cores > 1 && !spmd_is_measured(p, &choice.tile);
         i++) {
        measure_iteration(p, &choice);
        choice = spmd_choose(p);
    }
}
