/* A rank's plan, made before there is a program: its places are exported, and this process moves
 * onto its PUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/command/command.h"
#include "preload/node/log.h"
#include "preload/node/registry.h"
#include "preload/place/places.h"
#include "preload/place/priority_cache.h"
#include "profile/base/cli.h"
#include "profile/base/launchers.h"
#include "profile/scope.h"

/* Does SERVET_MEMBIND ask for a tier of memory that the node has not? False where nothing is known
 * of the node. */
static bool lacks_tier(const struct pin_command *command)
{
    static const struct profile_mask nowhere;
    static const struct profile_set all;
    struct pin_launcher quiet = command->launcher;
    struct servet_profile *profile;
    struct pin_memory memory;
    char source[PIN_SOURCE_SIZE];
    quiet.node_rank = 1; /* what the profile lacks is said when the plan is made */
    if (pin_profile_read(&command->options, &quiet, &all, &profile, source) < 0) {
        return false;
    }
    const struct pin_memory_request request = {.node_class = profile_class_here(profile),
                                               .own = &nowhere};
    const int rc = pin_memory_plan(command->options.membind, &request, &memory);
    profile_free(profile);
    return rc == 0 && memory.no_tier;
}

static void check_membind(const struct pin_command *command)
{
    const char *name =
        command->values[PIN_MEMBIND] ? "--membind" : pin_option_table[PIN_MEMBIND].name;
    const bool unknown = command->options.membind == PIN_MEMBIND_UNKNOWN;
    if (!unknown && (command->options.membind < PIN_MEMBIND_FAST || !lacks_tier(command))) {
        return;
    }
    if (!pin_command_speaks(command)) {
        exit(CLI_USAGE);
    }
    if (unknown) {
        cli_usage("%s: " PIN_MEMBIND_EXPECTED, name);
    }
    cli_usage("%s=%s: " PIN_MEMORY_ALIKE, name, pin_membind_words[command->options.membind]);
}

/* `planned`: by whose mask it was made. */
static int make_plan(const struct pin_command *command, const struct profile_mask *start,
                     struct pin_launcher *planned, struct pin_plan *plan)
{
    static struct pin_registry registry;
    struct profile_mask allowed;
    const struct pin_plan_request request = {.options = &command->options,
                                             .launcher = planned,
                                             .threads = pin_plan_threads(),
                                             .is_team = true,
                                             .allowed = &allowed,
                                             .registry = &registry};
    *planned = command->launcher;
    pin_launcher_allowed(planned, start, &allowed);
    if (!command->options.no_registry &&
        pin_registry_open(&registry, command->options.registry, planned->job) == 0) {
        pin_registry_release(&registry);
        registry.over_exec = planned->job != 0;
    }
    return pin_plan_make(&request, plan);
}

static void export_places(const struct pin_command *command, const struct profile_mask *start,
                          const struct pin_plan *plan)
{
    int code = profile_mask_set(0, &plan->own);
    if (code == 0) {
        code = pin_places_export(&command->launcher, start, plan);
    }
    if (code == 0) {
        return;
    }
    profile_mask_set(0, start);
    pin_failure("cannot export the rank's places: %s", strerrordesc_np(-code));
}

/* With SERVET_AUTO, the priority of a program behind another command (env, a script) is not known
 * here. */
static bool priority_is_known(struct pin_command *command)
{
    char path[PATH_MAX];
    struct pin_priority_cache recalled;
    struct pin_options *options = &command->options;
    if (!options->auto_priority || options->mem_prior || options->comm_prior) {
        return true;
    }
    return pin_command_find_program(command, path, sizeof path) &&
           pin_priority_cache_apply(options, path, &recalled);
}

/* A worker that the user has not bound starts on its part of the node. Places are not exported: a
 * runtime would bind the main thread to the first, and what it starts would be born there. */
static void give_part(const struct pin_command *command, const struct profile_mask *start,
                      const struct pin_plan *plan)
{
    if (profile_mask_set(0, &plan->own) == 0 && !profile_mask_equal(&plan->own, start)) {
        pin_launcher_mark_own(&command->launcher, "");
    }
}

/* ", 2 ranks a NUMA node", where all that have PUs of the ranks have as many. */
static void add_nodes(const struct profile_class *here, const struct profile_mask *pus,
                      size_t ranks, char *out, size_t size)
{
    size_t nodes = 0, least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < here->numa_count; i++) {
        size_t count = 0;
        for (size_t k = 0; k < here->numa[i].pus.count; k++) {
            count += profile_mask_has(pus, here->numa[i].pus.ids[k]);
        }
        nodes += count > 0;
        least = count && count < least ? count : least;
        most = count > most ? count : most;
    }
    if (nodes > 1 && least == most && ranks % nodes == 0) {
        snprintf(out, size, ", %zu rank%s a NUMA node", ranks / nodes, ranks > nodes ? "s" : "");
    } else if (nodes > 1 && least == most && nodes % ranks == 0) {
        snprintf(out, size, ", %zu NUMA nodes a rank", nodes / ranks);
    }
}

/* The whole job on this node, as `mpirun --report-bindings` shows it. */
static void say_ranks(const struct pin_command *command, const struct pin_launcher *planned,
                      const struct pin_plan *plan)
{
    struct servet_profile *here;
    struct servet_error error;
    FREED_BY(profile_set_free) struct profile_set set = {0};
    const struct profile_launcher *row = planned->row;
    const uint32_t ranks = command->launcher.node_ranks, each = pin_plan_threads();
    const bool apart = row->workers || planned->local_size < ranks;
    const struct profile_mask *pus = apart ? &plan->own : &plan->held;
    const size_t count = profile_mask_count(pus), most = (apart ? 1 : ranks) * (each ? each : 1);
    char list[256], threads[32] = "", nodes[64] = "", crowd[64] = "";
    if (!pin_command_explains(command) || profile_mask_to_set(pus, &set) < 0 ||
        profile_from_sysfs("", &here, &error) < 0) {
        return;
    }
    profile_mask_format(pus, list, sizeof list);
    if (each > 1) {
        snprintf(threads, sizeof threads, " x %u threads", each);
    }
    if (most > count) {
        snprintf(crowd, sizeof crowd, ", up to %zu threads a PU", (most + count - 1) / count);
    }
    if (!apart) {
        add_nodes(&here->classes[0], pus, ranks, nodes, sizeof nodes);
    }
    const uint32_t cores = pin_plan_cores(&here->classes[0], &set);
    cli_note("%u %s%s%s (%s)%s %u core%s (PU %s)%s%s", ranks, row->workers ? "worker" : "rank",
             ranks == 1 ? "" : "s", threads, command->launcher.name,
             !apart                                 ? " on"
             : planned->mask_of == PIN_MASK_OF_RANK ? ", each on its own mask, the first on"
                                                    : ", each on its own part, the first on",
             cores, cores == 1 ? "" : "s", list, nodes, crowd);
    profile_free(here);
}

const char *pin_command_place(struct pin_command *command)
{
    struct pin_options *options = &command->options;
    struct pin_launcher *launcher = &command->launcher, planned;
    struct profile_mask start;
    struct pin_plan plan;
    if (!command->may_place) { /* the shim finds the same */
        return "a filter (seccomp) kills for calls that placing takes: nothing is placed";
    }
    pin_command_refuse_misspelt(command);
    if (options->disable) {
        return "nothing is placed: SERVET_DISABLE is set";
    }
    if (launcher->contradicts) {
        cli_note("%s=%u: expected a local rank below the size that %s gives", launcher->row->rank,
                 launcher->node_rank, launcher->row->size);
    }
    check_membind(command);
    pin_devices_apply(&command->devices, options, launcher);
    if (profile_mask_get(0, &start) < 0 || pin_places_read(launcher, false, &start)) {
        return NULL; /* servet-pin in front of servet-pin */
    }
    pin_places_drop(&start);
    const char *users = options->force ? NULL : pin_users_places();
    if (users) {
        static char text[96];
        snprintf(text, sizeof text,
                 "OpenMP threads stay where %s wants them (--force overrides it)", users);
        return text;
    }
    if (!launcher->name) {
        return "one process: its threads are placed as it makes them";
    }
    if (!launcher->row->workers && !priority_is_known(command)) {
        return "ranks are placed as they begin: the command is not the program";
    }
    /* Parts are the same whatever other jobs hold. */
    options->no_registry |= launcher->row->workers;
    if (make_plan(command, &start, &planned, &plan) < 0) {
        return NULL;
    }
    if (launcher->row->workers) {
        give_part(command, &start, &plan);
    } else {
        export_places(command, &start, &plan);
    }
    say_ranks(command, &planned, &plan);
    pin_plan_free(&plan);
    return NULL;
}
