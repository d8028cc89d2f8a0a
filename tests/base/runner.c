/* The tests of a program, which register themselves before main(), and how they are run.
 *
 * Each result is printed as it comes, so that the log of a test that ran into its limit says how
 * far it came. Check's own limit of 4 s for a test is short for a busy machine, and these tests ask
 * what is done, not how fast; a program whose tests need longer says so by TESTS(). A sanitizer
 * makes the arithmetic of fits five to ten times as slow, and so does an emulator: all limits grow
 * with it. */
#include "tests/base/runner.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tests/base/scratch.h"

#define LIMIT_SECONDS "60"
#define SLOW_FACTOR "6"
#ifdef __SANITIZE_ADDRESS__
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

/* qemu-user answers for the program under /proc/self, and overlooks that this is another name of
 * it: there the emulator itself is seen. */
static bool is_emulated(void)
{
    char said[PATH_MAX] = "", seen[PATH_MAX] = "";
    ssize_t said_length = readlink("/proc/self/exe", said, sizeof said - 1);
    ssize_t seen_length = readlink("/proc/thread-self/exe", seen, sizeof seen - 1);
    return said_length > 0 && seen_length > 0 && strcmp(said, seen) != 0;
}

/* Before main(), since a case takes its limit from the environment when it is made. */
__attribute__((constructor)) static void set_limit(void)
{
    setenv("CK_DEFAULT_TIMEOUT", LIMIT_SECONDS, 0);
    setenv("CK_TIMEOUT_MULTIPLIER", IS_SANITIZED || is_emulated() ? SLOW_FACTOR : "1", 0);
}

static int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_log(runner, "-");
    scratch_begin();
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* A kernel of 64 bits runs programs of 32. */
static bool is_of_fewer_bits(void)
{
    struct utsname machine;
    return sizeof(void *) == 4 && uname(&machine) == 0 && strstr(machine.machine, "64");
}

enum { TESTS_MAX = 64 };

static struct {
    const TTest *tests[TESTS_MAX];
    struct test_options options[TESTS_MAX];
    int count;
    struct tests_options all;
} registered;

/* In the order of the lines, whatever order the compiler has its constructors in. */
void add_test(const TTest *test, struct test_options options)
{
    int at = registered.count++;
    if (at == TESTS_MAX) {
        fprintf(stderr, "%s: more than %d tests\n", test->name, TESTS_MAX);
        exit(EXIT_FAILURE);
    }
    for (; at > 0 && registered.tests[at - 1]->line > test->line; at--) {
        registered.tests[at] = registered.tests[at - 1];
        registered.options[at] = registered.options[at - 1];
    }
    registered.tests[at] = test;
    registered.options[at] = options;
}

void set_tests(struct tests_options options)
{
    registered.all = options;
}

/* The tool or file that a test needs and has not here; NULL: it has all. */
static const char *missing_of(const struct test_options *options)
{
    char command[256];
    if (options->tool) {
        snprintf(command, sizeof command, "command -v %s >/dev/null", options->tool);
        if (system(command) != 0) {
            return options->tool;
        }
    }
    return options->file && access(options->file, R_OK) < 0 ? options->file : NULL;
}

/* Why the test is left out here, NULL: it is not. */
static const char *left_out(const struct test_options *options)
{
    const char *not_emulated =
        options->not_emulated ? options->not_emulated : registered.all.not_emulated;
    if (not_emulated && is_emulated()) {
        return not_emulated;
    }
    if (options->not_sanitized && options->sanitized) {
        return options->not_sanitized;
    }
    if (missing_of(options)) {
        return missing_of(options);
    }
    bool foreign = options->starts_programs && (is_emulated() || is_of_fewer_bits());
    return foreign ? "it starts programs of this machine" : NULL;
}

int run_registered(void)
{
    Suite *suite = suite_create(program_invocation_short_name);
    TCase *tests = tcase_create(program_invocation_short_name);
    if (registered.all.seconds) {
        tcase_set_timeout(tests, registered.all.seconds);
    }
    tcase_add_unchecked_fixture(tests, registered.all.begin, NULL);
    tcase_add_checked_fixture(tests, registered.all.setup, registered.all.teardown);
    for (int i = 0; i < registered.count; i++) {
        const TTest *test = registered.tests[i];
        const struct test_options *options = &registered.options[i];
        const char *why = left_out(options);
        if (why) {
            printf("left out: %s: %s\n", test->name, why);
        } else {
            tcase_add_loop_test(tests, test, 0, options->loops ? options->loops : 1);
        }
    }
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
