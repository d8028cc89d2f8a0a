/* PUs that idle, and those that other processes keep busy, by the kernel's counters.
 *
 * A PU whose idle time stands still for longer than a tick has had no idle moment; this also holds
 * in a container, where other users' processes are hidden.
 * The wait is made only where something else is runnable. */
#include "preload/node/foreign_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profile/base/file.h"
#include "profile/processes/process.h"

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
