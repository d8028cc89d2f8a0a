/* Simulated machines, opened in a test: those of tests/fixtures/machines, and descriptions that a
 * test writes. */
#pragma once

#include <stdarg.h>

#include "probes/run/progress.h"
#include "probes/run/run.h"
#include "tests/base/runner.h"
#include "tests/profile/fixture.h"
#include "tests/simulated/simulated.h"

/* The machine of a test, one at a time, and a probe of it. */
static struct machine machine __attribute__((unused));
static struct probe probe __attribute__((unused));

/* The one before is closed; the last need not be. */
static inline void open_machine_at(const char *path, uint64_t seed)
{
    struct servet_error error;
    if (machine.ops) {
        probe_machine_close(&machine);
    }
    ck_assert_msg(probe_machine_open_simulated(path, seed, &machine, &error) == 0, "%s",
                  error.text);
    probe = (struct probe){.machine = &machine, .seed = seed};
}

static inline void open_machine_seeded(const char *name, uint64_t seed)
{
    open_machine_at(formatted("%s/%s.json", getenv("MACHINES"), name), seed);
}

static inline void open_machine_of(const char *name)
{
    open_machine_seeded(name, 1);
}

/* A description whose 'names' are "names". One that begins with no brace is a list of fields: the
 * caches and the memory that it lacks are like any others. */
static inline const char *described_as(const char *text)
{
    const bool whole = *text == '{', caches = whole || strstr(text, "'caches'"),
               memory = whole || strstr(text, "'memory'");
    return quoted(formatted(
        "%s%s%s%s%s", whole ? "" : "{'servet_machine': 1, ", text,
        caches ? "" : ", 'caches': [{'level': 1, 'size_bytes': 32768, 'ways': 8, 'seconds': 1e-9}]",
        memory ? "" : ", 'memory': {'seconds': 1e-7, 'pu_bytes_per_s': 1e10}", whole ? "" : "}"));
}

/* The machine of a description as printf() makes it. */
__attribute__((format(printf, 2, 3))) static inline void open_machine_with(uint64_t seed,
                                                                           const char *format, ...)
{
    char *text;
    va_list values;
    va_start(values, format);
    ck_assert_int_gt(vasprintf(&text, format, values), 0);
    va_end(values);
    open_machine_at(scratch_file("machine.json", "%s", described_as(kept(text))), seed);
}

/* Operations of a machine as they were, for a test that stands between. */
static const struct machine_ops *honest __attribute__((unused));

/* Those of the machine, which stay: the test replaces some, and they may call the honest ones. */
static inline struct machine_ops *replace_operations(void)
{
    struct machine_ops *ops = kept(malloc(sizeof *ops));
    honest = machine.ops;
    *ops = *honest;
    machine.ops = ops;
    return ops;
}

/* Operations of a test's own; they need not look at all that they are given. */
#define OPERATION(name, type, of, figures)                                                         \
    static int name(struct machine *subject __attribute__((unused)),                               \
                    const struct machine_##type *what __attribute__((unused)),                     \
                    const of __attribute__((unused)), size_t count __attribute__((unused)),        \
                    double *figures __attribute__((unused)))
#define TRAVERSE(name) OPERATION(name, traversal, uint32_t *pus, seconds)
#define COPY(name) OPERATION(name, copy, uint32_t *pus, rates)
#define EXCHANGE(name) OPERATION(name, exchange, struct profile_pair *pairs, seconds)

static struct progress progress_of_run = {.events = -1};

/* A whole run, of seed 1 unless it has another: its answer. The profile stays. */
static inline int try_probes(struct probe_run run, struct servet_profile **profile,
                             struct servet_error *error)
{
    run.machine = &machine;
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
static inline const struct servet_profile *run_probes(struct probe_run run)
{
    struct servet_profile *profile;
    struct servet_error error;
    ck_assert_msg(try_probes(run, &profile, &error) == 0, "%s", error.text);
    ck_assert_msg(profile_check(profile, &error) == 0, "%s", error.text);
    return profile;
}

/* "0-3 4-7 …" where `between` is " ": groups of `size` PUs each, of fewer PUs one. */
static inline const char *blocks_of(size_t pus, size_t size, const char *between)
{
    const char *text = "";
    for (size_t first = 0; first < pus; first += size) {
        text = formatted("%s%s%zu-%zu", text, first ? between : "", first,
                         first + (pus < size ? pus : size) - 1);
    }
    return text;
}

/* The same in a description: '0-3', '4-7', … */
static inline const char *groups_of(size_t pus, size_t size)
{
    return formatted("'%s'", blocks_of(pus, size, "', '"));
}
