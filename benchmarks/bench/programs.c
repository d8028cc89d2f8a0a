/* Which programs are compared: those of NPB that a user has built, and the kernels that come with
 * servet-bench; and what a program is linked with, which says how it must be started. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "benchmarks/bench/launcher.h"
#include "benchmarks/bench/programs.h"
#include "benchmarks/bench/tools.h"
#include "profile/base/cli.h"

void bench_programs_free(struct programs *programs)
{
    for (size_t i = 0; i < programs->count; i++) {
        bench_program_free(&programs->list[i]);
    }
    free(programs->list);
    *programs = (struct programs){0};
}

/* -- NPB -- */

#define DEPTH_LIMIT 3

bool bench_npb_is_name(const char *name, size_t *ranks)
{
    regex_t expression;
    regmatch_t match[4];
    if (regcomp(&expression,
                "^(bt|cg|dt|ep|ft|is|lu|mg|sp|ua)(-mz)?\\.[SWABCDEF]\\.(x|[1-9][0-9]{0,5})$",
                REG_EXTENDED)) {
        cli_fail("out of memory");
    }
    bool is = bench_matches(&expression, name, 4, match, 0);
    regfree(&expression);
    *ranks = is && name[match[3].rm_so] != 'x' ? strtoul(name + match[3].rm_so, NULL, 10) : 0;
    return is;
}

/* `fixed`: the ranks that its name says, or 0. */
static void add_npb(struct programs *list, const char *path, size_t fixed,
                    const struct program *wanted)
{
    struct program *room = realloc(list->list, (list->count + 1) * sizeof *room);
    if (!room) {
        cli_fail("out of memory");
    }
    list->list = room;
    struct program *program = &room[list->count++];
    *program = (struct program){.label = bench_copy(strrchr(path, '/') + 1)};
    bench_words_add(&program->argv, "%s", path);
    struct bench_linked linked;
    bench_linked_with(path, &linked);
    bool mpi = linked.mpi != BENCH_MPI_UNKNOWN;
    program->ranks = mpi ? (fixed ? fixed : wanted->ranks) : 0;
    program->threads = linked.openmp ? wanted->threads : (mpi ? 1 : 0);
    if (mpi) {
        (void)bench_program_launcher(program, NULL); /* left out with its reason */
    }
}

static int scan(const char *folder, int depth, const struct program *wanted, struct programs *out)
{
    DIR *directory = opendir(folder);
    if (!directory) {
        return -errno;
    }
    const struct dirent *entry;
    while ((entry = readdir(directory))) {
        char path[PATH_MAX];
        struct stat status;
        size_t ranks;
        int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.' || length >= (int)sizeof path || stat(path, &status)) {
            continue;
        }
        if (S_ISDIR(status.st_mode) && depth < DEPTH_LIMIT) {
            scan(path, depth + 1, wanted, out);
        } else if (S_ISREG(status.st_mode) && access(path, X_OK) == 0 &&
                   bench_npb_is_name(entry->d_name, &ranks)) {
            add_npb(out, path, ranks, wanted);
        }
    }
    closedir(directory);
    return 0;
}

static int by_path(const void *a, const void *b)
{
    const struct program *x = a, *y = b;
    return strcmp(x->argv.list[0], y->argv.list[0]);
}

int bench_npb_find(const char *folder, size_t ranks, size_t threads, struct programs *out)
{
    *out = (struct programs){0};
    const struct program wanted = {.ranks = ranks, .threads = threads};
    int code = scan(folder, 0, &wanted, out);
    if (out->count) {
        qsort(out->list, out->count, sizeof *out->list, by_path);
    }
    return code;
}

/* -- our kernels -- */

enum form { OMP, MPI, HYBRID };
static const char *const suffixes[] = {"omp", "mpi", "hybrid"};

static const struct entry {
    const char *kernel;
    char problem;
    enum form form;
} entries[] = {
    {"cg", 'W', OMP}, {"triad", 'A', OMP}, {"halo", 'W', OMP}, {"random_access", 'W', OMP},
    {"cg", 'W', MPI}, {"triad", 'A', MPI}, {"halo", 'W', MPI}, {"halo", 'W', HYBRID},
};

static void add_kernel(struct programs *suite, const char *folder, const struct entry *entry,
                       size_t threads)
{
    char path[PATH_MAX], label[64];
    snprintf(path, sizeof path, "%s/%s_%s", folder, entry->kernel, suffixes[entry->form]);
    if (access(path, X_OK)) {
        return; /* built without MPI or OpenMP */
    }
    struct program *program = &suite->list[suite->count++];
    snprintf(label, sizeof label, "%s.%c %s", entry->kernel, entry->problem, suffixes[entry->form]);
    *program = (struct program){.label = bench_copy(label), .threads = threads};
    if (entry->form == MPI) {
        program->ranks = threads;
        program->threads = 1;
    }
    if (entry->form == HYBRID) {
        program->ranks = 2;
        program->threads = threads > 2 ? threads / 2 : 1;
    }
    bench_words_add(&program->argv, "%s", path);
    bench_words_add(&program->argv, "%c", entry->problem);
    if (program->ranks) {
        (void)bench_program_launcher(program, NULL);
    }
}

void bench_kernels(size_t threads, size_t most, struct programs *out)
{
    const size_t all = sizeof entries / sizeof *entries;
    char *folder = bench_tools_kernels();
    *out = (struct programs){.list = bench_memory(all, sizeof *out->list)};
    if (!folder) {
        cli_fail("the kernels were not built with this servet-bench");
    }
    for (size_t i = 0; i < all && i < most; i++) {
        add_kernel(out, folder, &entries[i], threads);
    }
    free(folder);
}
