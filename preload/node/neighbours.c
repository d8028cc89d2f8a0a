/* Other processes on given PUs: whether they keep these busy, by the kernel's counters, and which
 * they are, as /proc shows them at one moment, for those who ask (SERVET_REPORT, SERVET_VERBOSE).
 *
 * A PU whose idle time stands still for longer than a tick has had no idle moment; this also holds
 * in a container, where other users' processes are hidden. The wait is made only where something
 * else is runnable. */
#include "preload/node/neighbours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profile/base/file.h"
#include "profile/processes/process.h"
#include "profile/processes/threads.h"

/* -- PUs that idle -- */

bool pin_idling_read(struct pin_idling *idling, const struct profile_mask *pus)
{
    const bool before_is_known = idling->is_known;
    size_t count = 0;
    PROFILE_MASK_EACH(pus, pu)
    {
        count = pu + 1;
    }
    memcpy(idling->before, idling->now, count * sizeof *idling->now);
    idling->is_known = profile_ticks_get(idling->now, count) == 0;
    return before_is_known && idling->is_known;
}

/* -- fellows -- */

/* Threads of a rank's own job that run: they are no foreign load. The job is the launcher's process
 * on this node and all that descend from it (/proc/PID/task/TID/children). */
struct fellows {
    uint32_t running;        /* threads */
    struct profile_mask pus; /* where they are, the calling process apart */
    bool with_us; /* the caller is one of them: kernels without CONFIG_PROC_CHILDREN do not tell */
};

/* Below a launcher: each costs an open folder. */
#define MOST_GENERATIONS 16

static void see_thread(struct fellows *fellows, pid_t pid, pid_t tid)
{
    struct profile_stat it;
    if (!profile_stat_read(pid, tid, &it) || it.state != 'R') {
        return;
    }
    fellows->running++;
    if (pid != getpid()) {
        profile_mask_add(&fellows->pus, (uint32_t)it.pu);
    }
}

static void see_process(struct fellows *fellows, pid_t pid, int generation);

static void see_children(struct fellows *fellows, pid_t pid, pid_t tid, int generation)
{
    char path[64];
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)tid);
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%d", &child) == 1) {
        see_process(fellows, child, generation + 1);
    }
    if (file) {
        fclose(file);
    }
}

static void see_process(struct fellows *fellows, pid_t pid, int generation)
{
    DIR *folder = generation < MOST_GENERATIONS ? profile_open_numbers(pid) : NULL;
    fellows->with_us |= pid == getpid();
    for (pid_t tid; (tid = profile_next_number(folder));) {
        see_thread(fellows, pid, tid);
        see_children(fellows, pid, tid, generation);
    }
}

/* -- busy PUs -- */

/* PUs of `allowed` that do not idle once in the time of a look. */
static bool wait_for_idle(const struct profile_mask *allowed, struct profile_mask *busy)
{
    struct pin_idling *idling = calloc(1, sizeof *idling);
    const bool is_known =
        idling && !pin_idling_read(idling, allowed) &&
        nanosleep(&(struct timespec){.tv_nsec = PROFILE_TICKS_APART_NS}, NULL) == 0 &&
        pin_idling_read(idling, allowed);
    PROFILE_MASK_EACH(allowed, pu)
    {
        if (is_known && pin_idled_ns(idling, pu) == 0) {
            profile_mask_add(busy, pu);
        }
    }
    free(idling);
    return is_known;
}

/* A PU is the job's own where a thread of it runs before the look and after it: had a stranger it
 * alone, no thread of the job would be there both times. */
bool pin_foreign_load_pus(const struct profile_mask *allowed, pid_t launcher,
                          struct profile_mask *out)
{
    struct fellows before = {0}, after = {0};
    *out = (struct profile_mask){0};
    const uint32_t running = profile_running_tasks();
    if (running > 1 && launcher != 0 && profile_mask_count(allowed) > 1) {
        see_process(&before, launcher, 0);
    }
    if (running <= 1 || running <= before.running || profile_mask_count(allowed) < 2) {
        return running > 0;
    }
    if ((launcher != 0 && !before.with_us) || !wait_for_idle(allowed, out)) {
        return false;
    }
    if (launcher != 0) {
        see_process(&after, launcher, 0);
    }
    profile_mask_intersect(&before.pus, &after.pus);
    profile_mask_subtract(out, &before.pus);
    return true;
}

/* -- which processes -- */

struct search {
    const struct profile_mask *pus;
    pid_t launcher;
    struct pin_neighbours *found;
};

static void see_neighbour(const struct profile_thread_now *now, void *argument)
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
            (void)profile_affinity_of_threads(pid, see_neighbour, &search);
        }
    }
}
