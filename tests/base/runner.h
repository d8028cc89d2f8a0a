/* The one way in which a test program runs its tests: a test registers itself where it is written,
 * so that none can be forgotten, and main() is in main.c, unless the program has one of its own.
 *
 *     TEST(a_question_that_it_answers)
 *     {
 *         ck_assert(...);
 *     }
 */
#pragma once

/* What nearly every test takes from the system, and its files. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/base/scratch.h"

/* Options of one test; all are optional. */
struct test_options {
    int loops; /* it runs so many times, with _i from 0 */
    /* Why it is left out under qemu-user, an emulator of single programs
     * (packaging/cross/foreign); and where everything is built with a sanitizer. */
    const char *not_emulated, *not_sanitized;
    const char *tool, *file; /* in $PATH, and anywhere, without which it is left out */
    /* It starts this machine's own shell, Python, Java or the like under the shim: left out where
     * the shim is of another architecture than they (i386 on x86-64 too). */
    bool starts_programs;
    bool sanitized; /* as TEST() has it */
};

#ifdef SANITIZERS
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* Options of all tests of a program. */
struct tests_options {
    int seconds;                            /* limit of each test; 0: as runner.c has it */
    const char *not_emulated;               /* of those that do not say so themselves */
    void (*begin)(void);                    /* once, before the first test; may end the program */
    void (*setup)(void), (*teardown)(void); /* in the process of each test, before and after it */
};

void add_test(const TTest *test, struct test_options options);
void set_tests(struct tests_options options);

/* A test, and what is particular about it: TEST(name, .loops = 3). */
#define TEST(name, ...)                                                                            \
    static void name##_fn(int _i);                                                                 \
    static const TTest name##_ttest = {#name, name##_fn, __FILE__, __LINE__};                      \
    __attribute__((constructor)) static void name##_add(void)                                      \
    {                                                                                              \
        add_test(&name##_ttest, (struct test_options){.sanitized = SANITIZED, __VA_ARGS__});       \
    }                                                                                              \
    static void name##_fn(int _i __attribute__((unused)))

/* Once in a program: TESTS(.seconds = 100). */
#define TESTS(...)                                                                                 \
    __attribute__((constructor)) static void set_options(void)                                     \
    {                                                                                              \
        set_tests((struct tests_options){__VA_ARGS__});                                            \
    }

/* The head of a function that stands before another one (the linker's --wrap=name), which is
 * __real_name. */
#define WRAP(type, name, ...)                                                                      \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

/* Runs what registered itself, in the order of its lines, and says the result of each as it comes.
 * Returns what main() returns: 0, or 1 if a test failed. */
int run_registered(void);
