/* The one way in which a test program runs its tests. */
#ifndef SERVET_TESTS_BASE_RUNNER_H
#define SERVET_TESTS_BASE_RUNNER_H

#include <check.h>

/* Runs the tests of one case, or of a suite of several, says the result of each as it comes, and
 * frees them. Returns what main() returns: 0, or 1 if a test failed. */
int run_tests(TCase *tests);
int run_suite(Suite *suite);

/* Adds the test, except under qemu-user, an emulator of single programs (packaging/cross/foreign):
 * there it says that the test is left out, and why. */
void add_unless_emulated(TCase *tests, const TTest *test, const char *why);

/* Adds a test that starts this machine's own shell, Python, Java or the like under the shim, except
 * where the shim is of another architecture than they (i386 on x86-64 too). */
void add_unless_foreign(TCase *tests, const TTest *test);

#endif
