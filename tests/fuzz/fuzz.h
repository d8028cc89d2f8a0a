/* Fuzz targets: one input, no output. libFuzzer calls one, or replay.c does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/base/error.h"

struct fuzz_target {
    const char *name;
    void (*read)(const uint8_t *data, size_t size); /* hands the input to one parser */
    const char *const *seeds;                       /* ended by NULL */
};

void fuzz_add(struct fuzz_target target);

/* A target by its name, and inputs to begin with:  FUZZ(name, "seed", ...) { ... } */
#define FUZZ(name, ...)                                                                            \
    static void name##_read(const uint8_t *data, size_t size);                                     \
    __attribute__((constructor)) static void name##_add(void)                                      \
    {                                                                                              \
        static const char *const seeds[] = {__VA_ARGS__, NULL};                                    \
        fuzz_add((struct fuzz_target){#name, name##_read, seeds});                                 \
    }                                                                                              \
    static void name##_read(const uint8_t *data, size_t size)

/* The one that $FUZZ_TARGET names; ends the program where there is none. */
const struct fuzz_target *fuzz_target(void);
/* libFuzzer's name and type: hands the input to it. Always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input as a text of its own (free() it): ASan sees a byte read too many. */
char *fuzz_text(const uint8_t *data, size_t size);
/* The input as a file; the same name each time, another file. */
const char *fuzz_file(const uint8_t *data, size_t size);

/* Ends the program with the text, as a crash does, unless that holds. */
void fuzz_expect(bool holds, const char *what);
/* 0, or a negative code and one line of text. */
void fuzz_expect_answer(int rc, const struct servet_error *error);
