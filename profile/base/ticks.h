/* How busy PUs have been, by the kernel's counters (/proc/stat): the one place that reads them.
 *
 * A PU that is not listed is unknown, neither busy nor idle: it is offline, or a container numbers
 * its PUs itself (lxcfs). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* USER_HZ is 100 everywhere. */
#define PROFILE_TICK_NS 10000000u
/* One tick, and what a reading takes: a PU that idles throughout gains one. */
#define PROFILE_TICKS_APART_NS 11000000u

/* Since the system started; `idle` counts waiting for disks, too. `all` is 0 where the PU is not
 * listed. */
struct profile_ticks {
    uint64_t all, idle, stolen;
};

/* Those of all PUs below `pus`. Allocates nothing, and calls the kernel alone. 0, -errno. */
int profile_ticks_get(struct profile_ticks *ticks, size_t pus);
/* The same from a file like it. */
int profile_ticks_read(const char *path, struct profile_ticks *ticks, size_t pus);

/* Ticks that a PU has idled between two readings; -1: unknown. (The kernel's count of waiting for
 * disks may go back, proc(5).) */
static inline int64_t profile_ticks_idled(const struct profile_ticks *before,
                                          const struct profile_ticks *now)
{
    return before->all > 0 && now->all > 0 && now->idle >= before->idle
               ? (int64_t)(now->idle - before->idle)
               : -1;
}
