/* Limits that the control groups of this process set: memory, and time on PUs.
 *
 * Every group above a process limits it, so the least of all counts. Under cgroup v2 one tree has
 * all controllers, under v1 each has its own, and both may be there at once; in a container the
 * path of /proc/self/cgroup may not exist, and its root stands for the group. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* The limit in one group's folder; INFINITY: none. *rc: set to what hides it, if anything does. */
typedef double profile_group_limit(const char *folder, int *rc);

/* A number in a file of a group; INFINITY: there is none, or it is -1 or "max". */
double profile_group_number(const char *folder, const char *name, int *rc);

/* The least limit of all groups of this process, by /proc and /sys below `root` ("": this machine):
 * `unified` reads those of v2, `own` those of a controller's own tree. */
double profile_group_least(const char *root, const char *controller, profile_group_limit *unified,
                           profile_group_limit *own, int *rc);

/* CPUs that the groups let this process use at a time, in the mean over a period: cpu.max (v2),
 * cpu.cfs_quota_us (v1). *cpus is 0 where there is no quota.
 *
 * 0; or *cpus is 0 too: -EACCES … (a group cannot be read), -EINVAL (it says something else),
 * -ERANGE (less than the kernel's least time, 1 ms a period, so that it cannot be meant). */
int profile_quota_read(const char *root, double *cpus);

/* How often a period of one of the groups ended without time left, of that where it did most often;
 * 0: in none, or it is not known. */
double profile_quota_throttled(const char *root);

/* Workers that pay in such a quota; 0: there is none. More of them only wait for the next
 * period. */
uint32_t profile_quota_workers(double cpus);
