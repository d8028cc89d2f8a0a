/* The one main() of all test programs: the rest of theirs is the list of their tests.
 *
 * Each result is printed as it comes, so that the log of a test that ran into its limit says how
 * far it came. Check's own limit of 4 s for a test is short for a busy machine, and these tests ask
 * what is done, not how fast; a case that needs longer says so by tcase_set_timeout(). A sanitizer
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

int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_log(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

int run_tests(TCase *tests)
{
    Suite *suite = suite_create(program_invocation_short_name);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

void add_unless_emulated(TCase *tests, const TTest *test, const char *why)
{
    if (is_emulated()) {
        printf("left out under an emulator: %s: %s\n", test->name, why);
    } else {
        tcase_add_test(tests, test);
    }
}

/* A kernel of 64 bits runs programs of 32. */
static bool is_of_fewer_bits(void)
{
    struct utsname machine;
    return sizeof(void *) == 4 && uname(&machine) == 0 && strstr(machine.machine, "64");
}

void add_unless_foreign(TCase *tests, const TTest *test)
{
    if (is_emulated() || is_of_fewer_bits()) {
        printf("left out: %s: it starts programs of this machine\n", test->name);
    } else {
        tcase_add_test(tests, test);
    }
}
