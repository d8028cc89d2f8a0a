/* Where a thread is right now. */
#include "profile/processes/threads.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "profile/base/clock.h"
#include "profile/base/file.h"
#include "profile/base/mask.h"
#include "profile/processes/process.h"
#include "profile/text/record.h"

#define TICK_NS 10000000u

/* Where it does not work by the time that it has run, by that and the time that it was ready to. */
static bool works(const struct profile_thread_now *now, const struct profile_stat *stat)
{
    const uint64_t lived = profile_clock_ns(CLOCK_BOOTTIME) / TICK_NS - stat->began;
    uint64_t ran_ns, waited_ns;
    return profile_works(stat->ran, lived) ||
           (now->runs && stat->ran > 0 &&
            profile_schedstat_read(now->pid, now->tid, &ran_ns, &waited_ns) &&
            profile_works(stat->ran + waited_ns / TICK_NS, lived));
}

int profile_affinity_of_thread(pid_t pid, pid_t tid, struct profile_thread_now *out)
{
    struct profile_stat stat;
    struct profile_mask mask;
    if (!profile_stat_read(pid, tid, &stat) || stat.bytes == 0 ||
        profile_mask_get(tid, &mask) < 0) {
        return -ESRCH;
    }
    *out = (struct profile_thread_now){
        .pid = pid, .tid = tid, .last_pu = stat.pu, .only_pu = -1, .runs = stat.state == 'R'};
    out->works = works(out, &stat);
    if (profile_mask_count(&mask) == 1) {
        out->only_pu = (int32_t)profile_mask_next(&mask, 0);
    }
    memcpy(out->name, stat.name, sizeof out->name);
    profile_mask_format(&mask, out->allowed, sizeof out->allowed);
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
    struct profile_thread_now now;
    DIR *folder = profile_open_numbers(pid);
    const bool is_there = folder;
    for (pid_t tid; (tid = profile_next_number(folder));) {
        if (profile_affinity_of_thread(pid, tid, &now) == 0) {
            see(&now, argument);
        }
    }
    return is_there;
}

static void read_text_of_pu(const char *format, int32_t pu, char *out, size_t size)
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
    read_text_of_pu("/sys/devices/system/cpu/cpu%d/topology/core_id", now->last_pu, core,
                    sizeof core);
    read_text_of_pu("/sys/devices/system/cpu/cpu%d/cache/index3/id", now->last_pu, l3, sizeof l3);
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
