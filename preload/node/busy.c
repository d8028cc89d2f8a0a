/* Which PUs other people's work keeps busy at this moment, by the kernel's counters.
 *
 * /proc/stat counts each PU's idle time in ticks of 10 ms. A PU whose count stands still for two of
 * them has had no idle moment, whoever's work it was: in a container, and with other users'
 * processes hidden, too. That costs a wait, so it is asked for only where something else is
 * runnable at all; then for as short a time as shows that every PU idles. */
#include "preload/node/node.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profile/base/clock.h"
#include "profile/base/file.h"

/* -- fellows -- */

/* What the processes of a rank's own job do on each PU, so that they do not pass for strangers.
 *
 * They are the launcher's process on this node and all that descend from it
 * (/proc/PID/task/TID/children). How long a process has run is asked of its clock, which is exact
 * at this moment; the counters in /proc are as old as the last tick of the scheduler, up to 10 ms.
 * The clock is of the process and not of its threads, so its time counts on the PU of its main
 * thread and on those where others of its threads run: rather a stranger too few than a fellow
 * taken for one. */

/* Processes and places that are looked at, at most; beyond them nobody is told from strangers. */
#define MOST_PROCESSES 4096u
#define MOST_SEEN 8192u

struct process {
    pid_t pid;
    uint64_t began_ns, ran_ns; /* its clock at the first look, and what it has run since */
};

struct fellows {
    size_t count, seen_count;
    uint32_t running; /* threads, at the last look */
    struct process process[MOST_PROCESSES];
    struct {
        uint32_t process, pu;
    } seen[MOST_SEEN];
};

static uint64_t clock_of(pid_t pid)
{
    clockid_t id;
    struct timespec time;
    if (clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &time) < 0) {
        return 0;
    }
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void add_seen(struct fellows *fellows, size_t process, uint32_t pu)
{
    for (size_t i = 0; i < fellows->seen_count; i++) {
        if (fellows->seen[i].process == process && fellows->seen[i].pu == pu) {
            return;
        }
    }
    if (fellows->seen_count < MOST_SEEN) {
        fellows->seen[fellows->seen_count].process = (uint32_t)process;
        fellows->seen[fellows->seen_count++].pu = pu;
    }
}

/* Where a thread is, and whether it runs. */
static void see_thread(struct fellows *fellows, size_t process, const char *tid)
{
    char path[64], text[512];
    pid_t pid = fellows->process[process].pid;
    snprintf(path, sizeof path, "/proc/%d/task/%.16s/stat", (int)pid, tid);
    (void)profile_read_small(path, text, sizeof text);
    const char *state = profile_stat_find(text, PROFILE_STAT_STATE),
               *pu = profile_stat_find(text, PROFILE_STAT_PU);
    bool runs = state && *state == 'R'; /* without one it has ended */
    fellows->running += runs;
    if (pu && (runs || atoi(tid) == pid)) {
        add_seen(fellows, process, (uint32_t)strtoul(pu, NULL, 10));
    }
}

static size_t find(const struct fellows *fellows, pid_t pid)
{
    size_t i = 0;
    while (i < fellows->count && fellows->process[i].pid != pid) {
        i++;
    }
    return i;
}

/* -EOVERFLOW: there are too many. */
static int add_process(struct fellows *fellows, pid_t pid, uint64_t began_ns)
{
    if (pid <= 0 || find(fellows, pid) < fellows->count) {
        return 0;
    }
    if (fellows->count == MOST_PROCESSES) {
        return -EOVERFLOW;
    }
    fellows->process[fellows->count++] = (struct process){.pid = pid, .began_ns = began_ns};
    return 0;
}

/* -ENOSYS: the kernel was built without the file (CONFIG_PROC_CHILDREN). */
static int add_children(struct fellows *fellows, pid_t pid, const char *tid, bool first)
{
    char path[64], word[16];
    int rc = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", (int)pid, tid);
    FILE *file = fopen(path, "re");
    if (!file) {
        return errno == ENOENT && find(fellows, getpid()) == fellows->count ? -ENOSYS : 0;
    }
    while (rc == 0 && fscanf(file, "%15s", word) == 1) {
        pid_t child = atoi(word);
        rc = add_process(fellows, child, first ? clock_of(child) : 0);
    }
    fclose(file);
    return rc;
}

static int see_process(struct fellows *fellows, size_t process, bool first)
{
    char path[64];
    struct dirent *entry;
    int rc = 0;
    pid_t pid = fellows->process[process].pid;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    while (folder && rc == 0 && (entry = readdir(folder))) {
        if (atoi(entry->d_name) > 0) {
            see_thread(fellows, process, entry->d_name);
            rc = add_children(fellows, pid, entry->d_name, first);
        }
    }
    if (folder) {
        closedir(folder);
    }
    return rc;
}

static int see_all(struct fellows *fellows, bool first)
{
    int rc = 0;
    fellows->running = 0;
    for (size_t i = 0; rc == 0 && i < fellows->count; i++) {
        rc = see_process(fellows, i, first);
    }
    return rc;
}

/* The first look at `launcher` and all that descend from it; `*running`: threads of theirs that
 * run. To be ended. 0; -ENOSYS (the kernel does not tell that the caller descends from it),
 * -EOVERFLOW (more than MOST_PROCESSES), -ENOMEM. */
static int begin_fellows(pid_t launcher, struct fellows **out, uint32_t *running)
{
    struct fellows *fellows = calloc(1, sizeof *fellows);
    if (!fellows) {
        return -ENOMEM;
    }
    int rc = add_process(fellows, launcher, clock_of(launcher));
    rc = rc < 0 ? rc : see_all(fellows, true);
    if (rc == 0 && find(fellows, getpid()) == fellows->count) {
        rc = -ENOSYS;
    }
    if (rc < 0) {
        free(fellows);
        return rc;
    }
    *running = fellows->running;
    *out = fellows;
    return 0;
}

/* Adds to `ran_ns` of each PU below `pus` how long they ran there since, and frees. A process that
 * was on two PUs counts in full on both. 0, and the errors of begin: then it is not known. */
static int end_fellows(struct fellows *fellows, uint64_t *ran_ns, size_t pus)
{
    int rc = see_all(fellows, false);
    for (size_t i = 0; i < fellows->count; i++) {
        uint64_t now_ns = clock_of(fellows->process[i].pid),
                 began_ns = fellows->process[i].began_ns;
        fellows->process[i].ran_ns = now_ns > began_ns ? now_ns - began_ns : 0;
    }
    for (size_t i = 0; i < fellows->seen_count; i++) {
        if (fellows->seen[i].pu < pus) {
            ran_ns[fellows->seen[i].pu] += fellows->process[fellows->seen[i].process].ran_ns;
        }
    }
    free(fellows);
    return rc;
}

/* -- busy PUs -- */

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
static void leave_out_ours(struct fellows *fellows, uint64_t passed_ns, size_t pus,
                           struct profile_mask *busy)
{
    uint64_t *ran_ns = calloc(pus, sizeof *ran_ns);
    bool known = end_fellows(fellows, ran_ns, ran_ns ? pus : 0) == 0 && ran_ns;
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
    struct fellows *fellows = NULL;
    *out = (struct profile_mask){0};
    if (profile_mask_count(allowed) < 2 || (running = profile_running_tasks()) <= ours ||
        (launcher != 0 && begin_fellows(launcher, &fellows, &ours) < 0)) {
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
