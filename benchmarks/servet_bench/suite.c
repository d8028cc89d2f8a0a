#include "benchmarks/servet_bench/suite.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/servet_bench/tools.h"
#include "profile/base/cli.h"

enum form { OMP, MPI, HYBRID };
static const char *const suffixes[] = {"omp", "mpi", "hybrid"};

static const struct entry {
    const char *kernel;
    char problem;
    enum form form;
} entries[] = {
    {"ep", 'S', OMP},   {"cg", 'W', OMP},    {"mg", 'W', OMP},    {"ft", 'W', OMP},
    {"is", 'A', OMP},   {"triad", 'A', OMP}, {"halo", 'W', OMP},  {"random_access", 'W', OMP},
    {"cg", 'W', MPI},   {"mg", 'W', MPI},    {"ft", 'W', MPI},    {"is", 'W', MPI},
    {"halo", 'W', MPI}, {"triad", 'A', MPI}, {"mz", 'S', HYBRID}, {"mg", 'W', HYBRID},
};

/* MG and FT want powers of two. */
static size_t power_of_two(size_t n)
{
    size_t power = 1;
    while (2 * power <= n) {
        power *= 2;
    }
    return power;
}

static void add(struct suite *suite, const char *folder, const struct entry *entry, size_t threads)
{
    char path[PATH_MAX], label[64];
    snprintf(path, sizeof path, "%s/%s_%s", folder, entry->kernel, suffixes[entry->form]);
    if (access(path, X_OK)) {
        return; /* built without MPI or OpenMP */
    }
    char *mpirun = comparator_mpirun();
    if (entry->form != OMP && !mpirun) {
        return;
    }
    free(mpirun);
    struct program *program = &suite->programs[suite->count++];
    snprintf(label, sizeof label, "%s.%c %s", entry->kernel, entry->problem, suffixes[entry->form]);
    *program = (struct program){.label = strdup(label), .threads = threads};
    if (entry->form == MPI) {
        program->ranks = power_of_two(threads);
        program->threads = 1;
    }
    if (entry->form == HYBRID) {
        program->ranks = 2;
        program->threads = threads > 2 ? threads / 2 : 1;
    }
    words_add(&program->argv, "%s", path);
    words_add(&program->argv, "%c", entry->problem);
}

static void add_all(struct suite *suite, const struct entry *list, size_t count, size_t threads)
{
    char *folder = tools_kernels();
    *suite = (struct suite){.programs = calloc(count, sizeof *suite->programs)};
    if (!folder || !suite->programs) {
        cli_fail("the kernels were not built with this servet-bench");
    }
    for (size_t i = 0; i < count; i++) {
        add(suite, folder, &list[i], threads);
    }
    free(folder);
}

void suite_kernels(size_t threads, struct suite *out)
{
    add_all(out, entries, sizeof entries / sizeof *entries, threads);
}

void suite_loaded(size_t threads, struct suite *out)
{
    static const struct entry list[] = {{"cg", 'W', OMP}};
    add_all(out, list, sizeof list / sizeof *list, threads);
}

void suite_free(struct suite *suite)
{
    for (size_t i = 0; i < suite->count; i++) {
        free(suite->programs[i].label);
        words_free(&suite->programs[i].argv);
    }
    free(suite->programs);
}
