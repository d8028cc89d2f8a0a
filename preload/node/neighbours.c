/* Threads of other processes that work on given PUs, and whose they are: as /proc shows them at one
 * moment, for those who ask (SERVET_REPORT, SERVET_VERBOSE). */
#include "preload/node/neighbours.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "profile/base/affinity_of_process.h"
#include "profile/base/file.h"

/* From a rank up to its launcher. */
#define MOST_GENERATIONS 16

struct search {
    const struct profile_mask *pus;
    pid_t launcher;
    struct pin_neighbours *found;
};

static bool descends_from(pid_t pid, pid_t ancestor)
{
    for (int generation = 0; ancestor && pid > 1 && generation < MOST_GENERATIONS; generation++) {
        char path[64], text[512];
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        (void)profile_read_small(path, text, sizeof text);
        const char *parent = profile_stat_find(text, PROFILE_STAT_PARENT);
        pid = parent ? (pid_t)atoi(parent) : 0;
        if (pid == ancestor) {
            return true;
        }
    }
    return false;
}

static void see_thread(const struct profile_thread_now *now, void *argument)
{
    const struct search *search = argument;
    struct pin_neighbours *found = search->found;
    const int32_t pu = profile_thread_pu(now);
    if (pu < 0 || !profile_mask_has(search->pus, (uint32_t)pu) ||
        descends_from(now->pid, getpid())) {
        return; /* children are where they were put */
    }
    for (size_t i = 0; i < found->count; i++) {
        if (found->each[i].pid == now->pid && found->each[i].pu == (uint32_t)pu) {
            found->each[i].bound |= now->only_pu >= 0;
            return;
        }
    }
    if (found->count < PIN_NEIGHBOURS) {
        struct pin_neighbour *next = &found->each[found->count++];
        *next = (struct pin_neighbour){.pid = now->pid,
                                       .pu = (uint32_t)pu,
                                       .bound = now->only_pu >= 0,
                                       .fellow = descends_from(now->pid, search->launcher)};
        snprintf(next->name, sizeof next->name, "%.15s", now->name);
    }
}

void pin_neighbours_find(const struct profile_mask *pus, pid_t launcher, struct pin_neighbours *out)
{
    struct search search = {.pus = pus, .launcher = launcher, .found = out};
    struct dirent *entry;
    DIR *folder = opendir("/proc");
    out->count = 0;
    while (folder && (entry = readdir(folder))) {
        pid_t pid = atoi(entry->d_name);
        if (pid > 0 && pid != getpid()) {
            (void)profile_affinity_of_threads(pid, see_thread, &search);
        }
    }
    if (folder) {
        closedir(folder);
    }
}
