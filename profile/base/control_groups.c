/* Limits of control groups, read as the kernel writes them. libc only: programs that tune
 * themselves ask, too. */
#include "profile/base/control_groups.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/base/file.h"

/* How many numbers there are, up to two: none in no file, and where there is no limit ("max"). */
static int read_numbers(const char *folder, const char *name, double numbers[2], int *rc)
{
    char path[4400], line[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    errno = 0;
    const bool there = profile_first_line(path, line, sizeof line);
    const int why = errno;
    const int found = sscanf(line, "%lf %lf", &numbers[0], &numbers[1]);
    if (!there && why && why != ENOENT && why != ENOTDIR) {
        *rc = -why;
    } else if (there && found <= 0 && strncmp(line, "max", 3) != 0) {
        *rc = -EINVAL;
    }
    return found;
}

double profile_group_number(const char *folder, const char *name, int *rc)
{
    double numbers[2];
    return read_numbers(folder, name, numbers, rc) > 0 && numbers[0] >= 0 ? numbers[0] : INFINITY;
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

/* The group itself and all above it. */
static double least_upwards(const char *root, char *group, profile_group_limit *allows, int *rc)
{
    double least = INFINITY;
    for (;;) {
        char folder[4300];
        snprintf(folder, sizeof folder, "%s%s", root, group);
        least = lesser(least, allows(folder, rc));
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

double profile_group_least(const char *root, const char *controller, profile_group_limit *unified,
                           profile_group_limit *own, int *rc)
{
    char text[8192], folder[512], *rest = text;
    double least = INFINITY;
    snprintf(folder, sizeof folder, "%s/proc/self/cgroup", root);
    profile_read_small(folder, text, sizeof text);
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group) {
            continue;
        }
        *group++ = '\0';
        if (names[1] == '\0') {
            snprintf(folder, sizeof folder, "%s/sys/fs/cgroup", root);
            least = lesser(least, least_upwards(folder, group, unified, rc));
        } else if (lists(names + 1, controller)) {
            snprintf(folder, sizeof folder, "%s/sys/fs/cgroup/%s", root, controller);
            least = lesser(least, least_upwards(folder, group, own, rc));
        }
    }
    return least;
}

/* -- of time -- */

/* The least that kernels grant (min_cfs_quota_period, kernel/sched/core.c). */
#define LEAST_QUOTA_US 1000.0

static double share_of_period(double quota_us, double period_us, int *rc)
{
    if (isinf(quota_us) || isinf(period_us)) {
        return INFINITY;
    }
    if (quota_us < LEAST_QUOTA_US || period_us < LEAST_QUOTA_US) {
        *rc = -ERANGE;
        return INFINITY;
    }
    return quota_us / period_us;
}

/* "150000 100000" or "max 100000": microseconds, of a period. */
static double unified_cpus(const char *folder, int *rc)
{
    double numbers[2];
    return read_numbers(folder, "cpu.max", numbers, rc) == 2
               ? share_of_period(numbers[0], numbers[1], rc)
               : INFINITY;
}

static double own_cpus(const char *folder, int *rc)
{
    return share_of_period(profile_group_number(folder, "cpu.cfs_quota_us", rc),
                           profile_group_number(folder, "cpu.cfs_period_us", rc), rc);
}

int profile_quota_read(const char *root, double *cpus)
{
    int rc = 0;
    const double least = profile_group_least(root, "cpu", unified_cpus, own_cpus, &rc);
    *cpus = isinf(least) ? 0 : least;
    return isinf(least) ? rc : 0;
}

/* The least of all is the most, below zero. */
static double less_throttled(const char *folder, int *rc)
{
    static const char key[] = "nr_throttled ";
    char path[4400], text[1024];
    (void)rc;
    snprintf(path, sizeof path, "%s/cpu.stat", folder);
    profile_read_small(path, text, sizeof text);
    const char *at = strstr(text, key);
    return at ? -strtod(at + sizeof key - 1, NULL) : 0;
}

double profile_quota_throttled(const char *root)
{
    int rc = 0;
    const double least = profile_group_least(root, "cpu", less_throttled, less_throttled, &rc);
    return isinf(least) ? 0 : -least;
}

uint32_t profile_quota_workers(double cpus)
{
    const double rounding = 0.005; /* of a quota that is given in microseconds of a period */
    return cpus <= 0 ? 0 : cpus < 1 ? 1 : (uint32_t)(cpus + rounding);
}
