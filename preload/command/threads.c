/* How many threads the program is started with: as servet-bench --tune found it to be the fastest,
 * and as a quota lets run. In a quota, runtimes start a thread for each PU of the mask; those that
 * spin while they wait burn the time of those that work. The shim changes no count: this command
 * does, before there is a program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/command/command.h"
#include "preload/command/tuned.h"
#include "preload/place/plan.h"
#include "profile/base/cli.h"
#include "profile/base/control_groups.h"
#include "profile/base/file.h"

static const char threads_name[] = "OMP_NUM_THREADS";

/* -- by a quota -- */

/* Runtimes and libraries that read OMP_NUM_THREADS unless one of these is set. */
static const char *const counts[] = {
    threads_name,       "KMP_ALL_THREADS",      "KMP_MAX_THREADS",
    "MKL_NUM_THREADS",  "OPENBLAS_NUM_THREADS", "OPENBLAS_DEFAULT_NUM_THREADS",
    "GOTO_NUM_THREADS", "BLIS_NUM_THREADS",
};

static bool is_chosen(void)
{
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const char *value = getenv(counts[i]);
        if (value && *value) {
            return true;
        }
    }
    return false;
}

/* Ranks that share the quota. A batch system may give each task a group of its own. */
static uint32_t ranks_of_group(const struct pin_launcher *launcher)
{
    char path[64], own[4096], starters[4096];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)launcher->starter);
    const bool apart =
        launcher->starter > 0 && profile_read_small("/proc/self/cgroup", own, sizeof own) &&
        profile_read_small(path, starters, sizeof starters) && strcmp(own, starters) != 0;
    return launcher->name && !apart ? launcher->node_ranks : 1;
}

static void note_ranks(double cpus, uint32_t ranks)
{
    const uint32_t most = profile_quota_workers(cpus);
    if (ranks > most) {
        cli_note("%u ranks in a quota of %.3g CPUs: more than %u at a time wait", ranks, cpus,
                 most);
    }
}

static void set_threads(double cpus, size_t pus, uint32_t ranks, bool says)
{
    char number[16];
    if (is_chosen()) {
        return;
    }
    snprintf(number, sizeof number, "%u", profile_quota_workers(cpus / ranks));
    pin_command_set(threads_name, number);
    if (says) {
        cli_note("a quota of %.3g CPUs on %zu PUs: %s=%s (--no-quota leaves it unset)", cpus, pus,
                 threads_name, number);
    }
}

void pin_command_keep_quota(const struct pin_command *command)
{
    const struct pin_launcher *launcher = &command->launcher;
    const bool says = pin_command_explains(command);
    struct pin_launcher own = *launcher;
    struct profile_mask mask, allowed;
    double cpus;
    if (!command->may_place || command->no_quota || command->options.disable) {
        return;
    }
    int rc = profile_quota_read("", &cpus);
    if (rc < 0 && says) {
        cli_note("quota of CPU time: %s; as without one",
                 rc == -ERANGE ? "less than 1 ms a period" : strerror(-rc));
    }
    if (rc < 0 || cpus <= 0 || profile_mask_get(0, &mask) < 0) {
        return;
    }
    pin_launcher_allowed(&own, &mask, &allowed);
    const uint32_t ranks = ranks_of_group(launcher);
    if (says) {
        note_ranks(cpus, ranks);
    }
    const size_t pus = profile_mask_count(&allowed), shared = own.local_size > 1 ? own.local_size
                                                              : own.name         ? own.sharers
                                                                                 : 1;
    if (cpus * (double)shared < (double)(pus * ranks)) {
        set_threads(cpus, pus, ranks, says);
    }
}

/* -- as tuned -- */

/* Without an entry the program runs as it would without the option: a batch job must not fail for a
 * file that is missing. */
static bool say_untuned(const struct pin_command *command, const struct servet_error *why)
{
    for (char **word = command->program + 1; *word; word++) {
        if (pin_tuned_is_open(*word)) {
            cli_usage("--tuned: %s, expected it to be: '%s' has no number", why->text, *word);
        }
    }
    if (pin_command_speaks(command)) {
        cli_note("--tuned: %s (servet-bench --tune does it): placed as without it", why->text);
    }
    return true;
}

bool pin_command_use_tuned(struct pin_command *command)
{
    const struct pin_launcher *launcher = &command->launcher;
    char **argv = command->program;
    char path[PATH_MAX], number[16];
    struct profile_mask mask;
    struct servet_error why;
    struct pin_tuned tuned = {.ranks = launcher->name ? launcher->node_ranks : 0,
                              .threads = pin_plan_threads()};
    if (command->may_place && !launcher->name && profile_mask_get(0, &mask) == 0) {
        tuned.pus = (uint32_t)profile_mask_count(&mask);
    }
    if (pin_tuned_find(argv[0], argv + 1, &tuned, path, &why) < 0) {
        return say_untuned(command, &why);
    }
    if (pin_command_explains(command)) {
        cli_note("--tuned: threads %u, placement %s%s%s (%s)", tuned.threads,
                 pin_tuned_names[tuned.placement], tuned.memory ? ", memory " : "",
                 tuned.memory ? pin_tuned_memories[tuned.memory] : "", path);
    }
    snprintf(number, sizeof number, "%u", tuned.threads);
    pin_command_set(threads_name, number);
    for (char **word = argv + 1; *word; word++) {
        *word = cli_needed(pin_tuned_fill(*word, &tuned));
    }
    if (tuned.placement == PIN_TUNED_DEFAULT) {
        return false;
    }
    bool memory = tuned.placement == PIN_TUNED_MEMORY;
    pin_command_set(pin_option_table[PIN_MEM_PRIOR].name, memory ? "1" : "0");
    pin_command_set(pin_option_table[PIN_COMM_PRIOR].name, memory ? "0" : "1");
    if (tuned.memory != PIN_TUNED_FIRST_TOUCH && command->options.membind == PIN_MEMBIND_NONE) {
        pin_command_set(pin_option_table[PIN_MEMBIND].name, pin_tuned_memories[tuned.memory]);
    }
    pin_command_read_environment(command);
    return true;
}
