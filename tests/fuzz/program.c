/* What SERVET_AUTO remembers of a program: a file that anybody may have written. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/place/process.h"
#include "tests/fuzz/fuzz.h"

const char *const fuzz_seeds[] = {
    "priority communication share 0.4321 ranks 8\n",
    "priority memory share 0.0100 ranks 4\n",
    NULL,
};

static char folder[64];
static char program[96];

static void clean_up(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    fuzz_expect(system(command) == 0, "to remove the folder");
}

static void start(void)
{
    if (program[0]) {
        return;
    }
    /* Thousands of small files: in memory where that can be. */
    snprintf(folder, sizeof folder, "%s/servet-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    fuzz_expect(mkdtemp(folder) != NULL, "a folder");
    atexit(clean_up);
    setenv("XDG_CACHE_HOME", folder, 1);
    snprintf(program, sizeof program, "%s/program", folder);
}

static void write_file(const char *path, const void *data, size_t size)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_expect(file >= 0 && write(file, data, size) == (ssize_t)size, "a written file");
    close(file);
}

/* A remembered file that ends with `data`. */
static void remember(const void *data, size_t size)
{
    char file[PATH_MAX], text[2 * PATH_MAX];
    fuzz_expect(pin_priority_cache_file(program, file, text) == 0, "a place of the memory");
    fuzz_expect(pin_cache_make_folders(file) == 0, "its folders");
    const size_t head = strlen(text), rest = sizeof text - head;
    size = size < rest ? size : rest;
    memcpy(text + head, data, size);
    write_file(file, text, head + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char last[] = "priority communication share 0.5000 ranks 4\n";
    struct pin_priority_cache recalled = {0};
    start();
    write_file(program, data, size);
    remember(last, strlen(last));
    fuzz_expect(pin_priority_cache_recall(program, &recalled) == 0 && recalled.communication &&
                    recalled.ranks == 4,
                "to recall what was remembered");
    remember(data, size);
    int rc = pin_priority_cache_recall(program, &recalled);
    fuzz_expect(rc <= 0, "0 or a negative code");
    return 0;
}
