/* Simulated machines, opened in a test: those of tests/fixtures/machines, and descriptions that a
 * test writes. */
#ifndef SERVET_TESTS_PROBES_OPEN_FIXTURE_H
#define SERVET_TESTS_PROBES_OPEN_FIXTURE_H

#include <stdarg.h>

#include "probes/run/progress.h"
#include "probes/run/run.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"
#include "tests/simulated/simulated.h"

/* Machines need not be closed, except by who opens many. */
static inline int open_simulated(const char *path, uint64_t seed, struct machine *out,
                                 struct servet_error *error)
{
    int rc = probe_machine_open_simulated(path, seed, out, error);
    if (rc == 0) {
        kept(out->state);
        kept(out->declared);
        kept(out->pus.ids);
    }
    return rc;
}

static inline void open_machine_seeded(const char *name, uint64_t seed, struct machine *machine)
{
    char path[4096];
    struct servet_error error;
    snprintf(path, sizeof path, "%s/%s.json", getenv("MACHINES"), name);
    ck_assert_msg(open_simulated(path, seed, machine, &error) == 0, "%s", error.text);
}

static inline void open_machine_of(const char *name, struct machine *machine)
{
    open_machine_seeded(name, 1, machine);
}

/* A description whose 'names' are "names". One that begins with no brace is a list of fields: the
 * caches and the memory that it lacks are like any others. */
static inline const char *described_as(const char *text)
{
    const bool whole = *text == '{', caches = whole || strstr(text, "'caches'"),
               memory = whole || strstr(text, "'memory'");
    char *all = kept(strdup(formatted(
        "%s%s%s%s%s", whole ? "" : "{'servet_machine': 1, ", text,
        caches ? "" : ", 'caches': [{'level': 1, 'size_bytes': 32768, 'ways': 8, 'seconds': 1e-9}]",
        memory ? "" : ", 'memory': {'seconds': 1e-7, 'pu_bytes_per_s': 1e10}", whole ? "" : "}")));
    for (char *at = all; (at = strchr(at, '\''));) {
        *at = '"';
    }
    return all;
}

/* Result of probe_machine_open_simulated() for a description with a file m.csv beside it (NULL:
 * none). */
static inline int open_machine_text(struct machine *machine, uint64_t seed, const char *text,
                                    const char *csv, struct servet_error *error)
{
    if (csv) {
        scratch_file("m.csv", "%s", csv);
    }
    return open_simulated(scratch_file("machine.json", "%s", described_as(text)), seed, machine,
                          error);
}

/* The machine of a description as printf() makes it. */
__attribute__((format(printf, 3, 4))) static inline void
open_machine_with(struct machine *machine, uint64_t seed, const char *format, ...)
{
    struct servet_error error;
    char *text;
    va_list values;
    va_start(values, format);
    ck_assert_int_gt(vasprintf(&text, format, values), 0);
    va_end(values);
    ck_assert_msg(open_machine_text(machine, seed, kept(text), NULL, &error) == 0, "%s",
                  error.text);
}

/* Operations of a machine as they were, for a test that stands between. */
static const struct machine_ops *honest __attribute__((unused));

/* Those of the machine, which stay: the test replaces some, and they may call the honest ones. */
static inline struct machine_ops *replace_operations(struct machine *machine)
{
    struct machine_ops *ops = kept(malloc(sizeof *ops));
    honest = machine->ops;
    *ops = *honest;
    machine->ops = ops;
    return ops;
}

static struct progress progress_of_run = {.events = -1};

/* A whole run, of seed 1 unless it has another: its answer. The profile stays. */
static inline int try_probes(struct machine *machine, struct probe_run run,
                             struct servet_profile **profile, struct servet_error *error)
{
    run.machine = machine;
    run.progress = &progress_of_run;
    run.seed = run.seed ? run.seed : 1;
    *profile = NULL;
    const int rc = probe_run_run(&run, profile, error);
    if (rc == 0) {
        kept(*profile);
    }
    return rc;
}

/* What it finds, which keeps the profile's promises. */
static inline const struct servet_profile *run_probes(struct machine *machine, struct probe_run run)
{
    struct servet_profile *profile;
    struct servet_error error;
    ck_assert_msg(try_probes(machine, run, &profile, &error) == 0, "%s", error.text);
    ck_assert_msg(profile_check(profile, &error) == 0, "%s", error.text);
    return profile;
}

/* '0-3', '4-7', …: groups of `size` PUs each. */
static inline const char *groups_of(size_t pus, size_t size)
{
    char *text = kept(calloc(pus / size, 32));
    for (size_t pu = 0, used = 0; pu < pus; pu += size) {
        used += (size_t)sprintf(text + used, "%s'%zu-%zu'", pu ? ", " : "", pu, pu + size - 1);
    }
    return text;
}

#endif
