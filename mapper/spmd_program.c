#include "spmd_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACE_LIBRARY "libservet_trace.so"

enum { WORDS = 128, FILE_NAME = 64 };

/* -- finding -- */

/* In the preload folder beside this command's (build folder), in its prefix's library folder, or where it was to be
 * installed. */
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
            snprintf(text, sizeof text, "%llux%llu", (unsigned long long)run->x, (unsigned long long)run->y);
            skip = 9;
        } else if (strncmp(word, "{grid}", 6) == 0) {
            snprintf(text, sizeof text, "%llux%llu", (unsigned long long)run->n, (unsigned long long)run->m);
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
    /* Open MPI starts ranks of other nodes with what it is told to export only, and all ranks must be traced. */
    static const char *const exported[] = {"LD_PRELOAD", "SERVET_TRACE", "SERVET_TRACE_TIMES", "SERVET_SPMD_PLAN"};
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

static _Noreturn void become(const struct spmd_run *run, struct words *words, const char *library, const char *trace,
                             int errors)
{
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    setenv("SERVET_TRACE", trace, 1);
    setenv("SERVET_TRACE_TIMES", "1", 1);
    unsetenv("SERVET_AUTO");
    unsetenv("SERVET_DISABLE");
    setenv("LD_PRELOAD", library, 1);
    if (run->plan) {
        setenv("SERVET_SPMD_PLAN", run->plan, 1);
    }
    if (geteuid() == 0) {
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    }
    execvp(words->list[0], words->list);
    dprintf(STDERR_FILENO, "%s: %s\n", words->list[0], strerror(errno));
    _exit(127);
}

static void first_line(int fd, char *line, size_t size)
{
    char all[4096];
    ssize_t length = pread(fd, all, sizeof all - 1, 0);
    line[0] = '\0';
    all[length > 0 ? length : 0] = '\0';
    for (char *rest = all, *at; (at = strtok_r(rest, "\n", &rest));) {
        if (strspn(at, "-= ") < strlen(at)) { /* mpirun frames its messages with dashes */
            snprintf(line, size, "%s", at);
            return;
        }
    }
}

/* The ranks' lines of a trace are comments of the matrix:
 *     % rank RANK messages N bytes N largest BYTES seconds S mpi S iterations N iteration S compute S */
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
                   "%% rank %*d messages %*u bytes %*u largest %lf seconds %lf mpi %*f iterations %llu iteration %lf "
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

static int run_words(const struct spmd_run *run, struct words *words, const char *library, const char *trace,
                     struct servet_error *error)
{
    int errors = memfd_create("errors", 0), status = 0;
    char line[256];
    pid_t child = fork();
    if (child == 0) {
        become(run, words, library, trace, errors);
    }
    if (child < 0) {
        close(errors);
        return profile_error(error, -errno, "cannot start %s: %s", SERVET_MPIRUN, strerror(errno));
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    first_line(errors, line, sizeof line);
    close(errors);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return 0;
    }
    return profile_error(error, -EINVAL, "'%s' does not run on %llu processes%s%s", run->command,
                         (unsigned long long)(run->n * run->m), line[0] ? ": " : "", line);
}

int spmd_program_run(const struct spmd_run *run, struct spmd_measured *out, struct servet_error *error)
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
        rc = profile_error(error, -EINVAL, "'%s' left no trace: expected an MPI program that ends in MPI_Finalize",
                           run->command);
    }
    unlink(trace);
    return rc;
}
