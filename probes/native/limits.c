/* What the system and the control groups of this process allow it: memory, and time on PUs.
 *
 * Every group above a process limits it, so the least of all counts. Under cgroup v2 one tree has
 * all controllers, under v1 each has its own, and both may be there at once; in a container the
 * path of /proc/self/cgroup may not exist, and its root stands for the group. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probes/native/native.h"

/* What one group's folder allows; INFINITY: it says nothing. */
typedef double read_limit(const char *folder);

/* INFINITY: no such file, or no limit in it ("max", -1). */
static double read_number(const char *folder, const char *name)
{
    char path[4400];
    double value;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    int fields = file ? fscanf(file, "%lf", &value) : 0;
    if (file) {
        fclose(file);
    }
    return fields == 1 && value >= 0 ? value : INFINITY;
}

/* The group itself and all above it. */
static double least_upwards(const char *root, char *group, read_limit *allows)
{
    double least = INFINITY;
    for (;;) {
        char folder[4300];
        snprintf(folder, sizeof folder, "%s%s", root, group);
        least = fmin(least, allows(folder));
        char *slash = strrchr(group, '/');
        if (!slash) {
            return least;
        }
        *slash = '\0';
    }
}

/* Is it one of a comma-separated list? "cpu" is none of "cpuset,cpuacct". */
static bool lists(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Of all groups that this process is in, as /proc and /sys below `root` say. */
static double least_of_groups(const char *root, const char *controller, read_limit *unified,
                              read_limit *own)
{
    char line[4096], folder[512];
    double least = INFINITY;
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group) {
            continue;
        }
        *group++ = '\0';
        if (names[1] == '\0') {
            snprintf(folder, sizeof folder, "%s/sys/fs/cgroup", root);
            least = fmin(least, least_upwards(folder, group, unified));
        } else if (lists(names + 1, controller)) {
            snprintf(folder, sizeof folder, "%s/sys/fs/cgroup/%s", root, controller);
            least = fmin(least, least_upwards(folder, group, own));
        }
    }
    if (file) {
        fclose(file);
    }
    return least;
}

/* -- memory -- */

static double headroom(double most, double used)
{
    return isinf(most) || isinf(used) ? most : fmax(most - used, 0);
}

static double unified_memory(const char *folder)
{
    return headroom(read_number(folder, "memory.max"), read_number(folder, "memory.current"));
}

static double own_memory(const char *folder)
{
    return headroom(read_number(folder, "memory.limit_in_bytes"),
                    read_number(folder, "memory.usage_in_bytes"));
}

static double available_memory(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[256];
    unsigned long long kilobytes = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1) {
            break;
        }
    }
    if (file) {
        fclose(file);
    }
    return kilobytes ? (double)kilobytes * 1024 : INFINITY;
}

/* What the run takes beside its working sets: the fit's candidates, 9 MB, their columns, two of
 * 7 MB, and what libraries are mapped. */
static const size_t own_bytes = (size_t)26 << 20;
/* Nothing known: that hurts no machine that has PUs to measure. */
static const size_t usual_bytes = (size_t)1 << 30;

size_t probe_native_memory_limit(void)
{
    double group = least_of_groups("", "memory", unified_memory, own_memory),
           least = fmin(available_memory(), group);
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE),
           bytes = isinf(least) ? usual_bytes : (size_t)least;
    return bytes > own_bytes + page_bytes ? (bytes - own_bytes) / 2 : page_bytes;
}

/* -- time -- */

/* "150000 100000" or "max 100000": microseconds, of a period. */
static double unified_cpus(const char *folder)
{
    char path[4400];
    double quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    FILE *file = fopen(path, "re");
    int fields = file ? fscanf(file, "%lf %lf", &quota, &period) : 0;
    if (file) {
        fclose(file);
    }
    return fields == 2 && period > 0 ? quota / period : INFINITY;
}

static double own_cpus(const char *folder)
{
    double period = read_number(folder, "cpu.cfs_period_us");
    return isinf(period) ? INFINITY : read_number(folder, "cpu.cfs_quota_us") / period;
}

double probe_native_cpu_quota(const char *root)
{
    double least = least_of_groups(root, "cpu", unified_cpus, own_cpus);
    return least > 0 && !isinf(least) ? least : 0;
}
