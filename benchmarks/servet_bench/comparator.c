#include "benchmarks/servet_bench/comparator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/servet_bench/tools.h"
#include "profile/base/cli.h"

char *comparator_mpirun(void)
{
    const char *chosen = getenv("SERVET_BENCH_MPIRUN");
    if (chosen && *chosen) {
        return tools_find(chosen);
    }
    char *found = tools_find("mpirun.openmpi");
    return found ? found : tools_find("mpirun");
}

/* mpirun and its options up to where the program, or what starts it, follows. */
static void launch(const struct program *program, struct words *argv, const char *const *options)
{
    if (!program->ranks) {
        return;
    }
    char *mpirun = comparator_mpirun();
    words_add(argv, "%s", mpirun ? mpirun : "mpirun");
    free(mpirun);
    words_add(argv, "-n");
    words_add(argv, "%zu", program->ranks);
    size_t threads = program->threads ? program->threads : 1;
    if (program->ranks * threads > tools_pus()) {
        words_add(argv, "--oversubscribe");
    }
    for (; options && *options; options++) {
        if (strstr(*options, "PE=")) {
            words_add(argv, "%s%zu", *options, threads);
        } else {
            words_add(argv, "%s", *options);
        }
    }
}

#define UNUSED(parameter) (void)(parameter)

static void plain(const struct program *program, const char *tool, struct words *argv,
                  struct words *environment)
{
    UNUSED(tool);
    UNUSED(environment);
    launch(program, argv, NULL);
    words_add_all(argv, program->argv.list);
}

static void openmp_bind(const struct program *program, const char *how, struct words *argv,
                        struct words *environment)
{
    static const char *const per_thread[] = {"--map-by", "slot:PE=", "--bind-to", "core", NULL};
    words_add(environment, "OMP_PROC_BIND=%s", how);
    words_add(environment, "OMP_PLACES=cores");
    launch(program, argv, per_thread);
    words_add_all(argv, program->argv.list);
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

static void mpi_with(const struct program *program, const char *const *options, struct words *argv)
{
    launch(program, argv, options);
    words_add_all(argv, program->argv.list);
}

#define MPI_COMPARATOR(function, ...)                                                              \
    static void function(const struct program *program, const char *tool, struct words *argv,      \
                         struct words *environment)                                                \
    {                                                                                              \
        static const char *const options[] = {__VA_ARGS__, NULL};                                  \
        UNUSED(tool);                                                                              \
        UNUSED(environment);                                                                       \
        mpi_with(program, options, argv);                                                          \
    }

MPI_COMPARATOR(mpi_none, "--bind-to", "none")
MPI_COMPARATOR(mpi_core, "--map-by", "slot:PE=", "--bind-to", "core")
MPI_COMPARATOR(mpi_socket, "--map-by", "socket:PE=", "--bind-to", "core")
MPI_COMPARATOR(mpi_numa, "--map-by", "numa:PE=", "--bind-to", "core")

/* Threads of one process, or as many as there are PUs. */
static size_t wanted_threads(const struct program *program)
{
    size_t pus = tools_pus(), threads = program->threads ? program->threads : pus;
    return threads < pus ? threads : pus;
}

static void likwid(const struct program *program, const char *tool, struct words *argv,
                   struct words *environment)
{
    UNUSED(environment);
    words_add(argv, "%s", tool);
    words_add(argv, "-q");
    words_add(argv, "-c");
    words_add(argv, "N:0-%zu", wanted_threads(program) - 1);
    words_add_all(argv, program->argv.list);
}

static void hwloc(const struct program *program, const char *tool, struct words *argv,
                  struct words *environment)
{
    UNUSED(environment);
    words_add(argv, "%s", tool);
    words_add(argv, "core:0-%zu", wanted_threads(program) - 1);
    words_add(argv, "--");
    words_add_all(argv, program->argv.list);
}

static void servet(const struct program *program, const char *tool, const char *priority,
                   struct words *argv)
{
    launch(program, argv, NULL);
    words_add(argv, "%s", tool);
    words_add(argv, "%s", priority);
    words_add(argv, "--");
    words_add_all(argv, program->argv.list);
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

const struct comparator comparators[] = {
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
const size_t comparator_count = sizeof comparators / sizeof *comparators;

const struct comparator *comparator_find(const char *name)
{
    for (size_t i = 0; i < comparator_count; i++) {
        if (strcmp(comparators[i].name, name) == 0) {
            return &comparators[i];
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

char *comparator_obstacle(const struct comparator *comparator, const struct program *program,
                          char **tool)
{
    *tool = NULL;
    if (program->ranks ? !comparator->for_ranks : !comparator->for_threads) {
        return reason("not for %s", program->ranks ? "MPI programs" : "programs of one process");
    }
    bool binds_threads = strncmp(comparator->name, "omp-", 4) == 0;
    if (program->ranks && program->threads <= 1 && binds_threads) {
        return reason("%s has one thread a rank", program->label);
    }
    if (!comparator->needs) {
        return NULL;
    }
    *tool = comparator->ours ? tools_ours(comparator->needs) : tools_find(comparator->needs);
    return *tool ? NULL : reason("%s is not installed", comparator->needs);
}

void comparator_command(const struct comparator *comparator, const struct program *program,
                        const char *tool, struct words *argv, struct words *environment)
{
    *argv = (struct words){0};
    *environment = (struct words){0};
    if (program->threads) {
        words_add(environment, "OMP_NUM_THREADS=%zu", program->threads);
    }
    if (program->ranks && geteuid() == 0) {
        /* Open MPI refuses to start as root (in a container, say) unless both are set. */
        words_add(environment, "OMPI_ALLOW_RUN_AS_ROOT=1");
        words_add(environment, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    }
    comparator->wrap(program, tool, argv, environment);
}
