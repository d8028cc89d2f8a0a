/* Which PUs other people's work keeps busy at this moment, by the kernel's counters.
 *
 * /proc/stat counts each PU's idle time in ticks of 10 ms. A PU whose count stands still for two of
 * them has had no idle moment, whoever's work it was: in a container, and with other users'
 * processes hidden, too. That costs a wait, so it is asked for only where something else is
 * runnable at all; then for as short a time as shows that every PU idles. */
#include "preload/node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profile/base/clock.h"
#include "profile/base/file.h"

/* A PU is a stranger's when our own job ran there for less than this share of the time: beside one
 * stranger of its own weight a process has a half. */
#define OURS 0.8
/* Two ticks of the counters (USER_HZ is 100 everywhere), looked at in steps. */
#define STEP_NS 5000000
#define STEPS 4
/* Threads that run or wait for each PU: a queue, and not a stranger and a job of ours or two. */
#define CROWD 4
/* Fields of a line of /proc/stat: name, user, nice, system, idle, iowait. */
#define IDLE_FIELD 4

/* "cpu12 …": the idle and waiting ticks of one PU. */
static void read_line(const char *line, uint32_t *ticks, size_t pus)
{
    char *end;
    unsigned long pu = strtoul(line + strlen("cpu"), &end, 10);
    if (end == line + strlen("cpu") || pu >= pus) {
        return;
    }
    for (int field = 1; field < IDLE_FIELD; field++) {
        (void)strtoull(end, &end, 10);
    }
    unsigned long long idle = strtoull(end, &end, 10);
    ticks[pu] = (uint32_t)(idle + strtoull(end, &end, 10));
}

int pin_busy_idle(uint32_t *ticks, size_t pus)
{
    char text[4096];
    size_t kept = 0;
    int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return -errno;
    }
    for (bool more = true; more;) {
        ssize_t got = read(file, text + kept, sizeof text - 1 - kept);
        char *line = text, *end;
        text[kept + (got > 0 ? (size_t)got : 0)] = '\0';
        while ((more = strncmp(line, "cpu", 3) == 0) && (end = strchr(line, '\n'))) {
            read_line(line, ticks, pus);
            line = end + 1;
        }
        kept = strlen(line);
        memmove(text, line, kept + 1);
        more = got > 0 && (more || kept < 3) && kept < sizeof text - 1;
    }
    close(file);
    return 0;
}

/* Highest PU + 1. */
static size_t width_of(const struct profile_mask *mask)
{
    size_t width = 0;
    PROFILE_MASK_EACH(mask, pu)
    {
        width = pu + 1;
    }
    return width;
}

static void compare(const struct profile_mask *allowed, const uint32_t *before, const uint32_t *now,
                    size_t pus, struct profile_mask *out)
{
    *out = (struct profile_mask){0};
    for (uint32_t pu = 0; pu < pus; pu++) {
        if (profile_mask_has(allowed, pu) && before[pu] == now[pu]) {
            profile_mask_add(out, pu);
        }
    }
}

/* Waits until every PU has idled, or the time is over, and leaves in `busy` those that have not.
 * Where more is runnable than there are PUs they will hardly all idle: then there is one look, and
 * 500 programs that start at once do not wake each other up for four. */
static void wait_for_idle(const struct profile_mask *allowed, uint32_t running, uint32_t *before,
                          size_t pus, struct profile_mask *busy)
{
    uint32_t *now = before + pus;
    int steps = running > profile_mask_count(allowed) ? 1 : STEPS;
    *busy = *allowed;
    for (int step = 0; step < steps && !profile_mask_empty(busy); step++) {
        nanosleep(&(struct timespec){.tv_nsec = STEP_NS * STEPS / steps}, NULL);
        if (pin_busy_idle(now, pus) < 0) {
            *busy = (struct profile_mask){0};
            return;
        }
        compare(allowed, before, now, pus, busy);
    }
}

/* Leaves out what our own job has kept busy for `passed_ns`. */
static void leave_out_ours(struct pin_fellows *fellows, uint64_t passed_ns, size_t pus,
                           struct profile_mask *busy)
{
    uint64_t *ran_ns = calloc(pus, sizeof *ran_ns);
    bool known = pin_fellows_end(fellows, ran_ns, ran_ns ? pus : 0) == 0 && ran_ns;
    for (uint32_t pu = 0; pu < pus; pu++) {
        if (!known || (double)ran_ns[pu] > OURS * (double)passed_ns) {
            profile_mask_remove(busy, pu);
        }
    }
    free(ran_ns);
}

bool pin_busy_is_crowd(uint32_t running, const struct profile_mask *allowed)
{
    return running > CROWD * profile_mask_count(allowed);
}

void pin_busy_pus(const struct profile_mask *allowed, pid_t launcher, struct profile_mask *out)
{
    uint32_t ours = 1, running; /* itself */
    struct pin_fellows *fellows = NULL;
    *out = (struct profile_mask){0};
    if (profile_mask_count(allowed) < 2 || (running = profile_running_tasks()) <= ours ||
        (launcher != 0 && pin_fellows_begin(launcher, &fellows, &ours) < 0)) {
        return;
    }
    size_t pus = width_of(allowed);
    uint64_t begun_ns = profile_now_ns();
    uint32_t *before = running > ours ? calloc(2 * pus, sizeof *before) : NULL;
    if (before && pin_busy_idle(before, pus) == 0) {
        wait_for_idle(allowed, running, before, pus, out);
    }
    if (fellows) {
        leave_out_ours(fellows, profile_now_ns() - begun_ns, pus, out);
    }
    free(before);
}
