/* A fuzz target: one input, no output. libFuzzer calls it, or replay.c does. */
#ifndef SERVET_TESTS_FUZZ_FUZZ_H
#define SERVET_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/base/error.h"

/* The target: hands the input to one parser. libFuzzer's name and type. Always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Inputs to begin with where tests/fixtures has none of that kind; ended by NULL. */
extern const char *const fuzz_seeds[];

/* The input as a text of its own (free() it): ASan sees a byte read too many. */
char *fuzz_text(const uint8_t *data, size_t size);
/* The input as a file; the same name each time, another file. */
const char *fuzz_file(const uint8_t *data, size_t size);

/* Ends the program with the text, as a crash does, unless that holds. */
void fuzz_expect(bool holds, const char *what);
/* 0, or a negative code and one line of text. */
void fuzz_expect_answer(int rc, const struct servet_error *error);

#endif
