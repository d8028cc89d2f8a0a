/* Runs a target without libFuzzer: every seed as it is, then a fixed number of mutations of them,
 * the same ones everywhere, so that the suite asks the question with every compiler and sanitizer
 * in a few seconds. libFuzzer, which knows what the parser looked at, is for longer runs.
 *
 * usage: FUZZ_TARGET=NAME replay FILE|FOLDER…    (the seeds; of a folder its files)
 * FUZZ_INPUT=FILE keeps the latest input there: after a crash, the one that did it. */
#include "profile/scope.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

/* Inputs, and bytes of them: what comes first ends the run. A second or two for each target, with
 * sanitizers too. */
#define MOST_INPUTS 3000
#define MOST_BYTES (2u << 20)
#define MOST_CHANGES 4
#define MOST_SEEDS 128
/* Size of a seed, and of its longest mutation. */
#define SEED_BYTES 8192u
#define INPUT_BYTES (2 * SEED_BYTES)

struct input {
    uint8_t *data;
    size_t size;
};

static struct input seeds[MOST_SEEDS];
static size_t seed_count;
static uint64_t state = 20121119;

/* xorshift64* (Vigna 2016): the same numbers everywhere, from a fixed seed. */
static size_t below(size_t limit)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return limit ? (size_t)((state * UINT64_C(2685821657736338717) >> 11) % limit) : 0;
}

/* -- seeds -- */

static void add_seed(const void *data, size_t size)
{
    fuzz_expect(seed_count < MOST_SEEDS, "at most 128 seeds");
    seeds[seed_count].data = (uint8_t *)fuzz_text(data, size);
    seeds[seed_count++].size = size;
}

/* The beginning of a large file: those of fixtures are small. */
static void add_file(const char *path)
{
    static uint8_t data[SEED_BYTES];
    FILE *file = fopen(path, "re");
    fuzz_expect(file, path);
    add_seed(data, fread(data, 1, sizeof data, file));
    fclose(file);
}

static void add_path(const char *path)
{
    struct dirent **entries;
    struct stat about;
    fuzz_expect(stat(path, &about) == 0, path);
    if (!S_ISDIR(about.st_mode)) {
        add_file(path);
        return;
    }
    int count = scandir(path, &entries, NULL, alphasort);
    fuzz_expect(count > 0, path);
    for (int i = 0; i < count; i++) {
        char inside[4096];
        snprintf(inside, sizeof inside, "%s/%s", path, entries[i]->d_name);
        if (stat(inside, &about) == 0 && S_ISREG(about.st_mode)) {
            add_file(inside);
        }
        free(entries[i]);
    }
    free(entries);
}

/* -- mutations -- */

/* Words that are a boundary to some parser. */
static const char *const words[] = {
    "0",    "-1",  "1e308",  "nan", "0x", "4294967295", "4294967296", "18446744073709551616",
    "8192", "255", "0-8191", "[0-", "]",  "[",          "{",          "}",
    "\"",   ",",   "null",   ":",   "=",  "\n",         "%",          "(x",
};

/* Puts `size` bytes where `gone` bytes were. */
static void replace(struct input *in, size_t at, size_t gone, const void *data, size_t size)
{
    if (in->size - gone + size > INPUT_BYTES) {
        return;
    }
    memmove(in->data + at + size, in->data + at + gone, in->size - at - gone);
    memcpy(in->data + at, data, size);
    in->size += size - gone;
}

static size_t digits_at(const struct input *in, size_t at)
{
    size_t count = 0;
    while (at + count < in->size && in->data[at + count] >= '0' && in->data[at + count] <= '9') {
        count++;
    }
    return count;
}

static void change(struct input *in)
{
    static uint8_t copy[INPUT_BYTES];
    const char *word = words[below(sizeof words / sizeof *words)];
    const struct input *other = &seeds[below(seed_count)];
    size_t at = below(in->size), length = 1 + below(in->size - at < 64 ? in->size - at : 64);
    size_t from = below(other->size);
    length = length < in->size - at ? length : in->size - at;
    switch (below(7)) {
    case 0:
        if (in->size > 0) {
            in->data[at] ^= (uint8_t)(1u << below(8));
        }
        break;
    case 1:
        replace(in, at, 0, word, strlen(word));
        break;
    case 2: /* the next number */
        while (at < in->size && digits_at(in, at) == 0) {
            at++;
        }
        replace(in, at, digits_at(in, at), word, strlen(word));
        break;
    case 3:
        replace(in, at, length, "", 0);
        break;
    case 4: /* once more */
        memcpy(copy, in->data + at, length);
        replace(in, at, 0, copy, length);
        break;
    case 5:
        in->size = at;
        break;
    default: /* goes on as another seed does */
        replace(in, at, in->size - at, other->data + from, other->size - from);
    }
}

/* -- running -- */

/* From memory of just that size: ASan sees a byte read too many. */
static void run(const struct input *in)
{
    const char *kept = getenv("FUZZ_INPUT");
    FREED uint8_t *data = malloc(in->size ? in->size : 1);
    fuzz_expect(data, "memory");
    memcpy(data, in->data, in->size);
    FILE *file = kept ? fopen(kept, "we") : NULL;
    if (file) {
        fwrite(data, 1, in->size, file);
        fclose(file);
    }
    LLVMFuzzerTestOneInput(data, in->size);
}

int main(int argc, char **argv)
{
    static uint8_t data[INPUT_BYTES];
    size_t inputs = 0, bytes = 0;
    for (const char *const *seed = fuzz_target()->seeds; *seed; seed++) {
        add_seed(*seed, strlen(*seed));
    }
    for (int i = 1; i < argc; i++) {
        add_path(argv[i]);
    }
    for (; inputs < seed_count; inputs++) {
        run(&seeds[inputs]);
    }
    for (; inputs < MOST_INPUTS && bytes < MOST_BYTES; inputs++) {
        const struct input *seed = &seeds[below(seed_count)];
        struct input in = {data, seed->size};
        memcpy(data, seed->data, seed->size);
        for (size_t changes = 1 + below(MOST_CHANGES); changes > 0; changes--) {
            change(&in);
        }
        run(&in);
        bytes += in.size;
    }
    for (size_t i = 0; i < seed_count; i++) {
        free(seeds[i].data);
    }
    printf("%zu seeds, %zu inputs, %zu bytes\n", seed_count, inputs, bytes);
    return 0;
}
