/* In a quota, runtimes start a thread for each PU of the mask; those that spin while they wait burn
 * the time of those that work. The shim changes no count: this command does, before there is a
 * program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/command/command.h"
#include "profile/base/cli.h"
#include "profile/base/control_groups.h"
#include "profile/base/file.h"

static const char threads_name[] = "OMP_NUM_THREADS";

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
