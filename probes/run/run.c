#include "probes/run/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probes/cache/paper.h"
#include "probes/pairs/sets.h"
#include "probes/run/checkpoint.h"
#include "probes/run/conditions.h"
#include "probes/run/estimate.h"
#include "probes/run/result.h"
#include "probes/run/sentinel.h"
#include "probes/run/topology.h"
#include "profile/base/cli.h"

/* When the caches were not measured. */
static const size_t usual_message_bytes = 32u << 10, usual_last_level_bytes = 32u << 20;

const char *const probe_run_names[CAMPAIGN_NAMES] = {"cache", "sharing", "memory", "message"};

static bool is_name(const char *text, size_t length, const char *name)
{
    return strlen(name) == length && strncmp(text, name, length) == 0;
}

unsigned probe_run_parse(const char *text, const char *also)
{
    unsigned probes = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < CAMPAIGN_NAMES && !is_name(at, length, probe_run_names[i])) {
            i++;
        }
        if (i == CAMPAIGN_NAMES) {
            cli_usage(
                "--probes: expected %snames out of cache, sharing, memory, message, got '%.*s'",
                also, (int)length, at);
        }
        probes |= 1u << i;
        at += length;
        if (*at == '\0') {
            break;
        }
    }
    /* sharing is asked of caches whose size is known */
    return probes & CAMPAIGN_SHARING ? probes | CAMPAIGN_CACHE : probes;
}

static void free_findings(struct findings *findings)
{
    for (size_t i = 0; i < findings->kinds.count; i++) {
        probe_cache_free(&findings->of[i].caches);
        probe_sharing_free(&findings->of[i].sharing);
    }
    probe_kinds_free(&findings->kinds);
    probe_memory_free(&findings->memory);
    probe_numa_free(&findings->numa);
    probe_message_free(&findings->messages);
}

static size_t largest_cache(const struct findings *findings)
{
    size_t largest = 0;
    for (size_t i = 0; i < findings->node_class->cache_count; i++) {
        size_t bytes = findings->node_class->caches[i].declared_size_bytes;
        largest = bytes > largest ? bytes : largest;
    }
    for (size_t kind = 0; kind < findings->kinds.count; kind++) {
        const struct probe_cache *caches = &findings->of[kind].caches;
        for (size_t i = 0; i < caches->count; i++) {
            largest =
                caches->levels[i].size_bytes > largest ? caches->levels[i].size_bytes : largest;
        }
    }
    return largest ? largest : usual_last_level_bytes;
}

static size_t message_bytes(const struct findings *findings)
{
    if (findings->of[0].caches.count > 0) {
        return findings->of[0].caches.levels[0].size_bytes;
    }
    return findings->node_class->cache_count > 0 ? findings->node_class->caches[0].size_bytes
                                                 : usual_message_bytes;
}

/* Messages through MPI; through threads when there is no MPI (or the machine is a simulated
 * one). */
static int run_messages(const struct campaign *campaign, struct findings *findings,
                        struct servet_error *error)
{
    struct machine messenger = {0};
    struct servet_error reason;
    bool native = strcmp(campaign->machine->name, "native") == 0;
    bool several = campaign->machine->pus.count > 1;
    int rc = -ENOTSUP;
    if (native && several && campaign->mpi) {
        rc = probe_machine_open_mpi(&campaign->machine->pus, campaign->machine->cancel, &messenger,
                                    &reason);
        if (rc == -EINTR) {
            return profile_error(error, rc, "%s", reason.text);
        }
        if (rc < 0) {
            probe_progress_end(campaign->progress);
            cli_note("message latency through MPI skipped: %s; measured between threads instead",
                     reason.text);
        }
    }
    if (native && several && rc < 0) {
        snprintf(findings->layer_note, sizeof findings->layer_note,
                 "between threads through shared memory, not through MPI");
    }
    messenger.journal = rc == 0 ? campaign->journal : NULL;
    findings->probe.clock = campaign->machine;
    findings->probe.machine = rc == 0 ? &messenger : campaign->machine;
    int result =
        probe_message(&findings->probe, message_bytes(findings), &findings->messages, error);
    findings->probe.machine = campaign->machine;
    if (rc == 0) {
        probe_sentinel_add(&campaign->machine->guard, &messenger.guard);
        probe_machine_close(&messenger);
    }
    return result;
}

/* -- the budget -- */

static double planned(const struct findings *findings, unsigned probe)
{
    const struct plan *plan = &findings->plan;
    return probe == CAMPAIGN_CACHE     ? plan->cache_s
           : probe == CAMPAIGN_SHARING ? plan->sharing_s
           : probe == CAMPAIGN_MEMORY  ? plan->memory_s
                                       : plan->message_s;
}

/* What the probes asked for are expected to take, from `first` on. */
static double planned_from(const struct campaign *campaign, const struct findings *findings,
                           unsigned first)
{
    double sum = 0;
    for (unsigned probe = first; probe < CAMPAIGN_ALL; probe <<= 1) {
        sum += campaign->probes & probe ? planned(findings, probe) : 0;
    }
    return sum;
}

/* Grants the probe its part of the time that is left, by what it and those after it are expected to
 * take: what one does not use the others have. `of` parts of it. */
static void grant(const struct campaign *campaign, struct findings *findings, unsigned probe,
                  double of)
{
    double now = probe_elapsed(&findings->probe), sum = planned_from(campaign, findings, probe);
    findings->probe.deadline =
        findings->until_s > 0
            ? now + (findings->until_s - now) * planned(findings, probe) / (sum * of)
            : 0;
}

static bool over(const struct findings *findings)
{
    return findings->until_s > 0 && probe_elapsed(&findings->probe) > findings->until_s;
}

/* Asked for, and still within the budget. What is left out stays as declared; the first probe
 * always runs. */
static bool wanted(const struct campaign *campaign, struct findings *findings, unsigned probe)
{
    bool first = (campaign->probes & (probe - 1)) == 0;
    if (!(campaign->probes & probe)) {
        return false;
    }
    if (!first && over(findings)) {
        findings->left_out |= probe;
        return false;
    }
    grant(campaign, findings, probe, 1);
    return true;
}

static int run_memory(const struct campaign *campaign, struct findings *findings,
                      struct servet_error *error)
{
    struct probe_memory *memory = &findings->memory;
    int rc = probe_memory(&findings->probe, largest_cache(findings), memory, error);
    if (rc < 0) {
        return rc;
    }
    memory->memory.method = probe_memory_method(campaign->machine, memory->array_bytes);
    if (!memory->memory.method) {
        return profile_error(error, -ENOMEM, "measuring memory bandwidth: %s", strerror(ENOMEM));
    }
    return probe_numa(&findings->probe, memory->array_bytes, &findings->numa, error);
}

/* Of each kind of cores, on its first PU. */
static int run_caches(const struct campaign *campaign, struct findings *findings,
                      struct servet_error *error)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < findings->kinds.count; i++) {
        uint32_t pu = findings->kinds.pus[i].ids[0];
        struct probe_cache *caches = &findings->of[i].caches;
        grant(campaign, findings, CAMPAIGN_CACHE, (double)(findings->kinds.count - i));
        findings->probe.told_share = 1.0 / (double)findings->kinds.count;
        findings->probe.told_from = (double)i * findings->probe.told_share;
        rc = campaign->paper ? probe_cache_paper(&findings->probe, pu, caches, error)
                             : probe_cache(&findings->probe, pu, caches, error);
    }
    findings->probe.told_share = 0;
    return rc;
}

static int run_sharing(struct findings *findings, struct servet_error *error)
{
    const struct kinds *kinds = &findings->kinds;
    const struct profile_set *holders[CACHE_LEVELS_MAX];
    int rc = 0;
    findings->probe.holders = kinds->count > 1 ? holders : NULL;
    for (size_t kind = 0; rc == 0 && kind < kinds->count; kind++) {
        struct kind_findings *of = &findings->of[kind];
        for (size_t i = 0; i < CACHE_LEVELS_MAX; i++) {
            holders[i] = &kinds->pus[kind];
        }
        if (kinds->count > 1 && kind == 0 &&
            probe_result_holders(findings->node_class, kinds, &of->caches, holders) < 0) {
            rc = profile_error(error, -ENOMEM, "measuring shared caches: %s", strerror(ENOMEM));
        }
        rc = rc < 0 || of->caches.count == 0
                 ? rc
                 : probe_sharing(&findings->probe, &of->caches, &of->sharing, error);
    }
    findings->probe.holders = NULL;
    return rc;
}

static void finished(struct findings *findings, unsigned probe, int rc)
{
    findings->done |= rc == 0 ? probe : 0;
    bool shortened = probe_late(&findings->probe);
    for (size_t i = 0; i < findings->kinds.count && probe == CAMPAIGN_CACHE; i++) {
        shortened |= findings->of[i].caches.shortened;
    }
    findings->shortened |= shortened ? probe : 0;
}

static void next(const struct campaign *campaign, struct findings *findings, unsigned probe,
                 const char *name)
{
    double all = planned_from(campaign, findings, CAMPAIGN_CACHE);
    probe_progress_next(campaign->progress, name, all > 0 ? planned(findings, probe) / all : 0);
}

/* What may be a domain of memory: whatever PUs are found or said to have in common. */
struct candidates {
    const struct profile_relation **relations;
    size_t count;
    struct profile_relation nodes; /* the sets are the declared ones */
};

static int add_candidates(struct findings *findings, struct candidates *out)
{
    const struct profile_class *declared = findings->node_class;
    const struct profile_communication *messages = &findings->messages;
    size_t most = 2 + declared->cache_count + messages->layer_count + KINDS_MAX * CACHE_LEVELS_MAX;
    out->relations = calloc(most, sizeof(struct profile_relation *));
    out->nodes.groups = calloc(declared->numa_count + 1, sizeof *out->nodes.groups);
    if (!out->relations || !out->nodes.groups) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < declared->numa_count; i++) {
        out->nodes.groups[out->nodes.group_count++] = declared->numa[i].pus;
    }
    out->relations[out->count++] = &out->nodes;
    out->relations[out->count++] = &declared->packages;
    for (size_t i = 0; i < declared->cache_count; i++) {
        out->relations[out->count++] = &declared->caches[i].sharing;
    }
    for (size_t kind = 0; kind < findings->kinds.count; kind++) {
        const struct probe_sharing *sharing = &findings->of[kind].sharing;
        for (size_t i = 0; i < sharing->count; i++) {
            out->relations[out->count++] = &sharing->levels[i].sharing;
        }
    }
    for (size_t i = 0; i < messages->layer_count; i++) {
        out->relations[out->count++] = &messages->layers[i].members;
    }
    return 0;
}

/* Domains that no pair fills, after all that tells what PUs have in common. */
static int run_sets(struct findings *findings, struct servet_error *error)
{
    struct candidates candidates = {0};
    findings->probe.deadline = findings->until_s;
    int rc = add_candidates(findings, &candidates);
    rc = rc < 0 ? profile_error(error, rc, "measuring sets of PUs: %s", strerror(-rc))
                : probe_memory_sets(&findings->probe, candidates.relations, candidates.count,
                                    &findings->memory, error);
    free(candidates.nodes.groups);
    free(candidates.relations);
    return rc;
}

static int run_probes(const struct campaign *campaign, struct findings *findings,
                      struct servet_error *error)
{
    int rc = 0;
    if (wanted(campaign, findings, CAMPAIGN_CACHE)) {
        next(campaign, findings, CAMPAIGN_CACHE, "cache");
        rc = run_caches(campaign, findings, error);
        finished(findings, CAMPAIGN_CACHE, rc);
    }
    if (rc == 0 && wanted(campaign, findings, CAMPAIGN_SHARING) &&
        findings->of[0].caches.count > 0) {
        next(campaign, findings, CAMPAIGN_SHARING, "sharing");
        rc = run_sharing(findings, error);
        finished(findings, CAMPAIGN_SHARING, rc);
    }
    if (rc == 0 && wanted(campaign, findings, CAMPAIGN_MEMORY)) {
        next(campaign, findings, CAMPAIGN_MEMORY, "memory");
        rc = run_memory(campaign, findings, error);
        finished(findings, CAMPAIGN_MEMORY, rc);
    }
    if (rc == 0 && wanted(campaign, findings, CAMPAIGN_MESSAGE)) {
        next(campaign, findings, CAMPAIGN_MESSAGE, "message");
        rc = run_messages(campaign, findings, error);
        finished(findings, CAMPAIGN_MESSAGE, rc);
    }
    if (rc == 0 && (findings->done & CAMPAIGN_MEMORY) && !over(findings)) {
        rc = run_sets(findings, error);
    }
    return rc;
}

/* How high the load average may be before the first probe without a word. */
static const double idle_load = 0.5;

static struct disagreement_machine evidence(const struct campaign *campaign,
                                            const struct findings *findings,
                                            const struct surroundings *around)
{
    struct disagreement_machine evidence = {.pu = findings->kinds.pus[0].ids[0]};
    if (strcmp(campaign->machine->name, "native") == 0) {
        evidence.root = "";
        evidence.task = getpid();
        evidence.virtual = probe_conditions_virtual_machine();
        evidence.busy =
            probe_machine_was_busy(campaign->machine) || strtod(around->load, NULL) >= idle_load;
    }
    return evidence;
}

static int assemble(const struct campaign *campaign, struct findings *findings,
                    const struct disagreement_machine *machine)
{
    int rc = 0;
    if ((campaign->probes & CAMPAIGN_CACHE) && findings->of[0].caches.count > 0) {
        struct kind_findings *of = findings->of;
        rc = findings->kinds.count > 1
                 ? probe_result_set_caches_of_kinds(findings->node_class, &findings->kinds, of,
                                                    machine)
                 : probe_result_set_caches(findings->node_class, &of->caches,
                                           of->sharing.count > 0 ? &of->sharing : NULL, machine);
        rc = rc < 0 ? rc : probe_result_set_cache_curve(findings->node_class, &of->caches.curve);
        rc = rc < 0 ? rc
                    : probe_result_set_tlb(findings->node_class, &of->caches,
                                           findings->probe.machine->page_bytes);
    }
    if (rc == 0 && (findings->done & CAMPAIGN_MEMORY)) {
        probe_result_set_memory(findings->node_class, &findings->memory);
        probe_result_set_numa(findings->node_class, &findings->numa);
    }
    if (rc == 0 && (findings->done & CAMPAIGN_MESSAGE)) {
        rc = probe_result_set_layers(findings->node_class, &findings->messages);
        if (rc == 0 && findings->layer_note[0]) {
            rc = probe_result_note_layers(findings->node_class, findings->layer_note);
        }
    }
    return rc;
}

static int set_texts(struct servet_profile *profile, const char *started)
{
    free(profile->tool);
    free(profile->started);
    profile->tool = strdup("servet " SERVET_VERSION);
    profile->started = strdup(started);
    return profile->tool && profile->started ? 0 : -ENOMEM;
}

/* Warming up is not part of what is resumed. */
static int probe_with_journal(const struct campaign *campaign, struct findings *findings,
                              struct servet_error *error)
{
    campaign->machine->journal = campaign->journal;
    int rc = run_probes(campaign, findings, error);
    campaign->machine->journal = NULL;
    return rc;
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

int probe_run_run(struct campaign *campaign, struct servet_profile **out,
                  struct servet_error *error)
{
    struct servet_profile *profile = campaign->machine->declared;
    char started[32];
    time_t now = time(NULL);
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    double begun = probe_machine_elapsed(campaign->machine);
    struct findings findings = {
        .probe = {.machine = campaign->machine,
                  .progress = probe_progress_step,
                  .progress_argument = campaign->progress,
                  .seed = campaign->seed,
                  .declared = &profile->classes[0],
                  .exhaustive = campaign->exhaustive,
                  .one_by_one = campaign->one_by_one,
                  .largest_bytes = campaign->largest_bytes},
        .node_class = &profile->classes[0],
        .until_s = campaign->budget_s > 0 ? begun + campaign->budget_s : 0,
    };
    struct surroundings around = {0};
    int known = probe_kinds_of(findings.node_class, &campaign->machine->pus, &findings.kinds);
    if (known < 0) {
        return profile_error(error, known, "looking for kinds of cores: %s", strerror(-known));
    }
    findings.probe.kinds = &findings.kinds;
    bool native = strcmp(campaign->machine->name, "native") == 0;
    known = probe_estimate_make(&findings.probe, native && campaign->mpi, &findings.plan);
    if (known < 0) {
        free_findings(&findings);
        return profile_error(error, known, "planning: %s", strerror(-known));
    }
    probe_progress_plan(campaign->progress, planned_from(campaign, &findings, CAMPAIGN_CACHE),
                        native ? NULL : campaign->machine);
    int rc = native ? probe_conditions_before(campaign->machine, findings.node_class, &around) : 0;
    rc = rc < 0 ? profile_error(error, rc, "warming up: %s", probe_machine_strerror(rc))
                : probe_with_journal(campaign, &findings, error);
    campaign->incomplete = (rc == -ENODEV || rc == -ENOMEM) && findings.done != 0 ? rc : 0;
    if (rc == -ENOMEM) {
        name_memory_limit(campaign->machine, error);
    }
    rc = campaign->incomplete ? 0 : rc;
    if (rc == 0) {
        campaign->machine->declared = NULL;
        profile->measured = true;
        profile->seconds = probe_machine_elapsed(campaign->machine) - begun;
        rc = native
                 ? probe_conditions_after(&around, campaign->machine, findings.node_class, profile)
                 : 0;
        rc = rc < 0 ? rc : probe_topology_restrict(findings.node_class, &campaign->machine->pus);
        const struct disagreement_machine known_of_it = evidence(campaign, &findings, &around);
        rc = rc < 0 ? rc : assemble(campaign, &findings, &known_of_it);
        rc = rc < 0 ? rc : set_texts(profile, started);
        rc = rc < 0 ? rc : probe_run_add_conditions(campaign, &findings, profile);
        if (rc < 0) {
            profile_error(error, rc, "putting the profile together: %s", strerror(-rc));
            profile_free(profile);
        }
    }
    free_findings(&findings);
    if (rc == 0) {
        *out = profile;
    }
    return rc;
}
