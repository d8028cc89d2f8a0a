/* One run of servet-probe: the chosen probes, one after the other, and the profile that comes of
 * it. Later probes use what earlier ones found (sizes of caches, groups), so their order is
 * fixed. */
#include "probes/run/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probes/cache/probe.h"
#include "probes/memory/memory.h"
#include "probes/memory/rates.h"
#include "probes/pairs/messages.h"
#include "profile/base/cli.h"

/* Bytes/s at which a system gives out memory that it has to ask a hypervisor for (struct
 * native_region). */
static const double touched_rate = 0.3e9;

static void free_results(struct probe_results *results)
{
    for (size_t i = 0; i < results->kinds.count; i++) {
        probe_cache_free(&results->of[i].caches);
        probe_sharing_free(&results->of[i].sharing);
    }
    probe_kinds_free(&results->kinds);
    probe_memory_free(&results->memory);
    probe_numa_free(&results->numa);
    probe_devices_free(&results->devices);
    profile_communication_free(&results->messages);
}

static size_t largest_cache(const struct probe_results *results)
{
    size_t largest = probe_cache_declared_largest(results->node_class);
    for (size_t kind = 0; kind < results->kinds.count; kind++) {
        const struct probe_cache *caches = &results->of[kind].caches;
        for (size_t i = 0; i < caches->count; i++) {
            largest =
                caches->levels[i].size_bytes > largest ? caches->levels[i].size_bytes : largest;
        }
    }
    return largest ? largest : PROBE_USUAL_LAST_LEVEL_BYTES;
}

static size_t message_bytes(const struct probe_results *results)
{
    if (results->of[0].caches.count > 0) {
        return results->of[0].caches.levels[0].size_bytes;
    }
    return probe_message_usual_bytes(results->node_class);
}

/* Messages through MPI; through threads when there is no MPI (or the machine is a simulated one),
 * which is noted the first time: then -ENOTSUP and the reason. 0 and the messenger, -EINTR. */
static int open_messenger(struct probe_results *results, bool first, struct machine *out,
                          struct servet_error *reason)
{
    const struct probe_run *run = results->run;
    bool native = machine_is_native(run->machine);
    bool several = run->machine->pus.count > 1;
    int rc = -ENOTSUP;
    if (native && several && run->mpi && probe_budget_fits_ranks(results)) {
        rc = probe_machine_open_mpi(&run->machine->pus, run->machine->cancel, out, reason);
        out->cpu_quota = rc == 0 ? run->machine->cpu_quota : 0;
        if (rc == -EINTR) {
            return rc;
        }
    }
    results->through_threads |= first && native && several && rc < 0;
    return rc < 0 ? -ENOTSUP : 0;
}

/* Only with a figure that is there: "measured" is what it says. */
static void note_threads(const struct probe_results *results, const char *reason)
{
    if (results->run->mpi && results->through_threads && results->messages.layer_count > 0) {
        probe_progress_end(results->run->progress);
        cli_note("message latency through MPI skipped: %s; measured between threads instead",
                 reason);
    }
}

/* The first time, or a look again: through the same kind of messenger, started anew. */
static int run_messages(struct probe_results *results, struct servet_error *error)
{
    const struct probe_run *run = results->run;
    const bool first = !(results->done & PROBE_MESSAGE);
    struct machine messenger = {0};
    struct servet_error reason = {.text = "the budget leaves no time to start it"};
    bool threads = !first && results->through_threads;
    int rc = threads ? -ENOTSUP : open_messenger(results, first, &messenger, &reason);
    if (rc == -EINTR) {
        return profile_error(error, rc, "%s", reason.text);
    }
    if (!first && !threads && rc < 0 && machine_is_native(run->machine)) {
        return 0; /* MPI is not to be had any more: what there is stays */
    }
    results->probe.clock = run->machine;
    results->probe.machine = rc == 0 ? &messenger : run->machine;
    int result =
        first ? probe_message(&results->probe, message_bytes(results), &results->messages, error)
              : probe_message_look_again(&results->probe, &results->messages, error);
    results->probe.machine = run->machine;
    if (rc == 0) {
        probe_guard_add(&run->machine->guard, &messenger.guard);
        probe_machine_close(&messenger);
    }
    if (first && result == 0) {
        note_threads(results, reason.text);
    }
    return result;
}

static bool is_over(const struct probe_results *results)
{
    return probe_budget_left(results) < 0;
}

/* Would touching the arrays of two PUs take longer than this step may? */
static bool hurries(const struct probe_results *results)
{
    const struct probe *probe = &results->probe;
    const double arrays = 2 * 2 * (double)probe_memory_bytes(probe, largest_cache(results)),
                 touch_s = arrays / touched_rate * probe_machine_pace(results->run->machine);
    return probe->deadline > 0 && touch_s > probe->deadline - probe_elapsed(probe);
}

static int run_memory(struct probe_results *results, struct servet_error *error)
{
    struct probe_memory *memory = &results->memory;
    results->probe.hurried = hurries(results);
    TRY(probe_memory(&results->probe, largest_cache(results), memory, error));
    memory->memory.method = probe_memory_method(results->run->machine, memory->array_bytes);
    if (!memory->memory.method) {
        return profile_error(error, -ENOMEM, "measuring memory bandwidth: %s", strerror(ENOMEM));
    }
    return probe_numa(&results->probe, memory->array_bytes, &results->numa, error);
}

/* Measures each kind of cores, on its first PU. */
static int run_caches(struct probe_results *results, struct servet_error *error)
{
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < results->kinds.count; i++) {
        uint32_t pu = results->kinds.pus[i].ids[0];
        struct probe_cache *caches = &results->of[i].caches;
        probe_budget_grant(results, PROBE_CACHE, (double)(results->kinds.count - i));
        results->probe.progress_share = 1.0 / (double)results->kinds.count;
        results->probe.progress_from = (double)i * results->probe.progress_share;
        rc = results->run->paper ? probe_cache_paper(&results->probe, pu, caches, error)
                                 : probe_cache(&results->probe, pu, caches, error);
    }
    for (size_t i = 0; rc == -ETIME && i < results->kinds.count; i++) {
        probe_cache_free(&results->of[i].caches); /* all kinds or none */
    }
    results->probe.progress_share = 0;
    return rc;
}

static int run_sharing(struct probe_results *results, struct servet_error *error)
{
    const struct kinds *kinds = &results->kinds;
    const struct profile_set *holders[CACHE_LEVELS_MAX];
    int rc = 0;
    results->probe.holders = kinds->count > 1 ? holders : NULL;
    for (size_t kind = 0; rc == 0 && kind < kinds->count; kind++) {
        struct kind_results *of = &results->of[kind];
        for (size_t i = 0; i < CACHE_LEVELS_MAX; i++) {
            holders[i] = &kinds->pus[kind];
        }
        if (kinds->count > 1 && kind == 0) {
            probe_result_holders(results->node_class, kinds, results->of, holders);
        }
        rc = of->caches.count > 0 ? probe_sharing(&results->probe, &of->caches, &of->sharing, error)
                                  : 0;
    }
    for (size_t kind = 0; rc == -ETIME && kind < kinds->count; kind++) {
        probe_sharing_free(&results->of[kind].sharing); /* all kinds or none */
    }
    results->probe.holders = NULL;
    return rc;
}

/* Does the step have what it measures with? */
static bool has_input(const struct probe_results *results, unsigned probe)
{
    if (probe == PROBE_SHARING) {
        return results->of[0].caches.count > 0;
    }
    return probe != PROBE_SETS || ((results->done & PROBE_MEMORY) && !is_over(results));
}

/* A probe that had no figure when the time was over is left out; a step that only adds figures
 * keeps those found. */
static int finished(struct probe_results *results, unsigned probe, int rc)
{
    if (!(probe & PROBE_ALL)) {
        return rc == -ETIME ? 0 : rc;
    }
    results->done |= rc == 0 ? probe : 0;
    results->left_out &= ~probe;
    results->left_out |= rc == -ETIME ? probe : 0;
    bool shortened = (probe_late(&results->probe) && !probe_budget_asks_nothing(results, probe)) ||
                     (probe == PROBE_MEMORY && results->probe.hurried);
    shortened = probe == PROBE_DEVICE ? results->devices.cut_short : shortened;
    for (size_t i = 0; i < results->kinds.count && probe == PROBE_CACHE; i++) {
        shortened |= results->of[i].caches.shortened;
    }
    results->shortened |= shortened && rc == 0 ? probe : 0;
    return rc == -ETIME ? 0 : rc;
}

/* Domains that no pair fills, after all that tells what PUs have in common. Candidates are
 * relations that were measured, then the declared ones. */
static int run_sets(struct probe_results *results, struct servet_error *error)
{
    const struct profile_class *declared = results->node_class;
    const struct profile_communication *messages = &results->messages;
    size_t most = 2 + declared->cache_count + messages->layer_count + KINDS_MAX * CACHE_LEVELS_MAX,
           count = 0;
    FREED const struct profile_relation **all = calloc(most, sizeof *all);
    FREED struct profile_set *numa = calloc(declared->numa_count + 1, sizeof *numa);
    if (!all || !numa) {
        return profile_error(error, -ENOMEM, "measuring sets of PUs: %s", strerror(ENOMEM));
    }
    for (size_t kind = 0; kind < results->kinds.count; kind++) {
        const struct probe_sharing *sharing = &results->of[kind].sharing;
        for (size_t i = 0; i < sharing->count; i++) {
            all[count++] = &sharing->levels[i].sharing;
        }
    }
    for (size_t i = 0; i < messages->layer_count; i++) {
        all[count++] = &messages->layers[i].members;
    }
    for (size_t i = 0; i < declared->numa_count; i++) {
        numa[i] = declared->numa[i].pus; /* still the declared one's */
    }
    const struct profile_relation nodes = {.groups = numa, .group_count = declared->numa_count};
    all[count++] = &nodes;
    all[count++] = &declared->packages;
    for (size_t i = 0; i < declared->cache_count; i++) {
        all[count++] = &declared->caches[i].sharing;
    }
    return probe_memory_sets(&results->probe, all, count, &results->memory, error);
}

static int run_devices(struct probe_results *results, struct servet_error *error)
{
    return probe_devices(&results->probe, &results->devices, error);
}

/* Cache lines go from thread to thread on the machine itself, whatever messages went through. */
static int run_lines(struct probe_results *results, struct servet_error *error)
{
    const bool there = results->run->machine->ops->exchange && results->messages.layer_count > 0;
    results->probe.deadline = results->until_s;
    return there ? probe_lines(&results->probe, &results->messages, error) : 0;
}

/* Repetitions that must lie apart in time: messages and lines, with loops over memory between. */
static int run_second_looks(struct probe_results *results, struct servet_error *error)
{
    const bool messages = results->messages.layer_count > 0;
    const int looks = messages ? PROBE_MESSAGE_LOOKS : 2; /* 2: the loops over memory, once */
    results->probe.deadline = results->until_s;
    for (int look = 1; look < looks && !is_over(results); look++) {
        TRY(run_lines(results, error));
        if (messages && probe_budget_fits_ranks(results)) {
            TRY(run_messages(results, error));
        }
        if (look == 1 && (results->done & PROBE_MEMORY) && !is_over(results)) {
            TRY(probe_memory_kernels(&results->probe, &results->memory, error));
        }
    }
    return 0;
}

/* Steps in their order. */
static int run_probes(struct probe_results *results, struct servet_error *error)
{
    /* by bit of enum probe_run_probes */
    static int (*const steps[])(struct probe_results * results, struct servet_error * error) = {
        run_caches, run_sharing, run_memory, run_messages, run_devices, run_sets, run_second_looks};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const unsigned probe = 1u << i;
        if (probe_budget_begins(results, probe) && has_input(results, probe)) {
            TRY(finished(results, probe, steps[i](results, error)));
        }
    }
    return 0;
}

static int set_texts(struct servet_profile *profile, const char *started)
{
    free(profile->tool);
    free(profile->started);
    profile->tool = strdup("servet " SERVET_VERSION);
    profile->started = strdup(started);
    return profile->tool && profile->started ? 0 : -ENOMEM;
}

static void name_memory_limit(const struct machine *machine, struct servet_error *error)
{
    char text[sizeof error->text];
    if (error && machine->memory_limit_bytes > 0) {
        snprintf(text, sizeof text, "%s", error->text);
        profile_error(error, -ENOMEM,
                      "%s (free memory and control groups allow %zu MiB, ulimit -v may allow less)",
                      text, machine->memory_limit_bytes >> 20);
    }
}

static struct probe_results results_of(const struct probe_run *run)
{
    struct profile_class *node_class = &run->machine->declared->classes[0];
    return (struct probe_results){
        .run = run,
        .probe = {.machine = run->machine,
                  .progress = probe_progress_step,
                  .progress_argument = run->progress,
                  .seed = run->seed,
                  .declared = node_class,
                  .exhaustive = run->exhaustive,
                  .unwritten = run->unwritten,
                  .one_by_one = run->one_by_one,
                  .largest_bytes = run->largest_bytes},
        .node_class = node_class,
    };
}

/* Which kinds of cores there are, and how many steps. */
static int plan(struct probe_results *results, struct servet_error *error)
{
    const struct probe_run *run = results->run;
    struct machine *clock = machine_is_native(run->machine) ? NULL : run->machine;
    int rc = probe_kinds_of(results->node_class, &run->machine->pus, &results->kinds);
    if (rc < 0) {
        return profile_error(error, rc, "looking for kinds of cores: %s", strerror(-rc));
    }
    results->probe.kinds = &results->kinds;
    probe_progress_plan(run->progress, clock, probe_budget_steps(run));
    return 0;
}

/* Puts what was found into the profile; `around` NULL: a simulated machine. */
static int conclude_run(struct probe_results *results, const char *started,
                        struct conditions_before *around, struct servet_profile *profile)
{
    struct machine *machine = results->run->machine;
    TRY(around ? probe_conditions_after(around, machine, results->node_class, profile) : 0);
    TRY(probe_run_add_conditions(results, profile));
    TRY(probe_run_assemble(results, profile));
    return set_texts(profile, started);
}

/* After these errors the finished probes make a partial profile. */
static bool ends_early(int rc)
{
    return rc == -ENODEV || rc == -ENOMEM || rc == -EINTR;
}

int probe_run_run(struct probe_run *run, struct servet_profile **out, struct servet_error *error)
{
    struct servet_profile *profile = run->machine->declared;
    char started[32];
    time_t now = time(NULL);
    strftime(started, sizeof started, PROBE_STARTED_FORMAT, gmtime(&now));
    double begun = probe_machine_elapsed(run->machine);
    const bool native = machine_is_native(run->machine);
    struct conditions_before around = {0};
    FREED_BY(free_results) struct probe_results results = results_of(run);
    run->probes &= probe_devices_are(run->machine) ? ~0u : ~(unsigned)PROBE_DEVICE;
    TRY(plan(&results, error));
    int rc = native ? probe_conditions_before(run->machine, results.node_class, &around) : 0;
    probe_budget_start(&results);
    rc = rc < 0 ? profile_error(error, rc, "warming up: %s", probe_machine_strerror(rc))
                : run_probes(&results, error);
    run->machine->until_s = 0;
    if (rc == 0 && results.done == 0 && results.left_out != 0) {
        rc = probe_budget_fail(run, error);
    }
    run->left_out = results.left_out;
    run->incomplete = ends_early(rc) && results.done != 0 ? rc : 0;
    if (rc == -ENOMEM) {
        name_memory_limit(run->machine, error);
    }
    TRY(run->incomplete ? 0 : rc);
    run->machine->declared = NULL;
    profile->measured = true;
    profile->seconds = probe_machine_elapsed(run->machine) - begun;
    rc = conclude_run(&results, started, native ? &around : NULL, profile);
    if (rc < 0) {
        profile_free(profile);
        return profile_error(error, rc, "putting the profile together: %s", strerror(-rc));
    }
    *out = profile;
    return 0;
}
