/* Simulated machines, opened in a test: those of tests/fixtures/machines, and descriptions that a
 * test writes. */
#ifndef SERVET_TESTS_PROBES_OPEN_FIXTURE_H
#define SERVET_TESTS_PROBES_OPEN_FIXTURE_H

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "probes/machine.h"

static inline void open_machine_of(const char *name, struct machine *machine)
{
    char path[4096];
    struct servet_error error;
    snprintf(path, sizeof path, "%s/%s.json", getenv("MACHINES"), name);
    ck_assert_msg(probe_machine_open_simulated(path, 1, machine, &error) == 0, "%s", error.text);
}

static inline void write_or_fail(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* What probe_machine_open_simulated() answers to a description, beside which there is a file m.csv
 * (NULL: none). */
static inline int open_machine_text(struct machine *machine, uint64_t seed, const char *text,
                                    const char *csv, struct servet_error *error)
{
    char folder[] = "/tmp/servet-machine-XXXXXX", path[64], beside[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/machine.json", folder);
    snprintf(beside, sizeof beside, "%s/m.csv", folder);
    write_or_fail(path, text);
    if (csv) {
        write_or_fail(beside, csv);
    }
    int rc = probe_machine_open_simulated(path, seed, machine, error);
    unlink(path);
    unlink(beside);
    rmdir(folder);
    return rc;
}

/* A description as printf() makes it. */
__attribute__((format(printf, 3, 4))) static inline void
open_machine_with(struct machine *machine, uint64_t seed, const char *format, ...)
{
    struct servet_error error;
    char *text;
    va_list values;
    va_start(values, format);
    ck_assert_int_gt(vasprintf(&text, format, values), 0);
    va_end(values);
    int rc = open_machine_text(machine, seed, text, NULL, &error);
    free(text);
    ck_assert_msg(rc == 0, "%s", error.text);
}

#endif
