/* Programs run as a user runs them. */
#include "tests/preload/child.h"

#include <check.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/base/scratch.h"
#include "tests/preload/here.h"

extern char **environ;

struct run child, plain;

static void clean_environment(void)
{
    static const char *const own[] = {"SERVET_", "OMP_", "GOMP_", "KMP_", "LD_PRELOAD="};
    for (char **entry = environ; *entry;) {
        char name[256];
        size_t length = strcspn(*entry, "=");
        bool ours = false;
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
            ours |= strncmp(*entry, own[i], strlen(own[i])) == 0;
        }
        if (!ours || length >= sizeof name) {
            entry++;
            continue;
        }
        memcpy(name, *entry, length);
        name[length] = '\0';
        unsetenv(name);
    }
#ifdef SANITIZERS
    setenv("LD_PRELOAD", SANITIZERS, 1);
    /* Leaks of ordinary programs are not ours, and the shim comes before the runtime in some of
     * them. */
    setenv("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0", 1);
    setenv("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1", 1);
    setenv("TSAN_OPTIONS", "halt_on_error=1:die_after_fork=0:ignore_noninstrumented_modules=1", 1);
#endif
    /* Other programs under the shim on this machine must not decide what a test sees. */
    setenv("SERVET_REGISTRY", "0", 1);
    setenv("SERVET_WATCH", "0", 1);
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
}

static void prepare(const void *changes)
{
    clean_environment();
    for (const char *const *change = changes; change && *change; change++) {
        putenv((char *)(uintptr_t)*change);
    }
}

void child_run(struct run *of, const char *const *changes, const char *const *argv)
{
    *of = run_program(argv, prepare, changes);
}

void child_run_preloaded(struct run *of, const char *const *changes, const char *const *argv)
{
    const char *all[32] = {"LD_PRELOAD=" CHILD_PRELOAD, "SERVET_WATCH=0"};
    for (size_t i = 0; changes && changes[i] && i < 29; i++) {
        all[i + 2] = changes[i];
    }
    child_run(of, all, argv);
}

static const char *find_line(const char *text, const char *beginning)
{
    size_t length = strlen(beginning);
    for (const char *line = text; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, beginning, length) == 0) {
            return line;
        }
    }
    return NULL;
}

size_t child_lines(const char *text, const char *beginning)
{
    size_t count = 0;
    for (const char *line = find_line(text, beginning); line;
         line = find_line(strchr(line, '\n') + 1, beginning)) {
        count++;
        if (!strchr(line, '\n')) {
            break;
        }
    }
    return count;
}

void child_worker(const struct run *of, int rank, int thread, char *pus, size_t size)
{
    const char *beginning = formatted("worker %d %d ", rank, thread);
    const char *line = find_line(of->out, beginning);
    ck_assert_msg(line, "no line \"%s\" in:\n%.1500s%.1500s(exit status %d)", beginning, of->out,
                  of->err, of->status);
    line += strlen(beginning);
    snprintf(pus, size, "%.*s", (int)strcspn(line, " \n"), line);
}

void child_expect_pus(const struct run *of, int rank, int thread, const char *expected)
{
    char pus[256];
    child_worker(of, rank, thread, pus, sizeof pus);
    ck_assert_msg(strcmp(pus, expected) == 0,
                  "worker %d of rank %d may run on %s, expected %s:\n%.1500s%.1500s", thread, rank,
                  pus, expected, of->out, of->err);
}

void child_expect(const struct run *of, int rank, int thread, uint32_t pu)
{
    child_expect_pus(of, rank, thread, formatted("%u", pu));
}

static void expect_in(const struct run *of, const char *text, const char *format, va_list values)
{
    char expected[512];
    vsnprintf(expected, sizeof expected, format, values);
    ck_assert_msg(strstr(text, expected), "no \"%s\" in\n%s%s(exit status %d)", expected, of->out,
                  of->err, of->status);
}

void child_says(const struct run *of, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    expect_in(of, of->out, format, values);
    va_end(values);
}

void child_err_says(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    expect_in(&child, child.err, format, values);
    va_end(values);
}

char child_registry[96], child_report[96];

void child_setup(void)
{
    snprintf(child_registry, sizeof child_registry, "SERVET_REGISTRY=%s", scratch_path("registry"));
    snprintf(child_report, sizeof child_report, "SERVET_REPORT=%s", scratch_path("report"));
}

void child_succeeds(const struct run *of)
{
    ck_assert_msg(of->status == 0, "exit status %d:\n%s%s", of->status, of->out, of->err);
}

static void expect_told(const char *told)
{
    const struct {
        const char *word, *pus;
    } known[] = {
        {"first", order_text[0]}, {"second", order_text[1]}, {"both", order_pus}, {"all", all_pus}};
    char text[256], word[16], *rest = text;
    int rank, thread;
    child_succeeds(&child);
    snprintf(text, sizeof text, "%s", told ? told : "");
    for (char *one; told && (one = strsep(&rest, " "));) {
        if (strcmp(one, "silent") == 0) {
            ck_assert_str_eq(child.err, "");
            continue;
        }
        size_t i = 0;
        ck_assert_msg(sscanf(one, "%d.%d=%15s", &rank, &thread, word) == 3, "%s", one);
        while (i < sizeof known / sizeof *known && strcmp(known[i].word, word) != 0) {
            i++;
        }
        ck_assert_msg(i < sizeof known / sizeof *known, "%s", one);
        child_expect_pus(&child, rank, thread, known[i].pus);
    }
}

void run_plain(const char *const *changes, const char *const *argv, const char *told)
{
    child_run(&child, changes, argv);
    expect_told(told);
}

void run_preloaded(const char *const *changes, const char *const *argv, const char *told)
{
    child_run_preloaded(&child, changes, argv);
    expect_told(told);
}
