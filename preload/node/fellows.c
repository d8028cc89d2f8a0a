/* What the processes of a rank's own job do on each PU, so that they do not pass for strangers.
 *
 * They are the launcher's process on this node and all that descend from it
 * (/proc/PID/task/TID/children). How long a process has run is asked of its clock, which is exact
 * at this moment; the counters in /proc are as old as the last tick of the scheduler, up to 10 ms.
 * The clock is of the process and not of its threads, so its time counts on the PU of its main
 * thread and on those where others of its threads run: rather a stranger too few than a fellow
 * taken for one. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "preload/node/node.h"
#include "profile/base/file.h"

/* Processes and places that are looked at, at most; beyond them nobody is told from strangers. */
#define MOST_PROCESSES 4096u
#define MOST_SEEN 8192u
/* Field of /proc/PID/stat: the PU that it ran on last. Fields are counted from the state, 3. */
#define STATE_FIELD 3
#define PU_FIELD 39

struct process {
    pid_t pid;
    uint64_t began_ns, ran_ns; /* its clock at the first look, and what it has run since */
};

struct pin_fellows {
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

static void add_seen(struct pin_fellows *fellows, size_t process, uint32_t pu)
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
static void see_thread(struct pin_fellows *fellows, size_t process, const char *tid)
{
    char path[64], text[512];
    pid_t pid = fellows->process[process].pid;
    snprintf(path, sizeof path, "/proc/%d/task/%.16s/stat", (int)pid, tid);
    (void)profile_read_small(path, text, sizeof text);
    const char *field = strrchr(text, ')');
    if (!field || field[1] != ' ') {
        return; /* it has ended */
    }
    bool runs = field[2] == 'R';
    fellows->running += runs;
    field++;
    for (int number = STATE_FIELD; field && number < PU_FIELD; number++) {
        field = strchr(field + 1, ' ');
    }
    if (field && (runs || atoi(tid) == pid)) {
        add_seen(fellows, process, (uint32_t)strtoul(field, NULL, 10));
    }
}

static size_t find(const struct pin_fellows *fellows, pid_t pid)
{
    size_t i = 0;
    while (i < fellows->count && fellows->process[i].pid != pid) {
        i++;
    }
    return i;
}

/* -EOVERFLOW: there are too many. */
static int add_process(struct pin_fellows *fellows, pid_t pid, uint64_t began_ns)
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
static int add_children(struct pin_fellows *fellows, pid_t pid, const char *tid, bool first)
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

static int see_process(struct pin_fellows *fellows, size_t process, bool first)
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

static int see_all(struct pin_fellows *fellows, bool first)
{
    int rc = 0;
    fellows->running = 0;
    for (size_t i = 0; rc == 0 && i < fellows->count; i++) {
        rc = see_process(fellows, i, first);
    }
    return rc;
}

int pin_fellows_begin(pid_t launcher, struct pin_fellows **out, uint32_t *running)
{
    struct pin_fellows *fellows = calloc(1, sizeof *fellows);
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

int pin_fellows_end(struct pin_fellows *fellows, uint64_t *ran_ns, size_t pus)
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
