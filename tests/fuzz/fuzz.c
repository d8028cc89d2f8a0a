/* The targets, and their common parts: the input as a text or a file, and the form of an answer. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_TARGETS = 16 };

static struct fuzz_target targets[MOST_TARGETS];
static size_t count;

void fuzz_add(struct fuzz_target target)
{
    fuzz_expect(count < MOST_TARGETS, "fewer targets");
    targets[count++] = target;
}

const struct fuzz_target *fuzz_target(void)
{
    static const struct fuzz_target *chosen;
    const char *name = chosen ? NULL : getenv("FUZZ_TARGET");
    for (size_t i = 0; name && i < count; i++) {
        chosen = strcmp(targets[i].name, name) == 0 ? &targets[i] : chosen;
    }
    fuzz_expect(chosen, "the name of a target in FUZZ_TARGET");
    return chosen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_target()->read(data, size);
    return 0;
}

void fuzz_expect(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "expected %s\n", what);
        abort();
    }
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    fuzz_expect(text, "memory");
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* In memory: no target leaves anything behind, however it ends. */
const char *fuzz_file(const uint8_t *data, size_t size)
{
    static int file = -1;
    static char path[64];
    if (file < 0) {
        file = memfd_create("input", MFD_CLOEXEC);
        fuzz_expect(file >= 0, "a file in memory");
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    fuzz_expect(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size,
                "the whole input in a file");
    return path;
}

void fuzz_expect_answer(int rc, const struct servet_error *error)
{
    fuzz_expect(rc <= 0, "0 or a negative code");
    if (rc == 0) {
        return;
    }
    size_t length = strnlen(error->text, sizeof error->text);
    fuzz_expect(length > 0, "a text with the error");
    fuzz_expect(length < sizeof error->text, "an end of the error's text");
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)error->text[i];
        fuzz_expect(c >= ' ' && c != 0x7f, "one line without control characters");
    }
}
