/* What SERVET_REPORT would say of a program that runs, seen from outside: all of it is read from
 * /proc, so that the program needs no shim and is not disturbed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/cli.h"
#include "profile/base/launchers.h"
#include "profile/base/mask.h"
#include "profile/base/nearness.h"
#include "profile/processes/process.h"
#include "profile/processes/roles.h"
#include "profile/scope.h"
#include "profile/text/record.h"
#include "report/report.h"

static void find_libraries(pid_t pid, bool *shim, bool *runtime)
{
    struct profile_region region;
    *shim = *runtime = false;
    for (FILE *maps = profile_open_regions(pid); profile_next_region(maps, &region);) {
        *shim = *shim || strncmp(region.file, "libservet_pin.so", 16) == 0;
        *runtime = *runtime || profile_owner_of(region.file) == PROFILE_OWNER_RUNTIME;
    }
}

/* Switches of ours are off with 0. */
static bool is_switched_on(pid_t pid, const char *name)
{
    FREED char *value = profile_variable_of(pid, name);
    return value && *value && (strcmp(value, "0") != 0 || strncmp(name, "SERVET_", 7) != 0);
}

/* The one that bound the main thread, and OpenMP threads without a PU of the shim. The shim and
 * servet-pin export places that are not the user's. */
static enum profile_decider who_bound(pid_t pid)
{
    bool shim, runtime, places = false;
    find_libraries(pid, &shim, &runtime);
    for (const char *const *name = profile_users_places; *name; name++) {
        places = places || is_switched_on(pid, *name);
    }
    const bool ours =
        shim && (is_switched_on(pid, "SERVET_FORCE") || is_switched_on(pid, "SERVET_RANK"));
    return runtime && places && !ours ? PROFILE_BY_USER
           : shim                     ? PROFILE_BY_SERVET
                                      : PROFILE_BY_OTHERS;
}

/* A profile_variable. */
static const char *variable_of(const void *pid, const char *name)
{
    static char *last;
    char *value = profile_variable_of(*(const pid_t *)pid, name);
    free(last);
    return last = value;
}

/* Local rank from the environment the process was started with, as the shim reads it; "-" when it
 * has none or may not be read. */
static void read_rank(pid_t pid, char *out, size_t size)
{
    struct profile_local_rank found;
    snprintf(out, size, "-");
    if (profile_launcher_find(variable_of, &pid, &found)) {
        snprintf(out, size, "%u", found.rank);
    }
}

struct output {
    FILE *out;
    bool json;
    const char *rank;
    enum profile_decider bound_by;
    struct profile_roles roles;
    struct profile_mask seen, shared;
};

static void print_live_thread(const struct profile_thread_now *now, void *argument)
{
    struct output *to = argument;
    int32_t given;
    const enum profile_role role = profile_role_of(&to->roles, now, &given);
    const bool main = now->tid == now->pid,
               users = (main || role == PROFILE_ROLE_WORKER) && to->bound_by == PROFILE_BY_USER;
    const struct profile_thread_said said = {
        .rank = to->rank,
        .role = role,
        .pus = now->allowed,
        .decider = now->only_pu >= 0 && given == now->only_pu ? PROFILE_BY_SERVET
                   : users                                    ? PROFILE_BY_USER
                   : now->only_pu < 0                         ? PROFILE_BY_KERNEL
                   : main                                     ? to->bound_by
                                                              : PROFILE_BY_OTHERS,
    };
    const int32_t pu = said.role == PROFILE_ROLE_HELPER ? -1 : profile_thread_pu(now);
    if (pu >= 0) {
        profile_mask_add(profile_mask_has(&to->seen, (uint32_t)pu) ? &to->shared : &to->seen,
                         (uint32_t)pu);
    }
    profile_affinity_print(to->out, to->json, now, &said);
}

void report_live_print(FILE *out, bool json, pid_t pid)
{
    char rank[16], pus[256];
    FREED char *beside = profile_variable_of(pid, PROFILE_BESIDE);
    read_rank(pid, rank, sizeof rank);
    struct output to = {.out = out, .json = json, .rank = rank};
    to.bound_by = who_bound(pid);
    profile_roles_read(pid, &to.roles);
    if (!profile_affinity_of_threads(pid, print_live_thread, &to)) {
        if (errno == ENOENT || errno == ESRCH) {
            cli_usage("--live: expected a running process, %d is none", (int)pid);
        }
        cli_fail("--live %d: %s", (int)pid, strerrordesc_np(errno));
    }
    const struct report_place place = {.out = out, .json = json, .root = "", .pid = pid};
    report_live_gpus(&place, beside);
    profile_roles_free(&to.roles);
    const uint32_t first = profile_mask_next(&to.shared, 0);
    profile_mask_format(&to.shared, pus, sizeof pus);
    profile_record_print(
        out, json, pid,
        first < PROFILE_MASK_PUS ? "check: workers share PU {shared_pus}"
                                 : "check: no two workers share a PU",
        PROFILE_FACTS(PROFILE_NUMBER("shared_pu", first < PROFILE_MASK_PUS ? (int)first : -1),
                      PROFILE_WORD("shared_pus", pus)));
}
