#include "benchmarks/servet_bench/npb.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/base/cli.h"

#define DEPTH_LIMIT 3

bool npb_is_name(const char *name, size_t *ranks)
{
    regex_t expression;
    regmatch_t match[4];
    if (regcomp(&expression,
                "^(bt|cg|dt|ep|ft|is|lu|mg|sp|ua)(-mz)?\\.[SWABCDEF]\\.(x|[1-9][0-9]{0,5})$",
                REG_EXTENDED)) {
        cli_fail("out of memory");
    }
    bool is = regexec(&expression, name, 4, match, 0) == 0;
    regfree(&expression);
    *ranks = is && name[match[3].rm_so] != 'x' ? strtoul(name + match[3].rm_so, NULL, 10) : 0;
    return is;
}

/* Which of the libraries a program names; a file that cannot be read names none. */
static void libraries(const char *path, bool *mpi, bool *openmp)
{
    static const char *const runtimes[] = {"libgomp.so", "libomp.so", "libiomp5.so"};
    *mpi = *openmp = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) || status.st_size <= 0) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    size_t size = (size_t)status.st_size;
    void *text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (text == MAP_FAILED) {
        return;
    }
    *mpi = memmem(text, size, "libmpi", 6) != NULL;
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++) {
        *openmp = *openmp || memmem(text, size, runtimes[i], strlen(runtimes[i])) != NULL;
    }
    munmap(text, size);
}

static void add(struct npb_list *list, const char *path, const char *name,
                const struct program *wanted)
{
    struct program *programs = realloc(list->programs, (list->count + 1) * sizeof *programs);
    if (!programs) {
        cli_fail("out of memory");
    }
    list->programs = programs;
    struct program *program = &programs[list->count++];
    *program = (struct program){.label = strdup(name)};
    words_add(&program->argv, "%s", path);
    bool mpi, openmp;
    size_t fixed;
    libraries(path, &mpi, &openmp);
    npb_is_name(name, &fixed);
    program->ranks = mpi ? (fixed ? fixed : wanted->ranks) : 0;
    program->threads = openmp ? wanted->threads : (mpi ? 1 : 0);
}

static int scan(const char *folder, int depth, const struct program *wanted, struct npb_list *out)
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
                   npb_is_name(entry->d_name, &ranks)) {
            add(out, path, entry->d_name, wanted);
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

int npb_find(const char *folder, size_t ranks, size_t threads, struct npb_list *out)
{
    *out = (struct npb_list){0};
    const struct program wanted = {.ranks = ranks, .threads = threads};
    int code = scan(folder, 0, &wanted, out);
    if (out->count) {
        qsort(out->programs, out->count, sizeof *out->programs, by_path);
    }
    return code;
}

void npb_free(struct npb_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->programs[i].label);
        words_free(&list->programs[i].argv);
    }
    free(list->programs);
    *list = (struct npb_list){0};
}
