/* The ways to place a program, each as a command line and an environment. */
#include "benchmarks/bench/comparator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/bench/launcher.h"
#include "benchmarks/bench/tools.h"
#include "profile/base/cli.h"

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

/* Binding of a rank, in the words of both launchers. */
enum binding { AS_IT_DOES, NOTHING, CORES, CORES_BY_SOCKET, CORES_BY_NUMA };

static void bind_openmpi(enum binding binding, size_t threads, struct words *argv)
{
    static const char *const units[] = {
        [CORES] = "slot", [CORES_BY_SOCKET] = "socket", [CORES_BY_NUMA] = "numa"};
    if (binding >= CORES) {
        bench_words_add(argv, "--map-by");
        bench_words_add(argv, "%s:PE=%zu", units[binding], threads);
    }
    bench_words_add(argv, "--bind-to");
    bench_words_add(argv, "%s", binding == NOTHING ? "none" : "core");
}

static void bind_hydra(enum binding binding, size_t threads, struct words *argv)
{
    bench_words_add(argv, "-bind-to");
    if (binding == NOTHING) {
        bench_words_add(argv, "none");
        return;
    }
    bench_words_add(argv, "core:%zu", threads);
    if (binding != CORES) {
        bench_words_add(argv, "-map-by");
        bench_words_add(argv, "%s", binding == CORES_BY_SOCKET ? "socket" : "numa");
    }
}

/* The launcher and its options up to where the program, or what starts it, follows. */
static void launch(const struct program *program, struct words *argv, enum binding binding)
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
    if (binding != AS_IT_DOES) {
        (program->hydra ? bind_hydra : bind_openmpi)(binding, threads, argv);
    }
}

#define UNUSED(parameter) (void)(parameter)

static void plain(const struct program *program, const char *tool, struct words *argv,
                  struct words *environment)
{
    UNUSED(tool);
    UNUSED(environment);
    launch(program, argv, AS_IT_DOES);
    bench_words_add_all(argv, program->argv.list);
}

static void openmp_bind(const struct program *program, const char *how, struct words *argv,
                        struct words *environment)
{
    bench_words_add(environment, "OMP_PROC_BIND=%s", how);
    bench_words_add(environment, "OMP_PLACES=cores");
    launch(program, argv, CORES);
    bench_words_add_all(argv, program->argv.list);
}

static void openmp_close(const struct program *program, const char *tool, struct words *argv,
                         struct words *environment)
{
    UNUSED(tool);
    openmp_bind(program, "close", argv, environment);
}

static void openmp_spread(const struct program *program, const char *tool, struct words *argv,
                          struct words *environment)
{
    UNUSED(tool);
    openmp_bind(program, "spread", argv, environment);
}

#define MPI_COMPARATOR(function, binding)                                                          \
    static void function(const struct program *program, const char *tool, struct words *argv,      \
                         struct words *environment)                                                \
    {                                                                                              \
        UNUSED(tool);                                                                              \
        UNUSED(environment);                                                                       \
        launch(program, argv, binding);                                                            \
        bench_words_add_all(argv, program->argv.list);                                             \
    }

MPI_COMPARATOR(mpi_none, NOTHING)
MPI_COMPARATOR(mpi_core, CORES)
MPI_COMPARATOR(mpi_socket, CORES_BY_SOCKET)
MPI_COMPARATOR(mpi_numa, CORES_BY_NUMA)

/* Threads of one process, or as many as there are PUs. */
static size_t wanted_threads(const struct program *program)
{
    size_t pus = bench_tools_pus(), threads = program->threads ? program->threads : pus;
    return threads < pus ? threads : pus;
}

static void likwid(const struct program *program, const char *tool, struct words *argv,
                   struct words *environment)
{
    UNUSED(environment);
    bench_words_add(argv, "%s", tool);
    bench_words_add(argv, "-q");
    bench_words_add(argv, "-c");
    bench_words_add(argv, "N:0-%zu", wanted_threads(program) - 1);
    bench_words_add_all(argv, program->argv.list);
}

static void hwloc(const struct program *program, const char *tool, struct words *argv,
                  struct words *environment)
{
    UNUSED(environment);
    bench_words_add(argv, "%s", tool);
    bench_words_add(argv, "core:0-%zu", wanted_threads(program) - 1);
    bench_words_add(argv, "--");
    bench_words_add_all(argv, program->argv.list);
}

static void servet(const struct program *program, const char *tool, const char *priority,
                   struct words *argv)
{
    launch(program, argv, AS_IT_DOES);
    bench_words_add(argv, "%s", tool);
    bench_words_add(argv, "%s", priority);
    bench_words_add(argv, "--");
    bench_words_add_all(argv, program->argv.list);
}

static void servet_mem(const struct program *program, const char *tool, struct words *argv,
                       struct words *environment)
{
    UNUSED(environment);
    servet(program, tool, "--mem-prior", argv);
}

static void servet_comm(const struct program *program, const char *tool, struct words *argv,
                        struct words *environment)
{
    UNUSED(environment);
    servet(program, tool, "--comm-prior", argv);
}

const struct comparator bench_comparators[] = {
    {"default", "as the operating system, or mpirun, places it", true, true, NULL, false, plain},
    {"omp-close", "OMP_PROC_BIND=close OMP_PLACES=cores", true, true, NULL, false, openmp_close},
    {"omp-spread", "OMP_PROC_BIND=spread OMP_PLACES=cores", true, true, NULL, false, openmp_spread},
    {"bind-none", "mpirun --bind-to none", false, true, NULL, false, mpi_none},
    {"bind-core", "mpirun --map-by slot:PE=threads --bind-to core", false, true, NULL, false,
     mpi_core},
    {"by-socket", "mpirun --map-by socket:PE=threads --bind-to core", false, true, NULL, false,
     mpi_socket},
    {"by-numa", "mpirun --map-by numa:PE=threads --bind-to core", false, true, NULL, false,
     mpi_numa},
    {"likwid-pin", "likwid-pin -c N:0-(threads-1)", true, false, "likwid-pin", false, likwid},
    {"hwloc-bind", "hwloc-bind core:0-(threads-1)", true, false, "hwloc-bind", false, hwloc},
    {"servet-mem", "servet-pin --mem-prior", true, true, "servet-pin", true, servet_mem},
    {"servet-comm", "servet-pin --comm-prior", true, true, "servet-pin", true, servet_comm},
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

static char *reason(const char *format, const char *name)
{
    char *text = NULL;
    if (asprintf(&text, format, name) < 0) {
        cli_fail("out of memory");
    }
    return text;
}

char *bench_comparator_obstacle(const struct comparator *comparator, const struct program *program,
                                char **tool)
{
    *tool = NULL;
    if (program->ranks ? !comparator->for_ranks : !comparator->for_threads) {
        return reason("not for %s", program->ranks ? "MPI programs" : "programs of one process");
    }
    if (program->obstacle) {
        return reason("%s", program->obstacle);
    }
    bool binds_threads = strncmp(comparator->name, "omp-", 4) == 0;
    if (program->ranks && program->threads <= 1 && binds_threads) {
        return reason("%s has one thread a rank", program->label);
    }
    if (!comparator->needs) {
        return NULL;
    }
    *tool = comparator->ours ? bench_tools_ours(comparator->needs)
                             : bench_tools_find(comparator->needs);
    return *tool ? NULL : reason("%s is not installed", comparator->needs);
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
    comparator->wrap(program, tool, argv, environment);
}
