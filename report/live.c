/* What SERVET_REPORT would say of a program that runs, seen from outside: all of it is read from
 * /proc, so that the program needs no shim and is not disturbed. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/base/affinity_of_process.h"
#include "profile/base/launchers.h"
#include "profile/base/mask.h"
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

/* The PU of a thread that has just one, else -1. */
static int32_t single_pu(const struct profile_thread_now *now)
{
    char *end;
    long pu = strtol(now->allowed, &end, 10);
    return *end == '\0' && end != now->allowed ? (int32_t)pu : -1;
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
 * it has none or may not be read. */
static void read_rank(pid_t pid, char *out, size_t size)
{
    char path[64], *all = NULL;
    size_t room = 0;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *file = fopen(path, "re");
    ssize_t length = file ? getdelim(&all, &room, EOF, file) : -1;
    const char *const first[] = {profile_launchers[PROFILE_OPEN_MPI].rank,
                                 profile_launchers[PROFILE_HYDRA].rank, PROFILE_SLURM_RANK};
    const char *value = NULL;
    for (size_t i = 0; length > 0 && i < sizeof first / sizeof first[0] && !value; i++) {
        bool step = i < 2 || value_of(all, (size_t)length, PROFILE_SLURM_COUNTS);
        value = step ? value_of(all, (size_t)length, first[i]) : NULL;
    }
    for (size_t i = 0; length > 0 && i < PROFILE_LAUNCHERS && !value; i++) {
        value = value_of(all, (size_t)length, profile_launchers[i].rank);
    }
    snprintf(out, size, "%.12s", value ? value : "-");
    free(all);
    if (file) {
        fclose(file);
    }
}

int report_live_print(FILE *out, bool json, pid_t pid)
{
    char path[64], host[256] = "?", rank[16];
    struct dirent *entry;
    struct profile_mask seen = {0};
    int32_t shared = -1;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (!folder) {
        return errno == ENOENT ? -ESRCH : -errno;
    }
    gethostname(host, sizeof host - 1);
    read_rank(pid, rank, sizeof rank);
    const char *decided_by = shim_is_loaded(pid) ? "servet" : "others";
    while ((entry = readdir(folder))) {
        struct profile_thread_now now;
        pid_t tid = atoi(entry->d_name);
        if (tid <= 0 || profile_affinity_of_thread(pid, tid, &now) < 0) {
            continue;
        }
        int32_t pu = single_pu(&now);
        if (pu >= 0 && profile_mask_has(&seen, (uint32_t)pu)) {
            shared = pu;
        }
        if (pu >= 0) {
            profile_mask_add(&seen, (uint32_t)pu);
        }
        const struct profile_thread_said said = {
            .host = host,
            .rank = rank,
            .role = tid == pid ? "main"
                    : pu >= 0  ? "worker"
                               : "other",
            .pus = now.allowed,
            .decided_by = pu >= 0 ? decided_by : "nobody",
        };
        profile_affinity_print(out, json, &now, &said);
    }
    closedir(folder);
    if (json) {
        fprintf(out, "{\"host\":\"%s\",\"pid\":%d,\"shared_pu\":%d}\n", host, (int)pid, shared);
    } else if (shared < 0) {
        fprintf(out, "%s %d check: no two workers share a PU\n", host, (int)pid);
    } else {
        fprintf(out, "%s %d check: workers share a PU (%d)\n", host, (int)pid, shared);
    }
    return 0;
}
