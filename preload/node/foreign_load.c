/* PUs that idle, and those that other processes keep busy, by the kernel's counters.
 *
 * A PU whose idle time stands still for longer than a tick has had no idle moment; this also holds
 * in a container, where other users' processes are hidden.
 * The wait is made only where something else is runnable. */
#include "preload/node/foreign_load.h"

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
 * on this node and all that descend from it. */
struct fellows {
    uint32_t running;        /* threads */
    struct profile_mask pus; /* where they are, the calling process apart */
};

static void see_process(struct fellows *fellows, pid_t pid)
{
    struct profile_stat it;
    DIR *folder = profile_open_numbers(pid);
    for (pid_t tid; (tid = profile_next_number(folder));) {
        const bool runs = profile_stat_read(pid, tid, &it) && it.state == 'R';
        fellows->running += runs;
        if (runs && pid != getpid()) {
            profile_mask_add(&fellows->pus, (uint32_t)it.pu);
        }
    }
}

static void see_fellows(struct fellows *fellows, pid_t launcher)
{
    DIR *folder = launcher > 0 ? profile_open_numbers(0) : NULL;
    for (pid_t pid; (pid = profile_next_number(folder));) {
        if (pid == launcher || profile_descends_from(pid, launcher)) {
            see_process(fellows, pid);
        }
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
    if (running <= 1 || profile_mask_count(allowed) < 2) {
        return running > 0;
    }
    see_fellows(&before, launcher);
    if (running <= before.running) {
        return true;
    }
    if (!wait_for_idle(allowed, out)) {
        return false;
    }
    see_fellows(&after, launcher);
    profile_mask_intersect(&before.pus, &after.pus);
    profile_mask_subtract(out, &before.pus);
    return true;
}
