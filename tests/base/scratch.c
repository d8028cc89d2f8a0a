/* Files for one test. Check runs each test in a process of its own, which may crash: each has a
 * folder within that of the program, which removes them all. */
#include "tests/base/scratch.h"

#include <check.h>
#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char program_folder[] = "/tmp/servet-test-XXXXXX";
static char folder[sizeof program_folder + 8];
static pid_t program, owner; /* of the one and the other */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

static void remove_folders(void)
{
    if (getpid() == program) {
        nftw(program_folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
}

void scratch_begin(void)
{
    /* Some tests run programs as another user, who passes through it. */
    if (!mkdtemp(program_folder) || chmod(program_folder, 0711) < 0) {
        fprintf(stderr, "%s: %s\n", program_folder, strerror(errno));
        exit(EXIT_FAILURE);
    }
    program = getpid();
    atexit(remove_folders);
}

const char *scratch_folder(void)
{
    if (owner != getpid()) {
        owner = getpid();
        snprintf(folder, sizeof folder, "%s/XXXXXX", program_folder);
        ck_assert_msg(mkdtemp(folder), "%s: %s", folder, strerror(errno));
    }
    return folder;
}

void *kept(void *pointer)
{
    static struct list {
        struct list *before;
        void *pointer;
    } * last;
    struct list *entry = malloc(sizeof *entry);
    ck_assert(entry && pointer);
    *entry = (struct list){last, pointer};
    last = entry;
    return pointer;
}

const char *formatted(const char *format, ...)
{
    char *text;
    va_list values;
    va_start(values, format);
    ck_assert_int_ge(vasprintf(&text, format, values), 0);
    va_end(values);
    return kept(text);
}

char *quoted(const char *text)
{
    char *out = kept(strdup(text));
    for (char *at = out; (at = strchr(at, '\''));) {
        *at = '"';
    }
    return out;
}

const char *scratch_path(const char *name)
{
    return formatted("%s/%s", scratch_folder(), name);
}

const char *scratch_file(const char *name, const char *format, ...)
{
    const char *path = scratch_path(name);
    for (char *end = strchr(path + strlen(folder) + 1, '/'); end; end = strchr(end + 1, '/')) {
        (void)mkdir(formatted("%.*s", (int)(end - path), path), 0700);
    }
    FILE *file = fopen(path, "w");
    va_list values;
    va_start(values, format);
    ck_assert_msg(file && vfprintf(file, format, values) >= 0 && fclose(file) == 0, "%s: %s", path,
                  strerror(errno));
    va_end(values);
    return path;
}

char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s: cannot be read", path);
    char *text = NULL;
    size_t size = 0;
    ssize_t n = getdelim(&text, &size, '\0', file);
    ck_assert_msg(n > 0 || feof(file), "%s: cannot be read", path);
    if (n < 0) {
        text[0] = '\0'; /* an empty file */
    }
    fclose(file);
    return kept(text);
}
