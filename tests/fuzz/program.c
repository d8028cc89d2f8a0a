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

/* The remembered file, with the input in place of its last line. */
static void spoil(const char *memory, const uint8_t *data, size_t size)
{
    char text[2 * PATH_MAX];
    int file = open(memory, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    fuzz_expect(length > 0, "a memory");
    close(file);
    text[length] = '\0';
    char *last = strstr(text, "\npriority ");
    fuzz_expect(last, "a last line");
    size_t head = (size_t)(last + 1 - text), rest = sizeof text - head;
    size = size < rest ? size : rest;
    memcpy(last + 1, data, size);
    write_file(memory, text, head + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pin_remembered what = {true, 0.5, 4}, recalled = {0};
    char memory[PATH_MAX];
    start();
    write_file(program, data, size);
    fuzz_expect(pin_remembered_keep(program, &what) == 0, "to remember any program");
    fuzz_expect(pin_remembered_recall(program, &recalled) == 0 && recalled.communication &&
                    recalled.ranks == what.ranks,
                "to recall what was remembered");
    fuzz_expect(pin_cache_path("auto", program, memory) == 0, "a place of the memory");
    spoil(memory, data, size);
    int rc = pin_remembered_recall(program, &recalled);
    fuzz_expect(rc <= 0, "0 or a negative code");
    return 0;
}
