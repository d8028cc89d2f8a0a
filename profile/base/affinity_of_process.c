/* Where a thread is right now. */
#include "profile/base/affinity_of_process.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/base/mask.h"
#include "profile/text/record.h"

#define TICK_NS 10000000u

static uint64_t number_at(const char *stat, enum profile_stat_field field)
{
    const char *text = profile_stat_find(stat, field);
    return text ? strtoull(text, NULL, 10) : 0;
}

/* Ticks that a thread was ready to run and another one ran. */
static uint64_t waited(pid_t pid, pid_t tid)
{
    char path[96], text[96];
    unsigned long long waited_ns = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    (void)profile_read_small(path, text, sizeof text);
    return sscanf(text, "%*s %llu", &waited_ns) == 1 ? waited_ns / TICK_NS : 0;
}

static bool works(const struct profile_thread_now *now, const char *stat)
{
    const uint64_t lived = profile_clock_ns(CLOCK_BOOTTIME) / TICK_NS -
                           number_at(stat, PROFILE_STAT_BEGAN),
                   ran = number_at(stat, PROFILE_STAT_USER) + number_at(stat, PROFILE_STAT_SYSTEM);
    return profile_works(ran, lived) ||
           (now->runs && ran > 0 && profile_works(ran + waited(now->pid, now->tid), lived));
}

int profile_affinity_of_thread(pid_t pid, pid_t tid, struct profile_thread_now *out)
{
    char path[96], text[1024];
    struct profile_thread_now now = {.pid = pid, .tid = tid, .only_pu = -1};
    struct profile_mask mask;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    if (!profile_read_small(path, text, sizeof text) || number_at(text, PROFILE_STAT_BYTES) == 0 ||
        profile_mask_get(tid, &mask) < 0) {
        return -ESRCH;
    }
    const char *left = strchr(text, '('), *right = strrchr(text, ')');
    snprintf(now.name, sizeof now.name, "%.*s", (int)(right - left - 1), left + 1);
    now.last_pu = (int32_t)number_at(text, PROFILE_STAT_PU);
    now.runs = *profile_stat_find(text, PROFILE_STAT_STATE) == 'R';
    now.works = works(&now, text);
    if (profile_mask_count(&mask) == 1) {
        now.only_pu = (int32_t)profile_mask_next(&mask, 0);
    }
    profile_mask_format(&mask, now.allowed, sizeof now.allowed);
    *out = now;
    return 0;
}

int32_t profile_thread_pu(const struct profile_thread_now *now)
{
    const bool bound = now->only_pu >= 0;
    return bound + now->runs + now->works < 2 ? -1 : bound ? now->only_pu : now->last_pu;
}

bool profile_affinity_of_threads(pid_t pid,
                                 void (*see)(const struct profile_thread_now *now, void *argument),
                                 void *argument)
{
    char path[64];
    struct dirent *entry;
    struct profile_thread_now now;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        if (profile_affinity_of_thread(pid, atoi(entry->d_name), &now) == 0) {
            see(&now, argument);
        }
    }
    return folder && closedir(folder) == 0;
}

static void read_number(const char *format, int32_t pu, char *out, size_t size)
{
    char path[128], text[32];
    snprintf(path, sizeof path, format, pu);
    bool read = profile_read_small(path, text, sizeof text);
    snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), read ? text : "-");
}

/* The cpuN folder holds a link nodeM. */
static void find_node(int32_t pu, char *out, size_t size)
{
    char path[64];
    struct dirent *entry;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d", pu);
    snprintf(out, size, "-");
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        if (strncmp(entry->d_name, "node", 4) == 0 && entry->d_name[4] >= '0' &&
            entry->d_name[4] <= '9') {
            snprintf(out, size, "%.15s", entry->d_name + 4);
        }
    }
    if (folder) {
        closedir(folder);
    }
}

static const char *const roles[] = {"main",   "worker", "thread", "brief",
                                    "helper", "watch",  "unknown"};
static const char *const deciders[] = {"servet", "kernel", "program", "user", "others"};

void profile_affinity_print(FILE *out, bool json, const struct profile_thread_now *now,
                            const struct profile_thread_said *said)
{
    char core[16], l3[16], node[16];
    read_number("/sys/devices/system/cpu/cpu%d/topology/core_id", now->last_pu, core, sizeof core);
    read_number("/sys/devices/system/cpu/cpu%d/cache/index3/id", now->last_pu, l3, sizeof l3);
    find_node(now->last_pu, node, sizeof node);
    profile_record_print(
        out, json, now->pid,
        "rank {local_rank} tid {tid} {name} {role} PU {pus} last {last_pu} core "
        "{core} L3 {l3} NUMA {numa} by {decided_by}",
        PROFILE_FACTS(PROFILE_WORD("local_rank", said->rank), PROFILE_NUMBER("tid", now->tid),
                      PROFILE_WORD("name", now->name), PROFILE_WORD("role", roles[said->role]),
                      PROFILE_WORD("pus", said->pus), PROFILE_NUMBER("last_pu", now->last_pu),
                      PROFILE_WORD("core", core), PROFILE_WORD("l3", l3),
                      PROFILE_WORD("numa", node),
                      PROFILE_WORD("decided_by", deciders[said->decider])));
}
