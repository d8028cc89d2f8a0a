/* PUs that other processes keep busy at this moment, by the kernel's counters.
 *
 * /proc/stat counts each PU's idle time in ticks of 10 ms. A PU whose count stands still for longer
 * has had no idle moment; this also holds in a container, where other users' processes are hidden.
 * The wait is made only where something else is runnable. */
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

/* Time that the processes of a rank's own job use on each PU; it is not foreign load.
 *
 * They are the launcher's process on this node and all that descend from it
 * (/proc/PID/task/TID/children). How long a process has run is asked of its clock, which is exact
 * at this moment; the counters in /proc are as old as the last tick of the scheduler, up to 10 ms.
 * The clock is of the process and not of its threads, so its time counts on the PU of its main
 * thread and on those where others of its threads run: rather a stranger too few than a fellow
 * taken for one. */

/* More than those are not told from strangers. */
#define MOST_PROCESSES 4096u

struct process {
    pid_t pid;
    uint64_t began_ns; /* its clock at the first look */
    struct profile_mask pus;
};

struct fellows {
    size_t count;
    uint32_t running; /* threads, at the last look */
    struct process process[MOST_PROCESSES];
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

/* Where a thread is, and whether it runs. */
static void see_thread(struct fellows *fellows, struct process *process, const char *tid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%.16s/stat", (int)process->pid, tid);
    (void)profile_read_small(path, text, sizeof text);
    const char *state = profile_stat_find(text, PROFILE_STAT_STATE),
               *pu = profile_stat_find(text, PROFILE_STAT_PU);
    bool runs = state && *state == 'R'; /* without one it has ended */
    fellows->running += runs;
    if (pu && (runs || atoi(tid) == process->pid)) {
        profile_mask_add(&process->pus, (uint32_t)strtoul(pu, NULL, 10));
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

static int see_process(struct fellows *fellows, struct process *process, bool first)
{
    char path[64];
    struct dirent *entry;
    int rc = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)process->pid);
    DIR *folder = opendir(path);
    while (folder && rc == 0 && (entry = readdir(folder))) {
        if (atoi(entry->d_name) > 0) {
            see_thread(fellows, process, entry->d_name);
            rc = add_children(fellows, process->pid, entry->d_name, first);
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
        rc = see_process(fellows, &fellows->process[i], first);
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

/* -- busy PUs -- */

/* A PU is a stranger's when our own job ran there for less than this share of the time: beside one
 * stranger of its own weight a process has a half. */
#define OURS 0.8
/* One tick of the counters (USER_HZ is 100 everywhere), and some more. */
#define LOOK_NS 11000000
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

/* PUs below `pus` of `allowed` that do not idle once in the time of a look. */
static void wait_for_idle(const struct profile_mask *allowed, size_t pus, struct profile_mask *busy)
{
    uint32_t *before = calloc(2 * pus, sizeof *before), *now = before + pus;
    bool known = before && pin_busy_idle(before, pus) == 0 &&
                 nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL) == 0 &&
                 pin_busy_idle(now, pus) == 0;
    PROFILE_MASK_EACH(allowed, pu)
    {
        if (known && before[pu] == now[pu]) {
            profile_mask_add(busy, pu);
        }
    }
    free(before);
}

/* Leaves out what our own job has kept busy since the first look, `passed_ns` ago, and frees. A
 * process that was on two PUs counts in full on both. */
static void leave_out_ours(struct fellows *fellows, uint64_t passed_ns, struct profile_mask *busy)
{
    uint64_t *ran_ns = calloc(PROFILE_MASK_PUS, sizeof *ran_ns);
    const bool known = ran_ns && see_all(fellows, false) == 0;
    for (size_t i = 0; known && i < fellows->count; i++) {
        const struct process *process = &fellows->process[i];
        const uint64_t now_ns = clock_of(process->pid);
        PROFILE_MASK_EACH(&process->pus, pu)
        {
            ran_ns[pu] += now_ns > process->began_ns ? now_ns - process->began_ns : 0;
        }
    }
    PROFILE_MASK_EACH(busy, pu)
    {
        if (!known || (double)ran_ns[pu] > OURS * (double)passed_ns) {
            profile_mask_remove(busy, pu);
        }
    }
    free(ran_ns);
    free(fellows);
}

void pin_busy_pus(const struct profile_mask *allowed, pid_t launcher, struct profile_mask *out)
{
    uint32_t ours = 1, running; /* itself */
    struct fellows *fellows = NULL;
    size_t pus = 0;
    *out = (struct profile_mask){0};
    if (profile_mask_count(allowed) < 2 || (running = profile_running_tasks()) <= ours ||
        (launcher != 0 && begin_fellows(launcher, &fellows, &ours) < 0)) {
        return;
    }
    PROFILE_MASK_EACH(allowed, pu)
    {
        pus = pu + 1;
    }
    const uint64_t begun_ns = profile_now_ns();
    if (running > ours) {
        wait_for_idle(allowed, pus, out);
    }
    if (fellows) {
        leave_out_ours(fellows, profile_now_ns() - begun_ns, out);
    }
}
