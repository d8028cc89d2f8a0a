/* Threads of other processes that work on given PUs, and whose they are: as /proc shows them at one
 * moment, for those who ask (SERVET_REPORT, SERVET_VERBOSE). */
#include "preload/node/neighbours.h"

#include <stdio.h>
#include <unistd.h>

#include "profile/processes/process.h"
#include "profile/processes/threads.h"

struct search {
    const struct profile_mask *pus;
    pid_t launcher;
    struct pin_neighbours *found;
};

static void see_thread(const struct profile_thread_now *now, void *argument)
{
    const struct search *search = argument;
    struct pin_neighbours *found = search->found;
    const int32_t pu = profile_thread_pu(now);
    if (pu < 0 || !profile_mask_has(search->pus, (uint32_t)pu) ||
        profile_descends_from(now->pid, getpid())) {
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
                                       .fellow = profile_descends_from(now->pid, search->launcher)};
        snprintf(next->name, sizeof next->name, "%.15s", now->name);
    }
}

void pin_neighbours_find(const struct profile_mask *pus, pid_t launcher, struct pin_neighbours *out)
{
    struct search search = {.pus = pus, .launcher = launcher, .found = out};
    out->count = 0;
    DIR *folder = profile_open_numbers(0);
    for (pid_t pid; (pid = profile_next_number(folder));) {
        if (pid != getpid()) {
            (void)profile_affinity_of_threads(pid, see_thread, &search);
        }
    }
}
