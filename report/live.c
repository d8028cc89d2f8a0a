/* What SERVET_REPORT would say of a program that runs, seen from outside: all of it is read from
 * /proc, so that the program needs no shim and is not disturbed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/affinity_of_process.h"
#include "profile/base/launchers.h"
#include "profile/base/mask.h"
#include "profile/base/nearness.h"
#include "profile/base/record.h"
#include "profile/base/thread_role.h"
#include "report/report.h"

static bool shim_is_loaded(pid_t pid)
{
    char path[64], line[4096];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "r");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        found = strstr(line, "libservet_pin.so");
    }
    if (maps) {
        fclose(maps);
    }
    return found;
}

/* The value of a variable in an environment of `length` bytes, which a 0 ends; NULL. */
static const char *value_of(const char *environment, size_t length, const char *name)
{
    size_t known = strlen(name);
    for (const char *at = environment; at < environment + length; at += strlen(at) + 1) {
        if (strncmp(at, name, known) == 0 && at[known] == '=') {
            return at + known + 1;
        }
    }
    return NULL;
}

/* Local rank from the environment the process was started with, in the order of the shim; "-" when
 * it has none or may not be read. The result is its SERVET_BESIDE, to be freed, or NULL. */
static char *read_rank(pid_t pid, char *out, size_t size)
{
    char path[64], *all = NULL;
    size_t room = 0;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *file = fopen(path, "re");
    ssize_t length = file ? getdelim(&all, &room, EOF, file) : -1;
    const char *value = NULL;
    for (size_t i = 0; length > 0 && i < PROFILE_LAUNCHERS && !value; i++) {
        const struct profile_launcher *launcher = &profile_launchers[i];
        if (!launcher->also || value_of(all, (size_t)length, launcher->also)) {
            value = value_of(all, (size_t)length, launcher->rank);
        }
    }
    const char *named = value && (*value < '0' || *value > '9')
                            ? value_of(all, (size_t)length, value)
                            : NULL; /* SERVET_LOCAL_RANK may name another variable */
    snprintf(out, size, "%.12s", named ? named : value ? value : "-");
    const char *found = length > 0 ? value_of(all, (size_t)length, PROFILE_BESIDE) : NULL;
    char *beside = found ? strdup(found) : NULL;
    free(all);
    if (file) {
        fclose(file);
    }
    return beside;
}

struct output {
    FILE *out;
    bool json;
    const char *rank;
    enum profile_decider bound_by; /* who bound the threads that have no record of the shim's */
    struct profile_roles roles;
    struct profile_mask seen, shared;
};

static void print_thread(const struct profile_thread_now *now, void *argument)
{
    struct output *to = argument;
    int32_t given;
    const struct profile_thread_said said = {
        .rank = to->rank,
        .role = profile_role_of(&to->roles, now, &given),
        .pus = now->allowed,
        .decider = now->only_pu < 0        ? PROFILE_BY_KERNEL
                   : given == now->only_pu ? PROFILE_BY_SERVET
                   : now->tid == now->pid  ? to->bound_by
                                           : PROFILE_BY_OTHERS,
    };
    const int32_t pu = said.role == PROFILE_ROLE_HELPER ? -1 : profile_thread_pu(now);
    if (pu >= 0) {
        profile_mask_add(profile_mask_has(&to->seen, (uint32_t)pu) ? &to->shared : &to->seen,
                         (uint32_t)pu);
    }
    profile_affinity_print(to->out, to->json, now, &said);
}

int report_live_print(FILE *out, bool json, pid_t pid)
{
    char rank[16], pus[256];
    char *beside = read_rank(pid, rank, sizeof rank);
    struct output to = {.out = out, .json = json, .rank = rank};
    to.bound_by = shim_is_loaded(pid) ? PROFILE_BY_SERVET : PROFILE_BY_OTHERS;
    profile_roles_read(pid, &to.roles);
    const int rc = profile_affinity_of_threads(pid, print_thread, &to) ? 0 : -errno;
    const struct report_place place = {.out = out, .json = json, .root = "", .pid = pid};
    if (rc == 0) {
        report_live_gpus(&place, beside);
    }
    free(beside);
    profile_roles_free(&to.roles);
    if (rc < 0) {
        return rc == -ENOENT ? -ESRCH : rc;
    }
    const uint32_t first = profile_mask_next(&to.shared, 0);
    profile_mask_format(&to.shared, pus, sizeof pus);
    profile_record_print(
        out, json, pid,
        first < PROFILE_MASK_PUS ? "check: workers share PU {shared_pus}"
                                 : "check: no two workers share a PU",
        PROFILE_FACTS(profile_number("shared_pu", first < PROFILE_MASK_PUS ? (int)first : -1),
                      profile_text("shared_pus", pus)));
    return 0;
}
