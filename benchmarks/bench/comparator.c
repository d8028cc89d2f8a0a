/* The ways to place a program, each as a command line and an environment. */
#include "benchmarks/bench/comparator.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/bench/launcher.h"
#include "benchmarks/bench/tools.h"

int bench_program_launcher(struct program *program, struct servet_error *error)
{
    struct bench_linked linked = {0};
    enum bench_mpi kind = BENCH_MPI_UNKNOWN;
    struct servet_error why;
    char *path = bench_tools_find(program->argv.list[0]);
    if (path) {
        bench_linked_with(path, &linked);
    }
    free(path);
    int rc = bench_launcher(&linked, &kind, &program->launcher, &why);
    if (rc < 0) {
        program->obstacle = bench_copy(why.text);
        return profile_error(error, rc, "%s: %s", program->label, why.text);
    }
    program->hydra = kind == BENCH_MPI_MPICH;
    return 0;
}

void bench_program_free(struct program *program)
{
    free(program->label);
    free(program->launcher);
    free(program->obstacle);
    bench_words_free(&program->argv);
    *program = (struct program){0};
}

static void bind_openmpi(enum bench_binding binding, size_t threads, struct words *argv)
{
    static const char *const units[] = {
        [BENCH_CORES] = "slot", [BENCH_CORES_BY_SOCKET] = "socket", [BENCH_CORES_BY_NUMA] = "numa"};
    if (binding >= BENCH_CORES) {
        bench_words_add(argv, "--map-by");
        bench_words_add(argv, "%s:PE=%zu", units[binding], threads);
    }
    bench_words_add(argv, "--bind-to");
    bench_words_add(argv, "%s", binding == BENCH_NOTHING ? "none" : "core");
}

static void bind_hydra(enum bench_binding binding, size_t threads, struct words *argv)
{
    bench_words_add(argv, "-bind-to");
    if (binding == BENCH_NOTHING) {
        bench_words_add(argv, "none");
        return;
    }
    bench_words_add(argv, "core:%zu", threads);
    if (binding != BENCH_CORES) {
        bench_words_add(argv, "-map-by");
        bench_words_add(argv, "%s", binding == BENCH_CORES_BY_SOCKET ? "socket" : "numa");
    }
}

/* The launcher and its options up to where the program, or what starts it, follows. */
static void launch(const struct program *program, enum bench_binding binding, struct words *argv)
{
    if (!program->ranks) {
        return;
    }
    size_t threads = program->threads ? program->threads : 1;
    bench_words_add(argv, "%s", program->launcher);
    bench_words_add(argv, "-n");
    bench_words_add(argv, "%zu", program->ranks);
    if (!program->hydra && program->ranks * threads > bench_tools_pus()) {
        bench_words_add(argv, "--oversubscribe");
    }
    if (binding != BENCH_AS_IT_DOES) {
        (program->hydra ? bind_hydra : bind_openmpi)(binding, threads, argv);
    }
}

/* The words between the command and the program; "%zu" is the last of as many PUs as the process
 * has threads. */
static void add_options(const struct program *program, const char *const *options,
                        struct words *argv)
{
    const size_t pus = bench_tools_pus(), threads = program->threads ? program->threads : pus;
    for (; *options; options++) {
        const char *number = strstr(*options, "%zu");
        if (number) {
            bench_words_add(argv, "%.*s%zu", (int)(number - *options), *options,
                            (threads < pus ? threads : pus) - 1);
        } else {
            bench_words_add(argv, "%s", *options);
        }
    }
}

/* All forms of programs; those of one process, and of ranks. */
#define ANY true, true
#define THREADS true, false
#define RANKS false, true

const struct comparator bench_comparators[] = {
    {"default", "as the operating system, or mpirun, places it", ANY, .binding = BENCH_AS_IT_DOES},
    {"omp-close", "OMP_PROC_BIND=close OMP_PLACES=cores", ANY, .binding = BENCH_CORES,
     .proc_bind = "close"},
    {"omp-spread", "OMP_PROC_BIND=spread OMP_PLACES=cores", ANY, .binding = BENCH_CORES,
     .proc_bind = "spread"},
    {"bind-none", "mpirun --bind-to none", RANKS, .binding = BENCH_NOTHING},
    {"bind-core", "mpirun --map-by slot:PE=threads --bind-to core", RANKS, .binding = BENCH_CORES},
    {"by-socket", "mpirun --map-by socket:PE=threads --bind-to core", RANKS,
     .binding = BENCH_CORES_BY_SOCKET},
    {"by-numa", "mpirun --map-by numa:PE=threads --bind-to core", RANKS,
     .binding = BENCH_CORES_BY_NUMA},
    {"likwid-pin", "likwid-pin -c N:0-(threads-1)", THREADS, .needs = "likwid-pin",
     .options = {"-q", "-c", "N:0-%zu"}},
    {"hwloc-bind", "hwloc-bind core:0-(threads-1)", THREADS, .needs = "hwloc-bind",
     .options = {"core:0-%zu", "--"}},
    {"servet-mem", "servet-pin --mem-prior", ANY, .needs = "servet-pin",
     .options = {"--mem-prior", "--"}},
    {"servet-comm", "servet-pin --comm-prior", ANY, .needs = "servet-pin",
     .options = {"--comm-prior", "--"}},
};
const size_t bench_comparator_count = sizeof bench_comparators / sizeof *bench_comparators;

const struct comparator *bench_comparator_find(const char *name)
{
    for (size_t i = 0; i < bench_comparator_count; i++) {
        if (strcmp(bench_comparators[i].name, name) == 0) {
            return &bench_comparators[i];
        }
    }
    return NULL;
}

char *bench_comparator_obstacle(const struct comparator *comparator, const struct program *program,
                                char **tool)
{
    *tool = NULL;
    if (program->ranks ? !comparator->for_ranks : !comparator->for_threads) {
        return bench_text("not for %s",
                          program->ranks ? "MPI programs" : "programs of one process");
    }
    if (program->obstacle) {
        return bench_copy(program->obstacle);
    }
    if (program->ranks && program->threads <= 1 && comparator->proc_bind) {
        return bench_text("%s has one thread a rank", program->label);
    }
    if (!comparator->needs) {
        return NULL;
    }
    *tool = (bench_comparator_ours(comparator) ? bench_tools_ours
                                               : bench_tools_find)(comparator->needs);
    return *tool ? NULL : bench_text("%s is not installed", comparator->needs);
}

void bench_comparator_command(const struct comparator *comparator, const struct program *program,
                              const char *tool, struct words *argv, struct words *environment)
{
    *argv = (struct words){0};
    *environment = (struct words){0};
    if (program->threads) {
        bench_words_add(environment, "OMP_NUM_THREADS=%zu", program->threads);
    }
    if (program->ranks && geteuid() == 0) {
        /* Open MPI refuses to start as root (in a container, say) unless both are set. */
        bench_words_add(environment, "OMPI_ALLOW_RUN_AS_ROOT=1");
        bench_words_add(environment, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    }
    if (comparator->proc_bind) {
        bench_words_add(environment, "OMP_PROC_BIND=%s", comparator->proc_bind);
        bench_words_add(environment, "OMP_PLACES=cores");
    }
    launch(program, comparator->binding, argv);
    if (tool) {
        bench_words_add(argv, "%s", tool);
    }
    add_options(program, comparator->options, argv);
    bench_words_add_all(argv, program->argv.list);
}
